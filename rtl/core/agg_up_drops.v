// Counts packets of the parent that are dropped in front of the core and in it: one pulse for each, for
// agg_up_registers.
//
// Latency: a cycle, and one for each packet that waits. At most 255 packets wait. Not done here: why
// they are dropped (agg_up_commit, the shell).

`default_nettype none

module agg_up_drops #(
    parameter integer EVENTS = 2
) (
    input wire clk,
    input wire rst,

    input  wire [EVENTS-1:0] events,  // each bit is a packet
    output wire              dropped
);

  reg [7:0] left_reg;  // packets without a pulse so far; a packet takes several cycles
  reg [7:0] sum;
  integer e;

  always @* begin
    sum = left_reg - {7'd0, dropped};
    for (e = 0; e < EVENTS; e = e + 1) sum = sum + {7'd0, events[e]};
  end

  always @(posedge clk) left_reg <= rst ? 8'd0 : sum;

  assign dropped = left_reg != 8'd0;

endmodule

`default_nettype wire
