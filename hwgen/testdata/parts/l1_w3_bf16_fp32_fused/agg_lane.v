// Made by: hwgen -lanes 1 -workers 3 -format bf16 -result fp32 -sum fused -chunk 4 -window 1
//      -jobs 1 -shell none -registers axil

// One lane: y is the sum of x_p0..x_p2, 18 cycles later; a new sum every cycle. It aligns
// all operands to the largest exponent, truncates them 4 bits below the last place of the largest,
// sums them as integers and rounds once. over is high if y is not finite, but every operand is.
// The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
// and drives -0 for an absent worker.

`default_nettype none

module agg_lane (
    input  wire        clk,
    input  wire [15:0] x_p0,
    input  wire [15:0] x_p1,
    input  wire [15:0] x_p2,
    output wire [31:0] y,
    output wire        over
);
  // Exact conversion from bf16 to fp32: valid 2 cycles after the inputs.
  wire [31:0] wide_p0;
  wire [31:0] wide_p1;
  wire [31:0] wide_p2;

  agg_fp_widen #(
      .EXP       (8),
      .FRAC      (7),
      .INFINITIES(1),
      .TO_EXP    (8),
      .TO_FRAC   (23)
  ) u_widen_p0 (
      .clk(clk),
      .a  (x_p0),
      .y  (wide_p0)
  );

  agg_fp_widen #(
      .EXP       (8),
      .FRAC      (7),
      .INFINITIES(1),
      .TO_EXP    (8),
      .TO_FRAC   (23)
  ) u_widen_p1 (
      .clk(clk),
      .a  (x_p1),
      .y  (wide_p1)
  );

  agg_fp_widen #(
      .EXP       (8),
      .FRAC      (7),
      .INFINITIES(1),
      .TO_EXP    (8),
      .TO_FRAC   (23)
  ) u_widen_p2 (
      .clk(clk),
      .a  (x_p2),
      .y  (wide_p2)
  );

  // -- The largest exponent, 4 cycles after the inputs --
  wire [7:0] max_l0_n0;  // workers 0, 1

  agg_window_max #(
      .EXP(8)
  ) u_max_l0_n0 (
      .clk(clk),
      .a  (wide_p0[30:23]),
      .b  (wide_p1[30:23]),
      .y  (max_l0_n0)
  );

  wire [7:0] max_l0_n1;  // worker 2 pass

  agg_delay #(
      .WIDTH (8),
      .CYCLES(1)
  ) u_max_l0_n1 (
      .clk(clk),
      .d  (wide_p2[30:23]),
      .q  (max_l0_n1)
  );

  wire [7:0] max;  // workers 0..2

  agg_window_max #(
      .EXP  (8),
      .FLOOR(1)
  ) u_max (
      .clk(clk),
      .a  (max_l0_n0),
      .b  (max_l0_n1),
      .y  (max)
  );

  // -- Operands in a window of 28 bits below the largest exponent, 7 cycles after the inputs --
  wire [ 2:0] top;  // operands that are an infinity or a NaN
  wire [ 2:0] negative;  // signs
  wire        special;  // max is the exponent of infinities and NaNs
  wire [ 2:0] unused_lost;  // operands that lost bits below the window
  wire [31:0] held_p0;  // delayed until a cycle before max

  agg_delay #(
      .WIDTH (32),
      .CYCLES(1)
  ) u_held_p0 (
      .clk(clk),
      .d  (wide_p0),
      .q  (held_p0)
  );

  wire [27:0] magnitude_p0;

  agg_window_align #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1),
      .WINDOW    (28),
      .MARK      (0),
      .DSP       (0)
  ) u_align_p0 (
      .clk      (clk),
      .x        (held_p0),
      .max      (max),
      .special  (special),
      .negative (negative[0]),
      .top      (top[0]),
      .magnitude(magnitude_p0),
      .mark     (unused_lost[0])
  );

  wire [31:0] held_p1;  // delayed until a cycle before max

  agg_delay #(
      .WIDTH (32),
      .CYCLES(1)
  ) u_held_p1 (
      .clk(clk),
      .d  (wide_p1),
      .q  (held_p1)
  );

  wire [27:0] magnitude_p1;

  agg_window_align #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1),
      .WINDOW    (28),
      .MARK      (0),
      .DSP       (0)
  ) u_align_p1 (
      .clk      (clk),
      .x        (held_p1),
      .max      (max),
      .special  (special),
      .negative (negative[1]),
      .top      (top[1]),
      .magnitude(magnitude_p1),
      .mark     (unused_lost[1])
  );

  wire [31:0] held_p2;  // delayed until a cycle before max

  agg_delay #(
      .WIDTH (32),
      .CYCLES(1)
  ) u_held_p2 (
      .clk(clk),
      .d  (wide_p2),
      .q  (held_p2)
  );

  wire [27:0] magnitude_p2;

  agg_window_align #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1),
      .WINDOW    (28),
      .MARK      (0),
      .DSP       (0)
  ) u_align_p2 (
      .clk      (clk),
      .x        (held_p2),
      .max      (max),
      .special  (special),
      .negative (negative[2]),
      .top      (top[2]),
      .magnitude(magnitude_p2),
      .mark     (unused_lost[2])
  );

  wire nonfinite;  // an operand is an infinity or a NaN
  wire nan;  // the sum is a NaN
  wire minus;  // an operand is -infinity
  wire all_negative;  // a sum of zeros is -0

  agg_window_special #(
      .EXP       (8),
      .INFINITIES(1),
      .OPERANDS  (3)
  ) u_special (
      .clk         (clk),
      .max         (max),
      .special     (special),
      .top         (top),
      .negative    (negative),
      .nonfinite   (nonfinite),
      .nan         (nan),
      .minus       (minus),
      .all_negative(all_negative)
  );

  // -- The sum, 9 cycles after the inputs; signs are a cycle ahead --
  wire [2:0] sign;  // a cycle before the magnitudes

  agg_delay #(
      .WIDTH (3),
      .CYCLES(0)
  ) u_sign (
      .clk(clk),
      .d  (negative),
      .q  (sign)
  );

  wire plain;  // add and ignore the signs

  agg_delay #(
      .WIDTH (1),
      .CYCLES(0)
  ) u_plain (
      .clk(clk),
      .d  (special),
      .q  (plain)
  );

  wire plain_l0;

  agg_delay #(
      .WIDTH (1),
      .CYCLES(1)
  ) u_plain_l0 (
      .clk(clk),
      .d  (plain),
      .q  (plain_l0)
  );

  wire [29:0] sum_l0_n0;  // workers 0, 1
  wire        sum_l0_n0_negative;

  agg_window_add #(
      .WIDTH(29)
  ) u_sum_l0_n0 (
      .clk       (clk),
      .plain     (plain_l0),
      .a_negative(sign[0]),
      .a         ({1'b0, magnitude_p0}),
      .b_negative(sign[1]),
      .b         ({1'b0, magnitude_p1}),
      .y_negative(sum_l0_n0_negative),
      .y         (sum_l0_n0)
  );

  wire [29:0] sum_l0_n1;  // worker 2 pass

  agg_delay #(
      .WIDTH (30),
      .CYCLES(1)
  ) u_sum_l0_n1 (
      .clk(clk),
      .d  ({1'b0, {1'b0, magnitude_p2}}),
      .q  (sum_l0_n1)
  );

  wire sum_l0_n1_negative;

  agg_delay #(
      .WIDTH (1),
      .CYCLES(1)
  ) u_sum_l0_n1_negative (
      .clk(clk),
      .d  (sign[2]),
      .q  (sum_l0_n1_negative)
  );

  wire plain_l1;

  agg_delay #(
      .WIDTH (1),
      .CYCLES(1)
  ) u_plain_l1 (
      .clk(clk),
      .d  (plain_l0),
      .q  (plain_l1)
  );

  wire [30:0] sum;  // workers 0..2
  wire        sum_negative;

  agg_window_add #(
      .WIDTH(30)
  ) u_sum (
      .clk       (clk),
      .plain     (plain_l1),
      .a_negative(sum_l0_n0_negative),
      .a         (sum_l0_n0),
      .b_negative(sum_l0_n1_negative),
      .b         (sum_l0_n1),
      .y_negative(sum_negative),
      .y         (sum)
  );

  // -- Normalized, 14 cycles after the inputs --
  wire [7:0] exponent;  // of the window's top, a cycle before the sum

  agg_delay #(
      .WIDTH (8),
      .CYCLES(4)
  ) u_exponent (
      .clk(clk),
      .d  (max),
      .q  (exponent)
  );

  wire        inverted;  // the sum is negative, and normal is inverted
  wire        zero;  // the sum is 0
  wire [ 5:0] shift;
  wire [24:0] normal;
  wire        rest;  // bits below normal are nonzero

  agg_window_normalize #(
      .EXP   (8),
      .WIDTH (31),
      .GROWTH(2),
      .BITS  (32),
      .KEEP  (25)
  ) u_normalize (
      .clk     (clk),
      .sum     (sum),
      .exponent(exponent),
      .inverted(inverted),
      .zero    (zero),
      .shift   (shift),
      .normal  (normal),
      .rest    (rest)
  );

  // -- Rounded, 18 cycles after the inputs --
  wire [3:0] signs;  // nonfinite, nan, minus, all_negative

  agg_delay #(
      .WIDTH (4),
      .CYCLES(6)
  ) u_signs (
      .clk(clk),
      .d  ({nonfinite, nan, minus, all_negative}),
      .q  (signs)
  );

  wire turned;  // the sum's sign is inverted

  agg_delay #(
      .WIDTH (1),
      .CYCLES(6)
  ) u_turned (
      .clk(clk),
      .d  (sum_negative),
      .q  (turned)
  );

  wire [7:0] normal_exponent;

  agg_delay #(
      .WIDTH (8),
      .CYCLES(6)
  ) u_normal_exponent (
      .clk(clk),
      .d  (exponent),
      .q  (normal_exponent)
  );

  agg_window_round #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1),
      .GROWTH    (2),
      .KEEP      (25)
  ) u_round (
      .clk         (clk),
      .inverted    (inverted),
      .zero        (zero),
      .exponent    (normal_exponent),
      .shift       (shift),
      .normal      (normal),
      .rest        (rest),
      .negative    (turned),
      .nonfinite   (signs[3]),
      .nan         (signs[2]),
      .minus       (signs[1]),
      .all_negative(signs[0]),
      .y           (y),
      .over        (over)
  );

endmodule

`default_nettype wire
