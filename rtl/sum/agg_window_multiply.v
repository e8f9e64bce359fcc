// Unsigned multiplier: y is a times b, LATENCY = 2 cycles later.
//
// Registers for a and b, a multiplication, and a register for y, like the multiplier blocks of
// FPGAs. ecp5/ has the same module as such a block, because Yosys leaves the registers outside.
//
// Not done here: signs, reset, enable.

`default_nettype none

module agg_window_multiply #(
    parameter integer A = 12,  // in bits
    parameter integer B = 16
) (
    input  wire           clk,
    input  wire [  A-1:0] a,
    input  wire [  B-1:0] b,
    output wire [A+B-1:0] y
);

  generate
    if (A < 1 || A > 18 || B < 1 || B > 18) begin : g_bits
      ERROR_factors_must_have_1_to_18_bits error ();
    end
  endgenerate

  reg [  A-1:0] a_reg;
  reg [  B-1:0] b_reg;
  reg [A+B-1:0] y_reg;

  always @(posedge clk) begin
    a_reg <= a;
    b_reg <= b;
    y_reg <= {{B{1'b0}}, a_reg} * {{A{1'b0}}, b_reg};
  end

  assign y = y_reg;

endmodule

`default_nettype wire
