// Holds the latest status for each port and one notice for several ports, and picks one that its
// port can take.
//
// An answer is always kept. A refusal is kept if its sender is known and no refusal of any port was
// kept in the last 1,024 cycles. A port's next status replaces one not yet picked. A notice is sent
// to each of its ports as a status, with the port's rank; the next notice replaces what was not
// picked of it.
//
// A job's statuses and notice are dropped in the cycle after drop; a status belongs to the job in
// the low bits of the packet's job number. The pick rotates among ports, and alternates between statuses and the
// notice. A candidate of each kind is chosen in four steps of one cycle, whether or not pick_ready
// is high. In a cycle with pick_ready, one that is still pending is picked if its port is ready. The
// pick is shown in the next cycle, and its fields from the cycle after that to the one after the
// next pick_valid. Latency: an answer in cycle 0 can be picked in cycle 5, is shown in cycle 6 and
// has its fields in cycle 7. Not done here: counting all refusals (agg_counters).

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
`ifdef AGG_PARENT
    input wire [         63:0] answer_mask,  // global ranks; also for a notice
`else
    input wire [    PORTS-1:0] answer_mask,  // ranks; also for a notice
`endif
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

    input wire [PORTS-1:0] ready,  // in a cycle with pick_ready: ports that can take a status

    output wire             pick_wants,  // there is a candidate
    input  wire             pick_ready,  // pick; not in consecutive cycles
    output wire             pick_valid,
    output wire [PORTS-1:0] pick_ports,  // the port, one-hot

    // One cycle later
`ifdef AGG_PARENT
    output wire [ 7:0] pick_job,
    output wire [15:0] pick_epoch,
    output wire [ 7:0] pick_rank,
    output wire [ 7:0] pick_code,
    output wire [31:0] pick_vid,
    output wire [63:0] pick_mask
`else
    output wire [      7:0] pick_job,
    output wire [     15:0] pick_epoch,
    output wire [      7:0] pick_rank,
    output wire [      7:0] pick_code,
    output wire [     31:0] pick_vid,
    output wire [PORTS-1:0] pick_mask
`endif
);

`ifdef AGG_PARENT
  localparam integer STATUS_WIDTH = 72 + 64;
`else
  localparam integer STATUS_WIDTH = 72 + PORTS;
`endif
  localparam [PORTS-1:0] ONE_PORT = 1;
  localparam [10:0] PAUSE = 11'd1024;  // minimum cycles from one refusal to the next

  reg [STATUS_WIDTH-1:0] statuses[0:PORTS-1];
  reg [JOB_BITS*PORTS-1:0] job_of_reg;  // of each port's status
  reg [PORTS-1:0] waits_reg;
  reg [10:0] pause_reg;  // cycles since the last refusal; the highest bit allows the next

  reg [PORTS-1:0] told_reg;  // ports still to be sent the notice
  reg [JOB_BITS-1:0] told_job_reg;
  reg [STATUS_WIDTH-9:0] notice_reg;
  reg [8*PORTS-1:0] ranks_reg;
  reg after_status_reg;  // the last pick was a status
  reg [JOBS-1:0] drop_reg;

  always @(posedge clk) drop_reg <= drop;

  // -- Store --------------------------------------------------------------------------------------

  wire [JOB_BITS-1:0] job_index = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];
  wire refuses = refuse && pause_reg[10];
  wire keep = (answer || refuses) && !drop_reg[job_index];
  wire [7:0] code = answer ? answer_code : refuse_code;
`ifdef AGG_PARENT
  wire [63:0] mask = answer ? answer_mask : 64'd0;
