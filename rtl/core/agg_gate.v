// Puts the sum's identity in the place of an absent worker's beat: y is x when enable is high,
// else IDENTITY in every lane.
//
// Latency: one cycle; the register stands between the slot memories and the lanes.
//
// Not done here: it does not know which ports are members; agg_ranks does.

`default_nettype none

module agg_gate #(
    parameter integer LANES = 16,
    parameter integer ELEM_BITS = 32,
    parameter [63:0] IDENTITY = 64'h8000_0000  // ELEM_BITS of it count; the default is -0 in fp32
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

  reg [LANES*ELEM_BITS-1:0] y_reg;

  always @(posedge clk) y_reg <= enable ? x : {LANES{IDENTITY[ELEM_BITS-1:0]}};

  assign y = y_reg;

endmodule

`default_nettype wire
