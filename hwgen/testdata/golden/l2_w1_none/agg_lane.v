// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none -registers axil

// The adder tree of one lane: y is the sum of x_p0..x_p0, 1 cycles later; a new sum
// every cycle. It adds neighbours pairwise, level by level; an unpaired operand passes unchanged.
// over is high if y is an infinity or a NaN, but every operand is finite.
// The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
// and drives -0 for an absent worker.

`default_nettype none

module agg_lane (
    input  wire        clk,
    input  wire [31:0] x_p0,
    output wire [31:0] y,
    output wire        over
);
  // worker 0
  agg_fp_canon #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_l0_n0 (
      .clk(clk),
      .a  (x_p0),
      .y  (y)
  );

  assign over = 1'b0;

endmodule

`default_nettype wire
