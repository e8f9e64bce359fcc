// Follows one beat through a pipeline: held is what x was in the first cycle, or, where a leaf wants
// some inputs later than others, START cycles later; and due is high LATENCY cycles after the first,
// when the pipeline shows what became of the beat.
//
// Why a proof over LATENCY + 1 cycles is a proof for ever: the solver chooses the state of all
// registers of the leaf in the first cycle, and the inputs of every cycle. Whatever happened before
// the beat, and whatever follows close behind it, is therefore among its choices; and the property is
// about that beat alone. So a flag that travels with a neighbour's beat is found as well.

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
