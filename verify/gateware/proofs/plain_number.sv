// plain_float.svh as a module, for a harness with numbers of two formats.

`default_nettype none

module plain_number #(
    parameter integer EXP        = 4,
    parameter integer FRAC       = 3,
    parameter integer INFINITIES = 1
) (
    input  wire [                 EXP+FRAC:0] x,
    output wire                               nan,
    output wire                               canonical,
    output wire                               infinite,
    output wire [((1 << EXP) + FRAC - 1)-1:0] in_units
);

  `include "plain_float.svh"

  assign nan       = is_nan(x);
  assign canonical = x == NAN;
  assign infinite  = is_infinite(x);
  assign in_units  = magnitude(x[SIGN-1:0]);

endmodule

`default_nettype wire
