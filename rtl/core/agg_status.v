// Holds the latest status for each port and one notice for several ports, and picks one that its
// port can take.
//
// An answer is always kept. A refusal is kept if its sender is known and no refusal of any port was
// kept in the last 1,024 cycles. A port's next status replaces one not yet sent. A notice is sent
// to each of its ports as a status, with the port's rank; the next notice replaces what was not
// sent of it.
//
// Statuses and notices of an ending job are dropped; a status belongs to the job in the low bits of
// the packet's job number. The pick rotates among ports, and alternates between statuses and the
// notice. Latency: an answer in cycle 0 can be picked in cycle 1. Not done here: counting all
// refusals (agg_counters).

`default_nettype none

module agg_status #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1
) (
    input wire clk,
    input wire rst,
    input wire [JOBS-1:0] drop,  // drop pending statuses of these jobs

    // Reply to a packet; at most one of answer and refuse
    input wire                 answer,
    input wire [          7:0] answer_code,
    input wire [    PORTS-1:0] answer_mask,  // ranks; also for a notice
    input wire                 refuse,
    input wire [          7:0] refuse_code,
    input wire [PORT_BITS-1:0] port,
    input wire [          7:0] job,
    input wire [         15:0] epoch,
    input wire [          7:0] rank,
    input wire [         31:0] vid,

    // A notice, which no packet requested
    input wire                notice,
    input wire [   PORTS-1:0] notice_ports,
    input wire [         7:0] notice_code,
    input wire [JOB_BITS-1:0] notice_job,
    input wire [        15:0] notice_epoch,
    input wire [        31:0] notice_vid,
    input wire [ 8*PORTS-1:0] notice_ranks,  // of all ports in that job

    input wire [PORTS-1:0] ready,  // ports that can take a status

    output wire                 pick_valid,
    output wire [PORT_BITS-1:0] pick_port,
    output wire [          7:0] pick_job,
    output wire [         15:0] pick_epoch,
    output wire [          7:0] pick_rank,
    output wire [          7:0] pick_code,
    output wire [         31:0] pick_vid,
    output wire [    PORTS-1:0] pick_mask,
    input  wire                 pick_take
);

  localparam integer STATUS_WIDTH = 72 + PORTS;
  localparam [PORTS-1:0] ONE_PORT = 1;
  localparam [9:0] PAUSE = 10'd1023;  // minimum cycles between refusals

  reg [STATUS_WIDTH-1:0] statuses[0:PORTS-1];
  reg [JOB_BITS*PORTS-1:0] job_of_reg;  // of each port's status
  reg [PORTS-1:0] waits_reg;
  reg [PORTS-1:0] above_reg;  // ports above the last pick
  reg [9:0] pause_reg;

  reg [PORTS-1:0] told_reg;  // ports still to be sent the notice
  reg [JOB_BITS-1:0] told_job_reg;
  reg [STATUS_WIDTH-9:0] notice_reg;
  reg [8*PORTS-1:0] ranks_reg;
  reg after_status_reg;  // the last pick was not the notice

  // -- Store --------------------------------------------------------------------------------------

  wire [JOB_BITS-1:0] job_index = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];
  wire refuses = refuse && pause_reg == 10'd0;
  wire keep = (answer || refuses) && !drop[job_index];
  wire [7:0] code = answer ? answer_code : refuse_code;
  wire [PORTS-1:0] mask = answer ? answer_mask : {PORTS{1'b0}};
  wire [PORTS-1:0] kept = keep ? ONE_PORT << port : {PORTS{1'b0}};

  reg [PORTS-1:0] dropped;
  integer d;

  always @* begin
    for (d = 0; d < PORTS; d = d + 1) dropped[d] = drop[job_of_reg[JOB_BITS*d+:JOB_BITS]];
  end

  // -- Pick ---------------------------------------------------------------------------------------

  wire [PORTS-1:0] can_tell = told_reg & ready;
  wire [PORTS-1:0] can_send = waits_reg & ready;
  wire tells = |can_tell && (after_status_reg || ~|can_send);

  wire [PORTS-1:0] can = tells ? can_tell : can_send;
  wire [PORTS-1:0] ahead = can & above_reg;
  wire [PORTS-1:0] among = |ahead ? ahead : can;
  wire [PORTS-1:0] lowest = among & (~among + 1'b1);
  wire [PORTS-1:0] taken = pick_take ? lowest : {PORTS{1'b0}};

  reg [PORT_BITS-1:0] index;
  integer p;

  always @* begin
    index = {PORT_BITS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) if (lowest[p]) index = p[PORT_BITS-1:0];
  end

  wire [7:0] told_rank = ranks_reg[8*index+:8];
  wire [STATUS_WIDTH-1:0] pick = tells ? {notice_reg, told_rank} : statuses[index];

  // -----------------------------------------------------------------------------------------------

  always @(posedge clk) begin
    if (keep) begin
      statuses[port] <= {mask, vid, code, epoch, job, rank};
      job_of_reg[JOB_BITS*port+:JOB_BITS] <= job_index;
    end
    waits_reg <= (waits_reg & ~dropped & (tells ? {PORTS{1'b1}} : ~taken)) | kept;
    if (pick_take) begin
      above_reg        <= ~(lowest | (lowest - 1'b1));
      after_status_reg <= !tells;
    end
    if (refuses) pause_reg <= PAUSE;
    else if (pause_reg != 10'd0) pause_reg <= pause_reg - 10'd1;

    if (tells) told_reg <= told_reg & ~taken;
    if (notice) begin
      told_reg <= notice_ports;
      told_job_reg <= notice_job;
      notice_reg <= {
        answer_mask, notice_vid, notice_code, notice_epoch, {8 - JOB_BITS{1'b0}}, notice_job
      };
      ranks_reg <= notice_ranks;
    end
    if (notice ? drop[notice_job] : drop[told_job_reg]) told_reg <= {PORTS{1'b0}};

    if (rst) begin
      waits_reg        <= {PORTS{1'b0}};
      above_reg        <= {PORTS{1'b0}};
      pause_reg        <= 10'd0;
      told_reg         <= {PORTS{1'b0}};
      told_job_reg     <= {JOB_BITS{1'b0}};
      after_status_reg <= 1'b0;
    end
  end

  assign pick_valid = |can;
  assign pick_port = index;
  assign {pick_mask, pick_vid, pick_code, pick_epoch, pick_job, pick_rank} = pick;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any port: its pending status and notice.
  (* anyconst *) reg [PORT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg waits, told;
  reg [STATUS_WIDTH-1:0] its, notice_its;
  reg [JOB_BITS-1:0] its_job, notice_its_job;
  reg [9:0] since;  // cycles since the last refusal that was kept
  wire mine = port == watched;
  wire it_keeps = mine && (answer || (refuse && since == PAUSE)) && !drop[job_index];
  wire it_is_sent = pick_take && pick_port == watched && !tells;
  wire it_is_told = pick_take && pick_port == watched && tells;
  wire [PORTS-1:0] bit_ = 1 << watched;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    since <= refuse && since == PAUSE ? 0 : since == PAUSE ? since : since + 1;
    if (drop[its_job] || it_is_sent) waits <= 1'b0;
    if (it_keeps) begin
      waits <= 1'b1;
      its <= {
        answer ? answer_mask : {PORTS{1'b0}},
        vid,
        answer ? answer_code : refuse_code,
        epoch,
        job,
        rank
      };
    end
    if (it_keeps) its_job <= job_index;
    if (it_is_told) told <= 1'b0;
    if (notice) begin
      told <= |(notice_ports & bit_);
      notice_its_job <= notice_job;
      notice_its <= {
        answer_mask,
        notice_vid,
        notice_code,
        notice_epoch,
        {8 - JOB_BITS{1'b0}},
        notice_job,
        notice_ranks[8*watched+:8]
      };
    end
    if (drop[notice?notice_job : notice_its_job]) told <= 1'b0;
    if (rst) begin
      waits <= 1'b0;
      told <= 1'b0;
      since <= PAUSE;
      notice_its_job <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      // agg_slots: one event at a time. agg_egress takes only valid picks.
      `PROMISED(answer + refuse + notice <= 1);
      `PROMISED(!pick_take || pick_valid);
    end
    if (was_reset && !rst) begin
      assert (waits == waits_reg[watched] && told == told_reg[watched]);
      assert (since <= PAUSE && pause_reg == PAUSE - since);
      if (waits)
        assert (statuses[watched] == its && job_of_reg[JOB_BITS*watched+:JOB_BITS] == its_job);
      if (told) assert ({notice_reg, ranks_reg[8*watched+:8]} == notice_its);
      assert (told_job_reg == notice_its_job);

      // A pick is for a port that can take it; with no pick, nothing that could be sent is pending.
      if (pick_valid && pick_port == watched) begin
        assert (ready[watched] && (tells ? told : waits));
        assert ({pick_mask, pick_vid, pick_code, pick_epoch, pick_job, pick_rank} ==
                (tells ? notice_its : its));
      end
      if (ready[watched] && (waits || told)) assert (pick_valid);

      cover (it_is_told && waits);
      cover (it_is_sent && told && it_keeps);
      cover (drop[its_job] && waits && told && its_job != notice_its_job);
    end
  end
`endif

endmodule

`default_nettype wire
