// Stands in for agg_ranks in the proof of its parent: assigns ranks after an arbitrary time.
// ranks.sby proves that agg_ranks does so, and its time.

`default_nettype none

module agg_ranks #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1
) (
    input wire clk,
    input wire rst,

    input  wire                start,
    input  wire [JOB_BITS-1:0] job,
    input  wire [   PORTS-1:0] ports,
    output wire                done,

    output wire [  PORTS*JOBS-1:0] member,
    output wire [8*PORTS*JOBS-1:0] rank_of_port
);

  (* anyseq *) reg any_done;
  reg walks_reg;
  reg [PORTS*JOBS-1:0] member_reg;
  reg [8*PORTS*JOBS-1:0] map_reg;
  reg [8*PORTS-1:0] map;
  reg [7:0] next;
  integer p;

  always @* begin
    next = 0;
    for (p = 0; p < PORTS; p = p + 1) begin
      map[8*p+:8] = next;
      if (ports[p]) next = next + 1;
    end
  end

  always @(posedge clk) begin
    walks_reg <= !rst && (start || (walks_reg && !done));
    if (start) begin
      member_reg[PORTS*job+:PORTS]  <= ports;
      map_reg[8*PORTS*job+:8*PORTS] <= map;
    end
    if (rst) begin
      member_reg <= {PORTS * JOBS{1'b1}};
    end
  end

  assign done         = walks_reg && any_done;
  assign member       = member_reg;
  assign rank_of_port = map_reg;

endmodule

`default_nettype wire
