// Proves that a packet is accepted only if it passes every check that needs no slot, and is
// otherwise refused with the first failed check, in the order of section 5 of driver/wire/SPEC.md.
// Proves which row and slots are read for a packet or an overdue slot. The jobs' configuration does
// not change meanwhile.

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
    input wire [           102:0] request,
    input wire                    act,
    input wire [             2:0] act_slot,
    input wire                    act_job,
    input wire [        JOBS-1:0] job_valid,
    input wire [        JOBS-1:0] job_complete,
    input wire [     16*JOBS-1:0] job_epoch,
    input wire [     16*JOBS-1:0] job_chunk,
    input wire [     32*JOBS-1:0] job_first,
    input wire [        JOBS-1:0] job_partial,
    input wire [      3*JOBS-1:0] job_window,
    input wire [      3*JOBS-1:0] slot_mask,
    input wire [      3*JOBS-1:0] slot_base,
    input wire [  PORTS*JOBS-1:0] member,
    input wire [  PORTS*JOBS-1:0] present,
    input wire [  PORTS*JOBS-1:0] evicted,
    input wire [8*PORTS*JOBS-1:0] rank_of_port
);

  `include "zwire.vh"

  wire read, acts, refused, data, ask, finish;
  wire [1:0] read_row;
  wire [2:0] read_slot, read_other, read_window, read_mask;
  wire [31:0] read_vid, read_first;
  wire belongs, of_data, placed, ended, writable, nonfinite, partial, index;
  wire [7:0] code, job, rank;
  wire [1:0] ecn;
  wire [PORTS-1:0] from_ports, waits_for, gone;
  wire [ 1:0] from_port;
  wire [15:0] epoch;

  agg_commit #(
      .PORTS(PORTS),
      .PORT_BITS(2),
      .JOBS(JOBS),
      .JOB_BITS(1),
      .SLOT_BITS(3),
      .ROW_BITS(2),
      .FORMAT(FORMAT)
  ) dut (
      .clk(clk),
      .rst(rst),
      .valid(valid),
      .ports(ports),
      .port(port),
      .request(request),
      .act(act),
      .act_slot(act_slot),
      .act_job(act_job),
      .job_valid(job_valid),
      .job_complete(job_complete),
      .job_epoch(job_epoch),
      .job_chunk(job_chunk),
      .job_first(job_first),
      .job_partial(job_partial),
      .job_window(job_window),
      .slot_mask(slot_mask),
      .slot_base(slot_base),
      .member(member),
      .present(present),
      .evicted(evicted),
      .rank_of_port(rank_of_port),
      .read(read),
      .read_row(read_row),
      .read_slot(read_slot),
      .read_other(read_other),
      .read_vid(read_vid),
      .read_window(read_window),
      .read_mask(read_mask),
      .read_first(read_first),
      .acts(acts),
      .refused(refused),
      .data(data),
      .ask(ask),
      .finish(finish),
      .code(code),
      .belongs(belongs),
      .of_data(of_data),
      .placed(placed),
      .ended(ended),
      .writable(writable),
      .nonfinite(nonfinite),
      .ecn(ecn),
      .job(job),
      .index(index),
      .epoch(epoch),
      .rank(rank),
      .from_ports(from_ports),
      .from_port(from_port),
      .waits_for(waits_for),
      .gone(gone),
      .partial(partial)
  );

  reg was_reset = 1'b0;

  // The operation's cycle, and its inputs in C2
  reg in_c3 = 1'b0, in_c4 = 1'b0, in_c5 = 1'b0, in_c6 = 1'b0;
  reg is_packet, is_act, act_job_was;
  reg [2:0] act_slot_was;
  reg [1:0] row_was;
  reg [1:0] port_was;
  reg [PORTS-1:0] ports_was;
  reg [102:0] request_was;
  wire [(76+11*PORTS)*JOBS-1:0] config_now = {
    job_valid,
    job_complete,
    job_epoch,
    job_chunk,
    job_first,
    job_partial,
    job_window,
    slot_mask,
    slot_base,
    member,
    present,
    evicted,
    rank_of_port
  };
  reg [(76+11*PORTS)*JOBS-1:0] config_was;

  // The request, in agg_ingress's layout
  wire entered, is_writable, is_nonfinite, bad, whole;
  wire [15:0] length, its_epoch;
  wire [31:0] its_vid;
  wire [7:0] its_rank, its_job, format;
  wire [1:0] its_ecn;
  wire [3:0] kind, version;
  assign {entered, is_writable, is_nonfinite, bad, whole, length, its_vid} = request_was[102:50];
  assign {its_rank, its_epoch, format, its_job, its_ecn, kind, version} = request_was[49:0];

  wire is_data = kind == KIND_DATA;
  wire is_finish = kind == KIND_FINISH;
  wire odd = is_act ? act_job_was : its_job[0];  // which of the two jobs it is, if either
  wire running = its_job < JOBS && (odd ? job_valid[1] : job_valid[0]);
  wire complete = odd ? job_complete[1] : job_complete[0];
  wire [15:0] epoch_now = odd ? job_epoch[31:16] : job_epoch[15:0];
  wire [15:0] chunk = odd ? job_chunk[31:16] : job_chunk[15:0];
  wire [31:0] first = odd ? job_first[63:32] : job_first[31:0];
  wire [2:0] window = odd ? job_window[5:3] : job_window[2:0];
  wire [2:0] mask = odd ? slot_mask[5:3] : slot_mask[2:0];
  wire [2:0] base = odd ? slot_base[5:3] : slot_base[2:0];
  wire [PORTS-1:0] members = odd ? member[PORTS+:PORTS] : member[0+:PORTS];
  wire [PORTS-1:0] rest = odd ? present[PORTS+:PORTS] : present[0+:PORTS];
  wire [PORTS-1:0] left = odd ? evicted[PORTS+:PORTS] : evicted[0+:PORTS];
  wire [8*PORTS-1:0] ranks = odd ? rank_of_port[8*PORTS+:8*PORTS] : rank_of_port[0+:8*PORTS];
  wire [7:0] port_rank = ranks >> 8 * port_was;
  wire [2:0] slot = is_act ? act_slot_was : base | (its_vid[2:0] & mask);

  wire good_version = version == VERSION;
  wire good_kind = is_data || is_finish || kind == KIND_ASK;
  wire repeats = is_finish && complete && its_epoch == epoch_now;  // repeats its last finish
  wire good_job = its_job < JOBS && (running || repeats);
  wire good_epoch = its_epoch == epoch_now;
  wire good_rank = members[port_was] && its_rank == port_rank;
  wire good_format = !is_data || format == FORMAT;
  wire good_length = !is_data || (length == chunk && whole);
  wire good_payload = !is_data || !bad;
  wire good_member = !left[port_was];
  wire good_header =
      good_version && good_kind && good_job && good_epoch && good_rank && good_member;
  wire good = good_header && good_format && good_length && good_payload;

  always @(posedge clk) begin
    was_reset <= 1'b1;
    in_c3 <= (valid || act) && !rst;
    in_c4 <= in_c3 && !rst;
    in_c5 <= in_c4 && !rst;
    in_c6 <= in_c5 && !rst;
    config_was <= config_now;
  end

  // Any operation is watched, but none that begins before the former's end.
  reg busy = 1'b0;  // C3 to C6 of one
  reg [1:0] step;
  (* anyseq *) reg chosen;
  wire starts = (valid || act) && !rst && (!busy || step == 2'd3) && chosen;

  always @(posedge clk) begin
    busy <= !rst && (starts || (busy && step != 2'd3));
    step <= starts ? 2'd0 : step + 1'b1;
    if (starts) begin
      is_packet <= valid;
      is_act <= act;
      {act_slot_was, act_job_was, port_was, ports_was} <= {act_slot, act_job, port, ports};
      request_was <= request;
      row_was <= read_row;
    end
  end

  wire at_c3 = busy && step == 2'd0;
  wire at_c4 = busy && step == 2'd1;
  wire at_c5 = busy && step == 2'd2;
  wire at_c6 = busy && step == 2'd3;

  always @* begin
    assume (!valid || (port < PORTS && ports == 1 << port));  // the request's port
    assume (!(valid && act));
    // agg_arbiter: the fields of the other kind are 0.
    assume (!act || request == 0);
    assume (!valid || (act_slot == 0 && act_job == 0));
    assume (!(in_c3 && (valid || act)));  // agg_arbiter: every second cycle at most
    // agg_jobs: the configuration stays.
    assume (!(in_c3 || in_c4 || in_c5 || in_c6) || config_now == config_was);
    // agg_deadlines: the overdue slot is its job's.
    if (act && act_job) assume ((act_slot & ~slot_mask[5:3]) == slot_base[5:3]);
    if (act && !act_job) assume ((act_slot & ~slot_mask[2:0]) == slot_base[2:0]);
    // A job's slots begin at a multiple of their number, a power of two.
    assume ((slot_mask & slot_base) == 0 && (job_window & ~slot_mask) == 0);
    assume ((slot_mask[5:3] & (slot_mask[5:3] + 3'd1)) == 0);
    assume ((slot_mask[2:0] & (slot_mask[2:0] + 3'd1)) == 0);

    assume (was_reset || rst);
    assert (read == (valid || act));
    if (was_reset && !in_c5) assert (!acts && !refused && !data && !ask && !finish);
    if (at_c3) assert (in_c3);
    if (at_c4) assert (in_c4);
    if (at_c5) assert (in_c5);
    if (at_c6) assert (in_c6);
    if (at_c3 || at_c4) begin
      assert (read_slot == slot && read_other == (slot ^ window));
      assert (row_was == (base >> 1 | (slot & mask >> 1)));
      assert (read_window == window && read_mask == mask);
      assert (read_first == first);
      if (is_packet) assert (read_vid == its_vid);
    end
    if (at_c5) begin
      assert (acts == is_act);
      assert (data == (is_packet && good && is_data));
      assert (ask == (is_packet && good && kind == KIND_ASK));
      assert (finish == (is_packet && good && is_finish));
      assert (refused == (is_packet && !good));
      assert (!data || running);
    end
    if (at_c5 || at_c6) begin
      assert (index == odd && waits_for == rest && gone == left);
      assert (partial == (odd ? job_partial[1] : job_partial[0]));
    end
    if ((at_c5 || at_c6) && is_packet) begin
      assert (belongs == good_rank && of_data == is_data && placed == running);
      assert (ended == (entered && good_version && good_kind && !good_job));
      assert (from_port == port_was && from_ports == ports_was);
      assert ({writable, nonfinite, rank} == {is_writable, is_nonfinite, its_rank});
      assert ({epoch, job, ecn} == {its_epoch, its_job, its_ecn});
      if (!good) begin
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
    end
    cover (at_c5 && finish && !running && odd);
    cover (at_c5 && refused && code == CODE_PAYLOAD_CRC);
    cover (at_c5 && data && in_c3);
    cover (at_c5 && acts && read_slot != read_other);
  end

endmodule

`default_nettype wire
