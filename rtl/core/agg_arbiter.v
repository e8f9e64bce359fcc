// Picks one operation after another for the commit: a port's request, round robin, or the
// action on an overdue slot.
//
// Operations are picked at least two cycles apart, and never wait after that. An overdue slot
// goes first, but not twice in a row while a request waits. So a request is granted within
// PORTS grants of requests, and an action waits for at most three cycles. After an action,
// nothing is picked until its events are over: they may evict members. From the cycle after hold
// or slow, nothing is picked.
//
// Cycles of an operation: it is picked in cycle 0. In cycle 1, req_grant or act_grant is high
// for that cycle, and the request's data, or the slot to act on, is read. In cycle 2 it is at
// the outputs, for that cycle only; the next stage takes it at once. out_data is 0 for an action,
// and out_slot and out_job are 0 for a request. Its events are in cycle EVENTS. idle: hold was
// high in the cycle before, and no operation is in cycle 0 to EVENTS. unjudged: in the cycle
// before, a request was waiting or an operation was under way.

`default_nettype none

module agg_arbiter #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,    // width of a port number
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4,
    parameter integer WIDTH     = 103,  // width of a request, in bits
    parameter integer EVENTS    = 7     // the cycle of an operation's events, at least 3
) (
    input wire clk,
    input wire rst,
    input wire hold,
    input wire slow,

    input  wire [      PORTS-1:0] req_valid,
    output wire [      PORTS-1:0] req_grant,
    input  wire [PORTS*WIDTH-1:0] req_data,   // port 0 in the lowest bits; valid with the grant

    // An overdue slot, until it is granted
    input  wire                 act_valid,
    output wire                 act_grant,
    input  wire [SLOT_BITS-1:0] act_slot,
    input  wire [ JOB_BITS-1:0] act_job,

    output wire                 out_valid,  // a request
    output wire                 out_act,    // an overdue slot
    output wire [    PORTS-1:0] out_ports,  // the request's port, one hot
    output wire [PORT_BITS-1:0] out_port,
    output wire [    WIDTH-1:0] out_data,
    output wire [SLOT_BITS-1:0] out_slot,   // the overdue slot
    output wire [ JOB_BITS-1:0] out_job,    // its job

    output wire idle,
    output wire unjudged
);

  // -- Cycle 0 ------------------------------------------------------------------------------------

  reg [PORTS-1:0] above_reg;  // ports above the one granted last
  reg hold_reg;
  reg act_last_reg;  // the last operation was an action
  reg acting_reg;  // the events of an action are not over
  reg [PORTS-1:0] grant_reg;
  reg [PORTS-1:0] select_reg;  // the port granted; any, or none, without a grant
  reg [EVENTS:1] under_way_reg, acts_reg;  // by cycle: operations, and actions among them

  wire [PORTS-1:0] ahead = req_valid & above_reg;
  reg [PORTS-1:0] first_ahead, first;  // the lowest of these ports
  integer p;

  always @* begin
    for (p = 0; p < PORTS; p = p + 1) begin
      first_ahead[p] = ahead[p] && (ahead & ~({PORTS{1'b1}} << p)) == {PORTS{1'b0}};
      first[p] = req_valid[p] && (req_valid & ~({PORTS{1'b1}} << p)) == {PORTS{1'b0}};
    end
  end

  wire free = !hold_reg && !acting_reg && !under_way_reg[1];
  wire act_pick = free && act_valid && !(act_last_reg && |req_valid);
  wire [PORTS-1:0] foremost = |ahead ? first_ahead : first;
  wire [PORTS-1:0] picks = !free || (act_valid && !act_last_reg) ? {PORTS{1'b0}} : foremost;
  wire picked = free && (act_valid || |req_valid);

  // The ports above the one granted: in time for the next pick
  reg [PORTS-1:0] above;
  integer a;

  always @* begin
    above[0] = 1'b0;
    for (a = 1; a < PORTS; a = a + 1) above[a] = above[a-1] || grant_reg[a-1];
  end

  reg idle_reg, unjudged_reg;

  always @(posedge clk) begin
    hold_reg      <= hold || slow;
    grant_reg     <= picks;
    select_reg    <= foremost;
    under_way_reg <= {under_way_reg[EVENTS-1:1], picked};
    acts_reg      <= {acts_reg[EVENTS-1:1], act_pick};
    acting_reg    <= act_pick || (acting_reg && !acts_reg[EVENTS]);
    idle_reg      <= hold && !picked && under_way_reg[EVENTS-1:1] == {EVENTS - 1{1'b0}};
    unjudged_reg  <= |req_valid || picked || under_way_reg != {EVENTS{1'b0}};
    if (|grant_reg) above_reg <= above;
    if (picked) act_last_reg <= act_pick;
    if (rst) begin
      hold_reg      <= 1'b1;
      grant_reg     <= {PORTS{1'b0}};
      under_way_reg <= {EVENTS{1'b0}};
      acts_reg      <= {EVENTS{1'b0}};
      acting_reg    <= 1'b0;
      act_last_reg  <= 1'b0;
      idle_reg      <= 1'b0;
      above_reg     <= {PORTS{1'b0}};
    end
  end

  assign req_grant = grant_reg;
  assign act_grant = acts_reg[1];
  assign idle      = idle_reg;
  assign unjudged  = unjudged_reg;

  // -- Cycle 1 ------------------------------------------------------------------------------------

  reg [PORTS-1:0] ports_reg;
  reg [PORT_BITS-1:0] port_reg, port_next;
  reg [WIDTH-1:0] data_reg, data_next;
  reg [SLOT_BITS-1:0] slot_reg;
  reg [JOB_BITS-1:0] job_reg;
  reg valid_reg;
  integer m;

  always @* begin
    port_next = {PORT_BITS{1'b0}};
    data_next = {WIDTH{1'b0}};
    for (m = 0; m < PORTS; m = m + 1) begin
      if (select_reg[m]) begin
        port_next = port_next | m[PORT_BITS-1:0];
        data_next = data_next | req_data[m*WIDTH+:WIDTH];
      end
    end
  end

  always @(posedge clk) begin
    valid_reg <= |grant_reg && !rst;
    ports_reg <= grant_reg;
    port_reg  <= port_next;
    data_reg  <= data_next;
    slot_reg  <= act_slot;
    job_reg   <= act_job;
    if (acts_reg[1]) begin
      data_reg <= {WIDTH{1'b0}};
    end else begin
      slot_reg <= {SLOT_BITS{1'b0}};
      job_reg  <= {JOB_BITS{1'b0}};
    end
  end

  assign out_valid = valid_reg;
  assign out_act   = acts_reg[2];
  assign out_ports = ports_reg;
  assign out_port  = port_reg;
  assign out_data  = data_reg;
  assign out_slot  = slot_reg;
  assign out_job   = job_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any port: the grants to other ports since its request, and the ports that can precede it;
  // and the cycles since the last operations were picked (they saturate).
  (* anyconst *) reg [PORT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [PORTS-1:0] picks_were, granted_was, valid_was;
  reg act_granted_was, act_valid_was, may_was, act_last, hold_was, hold_alone_was, unjudged_was;
  reg [WIDTH-1:0] data_was;
  reg [SLOT_BITS-1:0] slot_was;
  reg [JOB_BITS-1:0] job_was;
  reg [31:0] since, since_act;
  reg [1:0] act_waits;  // cycles for which an action has waited, without those of a pause
  reg [31:0] others;
  reg [31:0] in_front;
  wire others_turn = |picks && req_valid[watched] && !picks[watched];
  wire [PORTS-1:0] above_now = |grant_reg ? above : above_reg;
  wire [PORTS-1:0] below = ~above_now;
  wire granted = |req_grant || act_grant;
  wire [31:0] age = granted ? 1 : since;  // the cycle of the last operation
  wire [31:0] act_age = act_grant ? 1 : since_act;
  wire may = !hold_was && age > 1 && act_age > EVENTS;
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    hold_was <= rst || hold || slow;
    hold_alone_was <= hold && !rst;
    may_was <= may && !rst;
    valid_was <= req_valid;
    act_valid_was <= act_valid;
    if (granted) act_last <= act_grant;
    since <= age > EVENTS ? age : age + 1;
    since_act <= act_age > EVENTS ? act_age : act_age + 1;
    act_waits <= act_valid && !act_grant && !hold_was && act_age > EVENTS ? act_waits + 1 : 0;
    granted_was <= req_grant;
    act_granted_was <= act_grant;
    data_was <= req_data >> watched * WIDTH;
    slot_was <= act_slot;
    job_was <= act_job;
    unjudged_was <= |req_valid || picked || age <= EVENTS;
    others <= rst || !req_valid[watched] || picks[watched] ? 0 : others + others_turn;
    if (rst) begin
      act_last <= 1'b0;
      since <= EVENTS + 1;
      since_act <= EVENTS + 1;
      act_waits <= 0;
      granted_was <= 0;
      act_granted_was <= 1'b0;
    end
  end

  always @* begin
    in_front = 0;
    for (n = 0; n < PORTS; n = n + 1) begin
      if (n != watched &&
          (above_now[watched] ? n < watched && above_now[n] : n < watched || above_now[n]))
        in_front = in_front + 1;
    end

    assume (watched < PORTS);  // any existing port
    if (was_reset) begin
      // A request is granted within PORTS grants.
      assert (others < PORTS && others + in_front < PORTS);
      assert (!others_turn || others + 1 < PORTS);
      assert (since > 1 && since_act > 1);
      assert ((below & (below + 1'b1)) == 0);  // the ports up to the one granted last
    end
    if (running_was && was_reset) begin
      // One operation, of those that waited; never two in adjacent cycles, and none until the
      // events of an action are over.
      assert ((req_grant & (req_grant - 1'b1)) == 0 && !(|req_grant && act_grant));
      assert ((req_grant & ~valid_was) == 0 && (!act_grant || act_valid_was));
      assert (granted == (may_was && (|valid_was || act_valid_was)));
      assert (!granted || (since > 1 && since_act > EVENTS));
      // An action waits for at most three cycles besides pauses.
      assert (act_waits < 3 || act_grant || hold_was || !act_valid);
      // Actions and requests alternate if both wait.
      if (granted && act_valid_was && |valid_was) assert (act_grant == !act_last);
      if (granted)
        assert (act_last_reg == act_grant);
        else assert (act_last_reg == act_last);

      assert (out_valid == |granted_was && out_act == act_granted_was);
      if (out_valid) assert (out_ports == granted_was && granted_was[out_port]);
      if (granted_was[watched]) assert (out_port == watched && out_data == data_was);
      if (out_act) assert (out_slot == slot_was && out_job == job_was && out_data == 0);
      if (out_valid) assert (out_slot == 0 && out_job == 0);
      if (|grant_reg) assert (select_reg == grant_reg);

      for (n = 1; n <= EVENTS; n = n + 1) begin
        assert (!under_way_reg[n] || n >= age);
        assert (!acts_reg[n] || (under_way_reg[n] && n == act_age));
        if (n == age) assert (under_way_reg[n]);
        if (n == act_age) assert (acts_reg[n]);
      end
      assert (acting_reg == (act_age <= EVENTS));
      assert (hold_reg == hold_was);
      assert (idle == (hold_alone_was && age > EVENTS) && !(idle && picked));
      assert (unjudged == unjudged_was);

      cover (others == PORTS - 1 && picks[watched]);
      cover (out_valid && hold && |req_valid);
      cover (act_grant && act_waits == 3);
      cover (act_grant && act_last && |valid_was == 0);
      cover (|req_grant && act_last && since_act == EVENTS + 1);
      cover (idle);
    end
  end
`endif

endmodule

`default_nettype wire
