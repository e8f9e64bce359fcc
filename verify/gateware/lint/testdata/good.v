// A counter that no tool has a word to say about.

`default_nettype none

module good (
    input  wire       clk,
    input  wire       rst,
    output wire [7:0] count
);

  reg [7:0] count_reg;
  assign count = count_reg;

  always @(posedge clk) begin
    if (rst) count_reg <= 8'd0;
    else count_reg <= count_reg + 8'd1;
  end

endmodule

`default_nettype wire
