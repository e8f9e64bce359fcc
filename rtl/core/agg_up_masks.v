// Returns the global ranks that the members at a set of ports stand for, or a given mask instead.
//
// Each port has a memory with a word for each job; agg_up_jobs writes it when a job is set up. Ports
// that are no members have the word 0.
//
// Latency: STAGES cycles, as in agg_port_ranks. A set can enter each cycle. Not done here: which
// ranks these are (agg_up_jobs). The words of a job that was never set up are undefined.

`default_nettype none

module agg_up_masks #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer JOB_BITS  = 1,
    parameter integer STAGES    = 1   // 1 or more
) (
    input wire clk,

    input wire                 wr_en,
    input wire [ JOB_BITS-1:0] wr_job,
    input wire [PORT_BITS-1:0] wr_port,
    input wire [         63:0] wr_ranks,

    input  wire [JOB_BITS-1:0] job,
    input  wire [   PORTS-1:0] ports,
    input  wire                given,       // given_mask instead
    input  wire [        63:0] given_mask,
    output wire [        63:0] mask
);

  wire [64*PORTS-1:0] words;
  reg [63:0] any;
  integer p;

  genvar g;
  generate
    for (g = 0; g < PORTS; g = g + 1) begin : g_port
      localparam [PORT_BITS-1:0] PORT = g;
      (* ram_style = "distributed" *) reg [63:0] ranks[0:(1<<JOB_BITS)-1];

      always @(posedge clk) if (wr_en && wr_port == PORT) ranks[wr_job] <= wr_ranks;

      assign words[64*g+:64] = ranks[job];
    end
  endgenerate

  always @* begin
    any = given ? given_mask : 64'd0;
    for (p = 0; p < PORTS; p = p + 1) begin
      if (ports[p] && !given) any = any | words[64*p+:64];
    end
  end

  agg_delay #(
      .WIDTH (64),
      .CYCLES(STAGES)
  ) u_mask (
      .clk(clk),
      .d  (any),
      .q  (mask)
  );

`ifdef FORMAL
  // For any job: the ranks of its members, in a word of bits by port, and the mask of a set that
  // entered STAGES cycles ago.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg [64*PORTS-1:0] its;
  reg [PORTS-1:0] known = {PORTS{1'b0}};  // written
  reg [64*STAGES-1:0] wants;
  reg [STAGES-1:0] settled = {STAGES{1'b0}};  // of that job with known words, or given
  wire mine = job == watched && (ports & ~known) == 0;
  reg [63:0] want;
  integer w;

  always @* begin
    want = 64'd0;
    for (w = 0; w < PORTS; w = w + 1) if (ports[w]) want = want | its[64*w+:64];
    if (given) want = given_mask;
  end

  always @(posedge clk) begin
    for (w = 0; w < PORTS; w = w + 1) begin
      if (wr_en && wr_job == watched && wr_port == w) begin
        its[64*w+:64] <= wr_ranks;
        known[w] <= 1'b1;
      end
    end
    wants   <= (wants << 64) | want;
    settled <= (settled << 1) | (given || mine);
  end

  generate
    for (g = 0; g < PORTS; g = g + 1) begin : g_known
      always @* if (known[g]) assert (g_port[g].ranks[watched] == its[64*g+:64]);
    end
  endgenerate

  always @* begin
    if (settled[STAGES-1]) assert (mask == wants[64*(STAGES-1)+:64]);
    cover (settled[STAGES-1] && mask == 64'h8000_0000_0000_0001 && !given && &known);
  end
`endif

endmodule

`default_nettype wire
