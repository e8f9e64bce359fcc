// A sum that loses its carry without saying so.

`default_nettype none

module width (
    input  wire [7:0] a,
    input  wire [7:0] b,
    output wire [7:0] y
);

  wire [8:0] sum = a + b;
  assign y = sum;

endmodule

`default_nettype wire
