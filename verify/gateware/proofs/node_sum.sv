// Proves that the `tree` node returns the rounded real sum of its operands in the 16-bit formats:
// section 7.3 of driver/wire/SPEC.md. These formats are too large to represent all numbers as
// integers of one unit (node_value.sv). Numbers that interact in a sum can be: the unit is the last
// place of the smaller operand b, and a is at most FRAC + 2 places above it.
//
// node_laws.sv completes the proof: operands commute, and equal magnitudes, greater distances, NaNs
// and infinities give the specified results.

`default_nettype none

module node_sum #(
    parameter integer EXP      = 5,
    parameter integer FRAC     = 10,
    parameter integer OPPOSITE = 0,   // 1: opposite signs
    parameter integer LATENCY  = 14
) (
    input wire              clk,
    input wire [EXP+FRAC:0] a,
    input wire [EXP+FRAC:0] b
);

  localparam integer INFINITIES = 1;
  `include "plain_float.svh"

  wire [SIGN:0] y, a0, b0;
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

  one_beat #(
      .WIDTH  (2 * (SIGN + 1)),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   ({a, b}),
      .held({a0, b0}),
      .due (due)
  );

  function automatic [EXP-1:0] exponent(input reg [SIGN:0] x);
    exponent = x[SIGN-1:FRAC] == 0 ? 1 : x[SIGN-1:FRAC];
  endfunction

  function automatic [FRAC:0] significand(input reg [SIGN:0] x);
    significand = {x[SIGN-1:FRAC] != 0, x[FRAC-1:0]};
  endfunction

  wire [EXP-1:0] a_above = exponent(a0) - exponent(b0);
  wire [EXP-1:0] y_above = exponent(y) - exponent(b0);
  wire [EXP-1:0] y_below = exponent(b0) - exponent(y);

  wire asked = !is_nan(
      a0
  ) && !is_infinite(
      a0
  ) && a0[SIGN-1:0] > b0[SIGN-1:0] && a_above <= FRAC + 2 && (a0[SIGN] != b0[SIGN]) == OPPOSITE;

  localparam integer LONG = 2 * FRAC + 8;
  wire signed [LONG-1:0] a_units = significand(a0) << a_above;
  wire signed [LONG-1:0] b_units = significand(b0);
  wire signed [LONG-1:0] sum = OPPOSITE ? a_units - b_units : a_units + b_units;
  wire signed [LONG-1:0] y_units = significand(y) << y_above;
  wire signed [LONG-1:0] place = 1 << y_above;  // last place of y
  wire signed [LONG-1:0] off = sum - y_units;

  // Infinity starts half a place above the largest number, whose exponent is MOST.
  localparam [EXP-1:0] MOST = {EXP{1'b1}} - 1'b1;
  wire [EXP-1:0] most_above = MOST - exponent(b0);
  wire signed [LONG-1:0] beyond = {{FRAC + 2{1'b1}}} << most_above;

  always @* begin
    if (due && asked) begin
      assert (y[SIGN] == a0[SIGN]);
      assert (!is_nan(y));
      if (is_infinite(y)) begin
        assert (most_above <= a_above + 1 && 2 * sum >= beyond);
      end else if (exponent(y) < exponent(b0)) begin
        // After cancellation of leading bits, y is the exact sum.
        assert (significand(y) == sum << y_below);
      end else begin
        assert (y_above <= a_above + 1);
        assert (2 * off <= place && -2 * off <= place);
        if (2 * off == place || -2 * off == place) assert (!y[0]);
        // Below a power of 2, places are half as large.
        if (y[FRAC-1:0] == 0 && exponent(y) > 1) assert (-4 * off <= place);
      end

      cover (!OPPOSITE && is_infinite(y) && off != 0);
      cover (!is_infinite(y) && 2 * off == place && a_above > 1);
      cover (!is_infinite(y) && off != 0 && 2 * off != place && -2 * off != place);
    end
  end

endmodule

`default_nettype wire
