// Replaces every NaN by the canonical one and passes all other values.
//
// Used on cards of one worker, which have no adder, so that NaN results are the same on every card.
// LATENCY = 1 cycle. Not done here: reset, enable, valid bit.

`default_nettype none

module agg_fp_canon #(
    parameter integer EXP        = 8,   // bits in the exponent
    parameter integer FRAC       = 23,  // bits in the fraction
    parameter integer INFINITIES = 1    // 0: only all ones is a NaN (fp8e4m3)
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] a,
    output wire [EXP+FRAC : 0] y
);

  localparam [EXP+FRAC:0] QUIET_NAN = {1'b0, {EXP{1'b1}}, 1'b1, {FRAC - 1{INFINITIES == 0}}};

  wire              nan = &a[EXP+FRAC-1:FRAC] && (INFINITIES == 0 ? &a[FRAC-1:0] : |a[FRAC-1:0]);

  reg  [EXP+FRAC:0] y_reg;

  always @(posedge clk) begin
    y_reg <= nan ? QUIET_NAN : a;
  end

  assign y = y_reg;

endmodule

`default_nettype wire
