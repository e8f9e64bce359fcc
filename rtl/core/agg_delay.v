// Delays a word by a fixed number of cycles: q is d from CYCLES cycles ago. CYCLES = 0 is a
// wire.
//
// Not done here: there is no reset and no valid bit; agg_tag_delay has both.

`default_nettype none

module agg_delay #(
    parameter integer WIDTH  = 32,
    parameter integer CYCLES = 1
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] d,
    output wire [WIDTH-1:0] q
);

  genvar i;
  generate
    if (WIDTH < 1) begin : g_width
      ERROR_width_must_be_at_least_1_bit error ();
    end
    if (CYCLES < 0) begin : g_cycles
      ERROR_cycles_must_not_be_negative error ();
    end

    if (CYCLES == 0) begin : g_wire
      wire unused = clk;
      assign q = d;
    end else begin : g_registers
      // One register a cycle, not one long one: simulators copy words faster than they shift bits.
      for (i = 0; i < CYCLES; i = i + 1) begin : g_cycle
        reg [WIDTH-1:0] word_reg;
        if (i == 0) begin : g_first
          always @(posedge clk) word_reg <= d;
        end else begin : g_next
          always @(posedge clk) word_reg <= g_cycle[i-1].word_reg;
        end
      end
      assign q = g_cycle[CYCLES-1].word_reg;
    end
  endgenerate

endmodule

`default_nettype wire
