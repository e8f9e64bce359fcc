// Stretches strobes to make an LED visible: on from the cycle after a strobe, for CYCLES cycles
// after the last one.

`default_nettype none

module agg_led #(
    parameter integer CYCLES = 4000000  // at least 1
) (
    input  wire clk,
    input  wire rst,
    input  wire strobe,
    output wire lit
);

  localparam integer COUNT = $clog2(CYCLES + 1);

  reg [COUNT-1:0] left_reg;  // in cycles

  always @(posedge clk) begin
    if (strobe) left_reg <= CYCLES[COUNT-1:0];
    else if (left_reg != {COUNT{1'b0}}) left_reg <= left_reg - 1'b1;
    if (rst) left_reg <= {COUNT{1'b0}};
  end

  assign lit = left_reg != {COUNT{1'b0}};

endmodule

`default_nettype wire
