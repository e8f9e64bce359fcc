// Grants one port's request each cycle, round robin, and registers the granted request.
//
// While hold is high, no request is granted. Latency: a request granted in cycle 0 is at the
// output in cycle 1, for that cycle only. There is no backpressure: the next stage takes it at
// once.

`default_nettype none

module agg_arbiter #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,   // width of a port number
    parameter integer WIDTH     = 102  // width of a request, in bits
) (
    input wire clk,
    input wire rst,
    input wire hold,

    input  wire [      PORTS-1:0] req_valid,
    output wire [      PORTS-1:0] req_grant,
    input  wire [PORTS*WIDTH-1:0] req_data,   // port 0 in the lowest bits

    output wire                 out_valid,
    output wire [    PORTS-1:0] out_ports,  // the port, one hot
    output wire [PORT_BITS-1:0] out_port,
    output wire [    WIDTH-1:0] out_data
);

  reg [PORTS-1:0] above_reg;  // ports above the one granted last
  reg valid_reg;
  reg [PORTS-1:0] ports_reg;
  reg [PORT_BITS-1:0] port_reg, port_next;
  reg [WIDTH-1:0] data_reg, data_next;

  wire [PORTS-1:0] ahead = req_valid & above_reg;
  wire [PORTS-1:0] among = |ahead ? ahead : req_valid;
  wire [PORTS-1:0] lowest = among & (~among + 1'b1);

  assign req_grant = hold ? {PORTS{1'b0}} : lowest;

  integer p;

  always @* begin
    port_next = {PORT_BITS{1'b0}};
    data_next = {WIDTH{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (lowest[p]) begin
        port_next = p[PORT_BITS-1:0];
        data_next = req_data[p*WIDTH+:WIDTH];
      end
    end
  end

  always @(posedge clk) begin
    valid_reg <= |req_grant;
    ports_reg <= lowest;
    port_reg  <= port_next;
    data_reg  <= data_next;
    if (|req_grant) above_reg <= ~(lowest | (lowest - 1'b1));
    if (rst) begin
      valid_reg <= 1'b0;
      above_reg <= {PORTS{1'b0}};
    end
  end

  assign out_valid = valid_reg;
  assign out_ports = ports_reg;
  assign out_port  = port_reg;
  assign out_data  = data_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any port: the grants to other ports since its request, and the ports that can precede it.
  (* anyconst *) reg [PORT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg [PORTS-1:0] granted_was;
  reg [WIDTH-1:0] data_was;
  reg [31:0] others;
  reg [31:0] in_front;
  wire others_turn = |req_grant && req_valid[watched] && !req_grant[watched];
  wire [PORTS-1:0] below = ~above_reg;
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    granted_was <= rst ? {PORTS{1'b0}} : req_grant;
    if (req_grant[watched]) data_was <= req_data[watched*WIDTH+:WIDTH];
    others <= rst || !req_valid[watched] || req_grant[watched] ? 0 : others + others_turn;
  end

  always @* begin
    in_front = 0;
    for (n = 0; n < PORTS; n = n + 1) begin
      if (n != watched &&
          (above_reg[watched] ? n < watched && above_reg[n] : n < watched || above_reg[n]))
        in_front = in_front + 1;
    end

    assume (watched < PORTS);  // any existing port
    assert ((req_grant & (req_grant - 1'b1)) == 0);
    assert ((req_grant & ~req_valid) == 0);
    assert (|req_grant == (|req_valid && !hold));
    if (was_reset) begin
      // A request is granted within PORTS grants.
      assert (others < PORTS && others + in_front < PORTS);
      assert (!others_turn || others + 1 < PORTS);
      assert ((below & (below + 1'b1)) == 0);  // the ports up to the one granted last

      assert (out_valid == |granted_was);
      if (out_valid) assert (out_ports == granted_was && granted_was[out_port]);
      if (granted_was[watched]) assert (out_port == watched && out_data == data_was);

      cover (others == PORTS - 1 && req_grant[watched]);
      cover (out_valid && hold && |req_valid);
    end
  end
`endif

endmodule

`default_nettype wire
