// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// Gives out the ranks of a job: the members in the order of their ports, counted from 0.
//
// start begins a walk over the ports, one a cycle; done stands in the cycle after the last one.
// Until the first walk rank r belongs to port r. Not done here: it does not know whether a job is
// set up; the ranks of the last one stay.

`default_nettype none

module agg_ranks #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2
) (
    input wire clk,
    input wire rst,

    input  wire             start,
    input  wire [PORTS-1:0] ports,  // the members; read with start
    output wire             done,

    output wire [  PORTS-1:0] member,
    output wire [8*PORTS-1:0] rank_of_port,
    output wire [  PORTS-1:0] ranks          // a bit for every rank there is
);

  localparam integer LAST = PORTS - 1;
  localparam [PORTS-1:0] ONE = 1;

  reg [  PORTS-1:0] member_reg;
  reg [8*PORTS-1:0] rank_of_port_reg;
  reg [  PORTS-1:0] ranks_reg;
  reg walks_reg, done_reg;
  reg [PORT_BITS-1:0] port_reg;
  reg [7:0] rank_reg;  // the next to be given out

  integer p;

  always @(posedge clk) begin
    done_reg <= 1'b0;
    if (start) begin
      member_reg <= ports;
      ranks_reg  <= {PORTS{1'b0}};
      rank_reg   <= 8'd0;
      port_reg   <= {PORT_BITS{1'b0}};
      walks_reg  <= 1'b1;
    end else if (walks_reg) begin
      rank_of_port_reg[8*port_reg+:8] <= rank_reg;
      if (member_reg[port_reg]) begin
        rank_reg  <= rank_reg + 8'd1;
        ranks_reg <= (ranks_reg << 1) | ONE;
      end
      port_reg <= port_reg + 1'b1;
      if (port_reg == LAST[PORT_BITS-1:0]) begin
        walks_reg <= 1'b0;
        done_reg  <= 1'b1;
      end
    end
    if (rst) begin
      member_reg <= {PORTS{1'b1}};
      ranks_reg  <= {PORTS{1'b1}};
      walks_reg  <= 1'b0;
      done_reg   <= 1'b0;
      for (p = 0; p < PORTS; p = p + 1) rank_of_port_reg[8*p+:8] <= p[7:0];
    end
  end

  assign done         = done_reg;
  assign member       = member_reg;
  assign rank_of_port = rank_of_port_reg;
  assign ranks        = ranks_reg;

endmodule

`default_nettype wire
