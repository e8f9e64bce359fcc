// Delays a tag and its valid bit by CYCLES cycles, beside a pipeline that never stalls. CYCLES =
// 0 is a wire.
//
// Reset clears the valid bits. Not done here: stalls; the tags of invalid cycles are not
// cleared.

`default_nettype none

module agg_tag_delay #(
    parameter integer WIDTH  = 8,
    parameter integer CYCLES = 4
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             in_valid,
    input  wire [WIDTH-1:0] in_tag,
    output wire             out_valid,
    output wire [WIDTH-1:0] out_tag
);

  agg_delay #(
      .WIDTH (WIDTH),
      .CYCLES(CYCLES)
  ) u_tag (
      .clk(clk),
      .d  (in_tag),
      .q  (out_tag)
  );

  generate
    if (CYCLES == 0) begin : g_wire
      wire unused = rst;
      assign out_valid = in_valid;
    end else begin : g_registers
      reg  [CYCLES-1:0] valid_reg;  // newest in bit 0
      wire [  CYCLES:0] valid_next = {valid_reg, in_valid};
      always @(posedge clk) begin
        if (rst) valid_reg <= {CYCLES{1'b0}};
        else valid_reg <= valid_next[CYCLES-1:0];
      end
      assign out_valid = valid_next[CYCLES];
    end
  endgenerate

endmodule

`default_nettype wire
