// A fixed delay at a pin of an ECP5. The delay is not modelled: a model of what is at the pins moves
// its own edges instead.

`default_nettype none

module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter DEL_VALUE = 0  // taps of 25 ps
) (
    input  wire A,
    output wire Z
);

  assign Z = A;

endmodule

`default_nettype wire
