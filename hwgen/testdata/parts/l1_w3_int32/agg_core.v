// Made by: hwgen -lanes 1 -workers 3 -format int32 -result int32 -sum tree -saturate -chunk 4
//      -window 1 -jobs 1 -shell none -registers axil

// The aggregator between AXI4-Stream ports.
//
// Each port stores its chunks in a slot memory of its own. Once a slot has a chunk from every
// member of its job, the core reads all memories, sums lane by lane, caches and sends the result.
//
// Ports accept data, ask and finish packets. tuser[111:0] is the 14-byte header, on a packet's
// first beat; tuser[112] marks a damaged payload, on the last beat. A packet without payload is
// one beat with tkeep = 0. m_axis sends results and statuses: tuser is the 30-byte header during
// the whole packet, tdest the destination ports. The core starts a packet only for ports that are
// ready; m_axis_tready must then let the whole packet pass. Port 0 has the lowest bits of vectors.
//
// Latency from a chunk's last beat to its result's first: 10 cycles, 3 of them in the
// lanes. rst is synchronous. hold is high while a job ends or is set up, unjudged while packets
// wait for the commit. Not done here: framing and CRC, which the shell does.

`default_nettype none

module agg_core (
    input wire clk,
    input wire rst,

    // The host's link; work that the last host left behind
    input  wire link_down,
    output wire hold,
    output wire unjudged,

    // In, for each port
    input  wire [ 95:0] s_axis_tdata,
    input  wire [ 11:0] s_axis_tkeep,
    input  wire [  2:0] s_axis_tvalid,
    output wire [  2:0] s_axis_tready,
    input  wire [  2:0] s_axis_tlast,
    input  wire [338:0] s_axis_tuser,

    // Out, for all ports
    output wire [ 31:0] m_axis_tdata,
    output wire [  3:0] m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire [239:0] m_axis_tuser,
    output wire [  2:0] m_axis_tdest,

    // Ports with room for a whole packet
    input wire [2:0] port_ready,

    // The members and their ranks
    output wire [ 2:0] member,
    output wire [23:0] rank_of_port,

    // Register accesses, one at a time; replies in order
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire        s_reg_write,
    input  wire [31:0] s_reg_addr,
    input  wire [63:0] s_reg_wdata,
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire [ 7:0] m_reg_code,
    output wire [63:0] m_reg_value,

    // A write lacks bytes: it is refused
    input wire s_reg_partial,

    // Events of the shell, one per cycle
    input wire shell_frames,
    input wire shell_hunted,
    input wire shell_header_crc,
    input wire shell_bad_version,
    input wire shell_bad_kind,
    input wire shell_bad_length,

    // A beat enters the lanes
    output wire beat_strobe
);
  // -- Jobs --
  wire        flush;  // the job ends
  wire [ 1:0] flush_slots;  // slots whose job ends
  wire        quiet;  // all jobs end: the commit pauses
  wire        drop_statuses;
  wire        drained;  // no slot of the job is being reduced
  wire        sending;  // a result is being sent: its cache entry must not change
  wire        sets_up;  // the job is being set up
  wire        sets_up_job;  // the job's number
  wire        cleared;  // the job's old counts are cleared
  wire        job_valid;  // set up
  wire        job_complete;  // the last one ended because all ranks finished
  wire        job_ever;  // the job has had an epoch
  wire [15:0] job_epoch;
  wire [15:0] job_chunk;  // elements
  wire [ 1:0] job_last;  // number of a chunk's last beat
  wire        job_window;  // chunks
  wire        slot_mask;  // twice the window, minus 1
  wire        slot_base;  // the first slot
  wire [31:0] job_first;  // first VID
  wire [31:0] job_deadline;  // cycles; 0: no deadline
  wire        job_partial;  // partial sums are enabled
  wire [ 2:0] job_finished;  // finished ranks
  wire [ 2:0] job_evicted;  // evicted ranks
  wire [ 2:0] evicted;  // evicted ports
  wire [ 2:0] present;  // member ports that are not evicted
  wire        op_valid;
  wire        op_commit;
  wire        op_abort;
  wire [ 7:0] op_job;
  wire [15:0] op_epoch;
  wire [31:0] op_first;
  wire [63:0] op_ports;
  wire [63:0] op_chunk;
  wire [63:0] op_window;
  wire [63:0] op_deadline;
  wire        op_done;
  wire [ 7:0] op_code;
  wire        commit_finish;
  wire        commit_index;  // the job of the packet, or of the overdue slot
  wire [ 2:0] commit_rank_bit;  // the packet's sender, one hot
  wire [ 2:0] evict;  // ports to evict
  wire [ 2:0] answer_mask;  // missing or evicted ranks

  agg_jobs #(
      .PORTS     (3),
      .PORT_BITS (2),
      .JOBS      (1),
      .JOB_BITS  (1),
      .CHUNK     (4),
      .WINDOW    (1),
      .SLOT_BITS (1),
      .INDEX_BITS(2),
      .LANE_BITS (0)
  ) u_jobs (
      .clk          (clk),
      .rst          (rst),
      .link_down    (link_down),
      .op_valid     (op_valid),
      .op_commit    (op_commit),
      .op_abort     (op_abort),
      .op_job       (op_job),
      .op_epoch     (op_epoch),
      .op_first     (op_first),
      .op_ports     (op_ports),
      .op_chunk     (op_chunk),
      .op_window    (op_window),
      .op_deadline  (op_deadline),
      .op_done      (op_done),
      .op_code      (op_code),
      .finish       (commit_finish),
      .finish_job   (commit_index),
      .finish_bit   (commit_rank_bit),
      .drained      (drained),
      .evict        (evict),
      .evict_job    (commit_index),
      .evict_ranks  (answer_mask),
      .flush        (flush),
      .flush_slots  (flush_slots),
      .quiet        (quiet),
      .hold         (hold),
      .drop_statuses(drop_statuses),
      .sets_up      (sets_up),
      .sets_up_job  (sets_up_job),
      .cleared      (cleared),
      .job_valid    (job_valid),
      .job_complete (job_complete),
      .job_ever     (job_ever),
      .job_epoch    (job_epoch),
      .job_chunk    (job_chunk),
      .job_last     (job_last),
      .job_window   (job_window),
      .slot_mask    (slot_mask),
      .slot_base    (slot_base),
      .job_first    (job_first),
      .job_deadline (job_deadline),
      .job_partial  (job_partial),
      .job_finished (job_finished),
      .job_evicted  (job_evicted),
      .evicted      (evicted),
      .present      (present),
      .member       (member),
      .rank_of_port (rank_of_port)
  );

  // Signals to all ports
  wire         slot;  // of the packet in the commit, or the overdue slot
  wire         commit_store;  // the packet is stored
  wire [  2:0] resolve;  // the port's written data is stored or dropped
  wire         reduced;  // a slot has been summed
  wire         sum_slot;  // the summed slot
  wire         sum_job;  // its job
  wire [  2:0] req_valid;  // ports that request a commit
  wire [  2:0] req_grant;
  wire         rd_en;  // reads all slot memories
  wire         rd_slot;
  wire [  1:0] rd_beat;
  wire [  2:0] beat_members;  // ports in the sum of the beat at the lanes

  // -- Ports --
  wire [305:0] requests;  // for a commit
  wire [ 95:0] gated;  // the lanes' operands

  genvar p;
  generate
    for (p = 0; p < 3; p = p + 1) begin : g_port
      wire        s_nonfinite;  // elements that are a NaN or an infinity
      wire        wr_en;
      wire        wr_slot;
      wire [ 1:0] wr_beat;
      wire [31:0] wr_data;
      wire [31:0] stored;  // the slot memory's output

      assign s_nonfinite = 1'd0;

      agg_ingress #(
          .BEAT_BITS (32),
          .JOBS      (1),
          .JOB_BITS  (1),
          .SLOT_BITS (1),
          .INDEX_BITS(2)
      ) u_ingress (
          .clk           (clk),
          .rst           (rst),
          .flush         (flush),
          .flush_slots   (flush_slots),
          .job_valid     (job_valid),
          .slot_mask     (slot_mask),
          .slot_base     (slot_base),
          .job_last      (job_last),
          .s_axis_tdata  (s_axis_tdata[32*p+:32]),
          .s_axis_tkeep  (s_axis_tkeep[4*p+:4]),
          .s_axis_tvalid (s_axis_tvalid[p]),
          .s_axis_tready (s_axis_tready[p]),
          .s_axis_tlast  (s_axis_tlast[p]),
          .s_axis_tuser  (s_axis_tuser[113*p+:113]),
          .s_nonfinite   (|s_nonfinite),
          .wr_en         (wr_en),
          .wr_slot       (wr_slot),
          .wr_beat       (wr_beat),
          .wr_data       (wr_data),
          .req_valid     (req_valid[p]),
          .req_grant     (req_grant[p]),
          .req_data      (requests[102*p+:102]),
          .resolve       (resolve[p]),
          .resolve_slot  (slot),
          .resolve_stored(commit_store),
          .reduced       (reduced),
          .reduced_slot  (sum_slot)
      );

      agg_ram #(
          .WIDTH    (32),
          .ADDR_BITS(3)
      ) u_memory (
          .clk    (clk),
          .wr_en  (wr_en),
          .wr_addr({wr_slot, wr_beat}),
          .wr_data(wr_data),
          .rd_en  (rd_en),
          .rd_addr({rd_slot, rd_beat}),
          .rd_data(stored)
      );

      agg_gate #(
          .LANES    (1),
          .ELEM_BITS(32),
          .IDENTITY (64'h0)
      ) u_gate (
          .clk   (clk),
          .enable(beat_members[p]),
          .x     (stored),
          .y     (gated[32*p+:32])
      );
    end
  endgenerate

  // -- Commit --
  wire         granted_valid;  // checks a packet's header; the commit follows in the next cycle
  wire [  2:0] granted_ports;  // the packet's port, one hot
  wire [  1:0] granted_port;
  wire [101:0] granted_request;
  wire         pause;  // a slot is overdue
  wire         act_next;  // agg_slots acts on it in the next cycle
  wire         act_slot;
  wire         act_job;

  agg_arbiter #(
      .PORTS    (3),
      .PORT_BITS(2),
      .WIDTH    (102)
  ) u_arbiter (
      .clk      (clk),
      .rst      (rst),
      .hold     (quiet || pause),
      .req_valid(req_valid),
      .req_grant(req_grant),
      .req_data (requests),
      .out_valid(granted_valid),
      .out_ports(granted_ports),
      .out_port (granted_port),
      .out_data (granted_request)
  );

  assign unjudged = |req_valid;

  wire        commit_refuse;  // the packet fails a check
  wire [ 7:0] commit_code;
  wire        commit_belongs;  // the packet's rank is its port's
  wire        commit_data;
  wire        commit_ask;
  wire        commit_writable;  // the packet's payload was written
  wire        commit_nonfinite;
  wire [ 1:0] commit_ecn;
  wire [ 7:0] commit_job;
  wire [15:0] commit_epoch;
  wire [ 7:0] commit_rank;
  wire [31:0] commit_vid;
  wire [ 2:0] commit_ports;  // the packet's port, one hot
  wire [ 1:0] commit_port;

  agg_commit #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOBS     (1),
      .JOB_BITS (1),
      .SLOT_BITS(1),
      .FORMAT   (8'd6)
  ) u_commit (
      .clk         (clk),
      .rst         (rst),
      .valid       (granted_valid),
      .ports       (granted_ports),
      .port        (granted_port),
      .request     (granted_request),
      .act_next    (act_next),
      .act_slot    (act_slot),
      .act_job     (act_job),
      .job_valid   (job_valid),
      .job_complete(job_complete),
      .job_epoch   (job_epoch),
      .job_chunk   (job_chunk),
      .slot_mask   (slot_mask),
      .slot_base   (slot_base),
      .member      (member),
      .evicted     (evicted),
      .rank_of_port(rank_of_port),
      .refused     (commit_refuse),
      .code        (commit_code),
      .belongs     (commit_belongs),
      .data        (commit_data),
      .ask         (commit_ask),
      .finish      (commit_finish),
      .writable    (commit_writable),
      .nonfinite   (commit_nonfinite),
      .ecn         (commit_ecn),
      .job         (commit_job),
      .index       (commit_index),
      .slot        (slot),
      .epoch       (commit_epoch),
      .rank        (commit_rank),
      .vid         (commit_vid),
      .from_ports  (commit_ports),
      .from_port   (commit_port)
  );

  assign commit_rank_bit = 3'd1 << commit_rank[1:0];

  wire        turn_over;  // the slot advances to a new VID
  wire        store_ce;
  wire        store_nonfinite;
  wire        owe;  // the card owes the sender the result
  wire        complete;  // closes the slot
  wire [ 2:0] complete_ports;
  wire [31:0] complete_vid;
  wire [ 1:0] complete_ecn;
  wire        complete_nonfinite;
  wire        asked;  // an ask is accepted
  wire        answer;  // a status answers an ask or a finish
  wire [ 7:0] answer_code;
  wire [ 2:0] answer_ports;  // ports with a missing contribution, or evicted ports
  wire        act;  // the slot is overdue
  wire        stall;  // the slot cannot advance although a packet requires it
  wire        overdue;
  wire        notice;  // sends a notice
  wire [ 2:0] notice_ports;  // to these ports
  wire [ 7:0] notice_code;
  wire [31:0] notice_vid;

  agg_deadlines #(
      .JOBS     (1),
      .JOB_BITS (1),
      .SLOT_BITS(1)
  ) u_deadlines (
      .clk         (clk),
      .rst         (rst),
      .flush       (flush),
      .flush_slots (flush_slots),
      .job_deadline(job_deadline),
      .slot        (slot),
      .job         (commit_index),
      .turn_over   (turn_over),
      .close       (complete),
      .stall       (stall),
      .pause       (pause),
      .act_next    (act_next),
      .act         (act),
      .act_slot    (act_slot),
      .act_job     (act_job)
  );

  wire       refused;
  wire [7:0] refused_code;
  wire       refused_answer;  // a status may answer the refused packet

  agg_slots #(
      .PORTS    (3),
      .WINDOW   (1),
      .SLOT_BITS(1),
      .ROW_BITS (1)
  ) u_slots (
      .clk               (clk),
      .flush_slots       (flush_slots),
      .job_first         (job_first),
      .job_window        (job_window),
      .slot_mask         (slot_mask),
      .slot_base         (slot_base),
      .member            (present),
      .evicted           (evicted),
      .partial           (job_partial),
      .act               (act),
      .slot              (slot),
      .refuse            (commit_refuse),
      .data              (commit_data),
      .ask               (commit_ask),
      .finish            (commit_finish),
      .code              (commit_code),
      .belongs           (commit_belongs),
      .ports             (commit_ports),
      .vid               (commit_vid),
      .ecn               (commit_ecn),
      .writable          (commit_writable),
      .nonfinite         (commit_nonfinite),
      .reduced           (reduced),
      .reduced_slot      (sum_slot),
      .turn_over         (turn_over),
      .store             (commit_store),
      .store_ce          (store_ce),
      .store_nonfinite   (store_nonfinite),
      .resolve           (resolve),
      .owe               (owe),
      .complete          (complete),
      .complete_ports    (complete_ports),
      .complete_vid      (complete_vid),
      .complete_ecn      (complete_ecn),
      .complete_nonfinite(complete_nonfinite),
      .stall             (stall),
      .overdue           (overdue),
      .evict             (evict),
      .notice            (notice),
      .notice_ports      (notice_ports),
      .notice_code       (notice_code),
      .notice_vid        (notice_vid),
      .asked             (asked),
      .answer            (answer),
      .answer_code       (answer_code),
      .answer_ports      (answer_ports),
      .refused           (refused),
      .refused_code      (refused_code),
      .refused_answer    (refused_answer)
  );

  agg_port_ranks #(
      .PORTS(3)
  ) u_named (
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (answer_ports),
      .ranks       (answer_mask)
  );

  // -- Sum --
  wire       send_slot;  // of the result being sent
  wire       beat_slot;  // of the beat at the slot memories' outputs
  wire [1:0] beat_index;
  wire       unused_beat_pass;
  wire       unused_stalled;  // undecided beats delay the read of a complete slot

  // No beat is read again: one pass decides every beat.
  agg_reader #(
      .JOBS      (1),
      .JOB_BITS  (1),
      .SLOT_BITS (1),
      .INDEX_BITS(2)
  ) u_reader (
      .clk          (clk),
      .rst          (rst),
      .flush        (flush),
      .job_last     (job_last),
      .drained      (drained),
      .complete     (complete),
      .complete_slot(slot),
      .complete_job (commit_index),
      .sending      (sending),
      .sending_slot (send_slot),
      .reduced      (reduced),
      .reduced_job  (sum_job),
      .stop         (1'b0),
      .again_valid  (1'b0),
      .again_slot   (1'd0),
      .again_beat   (2'd0),
      .rd_en        (rd_en),
      .rd_slot      (rd_slot),
      .rd_beat      (rd_beat),
      .beat_valid   (beat_strobe),
      .beat_slot    (beat_slot),
      .beat_index   (beat_index),
      .beat_pass    (unused_beat_pass),
      .stalled      (unused_stalled)
  );

  wire [31:0] sum;  // of all ports, lane by lane
  wire        sum_over;  // elements that overflowed
  wire        sum_next;  // the next cycle has a sum
  wire [ 1:0] sum_beat;

  genvar l;
  generate
    for (l = 0; l < 1; l = l + 1) begin : g_lane
      agg_lane u_lane (
          .clk (clk),
          .x_p0(gated[31:0]),
          .x_p1(gated[63:32]),
          .x_p2(gated[95:64]),
          .y   (sum),
          .over(sum_over)
      );
    end
  endgenerate

  // The tag leaves one cycle before its sum.
  agg_tag_delay #(
      .WIDTH (3),
      .CYCLES(3)
  ) u_sum_tag (
      .clk      (clk),
      .rst      (rst),
      .in_valid (beat_strobe),
      .in_tag   ({beat_slot, beat_index}),
      .out_valid(sum_next),
      .out_tag  ({sum_slot, sum_beat})
  );

  // -- Result cache --
  wire       sum_nonfinite;  // elements that are a NaN or an infinity
  wire       begun;  // the first beat of a result is written
  wire       cache_wr_en;
  wire       cache_wr_slot;
  wire [1:0] cache_wr_beat;
  wire       nonfinite;  // elements of the previous sum that are a NaN or an infinity
  wire       overflow;  // elements of the previous sum that overflowed
  wire       send_en;  // reads a beat for the egress
  wire [1:0] send_beat;
  wire       send_written;  // the beat is in the cache

  assign sum_nonfinite = 1'd0;

  agg_writer #(
      .LANES     (1),
      .SLOT_BITS (1),
      .INDEX_BITS(2),
      .COUNT_BITS(1)
  ) u_writer (
      .clk          (clk),
      .rst          (rst),
      .next_valid   (sum_next),
      .next_whole   (1'b1),
      .next_slot    (sum_slot),
      .next_beat    (sum_beat),
      .next_last    (job_last),
      .sum_nonfinite(sum_nonfinite),
      .sum_over     (sum_over),
      .wr_en        (cache_wr_en),
      .wr_slot      (cache_wr_slot),
      .wr_beat      (cache_wr_beat),
      .begun        (begun),
      .reduced      (reduced),
      .nonfinite    (nonfinite),
      .overflow     (overflow),
      .query_slot   (send_slot),
      .query_beat   (send_beat),
      .query_written(send_written)
  );

  agg_ram #(
      .WIDTH    (32),
      .ADDR_BITS(3),
      .FORWARD  (1)
  ) u_cache (
      .clk    (clk),
      .wr_en  (cache_wr_en),
      .wr_addr({cache_wr_slot, cache_wr_beat}),
      .wr_data(sum),
      .rd_en  (send_en),
      .rd_addr({send_slot, send_beat}),
      .rd_data(m_axis_tdata)
  );

  // -- Egress --
  wire       result_valid;  // a result is ready to send
  wire       result_job;
  wire       result_slot;
  wire [2:0] result_to;  // the destination ports
  wire       result_replay;
  wire       result_take;

  agg_owed #(
      .PORTS    (3),
      .SLOT_BITS(1)
  ) u_owed (
      .clk           (clk),
      .rst           (rst),
      .flush         (flush),
      .slot_mask     (slot_mask),
      .member        (present),
      .begun         (begun),
      .begun_slot    (sum_slot),
      .slot          (slot),
      .turn_over     (turn_over),
      .owe           (owe),
      .port          (commit_ports),
      .ready         (port_ready),
      .pick_valid    (result_valid),
      .pick_slot     (result_slot),
      .pick_receivers(result_to),
      .pick_replay   (result_replay),
      .pick_take     (result_take)
  );

  assign result_job = 1'd0;

  wire        unused_written_job;  // of the sum being written
  wire [31:0] written_vid;
  wire [ 2:0] result_ports;  // ports in the result that is ready to send
  wire [31:0] result_vid;
  wire [ 1:0] result_ecn;
  wire        result_nonfinite;

  agg_labels #(
      .PORTS    (3),
      .JOB_BITS (1),
      .SLOT_BITS(1)
  ) u_labels (
      .clk               (clk),
      .complete          (complete),
      .complete_slot     (slot),
      .complete_job      (commit_index),
      .complete_ports    (complete_ports),
      .complete_vid      (complete_vid),
      .complete_ecn      (complete_ecn),
      .complete_nonfinite(complete_nonfinite),
      .beat_slot         (beat_slot),
      .beat_ports        (beat_members),
      .sum_slot          (sum_slot),
      .sum_job           (sum_job),
      .written_job       (unused_written_job),
      .written_vid       (written_vid),
      .send_slot         (result_slot),
      .send_ports        (result_ports),
      .send_vid          (result_vid),
      .send_ecn          (result_ecn),
      .send_nonfinite    (result_nonfinite)
  );

  wire [2:0] result_mask;  // ranks in the sum
  wire [2:0] result_receivers;  // ranks that receive it

  agg_port_ranks #(
      .PORTS(3)
  ) u_contributors (
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (result_ports),
      .ranks       (result_mask)
  );

  agg_port_ranks #(
      .PORTS(3)
  ) u_receivers (
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (result_to),
      .ranks       (result_receivers)
  );

  wire        status_valid;
  wire [ 1:0] status_port;
  wire [ 7:0] status_job;
  wire [15:0] status_epoch;
  wire [ 7:0] status_rank;
  wire [ 7:0] status_code;
  wire [31:0] status_vid;
  wire [ 2:0] status_mask;
  wire        status_take;

  agg_status #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOBS     (1),
      .JOB_BITS (1)
  ) u_status (
      .clk         (clk),
      .rst         (rst),
      .drop        (drop_statuses),
      .answer      (answer),
      .answer_code (answer_code),
      .answer_mask (answer_mask),
      .refuse      (refused_answer),
      .refuse_code (refused_code),
      .port        (commit_port),
      .job         (commit_job),
      .epoch       (commit_epoch),
      .rank        (commit_rank),
      .vid         (commit_vid),
      .notice      (notice),
      .notice_ports(notice_ports),
      .notice_code (notice_code),
      .notice_job  (commit_index),
      .notice_epoch(job_epoch),
      .notice_vid  (notice_vid),
      .notice_ranks(rank_of_port),
      .ready       (port_ready),
      .pick_valid  (status_valid),
      .pick_port   (status_port),
      .pick_job    (status_job),
      .pick_epoch  (status_epoch),
      .pick_rank   (status_rank),
      .pick_code   (status_code),
      .pick_vid    (status_vid),
      .pick_mask   (status_mask),
      .pick_take   (status_take)
  );

  agg_egress #(
      .PORTS     (3),
      .PORT_BITS (2),
      .SLOT_BITS (1),
      .INDEX_BITS(2),
      .KEEP_BITS (4),
      .FORMAT    (8'd6)
  ) u_egress (
      .clk             (clk),
      .rst             (rst),
      .result_valid    (result_valid),
      .result_slot     (result_slot),
      .result_last     (job_last),
      .result_ports    (result_to),
      .result_job      ({7'd0, result_job}),
      .result_epoch    (job_epoch),
      .result_chunk    (job_chunk),
      .result_vid      (result_vid),
      .result_ecn      (result_ecn),
      .result_nonfinite(result_nonfinite),
      .result_partial  (|(member & ~result_ports)),
      .result_mask     (result_mask),
      .result_receivers(result_receivers),
      .result_replay   (result_replay),
      .result_take     (result_take),
      .status_valid    (status_valid),
      .status_port     (status_port),
      .status_job      (status_job),
      .status_epoch    (status_epoch),
      .status_rank     (status_rank),
      .status_code     (status_code),
      .status_vid      (status_vid),
      .status_mask     (status_mask),
      .status_take     (status_take),
      .rd_en           (send_en),
      .rd_slot         (send_slot),
      .rd_beat         (send_beat),
      .rd_written      (send_written),
      .sending         (sending),
      .m_axis_tkeep    (m_axis_tkeep),
      .m_axis_tvalid   (m_axis_tvalid),
      .m_axis_tready   (m_axis_tready),
      .m_axis_tlast    (m_axis_tlast),
      .m_axis_tuser    (m_axis_tuser),
      .m_axis_tdest    (m_axis_tdest)
  );

  // -- Registers --
  wire        lag_job;
  wire [ 1:0] lag_rank;
  wire [ 3:0] lag_bucket;
  wire [31:0] lag_value;
  wire [ 5:0] counter_index;
  wire [31:0] counter_value;
  wire        clear_counters;
  wire [31:0] nonfinite_in;
  wire [31:0] nonfinite_out;
  wire [31:0] overflows;
  wire [63:0] first_in;
  wire [63:0] first_out;
  wire [63:0] first_overflow;

  agg_registers #(
      .CONFIG_HASH(64'ha08142e03a574a5f),
      .LANES      (64'd1),
      .PORTS      (64'd3),
      .FORMAT     (64'h606),
      .SUM        (64'd257),
      .SHELL      (64'd0),
      .CHUNK      (64'd4),
      .WINDOW     (64'd1),
      .JOBS       (64'd1),
      .LINK       (64'd0),
      .LATENCY    (64'd10),
      .JOB_BITS   (1),
      .RANK_BITS  (2)
  ) u_registers (
      .clk           (clk),
      .rst           (rst),
      .link_down     (link_down),
      .s_reg_valid   (s_reg_valid),
      .s_reg_ready   (s_reg_ready),
      .s_reg_write   (s_reg_write),
      .s_reg_addr    (s_reg_addr),
      .s_reg_wdata   (s_reg_wdata),
      .s_reg_partial (s_reg_partial),
      .m_reg_valid   (m_reg_valid),
      .m_reg_ready   (m_reg_ready),
      .m_reg_code    (m_reg_code),
      .m_reg_value   (m_reg_value),
      .op_valid      (op_valid),
      .op_commit     (op_commit),
      .op_abort      (op_abort),
      .op_job        (op_job),
      .op_epoch      (op_epoch),
      .op_first      (op_first),
      .op_ports      (op_ports),
      .op_chunk      (op_chunk),
      .op_window     (op_window),
      .op_deadline   (op_deadline),
      .op_done       (op_done),
      .op_code       (op_code),
      .job_valid     (job_valid),
      .job_ever      (job_ever),
      .job_epoch     (job_epoch),
      .job_finished  ({61'd0, job_finished}),
      .job_members   ({61'd0, member}),
      .job_evicted   ({61'd0, job_evicted}),
      .job_base      ({15'd0, slot_base}),
      .job_slots     (16'd1 + {15'd0, slot_mask}),
      .nonfinite_in  (nonfinite_in),
      .nonfinite_out (nonfinite_out),
      .overflows     (overflows),
      .first_in      (first_in),
      .first_out     (first_out),
      .first_overflow(first_overflow),
      .lag_job       (lag_job),
      .lag_rank      (lag_rank),
      .lag_bucket    (lag_bucket),
      .lag_value     (lag_value),
      .counter_index (counter_index),
      .counter_value (counter_value),
      .clear_counters(clear_counters)
  );

  agg_job_counts #(
      .COUNT_BITS(1)
  ) u_job_counts (
      .clk             (clk),
      .rst             (rst),
      .clear           (sets_up),
      .stored_nonfinite(store_nonfinite),
      .vid             (commit_vid),
      .rank            (commit_rank),
      .wr_en           (cache_wr_en),
      .wr_vid          (written_vid),
      .nonfinite       (nonfinite),
      .overflow        (overflow),
      .nonfinite_in    (nonfinite_in),
      .nonfinite_out   (nonfinite_out),
      .overflows       (overflows),
      .first_in        (first_in),
      .first_out       (first_out),
      .first_overflow  (first_overflow)
  );

  agg_lags #(
      .RANK_BITS(2),
      .JOB_BITS (1),
      .SLOT_BITS(1)
  ) u_lags (
      .clk      (clk),
      .rst      (rst),
      .clear    (|sets_up),
      .clear_job(sets_up_job),
      .ready    (cleared),
      .store    (commit_store),
      .turn_over(turn_over),
      .slot     (slot),
      .job      (commit_index),
      .rank     (commit_rank[1:0]),
      .rd_job   (lag_job),
      .rd_rank  (lag_rank),
      .rd_bucket(lag_bucket),
      .value    (lag_value)
  );

  agg_counters #(
      .COUNT_BITS(1)
  ) u_counters (
      .clk              (clk),
      .rst              (rst),
      .clear            (clear_counters),
      .stored           (commit_store),
      .stored_ce        (store_ce),
      .stored_nonfinite (store_nonfinite),
      .asked            (asked),
      .finished         (commit_finish),
      .chunk            (reduced),
      .beat             (beat_strobe),
      .result           (result_take && !result_replay),
      .replay           (result_take && result_replay),
      .status           (status_take),
      .nonfinite_out    (nonfinite),
      .overflow         (overflow),
      .overdue          (overdue),
      .partial          (complete && |(member & ~complete_ports)),
      .evicts           (|evict),
      .undecided        (1'b0),
      .stalled          (1'b0),
      .link_down        (link_down),
      .refused          (refused),
      .refused_code     (refused_code),
      .shell_frames     (shell_frames),
      .shell_hunted     (shell_hunted),
      .shell_header_crc (shell_header_crc),
      .shell_bad_version(shell_bad_version),
      .shell_bad_kind   (shell_bad_kind),
      .shell_bad_length (shell_bad_length),
      .index            (counter_index),
      .value            (counter_value)
  );

endmodule

`default_nettype wire
