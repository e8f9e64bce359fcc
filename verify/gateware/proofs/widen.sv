// Proves that widening preserves a number's value, and turns a NaN into the wider format's
// canonical one: section 7.2 of driver/wire/SPEC.md.

`default_nettype none

module widen #(
    parameter integer EXP        = 5,
    parameter integer FRAC       = 10,
    parameter integer INFINITIES = 1,
    parameter integer TO_EXP     = 8,
    parameter integer TO_FRAC    = 23,
    parameter integer LATENCY    = 2
) (
    input wire              clk,
    input wire [EXP+FRAC:0] a
);

  wire [EXP+FRAC:0] a0;
  wire [TO_EXP+TO_FRAC:0] y;
  wire due;

  agg_fp_widen #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES),
      .TO_EXP(TO_EXP),
      .TO_FRAC(TO_FRAC)
  ) widener (
      .clk(clk),
      .a  (a),
      .y  (y)
  );

  one_beat #(
      .WIDTH  (EXP + FRAC + 1),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   (a),
      .held(a0),
      .due (due)
  );

  wire a_nan, a_infinite, y_nan, y_canonical, y_infinite;
  wire [((1 << EXP) + FRAC - 1)-1:0] a_units;
  wire [((1 << TO_EXP) + TO_FRAC - 1)-1:0] y_units;

  plain_number #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES)
  ) from (
      .x(a0),
      .nan(a_nan),
      .canonical(),
      .infinite(a_infinite),
      .in_units(a_units)
  );

  plain_number #(
      .EXP (TO_EXP),
      .FRAC(TO_FRAC)
  ) to (
      .x(y),
      .nan(y_nan),
      .canonical(y_canonical),
      .infinite(y_infinite),
      .in_units(y_units)
  );

  // A format's smallest subnormal is 2^(1 - bias - fraction bits), with bias 2^(EXP-1) - 1.
  localparam integer FINER = (1 << TO_EXP - 1) + TO_FRAC - (1 << EXP - 1) - FRAC;

  always @* begin
    if (due) begin
      if (a_nan)
        assert (y_canonical);
        else begin
          assert (!y_nan && y_infinite == a_infinite);
          assert (y[TO_EXP+TO_FRAC] == a0[EXP+FRAC]);
          if (!a_infinite) assert (y_units == a_units << FINER);
        end

      cover (a_nan && a0[EXP+FRAC]);
      cover (a_infinite);
      cover (a_units == 1);
      cover (a_units == 0 && a0[EXP+FRAC]);
    end
  end

endmodule

`default_nettype wire
