// Proves laws of the `tree` node that need no exact sum, so a solver can prove them in the large
// formats too: section 7.3 of driver/wire/SPEC.md. Two nodes run in parallel.

`default_nettype none

module node_laws #(
    parameter integer EXP        = 4,
    parameter integer FRAC       = 3,
    parameter integer INFINITIES = 1,
    parameter integer LATENCY    = 14
) (
    input wire              clk,
    input wire [EXP+FRAC:0] a,
    input wire [EXP+FRAC:0] b
);

  `include "plain_float.svh"

  wire [SIGN:0] y, swapped, a0, b0;
  wire due;

  agg_fp_add #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES)
  ) node (
      .clk(clk),
      .a  (a),
      .b  (b),
      .y  (y)
  );

  agg_fp_add #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES)
  ) other (
      .clk(clk),
      .a  (b),
      .b  (a),
      .y  (swapped)
  );

  one_beat #(
      .WIDTH  (2 * (SIGN + 1)),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   ({a, b}),
      .held({a0, b0}),
      .due (due)
  );

  wire opposite_signs = a0[SIGN] != b0[SIGN];
  wire same_magnitude = a0[SIGN-1:0] == b0[SIGN-1:0];
  wire nan = is_nan(a0) || is_nan(b0) || (is_infinite(a0) && is_infinite(b0) && opposite_signs);
  wire beyond = is_nan(y) || is_infinite(y);

  wire [EXP-1:0] a_field = a0[SIGN-1:FRAC];
  wire [EXP-1:0] b_field = b0[SIGN-1:FRAC];
  wire far = {1'b0, b_field} + FRAC + 2 < {1'b0, a_field};

  always @* begin
    if (due) begin
      // Commutativity, bit for bit.
      assert (y == swapped);

      // A NaN operand, or infinities of opposite signs, give the canonical NaN. Nothing else does,
      // except overflow in a format without infinities.
      if (nan) assert (y == NAN);
      if (is_nan(y)) assert (y == NAN && (nan || (!INFINITIES && !opposite_signs)));

      if (!nan) begin
        // An infinity plus a number is that infinity. Otherwise only overflow gives one.
        if (is_infinite(a0)) assert (y == a0);
        if (is_infinite(y)) assert (is_infinite(a0) || is_infinite(b0) || !opposite_signs);

        // -0 changes nothing; +0 changes only -0.
        if (b0 == {1'b1, {SIGN{1'b0}}}) assert (y == a0);
        if (b0 == 0) assert (y == (a0[SIGN-1:0] == 0 ? 0 : a0));

        // x - x is +0, and only zeros give a zero otherwise.
        if (opposite_signs && same_magnitude) assert (y == 0);
        if (y[SIGN-1:0] == 0) assert (same_magnitude);

        // The sign is that of the larger operand.
        if (a0[SIGN-1:0] > b0[SIGN-1:0] && !is_nan(y)) assert (y[SIGN] == a0[SIGN]);

        // Twice a subnormal has its fraction shifted; twice a normal number has the next exponent.
        if (a0 == b0 && a_field == 0) assert (y[SIGN-1:0] == {a0[SIGN-2:0], 1'b0});
        if (a0 == b0 && a_field != 0 && !beyond)
          assert (y[SIGN-1:0] == {a_field + 1'b1, a0[FRAC-1:0]});

        // Adding less than a quarter of a number's last place does not change the number.
        if (far) assert (y == a0);
      end

      cover (is_infinite(a0) && is_infinite(b0) && nan);
      cover (is_infinite(a0) && b_field == 0 && !nan);
      cover (beyond && !nan && !is_infinite(a0) && !is_infinite(b0));
      cover (a0 == b0 && b0 == {1'b1, {SIGN{1'b0}}});
      cover (opposite_signs && same_magnitude && a_field == 0 && b0[SIGN-1:0] != 0);
      cover (a0 == b0 && a_field != 0 && !beyond);
      cover (far && opposite_signs && a0[FRAC-1:0] == 0 && b_field != 0);
    end
  end

endmodule

`default_nettype wire
