// The in-path switch's table: the port behind which each station is.
//
// An operation is a frame. It learns the frame's source, if learn is set, and looks its destination
// up. An operation sees all that those before it have learned, and its own source. m_ports are the
// ports where the frame leaves: that of its destination, or all if the table has none, without the
// port where it came.
//
// A station's address belongs to one of 2^SET_BITS sets, of two places each. An address that needs
// a place gets that of the set's older one: that which was learned less lately. Lookups find the
// older one for three operations more.
//
// An address is forgotten when it was learned neither in this nor in the last period of AGE_MS.
// That is, it stays for one period at least, and for two at most. Nothing clears its place: after
// 2^16 periods of silence, it is found again for up to two.
//
// After a reset, the table takes 2^SET_BITS cycles to clear itself. Operations that come meanwhile
// learn nothing, and find nothing.
//
// Each cycle may have an operation. To read two sets, the table exists twice. A place is written
// four cycles after its operation came. So the operations of the three cycles before take part in
// each decision.
//
// Latency: m_ports come four cycles after the operation. Throughput: one a cycle. Not done here:
// the choice between ports, and group addresses, which must not be learned.

`default_nettype none

module agg_switch_table #(
    parameter integer PORTS = 2,
    parameter integer PORT_BITS = 1,
    parameter integer SET_BITS = 9,
    parameter integer ADDRESS_BITS = 48,
    parameter integer CLOCK_KHZ = 125000,
    parameter integer AGE_MS = 300000
) (
    input wire clk,
    input wire rst,

    input wire                    s_valid,
    input wire                    s_learn,
    input wire                    s_pass,   // somebody waits for the answer
    input wire [ADDRESS_BITS-1:0] s_from,
    input wire [ADDRESS_BITS-1:0] s_to,
    input wire [   PORT_BITS-1:0] s_port,

    output wire [PORTS-1:0] m_valid,  // of an operation with pass, for its port: one-hot
    output wire [PORTS-1:0] m_ports
);

  localparam integer STAMP_BITS = 16;
  localparam integer ENTRY_BITS = 1 + STAMP_BITS + PORT_BITS + ADDRESS_BITS;
  localparam integer PARTS = (ADDRESS_BITS + SET_BITS - 1) / SET_BITS;
  localparam [SET_BITS-1:0] LAST_SET = {SET_BITS{1'b1}};

  generate
    if (PORTS > 1 << PORT_BITS) begin : g_ports
      ERROR_a_ports_number_needs_more_bits error ();
    end
  endgenerate

  // The XOR of an address's parts: addresses that differ in one part alone have sets of their own.
  wire [PARTS*SET_BITS-1:0] from_parts, to_parts;
  reg [SET_BITS-1:0] from_set, to_set;
  integer i;

  assign from_parts[ADDRESS_BITS-1:0] = s_from;
  assign to_parts[ADDRESS_BITS-1:0]   = s_to;
  generate
    if (PARTS * SET_BITS > ADDRESS_BITS) begin : g_fill
      assign from_parts[PARTS*SET_BITS-1:ADDRESS_BITS] = 0;
      assign to_parts[PARTS*SET_BITS-1:ADDRESS_BITS]   = 0;
    end
  endgenerate

  always @* begin
    from_set = {SET_BITS{1'b0}};
    to_set   = {SET_BITS{1'b0}};
    for (i = 0; i < PARTS; i = i + 1) begin
      from_set = from_set ^ from_parts[SET_BITS*i+:SET_BITS];
      to_set   = to_set ^ to_parts[SET_BITS*i+:SET_BITS];
    end
  end

  // -- Time, and the clearing ---------------------------------------------------------------------

  reg [31:0] cycle_reg, ms_reg;
  reg ms_ends_reg, period_ends_reg;
  reg [STAMP_BITS-1:0] period_reg, previous_reg;
  reg clear_reg;
  reg [SET_BITS-1:0] clear_set_reg;

  always @(posedge clk) begin
    ms_ends_reg <= cycle_reg == CLOCK_KHZ - 1;
    cycle_reg   <= cycle_reg == CLOCK_KHZ - 1 ? 32'd0 : cycle_reg + 1'b1;
    if (ms_ends_reg) ms_reg <= ms_reg == AGE_MS - 1 ? 32'd0 : ms_reg + 1'b1;
    period_ends_reg <= ms_ends_reg && ms_reg == AGE_MS - 1;
    if (period_ends_reg) begin
      period_reg   <= period_reg + 1'b1;
      previous_reg <= period_reg;
    end
    clear_set_reg <= clear_set_reg + 1'b1;
    clear_reg     <= clear_reg && clear_set_reg != LAST_SET;
    if (rst) begin
      cycle_reg       <= 32'd0;
      ms_reg          <= 32'd0;
      ms_ends_reg     <= 1'b0;
      period_ends_reg <= 1'b0;
      period_reg      <= {STAMP_BITS{1'b0}};
      previous_reg    <= {STAMP_BITS{1'b1}};
      clear_set_reg   <= {SET_BITS{1'b0}};
      clear_reg       <= 1'b1;
    end
  end

  // -- The operations under way, by cycles since they came ----------------------------------------

  // An operation is written at the end of its cycle 3. So the sets that it reads lack the three
  // before it.
  reg [5:1] learn_reg;
  reg [3:1] pass_reg;
  reg [2:1] clean_reg;  // it reads a cleared table
  // The newest of each is in the lowest bits: that of cycle 1.
  reg [5*ADDRESS_BITS-1:0] from_reg;
  reg [2*ADDRESS_BITS-1:0] to_reg;
  reg [4*SET_BITS-1:0] set_reg;
  reg [6*PORT_BITS-1:0] port_reg;
  wire [ADDRESS_BITS-1:0] from_1 = from_reg[ADDRESS_BITS-1:0];
  wire [ADDRESS_BITS-1:0] from_2 = from_reg[2*ADDRESS_BITS-1:ADDRESS_BITS];
  wire [ADDRESS_BITS-1:0] to_2 = to_reg[2*ADDRESS_BITS-1:ADDRESS_BITS];
  wire [PORT_BITS-1:0] port_3 = port_reg[3*PORT_BITS-1:2*PORT_BITS];
  reg way_4_reg, way_5_reg;  // the place that it took
  wire way;  // of cycle 3

  always @(posedge clk) begin
    learn_reg <= {learn_reg[4:1], s_valid && s_learn && !clear_reg};
    pass_reg  <= {pass_reg[2:1], s_valid && s_pass};
    clean_reg <= {clean_reg[1], !clear_reg};
    from_reg  <= {from_reg[4*ADDRESS_BITS-1:0], s_from};
    to_reg    <= {to_reg[ADDRESS_BITS-1:0], s_to};
    set_reg   <= {set_reg[3*SET_BITS-1:0], from_set};
    port_reg  <= {port_reg[5*PORT_BITS-1:0], s_port};
    way_4_reg <= way;
    way_5_reg <= way_4_reg;
    if (rst) begin
      learn_reg <= 5'd0;
      pass_reg  <= 3'd0;
    end
  end

  // -- Cycles 0 to 2: both sets leave the memories ------------------------------------------------

  wire [1:0] write;
  wire [SET_BITS-1:0] write_set = clear_reg ? clear_set_reg : set_reg[2*SET_BITS+:SET_BITS];
  wire [ENTRY_BITS-1:0] entry = {
    !clear_reg, period_reg, port_3, from_reg[2*ADDRESS_BITS+:ADDRESS_BITS]
  };

  // Of each place, whether it has the address: the source in cycle 2, the destination in cycle 3
  wire [1:0] from_hit;
  reg [1:0] to_hit_reg;
  reg [2*PORT_BITS-1:0] to_port_reg;

  genvar w;
  generate
    for (w = 0; w < 2; w = w + 1) begin : g_way
      wire [ENTRY_BITS-1:0] from_entry, to_entry;
      reg  [ADDRESS_BITS:0] from_2_reg;  // a block RAM is slow: the next register takes it as it is
      reg  [ENTRY_BITS-1:0] to_2_reg;
      wire [STAMP_BITS-1:0] stamp = to_2_reg[ADDRESS_BITS+PORT_BITS+:STAMP_BITS];
      assign from_hit[w] = from_2_reg == {1'b1, from_2};
      wire unused = &{1'b0, from_entry[ENTRY_BITS-2:ADDRESS_BITS]};

      agg_ram #(
          .WIDTH    (ENTRY_BITS),
          .ADDR_BITS(SET_BITS),
          .APART    (1)
      ) u_from (
          .clk    (clk),
          .wr_en  (write[w]),
          .wr_addr(write_set),
          .wr_data(entry),
          .rd_en  (1'b1),
          .rd_addr(from_set),
          .rd_data(from_entry)
      );
      agg_ram #(
          .WIDTH    (ENTRY_BITS),
          .ADDR_BITS(SET_BITS),
          .APART    (1)
      ) u_to (
          .clk    (clk),
          .wr_en  (write[w]),
          .wr_addr(write_set),
          .wr_data(entry),
          .rd_en  (1'b1),
          .rd_addr(to_set),
          .rd_data(to_entry)
      );

      always @(posedge clk) begin
        from_2_reg <= {from_entry[ENTRY_BITS-1], from_entry[ADDRESS_BITS-1:0]};
        to_2_reg <= to_entry;
        to_hit_reg[w]   <= to_2_reg[ENTRY_BITS-1] && to_2_reg[ADDRESS_BITS-1:0] == to_2 &&
            (stamp == period_reg || stamp == previous_reg) && clean_reg[2];
        to_port_reg[PORT_BITS*w+:PORT_BITS] <= to_2_reg[ADDRESS_BITS+:PORT_BITS];
      end
    end
  endgenerate

  // The place of each set that was taken last
  wire newest_1;
  reg  newest_2_reg;

  agg_ram #(
      .WIDTH    (1),
      .ADDR_BITS(SET_BITS),
      .APART    (1)
  ) u_newest (
      .clk    (clk),
      .wr_en  (|write),
      .wr_addr(write_set),
      .wr_data(write[1]),
      .rd_en  (1'b1),
      .rd_addr(from_set),
      .rd_data(newest_1)
  );

  always @(posedge clk) newest_2_reg <= newest_1;

  // -- Cycles 2 and 3: the source's place ---------------------------------------------------------

  // In cycle 2, the operations that came 1, 2 and 3 cycles earlier: they learned an address of the
  // same set, and this very one. The place of the first is known in cycle 3 only.
  reg [3:1] near_set_reg, near_from_reg;
  wire [3:2] near_way = {way_5_reg, way_4_reg};
  reg [1:0] has;
  reg newest;
  integer n;

  always @* begin
    has    = from_hit;
    newest = newest_2_reg;
    for (n = 3; n >= 2; n = n - 1) begin
      if (near_set_reg[n]) begin
        has[near_way[n]] = near_from_reg[n];
        newest           = near_way[n];
      end
    end
  end

  reg [1:0] has_reg;
  reg newest_3_reg, last_set_reg, last_from_reg;
  integer d;

  always @(posedge clk) begin
    for (d = 1; d <= 3; d = d + 1) begin
      near_set_reg[d]  <= learn_reg[d+1] && set_reg[SET_BITS*d+:SET_BITS] == set_reg[SET_BITS-1:0];
      near_from_reg[d] <= learn_reg[d+1] && from_reg[ADDRESS_BITS*d+:ADDRESS_BITS] == from_1;
    end
    has_reg       <= has;
    newest_3_reg  <= newest;
    last_set_reg  <= near_set_reg[1];
    last_from_reg <= near_from_reg[1];
  end

  // If the last operation was of this set, its place is this address's, or the other one is: that
  // one has the address, or is the older one.
  assign way = last_set_reg ? way_4_reg ^ !last_from_reg :
      !has_reg[0] && (has_reg[1] || !newest_3_reg);
  assign write = clear_reg ? 2'b11 : {way, !way} & {2{learn_reg[3]}};

  // -- Cycle 3: the destination's port ------------------------------------------------------------

  // The operation itself learned the destination, or those that came 1, 2 and 3 cycles earlier.
  reg [3:0] near_to_reg;
  reg found;
  reg [PORT_BITS-1:0] port;
  integer t, f;

  always @(posedge clk) begin
    for (t = 0; t <= 3; t = t + 1)
    near_to_reg[t] <= learn_reg[t+2] && from_reg[ADDRESS_BITS*(t+1)+:ADDRESS_BITS] == to_2;
  end

  always @* begin
    found = to_hit_reg != 2'b00;
    port  = to_port_reg[to_hit_reg[1]?PORT_BITS : 0+:PORT_BITS];
    for (f = 3; f >= 0; f = f - 1) begin
      if (near_to_reg[f]) begin
        found = 1'b1;
        port  = port_reg[PORT_BITS*(f+2)+:PORT_BITS];
      end
    end
  end

  reg [PORTS-1:0] valid_reg, ports_reg;
  integer p;

  always @(posedge clk) begin
    for (p = 0; p < PORTS; p = p + 1) begin
      valid_reg[p] <= pass_reg[3] && port_3 == p[PORT_BITS-1:0];
      ports_reg[p] <= (!found || port == p[PORT_BITS-1:0]) && port_3 != p[PORT_BITS-1:0];
    end
    if (rst) valid_reg <= {PORTS{1'b0}};
  end

  assign m_valid = valid_reg;
  assign m_ports = ports_reg;

`ifdef FORMAL
  // For any address: where it was learned last, and the other address of its set that was learned
  // since, if there is one. A third one takes its place.
  (* anyconst *) reg [ADDRESS_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg known, shared;
  reg [PORT_BITS-1:0] there;
  reg [ADDRESS_BITS-1:0] other;
  reg [3:1] gone;  // its place was taken so many operations ago
  reg [SET_BITS-1:0] watched_set;
  integer k, q;

  wire learns = s_valid && s_learn && !clear_reg;
  wire is_it = learns && s_from == watched;
  wire beside = learns && s_from != watched && from_set == watched_set;
  wire takes = known && beside && shared && s_from != other;
  wire knows = is_it || (known && !takes);
  wire [PORT_BITS-1:0] where = is_it ? s_port : there;

  // What the answer must be, by cycles since the operation; loose: also as if it were still there
  reg [PORTS-1:0] asks_1, asks_2, asks_3, asks_4;
  reg [PORTS-1:0] all_1, all_2, all_3, all_4;
  reg [PORTS-1:0] one_1, one_2, one_3, one_4;
  reg [4:1] asked, knew, loose;

  always @* begin
    watched_set = 0;
    for (k = 0; k < ADDRESS_BITS; k = k + 1)
    watched_set[k%SET_BITS] = watched_set[k%SET_BITS] ^ watched[k];
  end

  always @(posedge clk) begin
    known  <= knows;
    there  <= where;
    shared <= !is_it && (shared || (beside && known));
    if (beside) other <= s_from;
    gone <= {gone[2:1], takes};
    {asks_4, asks_3, asks_2} <= {asks_3, asks_2, asks_1};
    {all_4, all_3, all_2} <= {all_3, all_2, all_1};
    {one_4, one_3, one_2} <= {one_3, one_2, one_1};
    for (q = 0; q < PORTS; q = q + 1) begin
      asks_1[q] <= s_valid && s_pass && s_port == q;
      all_1[q]  <= s_port != q;
      one_1[q]  <= s_port != q && where == q;
    end
    asked <= {asked[3:1], s_to == watched};
    knew  <= {knew[3:1], knows};
    loose <= {loose[3:1], !knows && (takes || gone != 0)};
    if (rst) begin
      was_reset <= 1'b1;
      known <= 1'b0;
      shared <= 1'b0;
      gone <= 3'd0;
      {asks_4, asks_3, asks_2, asks_1} <= 0;
    end
  end

  // One reset, in the first cycle, for the proof of a bounded number of cycles
  always @* assume (rst == !was_reset);

  always @* begin
    if (was_reset) begin
      assume (s_port < PORTS);
      assert (m_valid == asks_4);
      if (m_valid != 0 && asked[4])
        assert (m_ports == (knew[4] ? one_4 : all_4) || (loose[4] && m_ports == one_4));
      cover (m_valid != 0 && asked[4] && knew[4] && m_ports != 0);
      cover (m_valid != 0 && asked[4] && loose[4] && m_ports == one_4);
      cover (m_valid != 0 && asked[4] && !knew[4] && there != 0 && !loose[4]);
    end
  end
`endif

endmodule

`default_nettype wire
