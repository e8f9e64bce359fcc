// A constant in lower case, and columns that do not line up.

`default_nettype none

module style (
  input wire  d,
    output wire q
);

  localparam invert = 1'b1;
  assign q = d ^ invert;

endmodule

`default_nettype wire
