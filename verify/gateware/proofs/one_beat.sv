// Follows one beat through a pipeline. held is x of the first cycle, or of START cycles later for
// inputs that a leaf needs later. due is high LATENCY cycles after the first, when the result of
// the beat is at the output.
//
// Why LATENCY + 1 cycles prove it for all time: the solver chooses the state of every register in
// the first cycle, and the inputs of every cycle. That covers any history before the beat and any
// beats close behind it, and the property concerns that beat only. So a flag that wrongly comes
// from a neighbouring beat is found as well.

`default_nettype none

module one_beat #(
    parameter integer WIDTH   = 1,
    parameter integer LATENCY = 1,
    parameter integer START   = 0
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] x,
    output reg  [WIDTH-1:0] held,
    output wire             due
);

  reg [5:0] cycle_reg = 0;

  always @(posedge clk) begin
    cycle_reg <= cycle_reg + 1'b1;
    if (cycle_reg == START) held <= x;
  end

  assign due = cycle_reg == LATENCY;

endmodule

`default_nettype wire
