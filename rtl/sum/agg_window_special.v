// Combines the infinities, NaNs and signs of all operands, beside the aligners.
//
// Cycles, counted from max (which is cycle 1 of agg_window_align):
//   0  max                         the largest exponent field
//   1  special                     max is that of infinities and NaNs (INFINITIES = 0: 0)
//   2  top, negative               for every operand, from its agg_window_align
//   4  nonfinite                   an operand is infinite or NaN
//      nan                         infinities of both signs; INFINITIES = 0: an operand is NaN
//      minus                       an operand that is infinite (or NaN) has sign 1
//      all_negative                every operand has sign 1
//
// Not done here: with INFINITIES = 1, a NaN operand does not set nan but makes the sum of aligned
// magnitudes nonzero (agg_window_align, agg_window_round).

`default_nettype none

module agg_window_special #(
    parameter integer EXP = 8,  // bits of the exponent
    parameter integer INFINITIES = 1,  // 0: all ones is a NaN, no infinities (fp8e4m3)
    parameter integer OPERANDS = 8
) (
    input  wire                clk,
    input  wire [     EXP-1:0] max,
    output wire                special,
    input  wire [OPERANDS-1:0] top,
    input  wire [OPERANDS-1:0] negative,
    output wire                nonfinite,
    output wire                nan,
    output wire                minus,
    output wire                all_negative
);

  generate
    if (OPERANDS < 1) begin : g_operands
      ERROR_there_must_be_at_least_1_operand error ();
    end
  endgenerate

  reg special1_reg;
  reg special2_reg;
  reg special3_reg;
  reg plus3_reg;
  reg minus3_reg;
  reg all_negative3_reg;
  reg nonfinite4_reg;
  reg nan4_reg;
  reg minus4_reg;
  reg all_negative4_reg;

  always @(posedge clk) begin
    special1_reg      <= INFINITIES != 0 && &max;
    special2_reg      <= special1_reg;
    special3_reg      <= INFINITIES != 0 ? special2_reg : |top;
    plus3_reg         <= |(top & ~negative);
    minus3_reg        <= |(top & negative);
    all_negative3_reg <= &negative;
    nonfinite4_reg    <= special3_reg;
    nan4_reg          <= INFINITIES != 0 ? plus3_reg && minus3_reg : special3_reg;
    minus4_reg        <= minus3_reg;
    all_negative4_reg <= all_negative3_reg;
  end

  assign special = special1_reg;
  assign nonfinite = nonfinite4_reg;
  assign nan = nan4_reg;
  assign minus = minus4_reg;
  assign all_negative = all_negative4_reg;

endmodule

`default_nettype wire
