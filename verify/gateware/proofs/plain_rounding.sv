// Checks that y is a sum rounded to a format, by the paragraph on rounding in section 7.1 of
// driver/wire/SPEC.md. The sum is an integer, in units of the smallest subnormal or, with FINER, of
// its 2^-FINER-th part.
//
// It computes no rounded number, but checks that y is one: no neighbour of y is nearer, and if one
// is equally near, y's fraction is even. The caller gives the sign of a zero sum.

`default_nettype none

module plain_rounding #(
    parameter integer EXP        = 4,
    parameter integer FRAC       = 3,
    parameter integer INFINITIES = 1,
    parameter integer SUM        = (1 << EXP) + FRAC + 1,  // bits in the sum
    parameter integer FINER      = 0
) (
    input  wire signed [   SUM-1:0] sum,
    input  wire                     zero_sign,
    input  wire        [EXP+FRAC:0] y,
    output wire                     right,
    output wire                     overflows,
    output wire                     inexact,
    output wire                     tie
);

  `include "plain_float.svh"

  // The first pattern beyond the finite numbers; as a magnitude, the result of overflow.
  localparam [SIGN-1:0] BEYOND = {{EXP{1'b1}}, {FRAC{!INFINITIES}}};
  localparam [SIGN-1:0] LARGEST = BEYOND - 1'b1;

  wire [SIGN-1:0] pattern = y[SIGN-1:0];
  wire [SIGN-1:0] next = pattern + 1'b1;
  wire [SIGN-1:0] last = pattern - 1'b1;
  wire [   SUM:0] here = magnitude(pattern) << FINER;
  wire [   SUM:0] twice = {sum < 0 ? -sum : sum, 1'b0};

  // The sum is half-way between two neighbours if twice the sum is the sum of both.
  wire [   SUM:0] half_up = here + (magnitude(next) << FINER);
  wire [   SUM:0] half_down = pattern == 0 ? 0 : here + (magnitude(last) << FINER);
  wire [   SUM:0] half_out = (magnitude(LARGEST) + magnitude(BEYOND)) << FINER;

  assign overflows = twice > half_out || (twice == half_out && LARGEST[0]);
  assign inexact   = twice != 2 * here;
  assign tie       = inexact && (twice == half_down || twice == half_up);

  wire nearest = half_down <= twice && twice <= half_up && !(tie && y[0]);
  wire sign = sum == 0 ? zero_sign : sum < 0;

  assign right = overflows ? y == {INFINITIES && sign, BEYOND} :
      pattern < BEYOND && nearest && y[SIGN] == sign;

endmodule

`default_nettype wire
