// Returns the ranks of the ports in a set, as a bit vector. Ports that are not members of the job
// are ignored.
//
// Each member's bit moves from its port's place to its rank's through log2(PORTS) levels: level b
// makes bit b of the place equal bit b of the rank. No two bits meet. They would come from ports
// less than 2^(b+1) apart, as the higher bits of their places are still their ports'. Ranks follow
// the order of the ports, so the ranks would be as close, but equal in their lowest b + 1 bits.
//
// Latency: STAGES cycles. A set can enter each cycle. Not done here: assigning ranks (agg_ranks).

`default_nettype none

module agg_port_ranks #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer STAGES    = 1   // 1, or 2: with a register between the levels
) (
    input wire clk,

    input  wire [  PORTS-1:0] member,        // of the job
    input  wire [8*PORTS-1:0] rank_of_port,  // in the job
    input  wire [  PORTS-1:0] ports,
    output wire [  PORTS-1:0] ranks
);

  localparam integer PLACES = 1 << PORT_BITS;
  localparam integer WIDTH = PORT_BITS * PLACES;
  localparam integer MIDDLE = (PORT_BITS + 1) / 2;  // levels before the register of STAGES = 2

  // The set by place, and the ranks of its members; the rank at a place without a member is 0.
  reg [PLACES-1:0] in_set;
  reg [WIDTH-1:0] in_ranks;
  integer p;

  always @* begin
    in_set   = {PLACES{1'b0}};
    in_ranks = {WIDTH{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (member[p] && ports[p]) begin
        in_set[p] = 1'b1;
        in_ranks[PORT_BITS*p+:PORT_BITS] = rank_of_port[8*p+:PORT_BITS];
      end
    end
  end

  genvar b, q;
  generate
    for (b = 0; b < PORT_BITS; b = b + 1) begin : g_level
      wire [PLACES-1:0] set, next_set;
      wire [WIDTH-1:0] its_ranks, next_ranks;

      for (q = 0; q < PLACES; q = q + 1) begin : g_place
        localparam integer OTHER = q ^ (1 << b);
        localparam integer PLACE = q;
        wire stays = its_ranks[PORT_BITS*q+b] == PLACE[b];
        wire comes = its_ranks[PORT_BITS*OTHER+b] == PLACE[b];
        assign next_set[q] = (set[q] && stays) || (set[OTHER] && comes);
        assign next_ranks[PORT_BITS*q+:PORT_BITS] =
            (its_ranks[PORT_BITS*q+:PORT_BITS] & {PORT_BITS{stays}}) |
            (its_ranks[PORT_BITS*OTHER+:PORT_BITS] & {PORT_BITS{comes}});
      end

      if (b == 0) begin : g_first
        assign set = in_set;
        assign its_ranks = in_ranks;
      end else if (STAGES == 2 && b == MIDDLE) begin : g_register
        reg [PLACES-1:0] set_reg;
        reg [ WIDTH-1:0] left_reg;
        always @(posedge clk) begin
          set_reg  <= g_level[b-1].next_set;
          left_reg <= g_level[b-1].next_ranks;
        end
        assign set = set_reg;
        assign its_ranks = left_reg;
      end else begin : g_wire
        assign set = g_level[b-1].next_set;
        assign its_ranks = g_level[b-1].next_ranks;
      end
    end
  endgenerate

  reg [PLACES-1:0] ranks_reg;

  always @(posedge clk) ranks_reg <= g_level[PORT_BITS-1].next_set;

  assign ranks = ranks_reg[PORTS-1:0];

  wire unused = &{1'b0, ranks_reg, rank_of_port, g_level[PORT_BITS-1].next_ranks};

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The ranks of the set, counted from the lowest port; and those of earlier sets.
  localparam [PORTS-1:0] ONE = 1;
  reg [PORTS-1:0] want;
  reg [PORTS*STAGES-1:0] wants;
  reg [STAGES-1:0] running = {STAGES{1'b0}};
  integer n, count;

  always @* begin
    want  = {PORTS{1'b0}};
    count = 0;
    for (n = 0; n < PORTS; n = n + 1) begin
      if (member[n]) begin
        // agg_jobs: ranks follow the order of the ports.
        `PROMISED(rank_of_port[8*n+:8] == count);
        if (ports[n]) want = want | (ONE << count);
        count = count + 1;
      end
    end
    if (running[STAGES-1]) begin
      assert (ranks == wants[PORTS*(STAGES-1)+:PORTS]);
      cover (ranks[PORTS-1] && !ranks[0]);
      cover (ranks == 5 && want == 0 && member == 0);
    end
  end

  always @(posedge clk) begin
    running <= (running << 1) | 1'b1;
    wants   <= (wants << PORTS) | want;
  end
`endif

endmodule

`default_nettype wire
