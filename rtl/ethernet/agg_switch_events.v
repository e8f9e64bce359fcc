// Makes one stream of events of those of all ports: a pulse for each, one a cycle. Counters count
// the cycles of a pulse, and several ports may have an event in the same cycle.
//
// Latency: an event's pulse comes two cycles later, or after those that wait. More than
// 2^COUNT_BITS - 1 cannot wait: then some are lost.

`default_nettype none

module agg_switch_events #(
    parameter integer PORTS = 2,
    parameter integer COUNT_BITS = 16
) (
    input wire clk,
    input wire rst,

    input  wire [PORTS-1:0] s_events,
    output wire             m_event
);

  localparam [COUNT_BITS-1:0] NONE = {COUNT_BITS{1'b0}};

  reg [4:0] sum, sum_reg;
  reg [COUNT_BITS-1:0] waiting_reg;
  reg event_reg;
  integer p;

  always @* begin
    sum = 5'd0;
    for (p = 0; p < PORTS; p = p + 1) sum = sum + {4'd0, s_events[p]};
  end

  wire [COUNT_BITS-1:0] total = waiting_reg + {{COUNT_BITS - 5{1'b0}}, sum_reg};

  always @(posedge clk) begin
    sum_reg     <= sum;
    event_reg   <= total != NONE;
    waiting_reg <= total - {{COUNT_BITS - 1{1'b0}}, total != NONE};
    if (rst) begin
      sum_reg     <= 5'd0;
      event_reg   <= 1'b0;
      waiting_reg <= NONE;
    end
  end

  assign m_event = event_reg;

`ifdef FORMAL
  // Each event is a pulse once. Numbers are modulo 2^16.
  reg was_reset = 1'b0;
  reg [15:0] came, left;
  reg [15:0] comes;
  integer n;

  always @* begin
    comes = 0;
    for (n = 0; n < PORTS; n = n + 1) comes = comes + s_events[n];
  end

  always @(posedge clk) begin
    came <= came + comes;
    left <= left + m_event;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      left <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      assume (waiting_reg < (1 << COUNT_BITS) - PORTS);
      assert (sum_reg <= PORTS);
      assert (came == left + m_event + waiting_reg + sum_reg);
      if (!m_event) assert (waiting_reg == 0);
      cover (waiting_reg == 3 && left == 2);
    end
  end
`endif

endmodule

`default_nettype wire
