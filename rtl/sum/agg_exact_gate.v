// agg_gate for the port that also feeds the unit's results into the lanes: y is x if enable is
// high, the result if write is high, and IDENTITY otherwise, in every lane. Latency: two cycles.
//
// Not done here: the control of enable and write (agg_exact_queue).

`default_nettype none

module agg_exact_gate #(
    parameter integer LANES = 16,
    parameter integer ELEM_BITS = 32,
    parameter [63:0] IDENTITY = 64'h8000_0000  // the low ELEM_BITS; default: -0 in fp32
) (
    input  wire                       clk,
    input  wire                       enable,
    input  wire [LANES*ELEM_BITS-1:0] x,
    input  wire                       write,
    input  wire [      ELEM_BITS-1:0] result,
    output wire [LANES*ELEM_BITS-1:0] y
);

  reg enable_reg;
  reg [ELEM_BITS-1:0] absent_reg;
  reg [LANES*ELEM_BITS-1:0] x_reg, y_reg;

  always @(posedge clk) begin
    enable_reg <= enable;
    absent_reg <= write ? result : IDENTITY[ELEM_BITS-1:0];
    x_reg      <= x;
    y_reg      <= enable_reg ? x_reg : {LANES{absent_reg}};
  end

  assign y = y_reg;

endmodule

`default_nettype wire
