// Assigns the ranks of a job: its members in the order of their ports, counted from 0.
//
// start begins a walk over the ports, one a cycle; done is high in the cycle after the last port.
// job must be stable until then. Vectors have job 0 in the lowest bits. Before a job's first walk,
// all ports are members, and rank r is port r's. Not done here: whether a job is set up (agg_jobs).
// An ended job's members and ranks remain.

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
    input  wire [   PORTS-1:0] ports,  // members; sampled with start
    output wire                done,

    output wire [  PORTS*JOBS-1:0] member,
    output wire [8*PORTS*JOBS-1:0] rank_of_port
);

  localparam integer LAST = PORTS - 1;

  reg [PORTS*JOBS-1:0] member_reg;
  reg [PORT_BITS*PORTS*JOBS-1:0] ranks_reg;
  reg walks_reg, done_reg;
  reg [PORT_BITS-1:0] port_reg;
  reg [PORT_BITS-1:0] rank_reg;  // next rank to assign
  reg [PORTS-1:0] ports_reg;  // from port_reg on
  integer j, p;

  always @(posedge clk) begin
    done_reg <= 1'b0;
    if (start) begin
      rank_reg  <= {PORT_BITS{1'b0}};
      port_reg  <= {PORT_BITS{1'b0}};
      ports_reg <= ports;
      walks_reg <= 1'b1;
    end else if (walks_reg) begin
      rank_reg  <= rank_reg + {{PORT_BITS - 1{1'b0}}, ports_reg[0]};
      port_reg  <= port_reg + 1'b1;
      ports_reg <= ports_reg >> 1;
      if (port_reg == LAST[PORT_BITS-1:0]) begin
        walks_reg <= 1'b0;
        done_reg  <= 1'b1;
      end
    end
    for (j = 0; j < JOBS; j = j + 1) begin
      if (start && (JOBS == 1 || j[JOB_BITS-1:0] == job)) member_reg[PORTS*j+:PORTS] <= ports;
      for (p = 0; p < PORTS; p = p + 1) begin
        if (!start && walks_reg && (JOBS == 1 || j[JOB_BITS-1:0] == job) &&
            p[PORT_BITS-1:0] == port_reg)
          ranks_reg[PORT_BITS*(PORTS*j+p)+:PORT_BITS] <= rank_reg;
      end
    end
    if (rst) begin
      member_reg <= {PORTS * JOBS{1'b1}};
      walks_reg  <= 1'b0;
      done_reg   <= 1'b0;
      for (j = 0; j < JOBS; j = j + 1) begin
        for (p = 0; p < PORTS; p = p + 1)
        ranks_reg[PORT_BITS*(PORTS*j+p)+:PORT_BITS] <= p[PORT_BITS-1:0];
      end
    end
  end

  genvar g;
  generate
    for (g = 0; g < PORTS * JOBS; g = g + 1) begin : g_rank
      assign rank_of_port[8*g+:8] = {{8 - PORT_BITS{1'b0}}, ranks_reg[PORT_BITS*g+:PORT_BITS]};
    end
  endgenerate

  assign done   = done_reg;
  assign member = member_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any job: its ports, and the cycles since its walk started.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [JOB_BITS-1:0] its_job;
  reg [PORTS-1:0] given_ports;
  reg [7:0] cycles;  // since the last walk started, saturating at PORTS + 1
  wire walks = cycles < PORTS;
  reg [7:0] count;  // members at lower ports
  reg [9*PORTS-1:0] its_were;
  reg mine_was;
  wire [PORTS-1:0] its_member = member[PORTS*watched+:PORTS];
  wire [8*PORTS-1:0] its_map = rank_of_port[8*PORTS*watched+:8*PORTS];
  wire walked = !walks || its_job != watched;
  wire [7:0] at = walked ? PORTS : cycles;  // ports already visited
  reg seen;  // the job had a walk
  integer q;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    cycles <= rst ? PORTS + 1 : start ? 0 : cycles + (cycles <= PORTS);
    if (start) its_job <= job;
    if (start && job == watched) given_ports <= ports;
    seen <= !rst && (seen || (start && job == watched));
    its_were <= {its_member, its_map};
    mine_was <= !rst && (start || walks) && job == watched;
  end

  always @* begin
    if (was_reset) begin
      // agg_jobs: walks do not overlap.
      `PROMISED(!walks || (job == its_job && !start));
    end
    if (was_reset && !rst) begin
      assert (walks == walks_reg && (!walks || cycles == port_reg) && cycles <= PORTS + 1);
      if (!running_was) assert (!seen && !walks && !done);

      // One cycle for each port, then done for one cycle.
      if (running_was) assert (done == (cycles == PORTS));

      count = 0;
      for (q = 0; q < PORTS; q = q + 1) begin
        if (seen && q < at && given_ports[q]) assert (its_map[8*q+:8] == count);
        if (!seen) assert (its_map[8*q+:8] == q);
        if (q < at && given_ports[q]) count = count + 1;
      end
      assert (its_member == (seen ? given_ports : {PORTS{1'b1}}));
      if (!walked) assert (rank_reg == count && ports_reg == given_ports >> cycles && seen);

      // A walk does not change other jobs' ranks.
      if (running_was && !mine_was) assert ({its_member, its_map} == its_were);

      cover (done && seen && given_ports == 5);
    end
  end
`endif

endmodule

`default_nettype wire
