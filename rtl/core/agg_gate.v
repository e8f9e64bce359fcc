// Replaces the beat of a port that did not contribute by the sum's
// identity: y is x if enable is high, otherwise IDENTITY in every
// lane.
//
// Latency: two cycles. x comes from a block RAM, which is slow:
// nothing is between it and the first register. Not done here:
// which ports contribute (agg_labels).

`default_nettype none

module agg_gate #(
    parameter integer LANES = 16,
    parameter integer ELEM_BITS = 32,
    parameter [63:0] IDENTITY = 64'h8000_0000  // the low ELEM_BITS; default: -0 in fp32
) (
    input  wire                       clk,
    input  wire                       enable,
    input  wire [LANES*ELEM_BITS-1:0] x,
    output wire [LANES*ELEM_BITS-1:0] y
);

  generate
    if (ELEM_BITS < 1 || ELEM_BITS > 64) begin : g_elem
      ERROR_elements_must_have_1_to_64_bits error ();
    end
  endgenerate

  reg enable_reg;
  reg [LANES*ELEM_BITS-1:0] x_reg, y_reg;

  always @(posedge clk) begin
    enable_reg <= enable;
    x_reg      <= x;
    y_reg      <= enable_reg ? x_reg : {LANES{IDENTITY[ELEM_BITS-1:0]}};
  end

  assign y = y_reg;

endmodule

`default_nettype wire