`else
  wire [PORTS-1:0] mask = answer ? answer_mask : {PORTS{1'b0}};
`endif
  wire [PORTS-1:0] kept = keep ? ONE_PORT << port : {PORTS{1'b0}};

  reg [PORTS-1:0] dropped;
  wire notice_dropped = notice ? drop_reg[notice_job] : drop_reg[told_job_reg];
  integer d;

  always @* begin
    for (d = 0; d < PORTS; d = d + 1) dropped[d] = drop_reg[job_of_reg[JOB_BITS*d+:JOB_BITS]];
  end

  // -- Candidate ----------------------------------------------------------------------------------

  // Ports that could be sent a status; those that are next in turn; the first of them; the same and
  // its number, if its status is still pending. No pick was made in the cycle before a pick, so
  // there only a drop can end that. The same for the notice, which the next notice can end too
  reg [PORTS-1:0] can_send_reg, among_send_reg, lowest_send_reg, send_reg;
  reg [PORTS-1:0] can_tell_reg, among_tell_reg, lowest_tell_reg, tell_reg;
  reg [PORTS-1:0] above_send_reg, above_tell_reg;  // ports above the last pick
  reg [PORT_BITS-1:0] send_index_reg, tell_index_reg;
  reg wants_reg;

  wire [PORTS-1:0] ahead_send = can_send_reg & above_send_reg;
  wire [PORTS-1:0] ahead_tell = can_tell_reg & above_tell_reg;

  reg [PORT_BITS-1:0] send_index, tell_index;
  integer p;

  always @* begin
    send_index = {PORT_BITS{1'b0}};
    tell_index = {PORT_BITS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (lowest_send_reg[p]) send_index = send_index | p[PORT_BITS-1:0];
      if (lowest_tell_reg[p]) tell_index = tell_index | p[PORT_BITS-1:0];
    end
  end

  always @(posedge clk) begin
    can_send_reg    <= waits_reg & ready;
    among_send_reg  <= |ahead_send ? ahead_send : can_send_reg;
    lowest_send_reg <= among_send_reg & (~among_send_reg + 1'b1);
    send_reg        <= lowest_send_reg & waits_reg & ~dropped;
    send_index_reg  <= send_index;
    can_tell_reg    <= told_reg & ready;
    among_tell_reg  <= |ahead_tell ? ahead_tell : can_tell_reg;
    lowest_tell_reg <= among_tell_reg & (~among_tell_reg + 1'b1);
    tell_reg        <= notice || notice_dropped ? {PORTS{1'b0}} : lowest_tell_reg & told_reg;
    tell_index_reg  <= tell_index;
    wants_reg       <= |(lowest_send_reg | lowest_tell_reg);
    if (rst) begin
      send_reg  <= {PORTS{1'b0}};
      tell_reg  <= {PORTS{1'b0}};
      wants_reg <= 1'b0;
    end
  end

  // -- Pick ---------------------------------------------------------------------------------------

  wire can_send = |(send_reg & ready);
  wire can_tell = |(tell_reg & ready);
  wire sends = pick_ready && can_send && !(can_tell && after_status_reg);
  wire tells = pick_ready && can_tell && !(can_send && !after_status_reg);

  reg pick_reg, tells_reg;
  reg [PORTS-1:0] ports_reg;
  // Of the candidates in the last cycle, and of the pick
  reg [STATUS_WIDTH-1:0] send_fields_reg, tell_fields_reg, fields_reg;

  always @(posedge clk) begin
    if (keep) begin
      statuses[port] <= {mask, vid, code, epoch, job, rank};
      job_of_reg[JOB_BITS*port+:JOB_BITS] <= job_index;
    end
    waits_reg <= (waits_reg & ~dropped & ~(sends ? send_reg : {PORTS{1'b0}})) | kept;
    pick_reg  <= sends || tells;
    tells_reg <= tells;
    if (pick_ready) ports_reg <= tells ? tell_reg : send_reg;
    send_fields_reg <= statuses[send_index_reg];
    tell_fields_reg <= {notice_reg, ranks_reg[8*tell_index_reg+:8]};
    if (pick_reg) fields_reg <= tells_reg ? tell_fields_reg : send_fields_reg;
    if (sends) begin
      above_send_reg   <= ~(send_reg | (send_reg - 1'b1));
      after_status_reg <= 1'b1;
    end
    if (tells) begin
      above_tell_reg   <= ~(tell_reg | (tell_reg - 1'b1));
      after_status_reg <= 1'b0;
    end
    if (refuses) pause_reg <= 11'd1;
    else if (!pause_reg[10]) pause_reg <= pause_reg + 11'd1;

    if (tells) told_reg <= told_reg & ~tell_reg;
    if (notice) begin
      told_reg <= notice_ports;
      told_job_reg <= notice_job;
      notice_reg <= {
        answer_mask, notice_vid, notice_code, notice_epoch, {8 - JOB_BITS{1'b0}}, notice_job
      };
      ranks_reg <= notice_ranks;
    end
    if (notice_dropped) told_reg <= {PORTS{1'b0}};

    if (rst) begin
      waits_reg        <= {PORTS{1'b0}};
      above_send_reg   <= {PORTS{1'b0}};
      above_tell_reg   <= {PORTS{1'b0}};
      pause_reg        <= PAUSE;
      told_reg         <= {PORTS{1'b0}};
      told_job_reg     <= {JOB_BITS{1'b0}};
      after_status_reg <= 1'b0;
      pick_reg         <= 1'b0;
    end
  end

  assign pick_wants = wants_reg;
  assign pick_valid = pick_reg;
  assign pick_ports = ports_reg;
  assign {pick_mask, pick_vid, pick_code, pick_epoch, pick_job, pick_rank} = fields_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any port: its pending status and notice.
  (* anyconst *) reg [PORT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg waits, told;
  reg [STATUS_WIDTH-1:0] its, notice_its;
  reg [JOB_BITS-1:0] its_job, notice_its_job;
  reg [10:0] since;  // cycles since the last refusal that was kept
  reg asked_was, picks_was, could_was, any_was;
  // What was pending when the last pick was made; that pick is shown, and is the watched port's
  reg [STATUS_WIDTH-1:0] its_was, its_then, stood;
  reg shown_was, mine_was;
  reg [PORTS-1:0] ready_was, ports_stood;
  // Cycles in which its status could be sent and neither pending statuses nor ready ports change;
  // the same for the notice
  reg [2:0] send_rest, tell_rest;
  wire mine = port == watched;
  wire it_keeps = mine && (answer || (refuse && since == PAUSE)) && !drop_reg[job_index];
  wire [PORTS-1:0] bit_ = 1 << watched;
  wire it_is_sent = sends && send_reg == bit_;
  wire it_is_told = tells && tell_reg == bit_;
  reg after_status;
  reg [PORTS-1:0] ready_then;
  reg [JOBS-1:0] drop_was;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    drop_was <= drop;
    since <= refuse && since == PAUSE ? 1 : since == PAUSE ? since : since + 1;
    if (drop_reg[its_job] || it_is_sent) waits <= 1'b0;
    if (it_keeps) begin
      waits <= 1'b1;
`ifdef AGG_PARENT
      its <= {
        answer ? answer_mask : 64'd0, vid, answer ? answer_code : refuse_code, epoch, job, rank
      };
`else
      its <= {
        answer ? answer_mask : {PORTS{1'b0}},
        vid,
        answer ? answer_code : refuse_code,
        epoch,
        job,
        rank
      };
`endif
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
    if (drop_reg[notice?notice_job : notice_its_job]) told <= 1'b0;

    asked_was <= pick_ready;
    picks_was <= it_is_sent || it_is_told;
    could_was <= tells ? told : waits;
    its_was <= tells ? notice_its : its;
    its_then <= its_was;
    shown_was <= !rst && pick_valid;
    mine_was <= !rst && pick_valid && pick_ports == bit_;
    ready_was <= ready;
    ready_then <= ready;
    stood <= fields_reg;
    ports_stood <= ports_reg;
    any_was <= sends || tells;
    send_rest <= rst || answer || refuse || drop_reg != 0 || sends || ready != ready_then ||
        !(ready[watched] && waits) ? 0 : send_rest + (send_rest < 5);
    tell_rest <= rst || notice || drop_reg != 0 || tells || ready != ready_then ||
        !(ready[watched] && told) ? 0 : tell_rest + (tell_rest < 5);
    after_status <= !rst && (sends || (after_status && !tells));
    if (rst) begin
      waits <= 1'b0;
      told <= 1'b0;
      since <= PAUSE;
      notice_its_job <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      // agg_slots: one event at a time. agg_egress does not ask for a pick in consecutive cycles.
      `PROMISED(answer + refuse + notice <= 1);
      `PROMISED(!pick_ready || !asked_was || !running_was);
    end
    if (was_reset && !rst) begin
      assert (waits == waits_reg[watched] && told == told_reg[watched]);
      assert (since <= PAUSE && pause_reg == since);
      if (waits)
        assert (statuses[watched] == its && job_of_reg[JOB_BITS*watched+:JOB_BITS] == its_job);
      if (told) assert ({notice_reg, ranks_reg[8*watched+:8]} == notice_its);
      assert (told_job_reg == notice_its_job);
      assert ((lowest_send_reg & (lowest_send_reg - 1'b1)) == 0 || !running_was);
      assert ((lowest_tell_reg & (lowest_tell_reg - 1'b1)) == 0 || !running_was);
      assert (!(sends && tells) && after_status == after_status_reg);
      assert (drop_reg == drop_was);
    end
    if (was_reset && running_was && !rst) begin
      if (send_reg[watched] && !any_was) assert (waits);
      if (tell_reg[watched] && !any_was) assert (told);

      // A pick is for a port that could take it, and shows what was pending.
      assert (pick_valid == any_was);
      assert (!pick_valid || asked_was);
      if (pick_valid && pick_ports == bit_) begin
        assert (picks_was && could_was && ready_was[watched]);
        assert ((tells_reg ? tell_fields_reg : send_fields_reg) == its_was);
      end
      if (mine_was)
        assert ({pick_mask, pick_vid, pick_code, pick_epoch, pick_job, pick_rank} == its_then);
      if (!asked_was) assert (ports_reg == ports_stood);
      if (!shown_was) assert (fields_reg == stood);

      // Where nothing changes, what could be sent is a candidate after four cycles. Statuses and the
      // notice take turns.
      if (send_rest == 5 || tell_rest == 5) assert (pick_wants);
      if (ready == ready_then && pick_ready) begin
        if (send_rest == 5 || tell_rest == 5) assert (sends || tells);
        if (send_rest == 5 && !after_status) assert (sends);
        if (tell_rest == 5 && after_status) assert (tells);
      end

      cover (it_is_told && waits);
      cover (it_is_sent && told && it_keeps);
      cover (drop_reg[its_job] && waits && told && its_job != notice_its_job);
      cover (send_rest == 5 && tell_rest == 5 && pick_ready && after_status);
      cover (send_rest == 5 && tell_rest == 5 && pick_ready && !after_status);
    end
  end
`endif

endmodule

`default_nettype wire
