// One node of the sum of aligned operands, with relative signs.
//
// An operand is a value, two's complement, and a sign that turns it over: a_negative means -a. The
// node adds or subtracts, and passes a's sign up: (-1)^y_negative y = (-1)^a_negative a +
// (-1)^b_negative b. So no value is negated on its way.
//
// LATENCY = 1 cycle. Signs travel one cycle before their values, y_negative too: a_negative and
// b_negative belong to the a and b of the next cycle, and so does plain, which says that the signs
// do not matter: y = a + b.
//
// The choice between a sum and a difference is one carry chain, without tables before it, if the
// synthesis shares both: Yosys does so with `alumacc; share -aggressive` before `synth_ecp5`.
//
// Not done here: nothing is cut, rounded or too large; y is one bit wider than a and b.

`default_nettype none

module agg_window_add #(
    parameter integer WIDTH = 29  // bits of a and of b
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
