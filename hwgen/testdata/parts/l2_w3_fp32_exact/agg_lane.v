// Made by: hwgen -lanes 2 -workers 3 -format fp32 -result fp32 -sum exact -chunk 4 -window 1
//      -jobs 1 -shell none -registers axil

// One lane: y is the sum of x_p0..x_p2, rounded once, 19 cycles later; a new sum every cycle.
// It aligns all operands to the largest exponent and sums them in a window of 44 bits.
// One extra bit marks an operand that lost bits. undecided, two cycles before y, is high if y may
// be wrong because of lost bits.
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
    output wire        over,
    output wire        undecided
);
  // -- The largest exponent, 3 cycles after the inputs --
  wire [7:0] max_l0_n0;  // workers 0, 1

  agg_window_max #(
      .EXP(8)
  ) u_max_l0_n0 (
      .clk(clk),
      .a  (x_p0[30:23]),
      .b  (x_p1[30:23]),
      .y  (max_l0_n0)
  );

  wire [7:0] max_l0_n1;  // worker 2 pass

  agg_delay #(
      .WIDTH (8),
      .CYCLES(1)
  ) u_max_l0_n1 (
      .clk(clk),
      .d  (x_p2[30:23]),
      .q  (max_l0_n1)
  );

  wire [7:0] found_max;  // workers 0..2

  agg_window_max #(
      .EXP  (8),
      .FLOOR(1)
  ) u_found_max (
      .clk(clk),
      .a  (max_l0_n0),
      .b  (max_l0_n1),
      .y  (found_max)
  );

  wire [7:0] max;  // registered, because of its fan-out

  agg_delay #(
      .WIDTH (8),
      .CYCLES(1)
  ) u_max (
      .clk(clk),
      .d  (found_max),
      .q  (max)
  );

  // -- Operands in a window of 44 bits below the largest exponent, 7 cycles after the inputs --
  wire [ 2:0] top;  // operands that are an infinity or a NaN
  wire [ 2:0] negative;  // signs
  wire        special;  // max is the exponent of infinities and NaNs
  wire [ 2:0] lost;  // operands that lost bits below the window
  wire [31:0] held_p0;  // delayed until a cycle before max

  agg_delay #(
      .WIDTH (32),
      .CYCLES(2)
  ) u_held_p0 (
      .clk(clk),
      .d  (x_p0),
      .q  (held_p0)
  );

  wire [43:0] magnitude_p0;

  agg_window_align #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1),
      .WINDOW    (44),
      .MARK      (1),
      .DSP       (0)
  ) u_align_p0 (
      .clk      (clk),
      .x        (held_p0),
      .max      (max),
      .special  (special),
      .negative (negative[0]),
      .top      (top[0]),
      .magnitude(magnitude_p0),
      .mark     (lost[0])
  );

  wire [31:0] held_p1;  // delayed until a cycle before max

  agg_delay #(
      .WIDTH (32),
      .CYCLES(2)
  ) u_held_p1 (
      .clk(clk),
      .d  (x_p1),
      .q  (held_p1)
  );

  wire [43:0] magnitude_p1;

  agg_window_align #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1),
      .WINDOW    (44),
      .MARK      (1),
      .DSP       (0)
  ) u_align_p1 (
      .clk      (clk),
      .x        (held_p1),
      .max      (max),
      .special  (special),
      .negative (negative[1]),
      .top      (top[1]),
      .magnitude(magnitude_p1),
      .mark     (lost[1])
  );

  wire [31:0] held_p2;  // delayed until a cycle before max

  agg_delay #(
      .WIDTH (32),
      .CYCLES(2)
  ) u_held_p2 (
      .clk(clk),
      .d  (x_p2),
      .q  (held_p2)
  );

  wire [43:0] magnitude_p2;

  agg_window_align #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1),
      .WINDOW    (44),
      .MARK      (1),
      .DSP       (0)
  ) u_align_p2 (
      .clk      (clk),
      .x        (held_p2),
      .max      (max),
      .special  (special),
      .negative (negative[2]),
      .top      (top[2]),
      .magnitude(magnitude_p2),
      .mark     (lost[2])
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
      .CYCLES(1)
  ) u_sign (
      .clk(clk),
      .d  (negative),
      .q  (sign)
  );

  wire plain;  // add and ignore the signs

  agg_delay #(
      .WIDTH (1),
      .CYCLES(1)
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

  wire [46:0] sum_l0_n0;  // workers 0, 1
  wire        sum_l0_n0_negative;

  agg_window_add #(
      .WIDTH(46)
  ) u_sum_l0_n0 (
      .clk       (clk),
      .plain     (plain_l0),
      .a_negative(sign[0]),
      .a         ({1'b0, magnitude_p0, lost[0]}),
      .b_negative(sign[1]),
      .b         ({1'b0, magnitude_p1, lost[1]}),
      .y_negative(sum_l0_n0_negative),
      .y         (sum_l0_n0)
  );

  wire [46:0] sum_l0_n1;  // worker 2 pass

  agg_delay #(
      .WIDTH (47),
      .CYCLES(1)
  ) u_sum_l0_n1 (
      .clk(clk),
      .d  ({1'b0, {1'b0, magnitude_p2, lost[2]}}),
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

  wire [47:0] sum;  // workers 0..2
  wire        sum_negative;

  agg_window_add #(
      .WIDTH(47)
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

  // -- Normalized, 15 cycles after the inputs --
  wire [7:0] exponent;  // of the window's top, a cycle before the sum

  agg_delay #(
      .WIDTH (8),
      .CYCLES(5)
  ) u_exponent (
      .clk(clk),
      .d  (max),
      .q  (exponent)
  );

  wire        inverted;  // the sum is negative, and normal is inverted
  wire        zero;  // the sum is 0
  wire [ 5:0] shift;
  wire [41:0] normal;
  wire        rest;  // bits below normal are nonzero

  agg_window_normalize #(
      .EXP   (8),
      .WIDTH (48),
      .GROWTH(2),
      .BITS  (64),
      .KEEP  (42)
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

  // -- The decision, two cycles before the result --
  wire some_lost;  // an operand lost bits below the window
  wire several_lost;  // more than one operand did

  agg_exact_lost #(
      .OPERANDS(3)
  ) u_lost (
      .clk    (clk),
      .lost   (lost),
      .some   (some_lost),
      .several(several_lost)
  );

  wire [1:0] losers;

  agg_delay #(
      .WIDTH (2),
      .CYCLES(5)
  ) u_losers (
      .clk(clk),
      .d  ({some_lost, several_lost}),
      .q  (losers)
  );

  wire doubt;

  agg_exact_decide #(
      .PLACES(17),
      .NEAR  (4),
      .FAR   (8),
      .ONE   (21)
  ) u_decide (
      .clk      (clk),
      .some     (losers[1]),
      .several  (losers[0]),
      .shift    (shift),
      .normal   (normal[17:0]),
      .undecided(doubt)
  );

  agg_delay #(
      .WIDTH (1),
      .CYCLES(0)
  ) u_undecided (
      .clk(clk),
      .d  (doubt),
      .q  (undecided)
  );

  // -- Rounded, 19 cycles after the inputs --
  wire [3:0] signs;  // nonfinite, nan, minus, all_negative

  agg_delay #(
      .WIDTH (4),
      .CYCLES(8)
  ) u_signs (
      .clk(clk),
      .d  ({nonfinite, nan, minus, all_negative}),
      .q  (signs)
  );

  wire turned;  // the sum's sign is inverted

  agg_delay #(
      .WIDTH (1),
      .CYCLES(7)
  ) u_turned (
      .clk(clk),
      .d  (sum_negative),
      .q  (turned)
  );

  wire [7:0] normal_exponent;

  agg_delay #(
      .WIDTH (8),
      .CYCLES(7)
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
      .KEEP      (42)
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
