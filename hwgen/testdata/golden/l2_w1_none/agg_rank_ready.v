// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none

// Says which ranks can take a packet: those whose port can. Combinational.
//
// Not done here: who has which rank (agg_ranks).

`default_nettype none

module agg_rank_ready #(
    parameter integer PORTS = 4
) (
    input  wire [  PORTS-1:0] member,        // the port has a rank
    input  wire [8*PORTS-1:0] rank_of_port,
    input  wire [  PORTS-1:0] port_ready,
    output reg  [  PORTS-1:0] rank_ready
);

  localparam [PORTS-1:0] ONE = 1;

  integer p;

  always @* begin
    rank_ready = {PORTS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (member[p] && port_ready[p]) rank_ready = rank_ready | (ONE << rank_of_port[8*p+:8]);
    end
  end

endmodule

`default_nettype wire
