// A pin of an ECP5 that goes both ways: driven with I while T is low.

`default_nettype none

module BB (
    inout  wire B,
    input  wire I,
    input  wire T,
    output wire O
);

  assign B = T ? 1'bz : I;
  assign O = B;

endmodule

`default_nettype wire
