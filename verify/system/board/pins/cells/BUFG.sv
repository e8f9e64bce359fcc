// A clock's way to all of an FPGA of AMD's 7 series. Its delay is not modelled.

`default_nettype none

module BUFG (
    input  wire I,
    output wire O
);

  assign O = I;

endmodule

`default_nettype wire
