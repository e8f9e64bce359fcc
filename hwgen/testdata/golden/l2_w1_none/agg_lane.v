// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none

// The adder tree of one lane: y is the sum of x_p0..x_p0, 1 cycles later; a new sum
// every cycle. Neighbours pair up level by level, an odd one out passes up unchanged.
// over says that y is an infinity or a NaN though no operand was.
// It knows no valid, no slot and no absent worker: whoever drives it delays its tags
// by as many cycles, and gives it -0 for a worker that is absent.

`default_nettype none

module agg_lane (
    input  wire        clk,
    input  wire [31:0] x_p0,
    output wire [31:0] y,
    output wire        over
);
  // worker 0
  agg_fp_canon #(
      .EXP     (8),
      .FRAC    (23),
      .INFINITY(1)
  ) u_l0_n0 (
      .clk(clk),
      .a  (x_p0),
      .y  (y)
  );

  assign over = 1'b0;

endmodule

`default_nettype wire
