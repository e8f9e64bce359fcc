// Registers, jobs and addresses of a card on a network, without packets, for their bench: what
// hwgen's udpNetwork connects, with the core's registers and jobs. No packet is judged here, and no
// sum is under way.

`default_nettype none

module network_card #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS = 2,
    parameter integer JOB_BITS = 1,
    parameter integer ETHERNET = 1,
    parameter integer LEASE_DEFAULT = 3000
) (
    input wire clk,
    input wire rst,

    input  wire        s_access_valid,
    output wire        s_access_ready,
    input  wire        s_access_write,
    input  wire [31:0] s_access_addr,
    input  wire [15:0] s_access_tag,
    input  wire [63:0] s_access_wdata,
    input  wire [47:0] s_access_mac,
    input  wire [31:0] s_access_ip,
    input  wire [15:0] s_access_port,
    input  wire [ 7:0] s_access_ethernet,

    output wire         m_reply_valid,
    input  wire         m_reply_ready,
    output wire [175:0] m_reply_header,
    output wire [ 47:0] m_reply_mac,
    output wire [ 31:0] m_reply_ip,
    output wire [ 15:0] m_reply_port,
    output wire [  7:0] m_reply_ethernet,

    output wire [47:0] own_mac,
    output wire [31:0] own_ip,
    output wire [15:0] own_port,

    // What the bench watches
    output wire            down,
    output wire            lease_over,
    output wire            reg_valid,
    output wire            reg_ready,
    output wire            set_up,
    output wire [JOBS-1:0] job_valid,

    output wire                 hold_packets,
    input  wire                 packets_busy,
    input  wire                 packet_started,
    input  wire                 packet_left,
    input  wire                 from_en,
    input  wire [          7:0] from_job,
    input  wire [          7:0] from_rank,
    output wire                 from_valid,
    output wire [         31:0] from_ip,
    output wire [         15:0] from_port,
    output wire [          7:0] from_ethernet,
    output wire [PORT_BITS-1:0] from_dest,
    input  wire                 to_en,
    input  wire [ JOB_BITS-1:0] to_job,
    input  wire [PORT_BITS-1:0] to_port,
    output wire [         47:0] to_mac,
    output wire [         31:0] to_ip,
    output wire [         15:0] to_udp_port,
    output wire [          7:0] to_ethernet,
    output wire [    PORTS-1:0] to_same
);

  localparam [40:0] LEASE = {9'd0, LEASE_DEFAULT};

  // -- As udpNetwork connects them ----------------------------------------------------------------

  wire reg_write, reg_stranger, answer_valid, answer_ready, code_valid;
  wire [31:0] reg_addr;
  wire [63:0] reg_wdata, answer_value;
  wire [7:0] answer_code, code;
  wire owned, clear_counters, clear_staged, hold;
  wire table_clear, table_write, table_jobs, table_mac;
  wire commit_start, commit_ready, commit_answered, commit_done;
  wire [JOB_BITS-1:0] table_job, commit_job;
  wire [PORT_BITS-1:0] table_port;
  wire [63:0] table_value, op_ports;
  wire [4:0] count_index;
  wire [31:0] count_value;
  wire [PORTS-1:0] members_whole;
  wire members_same;

  agg_link_session u_session (
      .clk    (clk),
      .rst    (rst),
      .link_up(!lease_over),
      .busy   (hold),
      .down   (down)
  );

  agg_network_registers #(
      .OWN_MAC      (48'h0254_5242_ab01),
      .OWN_IP       (32'h0a00_ff01),
      .OWN_PORT     (16'h5442),
      .LEASE_DEFAULT(LEASE),
      .PORTS        (PORTS),
      .PORT_BITS    (PORT_BITS),
      .JOBS         (JOBS),
      .JOB_BITS     (JOB_BITS)
  ) u_network_registers (
      .clk              (clk),
      .rst              (rst),
      .link_down        (down),
      .s_access_valid   (s_access_valid),
      .s_access_ready   (s_access_ready),
      .s_access_write   (s_access_write),
      .s_access_addr    (s_access_addr),
      .s_access_tag     (s_access_tag),
      .s_access_wdata   (s_access_wdata),
      .s_access_mac     (s_access_mac),
      .s_access_ip      (s_access_ip),
      .s_access_port    (s_access_port),
      .s_access_ethernet(s_access_ethernet),
      .m_reg_valid      (reg_valid),
      .m_reg_ready      (reg_ready),
      .m_reg_write      (reg_write),
      .m_reg_addr       (reg_addr),
      .m_reg_wdata      (reg_wdata),
      .m_reg_stranger   (reg_stranger),
      .s_reg_valid      (answer_valid),
      .s_reg_ready      (answer_ready),
      .s_reg_code       (answer_code),
      .s_reg_value      (answer_value),
      .m_code_valid     (code_valid),
      .m_code           (code),
      .owned            (owned),
      .clear_counters   (clear_counters),
      .clear_staged     (clear_staged),
      .m_reply_valid    (m_reply_valid),
      .m_reply_ready    (m_reply_ready),
      .m_reply_header   (m_reply_header),
      .m_reply_mac      (m_reply_mac),
      .m_reply_ip       (m_reply_ip),
      .m_reply_port     (m_reply_port),
      .m_reply_ethernet (m_reply_ethernet),
      .own_mac          (own_mac),
      .own_ip           (own_ip),
      .own_port         (own_port),
      .lease_over       (lease_over),
      .table_clear      (table_clear),
      .table_write      (table_write),
      .table_jobs       (table_jobs),
      .table_mac        (table_mac),
      .table_job        (table_job),
      .table_port       (table_port),
      .table_value      (table_value),
      .commit_start     (commit_start),
      .commit_job       (commit_job),
      .commit_ready     (commit_ready),
      .commit_answered  (commit_answered),
      .commit_done      (commit_done),
      .count_index      (count_index),
      .count_value      (count_value)
  );

  // Each Ethernet port looks the same up; the bench reads the answers to port 0.
  wire [ETHERNET-1:0] all_from_valid;
  wire [32*ETHERNET-1:0] all_from_ip;
  wire [16*ETHERNET-1:0] all_from_port;
  wire [8*ETHERNET-1:0] all_from_ethernet;
  wire [PORT_BITS*ETHERNET-1:0] all_from_dest;
  wire [48*ETHERNET-1:0] all_to_mac;
  wire [32*ETHERNET-1:0] all_to_ip;
  wire [16*ETHERNET-1:0] all_to_udp_port;
  wire [8*ETHERNET-1:0] all_to_ethernet;
  wire [PORTS*ETHERNET-1:0] all_to_same;
  wire [ETHERNET*JOBS*PORTS-1:0] all_behind;
  wire unused_from = &{1'b0, all_from_valid, all_from_ip, all_from_port, all_from_ethernet};
  wire unused_to = &{1'b0, all_to_mac, all_to_ip, all_to_udp_port, all_to_ethernet, all_to_same};
  wire unused_rest = &{1'b0, all_from_dest, all_behind};
  assign from_valid = all_from_valid[0];
  assign from_ip = all_from_ip[32-1:0];
  assign from_port = all_from_port[16-1:0];
  assign from_ethernet = all_from_ethernet[8-1:0];
  assign from_dest = all_from_dest[PORT_BITS-1:0];
  assign to_mac = all_to_mac[48-1:0];
  assign to_ip = all_to_ip[32-1:0];
  assign to_udp_port = all_to_udp_port[16-1:0];
  assign to_ethernet = all_to_ethernet[8-1:0];
  assign to_same = all_to_same[PORTS-1:0];

  agg_member_table #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS),
      .JOBS     (JOBS),
      .JOB_BITS (JOB_BITS),
      .ETHERNET (ETHERNET)
  ) u_member_table (
      .clk            (clk),
      .rst            (rst),
      .clear          (table_clear),
      .reg_write      (table_write),
      .reg_table      (table_jobs),
      .reg_mac        (table_mac),
      .reg_job        (table_job),
      .reg_port       (table_port),
      .reg_wdata      (s_access_wdata),
      .reg_value      (table_value),
      .commit_start   (commit_start),
      .commit_job     (commit_job),
      .commit_ports   (op_ports[PORTS-1:0]),
      .commit_ready   (commit_ready),
      .commit_answered(commit_answered),
      .set_up         (set_up),
      .commit_done    (commit_done),
      .members_whole  (members_whole),
      .members_same   (members_same),
      .hold_packets   (hold_packets),
      .packets_busy   (packets_busy),
      .packet_started (packet_started),
      .packet_left    (packet_left),
      .from_en        ({ETHERNET{from_en}}),
      .from_job       ({ETHERNET{from_job}}),
      .from_rank      ({ETHERNET{from_rank}}),
      .from_valid     (all_from_valid),
      .from_ip        (all_from_ip),
      .from_port      (all_from_port),
      .from_ethernet  (all_from_ethernet),
      .from_dest      (all_from_dest),
      .to_en          ({ETHERNET{to_en}}),
      .to_job         ({ETHERNET{to_job}}),
      .to_port        ({ETHERNET{to_port}}),
      .to_mac         (all_to_mac),
      .to_ip          (all_to_ip),
      .to_udp_port    (all_to_udp_port),
      .to_ethernet    (all_to_ethernet),
      .to_same        (all_to_same),
      .behind         (all_behind)
  );

  agg_network_counters #(
      .ETHERNET(ETHERNET)
  ) u_network_counters (
      .clk        (clk),
      .rst        (rst),
      .clear      (clear_counters),
      .drop_valid ({ETHERNET{1'b0}}),
      .drop_reason({4 * ETHERNET{1'b0}}),
      .stranger   ({ETHERNET{1'b0}}),
      .lease      (lease_over),
      .dropped    (1'b0),
      .passed     ({ETHERNET{1'b0}}),
      .index      (count_index),
      .value      (count_value)
  );

  // -- The core's registers and jobs --------------------------------------------------------------

  wire op_valid, op_commit, op_abort, op_done;
  wire [7:0] op_job, op_code;
  wire [15:0] op_epoch;
  wire [31:0] op_first;
  wire [63:0] op_chunk, op_window, op_deadline;
  wire [JOBS-1:0] job_ever, sets_up;
  wire [16*JOBS-1:0] job_epoch;

  assign set_up = |sets_up;

  agg_registers #(
      .JOBS     ({32'd0, JOBS}),
      .PORTS    ({32'd0, PORTS}),
      .JOB_BITS (JOB_BITS),
      .RANK_BITS(PORT_BITS)
  ) u_registers (
      .clk           (clk),
      .rst           (rst),
      .link_down     (down),
      .s_reg_valid   (reg_valid),
      .s_reg_ready   (reg_ready),
      .s_reg_write   (reg_write),
      .s_reg_addr    (reg_addr),
      .s_reg_wdata   (reg_wdata),
      .s_reg_partial (1'b0),
      .s_reg_stranger(reg_stranger),
      .m_reg_valid   (answer_valid),
      .m_reg_ready   (answer_ready),
      .m_reg_code    (answer_code),
      .m_reg_value   (answer_value),
      .s_code_valid  (code_valid),
      .s_code        (code),
      .clear_staged  (clear_staged),
      .owned         (owned),
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
      .job_finished  ({64 * JOBS{1'b0}}),
      .job_members   ({64 * JOBS{1'b0}}),
      .job_evicted   ({64 * JOBS{1'b0}}),
      .job_base      ({16 * JOBS{1'b0}}),
      .job_slots     ({16 * JOBS{1'b0}}),
      .nonfinite_in  ({32 * JOBS{1'b0}}),
      .nonfinite_out ({32 * JOBS{1'b0}}),
      .overflows     ({32 * JOBS{1'b0}}),
      .first_in      ({64 * JOBS{1'b0}}),
      .first_out     ({64 * JOBS{1'b0}}),
      .first_overflow({64 * JOBS{1'b0}}),
      .lag_job       (),
      .lag_rank      (),
      .lag_bucket    (),
      .lag_value     (32'd0),
      .counter_index (),
      .counter_value (32'd0),
      .clear_counters(clear_counters)
  );

  agg_jobs #(
      .PORTS     (PORTS),
      .PORT_BITS (PORT_BITS),
      .JOBS      (JOBS),
      .JOB_BITS  (JOB_BITS),
      .CHUNK     (24),
      .WINDOW    (8),
      .SLOT_BITS (4),
      .INDEX_BITS(3),
      .LANE_BITS (2)
  ) u_jobs (
      .clk          (clk),
      .rst          (rst),
      .link_down    (down),
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
      .members_whole(members_whole),
      .members_same (members_same),
      .op_done      (op_done),
      .op_code      (op_code),
      .finish       (1'b0),
      .finish_job   ({JOB_BITS{1'b0}}),
      .finish_bit   ({PORTS{1'b0}}),
      .finish_ports ({PORTS{1'b0}}),
      .evict        ({PORTS{1'b0}}),
      .evict_job    ({JOB_BITS{1'b0}}),
      .evict_ranks  ({PORTS{1'b0}}),
      .hold_commits (),
      .idle         (1'b1),
      .drained      ({JOBS{1'b1}}),
      .reduces      (1'b0),
      .flush        (),
      .hold         (hold),
      .drop_statuses(),
      .clear        (),
      .clear_slot   (),
      .sets_up      (sets_up),
      .sets_up_job  (),
      .cleared      (1'b1),
      .job_valid    (job_valid),
      .job_complete (),
      .job_ever     (job_ever),
      .job_epoch    (job_epoch),
      .job_chunk    (),
      .job_last     (),
      .job_window   (),
      .slot_mask    (),
      .slot_base    (),
      .job_first    (),
      .job_deadline (),
      .job_partial  (),
      .job_finished (),
      .job_evicted  (),
      .evicted      (),
      .present      (),
      .member       (),
      .rank_of_port ()
  );

endmodule

`default_nettype wire
