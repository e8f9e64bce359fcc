// Names that C++ uses itself: INFINITY, NAN and EOF are macros, this and new are keywords.
// These are none: BUFSIZ in a comment, "HUGE_VAL" in a string, and $stdin.
`default_nettype none

module names #(
    parameter integer INFINITY = 1
) (
    input  wire       clk,
    input  wire [3:0] new,
    output wire       y
);

  localparam NAN = "HUGE_VAL";
  wire far = &new;

  generate
    if (INFINITY != 0 && NAN != 0) begin : this
      reg EOF;
      always @(posedge clk) EOF <= far && 12'hE0F != 12'd0;
      assign y = EOF;
    end
  endgenerate

endmodule

`default_nettype wire
