// The adders of a card with 16 lanes and 8 workers, alone: 16 trees of 7, whose operands are ports.
// Latency: that of agg_lane. `make bench` compares the speed of the whole card's simulation with it.

`default_nettype none

module adders (
    input  wire         clk,
    input  wire [511:0] x_p0,
    input  wire [511:0] x_p1,
    input  wire [511:0] x_p2,
    input  wire [511:0] x_p3,
    input  wire [511:0] x_p4,
    input  wire [511:0] x_p5,
    input  wire [511:0] x_p6,
    input  wire [511:0] x_p7,
    output wire [511:0] y,
    output wire [ 15:0] over
);

  genvar i;
  generate
    for (i = 0; i < 16; i = i + 1) begin : g_lane
      agg_lane u_lane (
          .clk (clk),
          .x_p0(x_p0[32*i+:32]),
          .x_p1(x_p1[32*i+:32]),
          .x_p2(x_p2[32*i+:32]),
          .x_p3(x_p3[32*i+:32]),
          .x_p4(x_p4[32*i+:32]),
          .x_p5(x_p5[32*i+:32]),
          .x_p6(x_p6[32*i+:32]),
          .x_p7(x_p7[32*i+:32]),
          .y   (y[32*i+:32]),
          .over(over[i])
      );
    end
  endgenerate

endmodule

`default_nettype wire
