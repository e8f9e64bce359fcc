// Proves that a packet is accepted only if it passes every check that needs no slot, and is
// otherwise refused with the first failed check, in the order of section 5 of driver/wire/SPEC.md.
// The job's configuration is that of the request's cycle, job_valid that of the next.

`default_nettype none

module commit #(
    parameter integer PORTS = 3,
    parameter integer JOBS = 2,
    parameter [7:0] FORMAT = 8'd1
) (
    input wire                    clk,
    input wire                    rst,
    input wire                    valid,
    input wire [       PORTS-1:0] ports,
    input wire [             1:0] port,
    input wire [           101:0] request,
    input wire                    act_next,
    input wire [             1:0] act_slot,
    input wire                    act_job,
    input wire [        JOBS-1:0] job_valid,
    input wire [        JOBS-1:0] job_complete,
    input wire [     16*JOBS-1:0] job_epoch,
    input wire [     16*JOBS-1:0] job_chunk,
    input wire [      2*JOBS-1:0] slot_mask,
    input wire [      2*JOBS-1:0] slot_base,
    input wire [  PORTS*JOBS-1:0] member,
    input wire [  PORTS*JOBS-1:0] evicted,
    input wire [8*PORTS*JOBS-1:0] rank_of_port
);

  `include "zwire.vh"

  wire refused, belongs, data, ask, finish, writable, nonfinite;
  wire [7:0] code, job, rank;
  wire [      1:0] ecn;
  wire             index;
  wire [      1:0] slot;
  wire [PORTS-1:0] from_ports;
  wire [      1:0] from_port;
  wire [     15:0] epoch;
  wire [     31:0] vid;

  agg_commit #(
      .PORTS(PORTS),
      .PORT_BITS(2),
      .JOBS(JOBS),
      .JOB_BITS(1),
      .SLOT_BITS(2),
      .FORMAT(FORMAT)
  ) dut (
      .clk(clk),
      .rst(rst),
      .valid(valid),
      .ports(ports),
      .port(port),
      .request(request),
      .act_next(act_next),
      .act_slot(act_slot),
      .act_job(act_job),
      .job_valid(job_valid),
      .job_complete(job_complete),
      .job_epoch(job_epoch),
      .job_chunk(job_chunk),
      .slot_mask(slot_mask),
      .slot_base(slot_base),
      .member(member),
      .evicted(evicted),
      .rank_of_port(rank_of_port),
      .refused(refused),
      .code(code),
      .belongs(belongs),
      .data(data),
      .ask(ask),
      .finish(finish),
      .writable(writable),
      .nonfinite(nonfinite),
      .ecn(ecn),
      .job(job),
      .index(index),
      .slot(slot),
      .epoch(epoch),
      .rank(rank),
      .vid(vid),
      .from_ports(from_ports),
      .from_port(from_port)
  );

  // The inputs of the previous cycle
  reg was = 1'b0;
  reg valid_was, act_was, act_job_was;
  reg [1:0] port_was, act_slot_was;
  reg [PORTS-1:0] ports_was;
  reg [101:0] request_was;
  reg [16*JOBS-1:0] epoch_was, chunk_was;
  reg [2*JOBS-1:0] mask_was, base_was;
  reg [PORTS*JOBS-1:0] member_was, evicted_was;
  reg [8*PORTS*JOBS-1:0] ranks_was;

  always @(posedge clk) begin
    was <= 1'b1;
    valid_was <= valid && !rst;
    port_was <= port;
    ports_was <= ports;
    request_was <= request;
    act_was <= act_next;
    act_slot_was <= act_slot;
    act_job_was <= act_job;
    epoch_was <= job_epoch;
    chunk_was <= job_chunk;
    mask_was <= slot_mask;
    base_was <= slot_base;
    member_was <= member;
    evicted_was <= evicted;
    ranks_was <= rank_of_port;
  end

  // The request, in agg_ingress's layout.
  wire [15:0] length;
  wire [ 7:0] format;
  wire [3:0] kind, version;
  wire is_writable, is_nonfinite, bad, whole;
  wire [31:0] its_vid;
  wire [7:0] its_rank, its_job;
  wire [15:0] its_epoch;
  wire [ 1:0] its_ecn;
  assign {is_writable, is_nonfinite, bad, whole, length, its_vid, its_rank} = request_was[101:42];
  assign {its_epoch, format, its_job, its_ecn, kind, version} = request_was[41:0];

  wire is_data = kind == KIND_DATA;
  wire is_finish = kind == KIND_FINISH;
  wire odd = its_job[0];  // which of the two jobs it is, if either
  wire running = odd ? job_valid[1] : job_valid[0];
  wire complete = odd ? job_complete[1] : job_complete[0];
  wire [15:0] epoch_now = odd ? epoch_was[31:16] : epoch_was[15:0];
  wire [15:0] chunk = odd ? chunk_was[31:16] : chunk_was[15:0];
  wire [PORTS-1:0] members = odd ? member_was[PORTS+:PORTS] : member_was[0+:PORTS];
  wire [PORTS-1:0] gone = odd ? evicted_was[PORTS+:PORTS] : evicted_was[0+:PORTS];
  wire [8*PORTS-1:0] ranks = odd ? ranks_was[8*PORTS+:8*PORTS] : ranks_was[0+:8*PORTS];
  wire [1:0] mask = odd ? mask_was[3:2] : mask_was[1:0];
  wire [1:0] base = odd ? base_was[3:2] : base_was[1:0];
  wire [7:0] port_rank = ranks >> 8 * port_was;

  wire good_version = version == VERSION;
  wire good_kind = is_data || is_finish || kind == KIND_ASK;
  wire repeats = is_finish && complete && its_epoch == epoch_now;  // repeats its last finish
  wire good_job = its_job < JOBS && (running || repeats);
  wire good_epoch = its_epoch == epoch_now;
  wire good_rank = members[port_was] && its_rank == port_rank;
  wire good_format = !is_data || format == FORMAT;
  wire good_length = !is_data || (length == chunk && whole);
  wire good_payload = !is_data || !bad;
  wire good_member = !gone[port_was];
  wire good_header =
      good_version && good_kind && good_job && good_epoch && good_rank && good_member;
  wire good = good_header && good_format && good_length && good_payload;

  always @* begin
    assume (port < PORTS);  // the request's port
    assume (!(valid && act_next));  // agg_deadlines: packets are paused
    if (was) begin
      assert (data == (valid_was && good && is_data));
      assert (ask == (valid_was && good && kind == KIND_ASK));
      assert (finish == (valid_was && good && is_finish));
      assert (refused == (valid_was && !good));
      assert (belongs == good_rank);
      assert (!data || running);
      assert (index == (act_was ? act_job_was : odd));
      assert (slot == (act_was ? act_slot_was : base | (its_vid[1:0] & mask)));
      assert (from_port == port_was && from_ports == ports_was);
      if (refused) begin
        if (!good_version)
          assert (code == CODE_BAD_VERSION);
          else if (!good_kind)
            assert (code == CODE_BAD_KIND);
            else if (!good_job)
              assert (code == CODE_BAD_JOB);
              else if (!good_epoch)
                assert (code == CODE_BAD_EPOCH);
                else if (!good_rank)
                  assert (code == CODE_BAD_RANK);
                  else if (!good_member)
                    assert (code == CODE_EVICTED);
                    else if (!good_format)
                      assert (code == CODE_BAD_FORMAT);
                      else if (!good_length)
                        assert (code == CODE_BAD_LENGTH);
                        else assert (code == CODE_PAYLOAD_CRC);
      end
      assert ({writable, nonfinite, vid, rank} == {is_writable, is_nonfinite, its_vid, its_rank});
      assert ({epoch, job, ecn} == {its_epoch, its_job, its_ecn});
      cover (finish && !running && odd);
      cover (refused && code == CODE_PAYLOAD_CRC);
      cover (data && act_next);
    end
  end

endmodule

`default_nettype wire
