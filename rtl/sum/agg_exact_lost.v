// Counts the operands that lost bits below the window: some is one or more, several two or more.
//
// LATENCY = 3 cycles for up to 64 operands, four to a node.
//
// Not done here: the consequences (agg_exact_decide).

`default_nettype none

module agg_exact_lost #(
    parameter integer OPERANDS = 8
) (
    input  wire                clk,
    input  wire [OPERANDS-1:0] lost,
    output wire                some,
    output wire                several
);

  generate
    if (OPERANDS < 1 || OPERANDS > 64) begin : g_operands
      ERROR_there_must_be_1_to_64_operands error ();
    end
  endgenerate

  reg  [15:0] some1_reg;
  reg  [15:0] several1_reg;
  reg  [ 3:0] some2_reg;
  reg  [ 3:0] several2_reg;
  reg         some3_reg;
  reg         several3_reg;

  wire [63:0] all;

  generate
    if (OPERANDS == 64) begin : g_all
      assign all = lost;
    end else begin : g_padded
      assign all = {{64 - OPERANDS{1'b0}}, lost};
    end
  endgenerate

  integer i;

  always @(posedge clk) begin
    for (i = 0; i < 16; i = i + 1) begin
      some1_reg[i]    <= |all[4*i+:4];
      several1_reg[i] <= two_of_four(all[4*i+:4]);
    end
    for (i = 0; i < 4; i = i + 1) begin
      some2_reg[i]    <= |some1_reg[4*i+:4];
      several2_reg[i] <= two_of_four(some1_reg[4*i+:4]) || |several1_reg[4*i+:4];
    end
    some3_reg    <= |some2_reg;
    several3_reg <= two_of_four(some2_reg) || |several2_reg;
  end

  function automatic two_of_four(input reg [3:0] x);
    two_of_four = (x[0] && x[1]) || (x[2] && x[3]) || (|x[1:0] && |x[3:2]);
  endfunction

  assign some = some3_reg;
  assign several = several3_reg;

endmodule

`default_nettype wire
