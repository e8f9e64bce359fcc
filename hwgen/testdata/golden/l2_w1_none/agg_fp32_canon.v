// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none

// Replaces every NaN by the quiet NaN 32'h7fc00000 and passes everything else on.
//
// It stands where a card of one worker has no adder, so that NaN results look the same on every card.
// One register stage: LATENCY = 1 cycle. Not done here: no reset, no enable, no valid bit.

`default_nettype none

module agg_fp32_canon (
    input  wire        clk,
    input  wire [31:0] a,
    output wire [31:0] y
);

  reg [31:0] y_reg;

  always @(posedge clk) begin
    y_reg <= (&a[30:23] && |a[22:0]) ? 32'h7fc00000 : a;
  end

  assign y = y_reg;

endmodule

`default_nettype wire
