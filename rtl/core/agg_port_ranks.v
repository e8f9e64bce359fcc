// Returns the ranks of the ports in a set, as a bit vector. Combinational. Ports that are not
// members of the job are ignored.
//
// Not done here: assigning ranks (agg_ranks).

`default_nettype none

module agg_port_ranks #(
    parameter integer PORTS = 4
) (
    input  wire [  PORTS-1:0] member,        // of the job
    input  wire [8*PORTS-1:0] rank_of_port,  // in the job
    input  wire [  PORTS-1:0] ports,
    output reg  [  PORTS-1:0] ranks
);

  localparam [PORTS-1:0] ONE = 1;

  integer p;

  always @* begin
    ranks = {PORTS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (member[p] && ports[p]) ranks = ranks | (ONE << rank_of_port[8*p+:8]);
    end
  end

endmodule

`default_nettype wire
