// Two sets of flip-flops with a synchronous reset each: 99 of them, and 100.

`default_nettype none

module resets (
    input  wire        clk,
    input  wire        few_rst,
    input  wire [98:0] few_d,
    output reg  [98:0] few,
    input  wire        many_rst,
    input  wire [99:0] many_d,
    output reg  [99:0] many
);

  always @(posedge clk) begin
    few  <= few_rst ? 99'd0 : few_d;
    many <= many_rst ? 100'd0 : many_d;
  end

endmodule

`default_nettype wire
