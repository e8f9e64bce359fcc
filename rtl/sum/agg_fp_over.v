// Detects overflow: y is infinite or NaN although no operand is. The operands are those of y's
// beat, delayed here by LATENCY cycles; over is in the same cycle as y.
//
// Not done here: reset, enable, valid bit.

`default_nettype none

module agg_fp_over #(
    parameter integer OPERANDS   = 8,
    parameter integer LATENCY    = 42,  // cycles from the operands to y
    parameter integer EXP        = 8,   // bits in the exponent
    parameter integer FRAC       = 23,  // bits in the fraction
    parameter integer INFINITIES = 1    // 0: only all ones is a NaN, nothing is infinite (fp8e4m3)
) (
    input  wire                               clk,
    input  wire [OPERANDS*(1+EXP+FRAC)-1 : 0] x,
    input  wire [               EXP+FRAC : 0] y,
    output wire                               over
);

  generate
    if (LATENCY < 2) begin : g_latency
      ERROR_a_sum_must_take_at_least_2_cycles error ();
    end
  endgenerate

  wire [OPERANDS-1:0] x_nonfinite;
  wire                y_nonfinite;
  wire                excused;

  agg_fp_nonfinite #(
      .LANES     (OPERANDS),
      .EXP       (EXP),
      .FRAC      (FRAC),
      .INFINITIES(INFINITIES)
  ) u_x (
      .beat     (x),
      .nonfinite(x_nonfinite)
  );

  agg_fp_nonfinite #(
      .LANES     (1),
      .EXP       (EXP),
      .FRAC      (FRAC),
      .INFINITIES(INFINITIES)
  ) u_y (
      .beat     (y),
      .nonfinite(y_nonfinite)
  );

  reg [OPERANDS-1:0] x_nonfinite_reg;

  always @(posedge clk) begin
    x_nonfinite_reg <= x_nonfinite;
  end

  agg_delay #(
      .WIDTH (1),
      .CYCLES(LATENCY - 1)
  ) u_excused (
      .clk(clk),
      .d  (|x_nonfinite_reg),
      .q  (excused)
  );

  assign over = y_nonfinite && !excused;

endmodule

`default_nettype wire
