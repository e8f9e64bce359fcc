// Drives down while the card's side of a link is down: from the cycle after link_up falls until
// link_up is high and the previous host's traffic has drained (busy low for SETTLE cycles in a
// row). The shell accepts nothing of the next host before that.
//
// A reset starts with the link down. link_up must be synchronous to clk.

`default_nettype none

module agg_link_session #(
    parameter integer SETTLE = 16  // cycles for the core to finish what it accepted: 1..255
) (
    input  wire clk,
    input  wire rst,
    input  wire link_up,
    input  wire busy,
    output wire down
);

  reg       down_reg;
  reg [7:0] quiet_reg;  // cycles without traffic

  always @(posedge clk) begin
    quiet_reg <= busy ? 8'd0 : quiet_reg + {7'd0, down_reg && quiet_reg != SETTLE[7:0]};
    if (quiet_reg == SETTLE[7:0] && !busy) down_reg <= 1'b0;
    if (rst || !link_up) begin
      down_reg  <= 1'b1;
      quiet_reg <= 8'd0;
    end
  end

  assign down = down_reg;

endmodule

`default_nettype wire
