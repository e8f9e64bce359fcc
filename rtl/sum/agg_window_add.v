// One node of the tree that sums aligned operands, with relative signs.
//
// An operand is a value in two's complement and a sign that negates it: a_negative means -a. The
// node adds or subtracts and passes on the sign of a: (-1)^y_negative y = (-1)^a_negative a +
// (-1)^b_negative b. So no node has to negate a value.
//
// LATENCY = 1 cycle. Signs are one cycle ahead of their values, y_negative too: a_negative and
// b_negative belong to the next cycle's a and b. So does plain, which ignores the signs: y = a +
// b.
//
// The choice of sum or difference takes one carry chain, without LUTs before it, if synthesis
// shares both. Yosys does after `alumacc; share -aggressive` before `synth_ecp5`.
//
// Not done here: truncation, rounding, overflow; y is one bit wider than a and b.

`default_nettype none

module agg_window_add #(
    parameter integer WIDTH = 29  // bits in a and in b
) (
    input  wire             clk,
    input  wire             plain,
    input  wire             a_negative,
    input  wire [WIDTH-1:0] a,
    input  wire             b_negative,
    input  wire [WIDTH-1:0] b,
    output wire             y_negative,
    output wire [  WIDTH:0] y
);

  generate
    if (WIDTH < 2) begin : g_width
      ERROR_width_must_be_at_least_2_bits error ();
    end
  endgenerate

  reg            negative_reg;
  reg            subtract_reg;
  reg  [WIDTH:0] y_reg;

  wire [WIDTH:0] augend = {a[WIDTH-1], a};
  wire [WIDTH:0] addend = {b[WIDTH-1], b};

  always @(posedge clk) begin
    negative_reg <= a_negative;
    subtract_reg <= a_negative ^ b_negative;
    if (plain) subtract_reg <= 1'b0;
    y_reg <= subtract_reg ? augend - addend : augend + addend;
  end

  assign y_negative = negative_reg;
  assign y = y_reg;

endmodule

`default_nettype wire
