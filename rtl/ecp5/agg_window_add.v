// agg_window_add for Lattice ECP5: the same module, out of carry cells.
//
// A carry cell can turn one of its operands over by itself, but Yosys makes use of that only where the
// operator is always a subtraction: from the portable file it puts a table before every cell. See
// ../agg_window_add.v for what the module does.

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

  localparam integer CELLS = (WIDTH + 2) / 2;  // of two bits

  wire [2*CELLS-1:0] augend = {{2 * CELLS - WIDTH{a[WIDTH-1]}}, a};
  wire [2*CELLS-1:0] addend = {{2 * CELLS - WIDTH{b[WIDTH-1]}}, b};
  wire [2*CELLS-1:0] sum;
  wire [CELLS:0] carry;

  reg negative_reg;
  reg subtract_reg;
  reg [WIDTH:0] y_reg;

  assign carry[0] = subtract_reg;

  genvar i;
  generate
    for (i = 0; i < CELLS; i = i + 1) begin : g_cell
      // Each bit is A ^ B ^ C ^ carry, and A is the carry out where A ^ B ^ C is 0.
      CCU2C #(
          .INIT0(16'h96AA),
          .INIT1(16'h96AA),
          .INJECT1_0("NO"),
          .INJECT1_1("NO")
      ) u_carry (
          .CIN (carry[i]),
          .A0  (augend[2*i]),
          .B0  (addend[2*i]),
          .C0  (subtract_reg),
          .D0  (1'b1),
          .A1  (augend[2*i+1]),
          .B1  (addend[2*i+1]),
          .C1  (subtract_reg),
          .D1  (1'b1),
          .S0  (sum[2*i]),
          .S1  (sum[2*i+1]),
          .COUT(carry[i+1])
      );
    end
  endgenerate

  always @(posedge clk) begin
    negative_reg <= a_negative;
    subtract_reg <= a_negative ^ b_negative;
    if (plain) subtract_reg <= 1'b0;
    y_reg <= sum[WIDTH:0];
  end

  assign y_negative = negative_reg;
  assign y = y_reg;

endmodule

`default_nettype wire
