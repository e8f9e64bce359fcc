// A pin of AMD's 7 series that goes both ways: driven with I while T is low.

`default_nettype none

module IOBUF (
    inout  wire IO,
    input  wire I,
    input  wire T,
    output wire O
);

  assign IO = T ? 1'bz : I;
  assign O  = IO;

endmodule

`default_nettype wire
