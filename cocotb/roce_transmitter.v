// The transmitting side of a card under RoCEv2 as one module, for test_roce_transmit.py and the lints:
// from the core's output, and its verdicts, to frames. The shell's table of receivers is a register
// here, and its answer comes as late as agg_roce_transmit allows.

`default_nettype none

module roce_transmitter #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer SLOT_BITS = 4,
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,
    parameter integer ETHERNET = 2,
    parameter integer BEAT_BYTES = 64,
    parameter integer BYTES = 8,
    parameter integer PAYLOAD = 1024,  // of the largest sum, in bytes
    parameter integer TAG_BITS = JOB_BITS + 48,
    parameter integer PLACE_BITS = 3 + $clog2(ETHERNET)
) (
    input wire clk,
    input wire rst,

    input wire [                   47:0] own_mac,
    input wire [      48*PORTS*JOBS-1:0] member_mac,  // of the receiver of each port's connection
    input wire [ETHERNET*JOBS*PORTS-1:0] behind,      // where it is

    // See agg_roce_headers
    input  wire [               ETHERNET-1:0] s_record_valid,
    output wire [               ETHERNET-1:0] s_record_ready,
    output wire [    PLACE_BITS*ETHERNET-1:0] s_record_place,
    input  wire [(TAG_BITS+626)*ETHERNET-1:0] s_record,
    input  wire [                  PORTS-1:0] enter_tvalid,
    input  wire [                  PORTS-1:0] enter_tready,
    input  wire [                  PORTS-1:0] enter_tlast,
    input  wire [       PLACE_BITS*PORTS-1:0] enter_place,
    input  wire                               verdict_valid,
    input  wire [              PORT_BITS-1:0] verdict_port,
    input  wire [              SLOT_BITS-1:0] verdict_slot,
    input  wire [                        2:0] verdict_result,
    input  wire [                   JOBS-1:0] job_on,
    input  wire [                16*JOBS-1:0] job_epoch,
    output wire [                32*JOBS-1:0] newest_vid,

    // The core's output
    input  wire [8*BEAT_BYTES-1:0] s_axis_tdata,
    input  wire [  BEAT_BYTES-1:0] s_axis_tkeep,
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,
    input  wire                    s_axis_tlast,
    input  wire [           175:0] s_axis_tuser,
    input  wire [       PORTS-1:0] s_axis_tdest,
    input  wire [   SLOT_BITS-1:0] s_axis_tslot,

    output wire [8*BYTES*ETHERNET-1:0] m_axis_tdata,
    output wire [  BYTES*ETHERNET-1:0] m_axis_tkeep,
    output wire [        ETHERNET-1:0] m_axis_tvalid,
    input  wire [        ETHERNET-1:0] m_axis_tready,
    output wire [        ETHERNET-1:0] m_axis_tlast,

    output wire [ETHERNET-1:0] left,
    output wire [ETHERNET-1:0] skipped
);

  `include "zwire.vh"

  localparam integer STEP = BEAT_BYTES < BYTES ? BEAT_BYTES : BYTES;
  localparam integer NUMBER_BITS = $clog2(PAYLOAD / STEP) + 1;

  wire [ETHERNET-1:0] rooms;
  wire takes_first, takes_word, word_valid, last, sums_valid;
  wire [8*BYTES-1:0] word_data;
  wire [NUMBER_BITS-1:0] number;
  wire [31:0] crc;

  agg_roce_sums #(
      .BEAT_BYTES (BEAT_BYTES),
      .BYTES      (BYTES),
      .STEP       (STEP),
      .NUMBER_BITS(NUMBER_BITS)
  ) u_sums (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata (s_axis_tdata),
      .s_axis_tkeep (s_axis_tkeep),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .s_axis_tlast (s_axis_tlast),
      .room         (&rooms),
      .takes_first  (takes_first),
      .takes_word   (takes_word),
      .m_word_valid (word_valid),
      .m_word_data  (word_data),
      .m_last       (last),
      .m_number     (number),
      .m_sums_valid (sums_valid),
      .m_crc        (crc)
  );

  wire [(PORTS+1)*ETHERNET-1:0] split_dest;
  wire [ETHERNET-1:0] split_first, split_word, split_valid, split_last, split_sums;

  agg_packet_split #(
      .PORTS   (PORTS),
      .ETHERNET(ETHERNET),
      .JOBS    (JOBS),
      .JOB_BITS(JOB_BITS),
      .DELAY   (STEP <= 16 ? 2 : 3)
  ) u_split (
      .clk           (clk),
      .rst           (rst),
      .behind        (behind),
      .reply_ethernet(8'd0),
      .s_dest        ({1'b0, s_axis_tdest}),
      .s_job         (s_axis_tuser[HDR_JOB_LSB+:JOB_BITS]),
      .takes_first   (takes_first),
      .takes_word    (takes_word),
      .s_word_valid  (word_valid),
      .s_last        (last),
      .s_sums_valid  (sums_valid),
      .m_dest        (split_dest),
      .m_takes_first (split_first),
      .m_takes_word  (split_word),
      .m_word_valid  (split_valid),
      .m_last        (split_last),
      .m_sums_valid  (split_sums)
  );

  wire [ETHERNET-1:0] read_valid, read_ready, read_done;
  wire [PORT_BITS*ETHERNET-1:0] read_port;
  wire [SLOT_BITS*ETHERNET-1:0] read_slot;
  wire [TAG_BITS-1:0] read_tag;
  wire [625:0] read_record;

  agg_roce_headers #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS),
      .SLOT_BITS(SLOT_BITS),
      .JOBS     (JOBS),
      .JOB_BITS (JOB_BITS),
      .ETHERNET (ETHERNET)
  ) u_headers (
      .clk           (clk),
      .rst           (rst),
      .s_record_valid(s_record_valid),
      .s_record_ready(s_record_ready),
      .s_record_place(s_record_place),
      .s_record      (s_record),
      .enter_tvalid  (enter_tvalid),
      .enter_tready  (enter_tready),
      .enter_tlast   (enter_tlast),
      .enter_place   (enter_place),
      .verdict_valid (verdict_valid),
      .verdict_port  (verdict_port),
      .verdict_slot  (verdict_slot),
      .verdict_result(verdict_result),
      .job_on        (job_on),
      .job_epoch     (job_epoch),
      .newest_vid    (newest_vid),
      .read_valid    (read_valid),
      .read_ready    (read_ready),
      .read_port     (read_port),
      .read_slot     (read_slot),
      .read_done     (read_done),
      .read_tag      (read_tag),
      .read_record   (read_record)
  );

  genvar e;
  generate
    for (e = 0; e < ETHERNET; e = e + 1) begin : g_ethernet
      wire unused_dest = split_dest[(PORTS+1)*e+PORTS];
      wire copy_valid, copy_ready, copy_final, unused_bare;
      wire [PORTS-1:0] copy_dest, copy_done;
      wire [SLOT_BITS-1:0] copy_slot;
      wire [JOB_BITS-1:0] copy_job;
      wire [15:0] copy_epoch;
      wire [31:0] copy_vid;
      wire [191-SLOT_BITS-JOB_BITS:0] unused_fields;
      wire [1:0] copy_ecn;
      wire [13:0] unused_bytes;
      wire [31:0] copy_crc;
      wire [15:0] unused_sum;
      wire [8*BYTES-1:0] payload_tdata;
      wire payload_tvalid, payload_tready, payload_tlast;

      agg_datagram_store #(
          .PORTS      (PORTS),
          .BYTES      (BYTES),
          .STEP       (STEP),
          .PAYLOAD    (PAYLOAD),
          .SPARE      (PAYLOAD < 64 * BYTES ? 16 : 0),
          .NUMBER_BITS(NUMBER_BITS)
      ) u_store (
          .clk(clk),
          .rst(rst),
          .room(rooms[e]),
          .takes_first(split_first[e]),
          .s_header({{64 - SLOT_BITS{1'b0}}, s_axis_tslot, s_axis_tuser}),
          .s_dest(split_dest[(PORTS+1)*e+:PORTS]),
          .s_bare(1'b0),
          .takes_word(split_word[e]),
          .s_word_valid(split_valid[e]),
          .s_word_data(word_data),
          .s_last(split_last[e]),
          .s_number(number),
          .s_sums_valid(split_sums[e]),
          .s_crc(crc),
          .s_sum(16'd0),
          .m_copy_valid(copy_valid),
          .m_copy_ready(copy_ready),
          .m_copy_done(copy_done),
          .m_copy_dest(copy_dest),
          .m_copy_final(copy_final),
          .m_copy_header({
            unused_fields[191-JOB_BITS-SLOT_BITS:128-JOB_BITS],
            copy_slot,
            unused_fields[127-JOB_BITS:48-JOB_BITS],
            copy_vid,
            unused_fields[47-JOB_BITS:32-JOB_BITS],
            copy_epoch,
            unused_fields[31-JOB_BITS:16],
            copy_job,
            unused_fields[15:0]
          }),
          .m_copy_bare(unused_bare),
          .m_copy_ecn(copy_ecn),
          .m_copy_bytes(unused_bytes),
          .m_copy_crc(copy_crc),
          .m_copy_sum(unused_sum),
          .m_axis_tdata(payload_tdata),
          .m_axis_tvalid(payload_tvalid),
          .m_axis_tready(payload_tready),
          .m_axis_tlast(payload_tlast)
      );

      wire [JOB_BITS-1:0] to_job;
      wire [PORT_BITS-1:0] to_port;
      wire [48*PORTS-1:0] members = JOBS == 1 ? member_mac[48*PORTS-1:0] :
          member_mac[48*PORTS*to_job+:48*PORTS];
      wire [47:0] to_mac;

      agg_delay #(
          .WIDTH (48),
          .CYCLES(3)
      ) u_to (
          .clk(clk),
          .d  (members[48*to_port+:48]),
          .q  (to_mac)
      );

      agg_roce_transmit #(
          .PORTS    (PORTS),
          .PORT_BITS(PORT_BITS),
          .SLOT_BITS(SLOT_BITS),
          .JOB_BITS (JOB_BITS),
          .BYTES    (BYTES)
      ) u_transmit (
          .clk(clk),
          .rst(rst),
          .own_mac(own_mac),
          .s_copy_valid(copy_valid),
          .s_copy_ready(copy_ready),
          .s_copy_dest(copy_dest),
          .s_copy_done(copy_done),
          .s_copy_final(copy_final),
          .s_copy_slot(copy_slot),
          .s_copy_tag({copy_job, copy_epoch, copy_vid}),
          .s_copy_ecn(copy_ecn),
          .s_copy_crc(copy_crc),
          .read_valid(read_valid[e]),
          .read_ready(read_ready[e]),
          .read_port(read_port[PORT_BITS*e+:PORT_BITS]),
          .read_slot(read_slot[SLOT_BITS*e+:SLOT_BITS]),
          .read_done(read_done[e]),
          .read_tag(read_tag),
          .read_record(read_record),
          .to_job(to_job),
          .to_port(to_port),
          .to_mac(to_mac),
          .s_axis_tdata(payload_tdata),
          .s_axis_tvalid(payload_tvalid),
          .s_axis_tready(payload_tready),
          .s_axis_tlast(payload_tlast),
          .m_axis_tdata(m_axis_tdata[8*BYTES*e+:8*BYTES]),
          .m_axis_tkeep(m_axis_tkeep[BYTES*e+:BYTES]),
          .m_axis_tvalid(m_axis_tvalid[e]),
          .m_axis_tready(m_axis_tready[e]),
          .m_axis_tlast(m_axis_tlast[e]),
          .left(left[e]),
          .skipped(skipped[e])
      );
    end
  endgenerate

endmodule

`default_nettype wire
