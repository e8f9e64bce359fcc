// Made by: hwgen -lanes 1 -workers 3 -format int32 -result int32 -sum tree -saturate -chunk 4
//      -window 1 -jobs 1 -shell none -registers axil

// One lane: y is the integer sum of x_p0..x_p2, saturated, 3 cycles later; a new
// sum every cycle. over is high if the sum is beyond the format's range.
// The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
// and drives 0 for an absent worker.

`default_nettype none

module agg_lane (
    input  wire        clk,
    input  wire [31:0] x_p0,
    input  wire [31:0] x_p1,
    input  wire [31:0] x_p2,
    output wire [31:0] y,
    output wire        over
);
  // Level 0: 3 to 2, valid 1 cycles after the inputs.
  wire [32:0] l0_n0;  // workers 0, 1
  wire [32:0] l0_n1;  // worker 2

  // workers 0, 1
  agg_int_add #(
      .WIDTH(32)
  ) u_l0_n0 (
      .clk(clk),
      .a  (x_p0),
      .b  (x_p1),
      .y  (l0_n0)
  );

  // worker 2 passes
  agg_delay #(
      .WIDTH (33),
      .CYCLES(1)
  ) u_l0_n1 (
      .clk(clk),
      .d  ({x_p2[31], x_p2}),
      .q  (l0_n1)
  );

  // Level 1: 2 to 1, valid 2 cycles after the inputs.
  wire [33:0] l1_n0;  // workers 0..2

  // workers 0..2
  agg_int_add #(
      .WIDTH(33)
  ) u_l1_n0 (
      .clk(clk),
      .a  (l0_n0),
      .b  (l0_n1),
      .y  (l1_n0)
  );

  // Reduces the sum to 32 bits.
  agg_int_clamp #(
      .IN      (34),
      .OUT     (32),
      .SATURATE(1)
  ) u_clamp (
      .clk (clk),
      .a   (l1_n0),
      .y   (y),
      .over(over)
  );

endmodule

`default_nettype wire
