// Between ranks, in which the core speaks of receivers, and the ports that they belong to.
// Combinational.
//
// A status is for port dest; anything else is for the ports whose rank is a receiver. A rank is
// ready when its port is. Not done here: who has which rank (agg_ranks).

`default_nettype none

module agg_rank_map #(
    parameter integer PORTS = 4
) (
    input wire [  PORTS-1:0] member,
    input wire [8*PORTS-1:0] rank_of_port,

    input  wire [PORTS-1:0] port_ready,
    output reg  [PORTS-1:0] rank_ready,

    input  wire             status,
    input  wire [      7:0] dest,
    input  wire [PORTS-1:0] receivers,  // by rank
    output reg  [PORTS-1:0] ports       // that the packet is for
);

  localparam [PORTS-1:0] ONE = 1;

  integer p;

  always @* begin
    rank_ready = {PORTS{1'b0}};
    ports      = {PORTS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (member[p]) begin
        if (port_ready[p]) rank_ready = rank_ready | (ONE << rank_of_port[8*p+:8]);
        ports[p] = |(receivers & (ONE << rank_of_port[8*p+:8]));
      end
    end
    if (status) ports = ONE << dest;
  end

endmodule

`default_nettype wire
