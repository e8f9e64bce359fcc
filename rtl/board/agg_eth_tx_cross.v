// Frames from the card's clock to a MAC's: beats of BYTES at clk become bytes at eth_clk.
//
// A MAC cannot pause within a frame, and the memory holds less than a frame. So the card must not
// pause within a frame either, and BYTES bytes a cycle of clk must be as fast as a byte a cycle of
// eth_clk. Then HEADSTART cycles of eth_clk, between the first beat's arrival and the first byte's
// departure, cover the crossing's jitter and 0.02 % between the clocks. A frame whose card does
// pause is cut: tvalid falls within it.
//
// Between two frames the MAC sends FCS, gap and preamble, which take longer than HEADSTART: frames
// follow at line rate.
//
// Frames that begin while the link is down are dropped whole: the card is not held up by a cable
// that is pulled. Not done here: a PHY without a clock, which holds its card up; the reset of one
// side alone (agg_async_fifo).

`default_nettype none

module agg_eth_tx_cross #(
    parameter integer BYTES = 8,  // in a beat of the card: 1 or 8
    parameter integer DEPTH_BITS = 4,  // log2 of the beats that it holds, at least 2
    parameter integer HEADSTART = 8  // cycles of eth_clk, at least 1 and less than 20
) (
    // Card
    input  wire               clk,
    input  wire               rst,
    input  wire [8*BYTES-1:0] s_axis_tdata,
    input  wire [  BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0, and all ones before the last
    input  wire               s_axis_tvalid,
    output wire               s_axis_tready,
    input  wire               s_axis_tlast,

    // MAC
    input  wire       eth_clk,
    input  wire       eth_rst,
    input  wire       link_up,
    output wire [7:0] m_axis_tdata,
    output wire       m_axis_tvalid,
    input  wire       m_axis_tready,
    output wire       m_axis_tlast
);

  generate
    if (BYTES != 1 && BYTES != 8) begin : g_bytes
      ERROR_a_beat_has_1_or_8_bytes error ();
    end
    if (HEADSTART < 1 || HEADSTART > 19) begin : g_headstart
      ERROR_a_headstart_of_1_to_19_cycles_costs_no_line_rate error ();
    end
  endgenerate

  localparam [BYTES-1:0] FIRST = 1;  // a beat's first place

  // -- The memory ---------------------------------------------------------------------------------

  wire [8*BYTES-1:0] data;
  wire [BYTES-1:0] keep;
  wire last;
  wire here;
  wire unused_empty;
  wire next;  // the beat at the memory's output is used up

  agg_async_fifo #(
      .WIDTH(9 * BYTES + 1),
      .DEPTH_BITS(DEPTH_BITS)
  ) u_beats (
      .wr_clk(clk),
      .wr_rst(rst),
      .s_axis_tdata({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .rd_clk(eth_clk),
      .rd_rst(eth_rst),
      .m_axis_tdata({last, keep, data}),
      .m_axis_tvalid(here),
      .m_axis_tready(next),
      .rd_empty(unused_empty)
  );

  // -- Frames, and their bytes --------------------------------------------------------------------

  localparam integer COUNT = 5;

  reg sends_reg;  // a frame's bytes leave
  reg drops_reg;  // a frame is dropped
  reg [COUNT-1:0] waits_reg;  // cycles until a frame may begin
  reg [BYTES-1:0] at_reg;  // place of the byte: one bit

  // The next place; after the last one, the first.
  wire [BYTES-1:0] at_next = (at_reg << 1) | (at_reg >> (BYTES - 1));
  wire ends = at_reg[BYTES-1] || (keep & at_next) == {BYTES{1'b0}};
  wire byte_leaves = sends_reg && here && m_axis_tready;
  wire frame_ends = here && last && next;
  reg [7:0] byte_now;
  integer i;

  always @* begin
    byte_now = 8'd0;
    for (i = 0; i < BYTES; i = i + 1) byte_now = byte_now | (data[8*i+:8] & {8{at_reg[i]}});
  end

  assign next = drops_reg || (byte_leaves && ends);
  assign m_axis_tdata = byte_now;
  assign m_axis_tvalid = sends_reg && here;
  assign m_axis_tlast = last && ends;

  always @(posedge eth_clk) begin
    if (byte_leaves) at_reg <= ends ? FIRST : at_next;
    if (sends_reg || drops_reg) begin
      if (frame_ends) begin
        sends_reg <= 1'b0;
        drops_reg <= 1'b0;
        waits_reg <= HEADSTART[COUNT-1:0] - 1'b1;
      end
    end else if (here) begin
      waits_reg <= waits_reg - 1'b1;
      if (waits_reg == {COUNT{1'b0}}) begin
        sends_reg <= link_up;
        drops_reg <= !link_up;
      end
    end
    if (eth_rst) begin
      sends_reg <= 1'b0;
      drops_reg <= 1'b0;
      waits_reg <= HEADSTART[COUNT-1:0] - 1'b1;
      at_reg    <= FIRST;
    end
  end

endmodule

`default_nettype wire
