// One node of the tree that finds the largest exponent field: y is the maximum of a and b. With
// FLOOR = 1 it is at least 1, the exponent of zeros and subnormals.
//
// LATENCY = 1 cycle from a, b to y; y is a multiplexer's output, not a register's.
//
// Not done here: signs, fractions, infinities and NaNs.

`default_nettype none

module agg_window_max #(
    parameter integer EXP   = 8,  // bits in the exponent
    parameter integer FLOOR = 0   // 1: the root of the tree
) (
    input  wire           clk,
    input  wire [EXP-1:0] a,
    input  wire [EXP-1:0] b,
    output wire [EXP-1:0] y
);

  generate
    if (EXP < 2) begin : g_exp
      ERROR_exponent_must_have_at_least_2_bits error ();
    end
    if (FLOOR != 0 && FLOOR != 1) begin : g_floor
      ERROR_floor_must_be_0_or_1 error ();
    end
  endgenerate

  reg [EXP-1:0] a_reg;
  reg [EXP-1:0] b_reg;
  reg           a_wins_reg;

  always @(posedge clk) begin
    // If b is greater, it is not 0; so only a needs the floor.
    a_reg <= {a[EXP-1:1], a[0] || FLOOR != 0 && a[EXP-1:1] == 0};
    b_reg <= b;
    a_wins_reg <= a >= b;
  end

  assign y = a_wins_reg ? a_reg : b_reg;

endmodule

`default_nettype wire
