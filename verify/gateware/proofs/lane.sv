// Proves the output of a whole generated lane of two workers, for all operands of a small format:
// the sum of `fused` or `exact`, sections 7.4 and 7.5 of driver/wire/SPEC.md. The plain definition
// does not depend on the order of operands, so neither does the lane.

`default_nettype none

module lane #(
    parameter integer EXP        = 4,
    parameter integer FRAC       = 3,
    parameter integer INFINITIES = 0,
    parameter integer FUSED      = 1
) (
    input wire              clk,
    input wire [EXP+FRAC:0] a,
    input wire [EXP+FRAC:0] b
);

  `include "lane.vh"  // LATENCY, from the lane's manifest
  `include "plain_float.svh"

  wire [SIGN:0] y, a0, b0;
  wire over, due;

  agg_lane lane (
      .clk (clk),
      .x_p0(a),
      .x_p1(b),
      .y   (y),
      .over(over)
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

  // The unit is a sixteenth of the smallest subnormal, because `fused` truncates magnitudes four
  // places below the last place of the largest exponent, which is at least 1.
  localparam integer SUM = MAG + 6;

  function automatic [EXP-1:0] field(input reg [SIGN:0] x);
    field = x[SIGN-1:FRAC];
  endfunction

  reg [EXP-1:0] largest;
  always @* begin
    largest = 1;
    if (field(a0) > largest) largest = field(a0);
    if (field(b0) > largest) largest = field(b0);
  end

  wire [EXP-1:0] cut = FUSED ? largest - 1'b1 : 0;

  function automatic signed [SUM-1:0] term(input reg [SIGN:0] x, input reg [EXP-1:0] places);
    reg [MAG+3:0] kept;
    begin
      kept = {magnitude(x[SIGN-1:0]), 4'd0} >> places << places;
      term = x[SIGN] ? -{2'd0, kept} : {2'd0, kept};
    end
  endfunction

  wire right, overflows, inexact, tie;
  plain_rounding #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES),
      .SUM(SUM),
      .FINER(4)
  ) rounding (
      .sum(term(a0, cut) + term(b0, cut)),
      .zero_sign(a0[SIGN] && b0[SIGN]),
      .y(y),
      .right(right),
      .overflows(overflows),
      .inexact(inexact),
      .tie(tie)
  );

  wire [1:0] signs = {a0[SIGN], b0[SIGN]};
  wire [1:0] nans = {is_nan(a0), is_nan(b0)};
  wire [1:0] infinities = {is_infinite(a0), is_infinite(b0)};
  wire plus = |(infinities & ~signs);
  wire minus = |(infinities & signs);
  wire finite = !nans && !infinities;

  always @* begin
    if (due) begin
      assert (over == (finite && overflows));
      if (nans != 0 || (plus && minus)) assert (y == NAN);
      if (nans == 0 && (plus ^ minus)) assert (is_infinite(y) && y[SIGN] == minus);
      if (finite) assert (right);

      cover (finite && overflows);
      cover (finite && tie && signs == 2'b01 && y[FRAC]);
      cover (finite && inexact && !tie && signs == 2'b10);
      cover (finite && signs == 2'b10 && y[SIGN-1:0] == 0 && a0[FRAC]);
      cover (nans == 2'b10);
    end
  end

endmodule

`default_nettype wire
