// Says when the card's side of a link is down: from the cycle after link_up falls until it has risen
// again and all that the last host left behind is out of the way (busy low for SETTLE cycles in a
// row). Until then nothing of the next host is accepted.
//
// A reset begins with the link down. link_up must be synchronous to clk.

`default_nettype none

module agg_link_session #(
    parameter integer SETTLE = 16  // cycles in which the core finishes what it has accepted: 1..255
) (
    input  wire clk,
    input  wire rst,
    input  wire link_up,
    input  wire busy,
    output wire down
);

  reg       down_reg;
  reg [7:0] quiet_reg;  // cycles without anything left behind

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
