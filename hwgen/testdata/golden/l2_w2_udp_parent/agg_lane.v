// Made by: hwgen -lanes 2 -workers 2 -format fp32 -result fp32 -sum tree -chunk 8 -window 2 -jobs 2
//      -shell udp -link 64 -ethernet 2 -mac 02:54:52:42:00:01 -ip 192.168.84.66 -udp-port 21570
//      -parent

// The adder tree of one lane: y is the sum of x_p0..x_p2, 28 cycles later; a new sum
// every cycle. It adds neighbours pairwise, level by level; an unpaired operand passes unchanged.
// over is high if y is an infinity or a NaN, but every operand is finite.
// The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
// and drives -0 for an absent worker.

`default_nettype none

module agg_lane (
    input  wire        clk,
    input  wire [31:0] x_p0,
    input  wire [31:0] x_p1,
    input  wire [31:0] x_p2,
    output wire [31:0] y,
    output wire        over
);
  // Level 0: 3 to 2, valid 14 cycles after the inputs.
  wire [31:0] l0_n0;  // workers 0, 1
  wire [31:0] l0_n1;  // worker 2

  // workers 0, 1
  agg_fp_add #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_l0_n0 (
      .clk(clk),
      .a  (x_p0),
      .b  (x_p1),
      .y  (l0_n0)
  );

  // worker 2 passes
  agg_delay #(
      .WIDTH (32),
      .CYCLES(14)
  ) u_l0_n1 (
      .clk(clk),
      .d  (x_p2),
      .q  (l0_n1)
  );

  // Level 1: 2 to 1, valid 28 cycles after the inputs.
  // workers 0..2
  agg_fp_add #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_l1_n0 (
      .clk(clk),
      .a  (l0_n0),
      .b  (l0_n1),
      .y  (y)
  );

  agg_fp_over #(
      .OPERANDS  (3),
      .LATENCY   (28),
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_over (
      .clk (clk),
      .x   ({x_p2, x_p1, x_p0}),
      .y   (y),
      .over(over)
  );

endmodule

`default_nettype wire
