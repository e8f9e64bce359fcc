// Connects the bus of a USB FIFO bridge in synchronous 245 mode (FTDI's FT2232H, FT232H, FT600,
// FT601) to two AXI4-Streams, in the chip's clock. Every pin except txe_n is connected to a
// register used for nothing else, so that the register can be placed at the pin.
//
// At a rising edge the chip sends a word if RD# and RXF# are low, and accepts one if WR# and TXE#
// are. It changes its outputs after the edge, and drives the bus while OE# is low.
//
//   read   OE# falls, then RD# one cycle later. RD# stays low while words come and there is room
//          for those still on their way when it rises.
//   write  WR# falls with the first word while TXE# is low. A word not accepted by the chip stays
//          and is offered again, even if WR# rises meanwhile. WR# rises after a word with tlast.
//   turn   Nobody drives the bus for two cycles after a read, and for one after a write.
//
// With words waiting in both directions, reads and writes alternate every BURST cycles. SIWU# (send
// immediate) falls when SILENCE cycles after the last word there is nothing to send: the chip then
// sends what it has, without its latency timer or a full packet. SIWU# is only an optimization.
//
// Pin timing, in ns, is the board's responsibility. For FT600 and FT601 these are the limits in
// public designs' constraints (PCILeech; LimeSDR Mini has 4.0 instead of 3.5), which quote the data
// sheet, and in one that found by experiment that WR# may change 5.5 to 9.0 after the edge:
//
//                                            FT232H, FT2232H   FT600, FT601
//   period                                   16.7              15 or 10
//   the chip's pins are valid after an edge  9.0               7.0
//   and stable after the next one                              3.5
//   our pins must be valid before an edge    7.5               1.0
//   and stable after it                                        4.8
//
// So at 100 MHz ours change 4.8 to 9.0 after an edge, for example behind negedge registers.
//
// Latency: a word is at m_axis_rx in the second cycle after the edge that transferred it, and at
// data_out in the second cycle after s_axis_tx, at the earliest. The reset is asynchronous because
// the chip's clock stops in its other modes, and the pins must be inactive then.

`default_nettype none

module agg_fifo_bus #(
    parameter integer WIDTH = 8,  // bits per word: data, and byte enables if the chip has any
    parameter integer BURST = 256,  // in cycles: 2..65535
    parameter integer SILENCE = 32,  // in cycles: 2..32768
    parameter integer ASK = 16  // cycles of SIWU# low: 1..32767
) (
    input wire clk,
    input wire rst,

    // The chip's pins
    input  wire             rxf_n,
    input  wire             txe_n,
    output wire             rd_n,
    output wire             wr_n,
    output wire             oe_n,
    output wire             siwu_n,
    input  wire [WIDTH-1:0] data_in,
    output wire [WIDTH-1:0] data_out,
    output wire [WIDTH-1:0] drive_n,   // active low, all bits equal: drive the pins with data_out

    // From and to the host
    output wire [WIDTH-1:0] m_axis_rx_tdata,
    output wire             m_axis_rx_tvalid,
    input  wire             m_axis_rx_tready,
    input  wire [WIDTH-1:0] s_axis_tx_tdata,
    input  wire             s_axis_tx_tlast,
    input  wire             s_axis_tx_tvalid,
    output wire             s_axis_tx_tready
);

  // The comments give the pins in each state.
  localparam [2:0] FREE = 3'd0;  // nobody drives
  localparam [2:0] OPEN = 3'd1;  // OE# low
  localparam [2:0] READ = 3'd2;  // OE# low, RD# low or high
  localparam [2:0] TURN = 3'd3;  // nobody drives
  localparam [2:0] WRITE = 3'd4;  // this side drives, WR# low or high

  reg [2:0] state_reg;
  reg [2:0] state_next;
  reg rd_n_reg;
  reg wr_n_reg;
  reg siwu_n_reg;
  reg [15:0] burst_reg;  // cycles of this read or write, up to BURST
  reg read_last_reg;  // the most recent transfer was a read

  // The registers at the pins. Some are duplicates. These attributes make Vivado keep them apart
  // and place all of them in the I/O cells.
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg rd_n_pin_reg;
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg wr_n_pin_reg;
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg oe_n_pin_reg;
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg siwu_n_pin_reg;
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg [WIDTH-1:0] drive_n_pin_reg;
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg [WIDTH-1:0] out_pin_reg;
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg [WIDTH-1:0] in_pin_reg;
  (* DONT_TOUCH = "TRUE", IOB = "TRUE" *)
  reg rxf_pin_reg;

  assign rd_n    = rd_n_pin_reg;
  assign wr_n    = wr_n_pin_reg;
  assign oe_n    = oe_n_pin_reg;
  assign siwu_n  = siwu_n_pin_reg;
  assign drive_n = drive_n_pin_reg;

  // -- From the host: the pins at the last edge, and four words --

  reg rd_reg;  // RD# was high at that edge
  reg [WIDTH-1:0] rx_words[0:3];
  reg [1:0] rx_head_reg;
  reg [2:0] rx_count_reg;

  wire came = !rxf_pin_reg && !rd_reg;
  wire rx_leaves = m_axis_rx_tvalid && m_axis_rx_tready;
  wire [1:0] rx_tail = rx_head_reg + rx_count_reg[1:0];
  // Includes a word that RD# may bring at the next edge; RD# can stay low if one more fits.
  wire [2:0] rx_coming = rx_count_reg + {2'd0, came} + {2'd0, !rd_n_reg};
  wire room = rx_coming < 3'd4;

  assign m_axis_rx_tdata  = rx_words[rx_head_reg];
  assign m_axis_rx_tvalid = rx_count_reg != 3'd0;

  always @(posedge clk) begin
    in_pin_reg <= data_in;
    if (came) rx_words[rx_tail] <= in_pin_reg;
  end

  always @(posedge clk or posedge rst) begin
    if (rst) begin
      rxf_pin_reg  <= 1'b1;
      rd_reg       <= 1'b1;
      rx_head_reg  <= 2'd0;
      rx_count_reg <= 3'd0;
    end else begin
      rxf_pin_reg  <= rxf_n;
      rd_reg       <= rd_n_reg;
      rx_head_reg  <= rx_head_reg + {1'b0, rx_leaves};
      rx_count_reg <= rx_count_reg + {2'd0, came} - {2'd0, rx_leaves};
    end
  end

  // -- To the host: two words, and the register at the pins --

  reg [WIDTH:0] tx_words[0:1];  // tlast in the top bit
  reg tx_head_reg;
  reg [1:0] tx_count_reg;
  reg out_last_reg;  // tlast of the word at the pins
  reg out_valid_reg;  // the word at the pins is not yet accepted
  reg txe_reg;

  wire taken = !wr_n_reg && !txe_n;
  wire load = (!out_valid_reg || taken) && tx_count_reg != 2'd0;
  wire out_valid_next = load || (out_valid_reg && !taken);
  wire enter = s_axis_tx_tvalid && s_axis_tx_tready;

  assign s_axis_tx_tready = tx_count_reg != 2'd2 && !rst;
  assign data_out = out_pin_reg;

  always @(posedge clk) begin
    if (enter) tx_words[tx_head_reg^tx_count_reg[0]] <= {s_axis_tx_tlast, s_axis_tx_tdata};
    if (load) {out_last_reg, out_pin_reg} <= tx_words[tx_head_reg];
  end

  always @(posedge clk or posedge rst) begin
    if (rst) begin
      txe_reg       <= 1'b1;
      tx_head_reg   <= 1'b0;
      tx_count_reg  <= 2'd0;
      out_valid_reg <= 1'b0;
    end else begin
      txe_reg       <= txe_n;
      tx_head_reg   <= tx_head_reg ^ load;
      tx_count_reg  <= tx_count_reg + {1'b0, enter} - {1'b0, load};
      out_valid_reg <= out_valid_next;
    end
  end

  // -- Arbitration --

  wire want_read = !rxf_pin_reg && room;
  wire waits = out_valid_reg || tx_count_reg != 2'd0;
  wire want_write = waits && !txe_reg;
  wire over = burst_reg == BURST[15:0];
  wire ended = taken && out_last_reg;

  always @* begin
    state_next = state_reg;
    case (state_reg)
      FREE:
      if (want_read && !(want_write && read_last_reg)) state_next = OPEN;
      else if (want_write) state_next = WRITE;
      OPEN: state_next = READ;
      READ: if (rxf_pin_reg || (want_write && (over || !room))) state_next = TURN;
      WRITE: if (!want_write || (over && want_read) || ended) state_next = FREE;
      default: state_next = FREE;
    endcase
  end

  wire rd_n_next = !(state_next == READ && want_read);
  wire wr_n_next = !(state_next == WRITE && out_valid_next);

  always @(posedge clk or posedge rst) begin
    if (rst) begin
      state_reg       <= FREE;
      rd_n_reg        <= 1'b1;
      wr_n_reg        <= 1'b1;
      rd_n_pin_reg    <= 1'b1;
      wr_n_pin_reg    <= 1'b1;
      oe_n_pin_reg    <= 1'b1;
      drive_n_pin_reg <= {WIDTH{1'b1}};
    end else begin
      state_reg       <= state_next;
      rd_n_reg        <= rd_n_next;
      wr_n_reg        <= wr_n_next;
      rd_n_pin_reg    <= rd_n_next;
      wr_n_pin_reg    <= wr_n_next;
      oe_n_pin_reg    <= !(state_next == OPEN || state_next == READ);
      drive_n_pin_reg <= {WIDTH{state_next != WRITE}};
    end
  end

  always @(posedge clk or posedge rst) begin
    if (rst) begin
      burst_reg     <= 16'd0;
      read_last_reg <= 1'b0;
    end else begin
      if (state_reg == FREE) burst_reg <= 16'd0;
      else if (!over) burst_reg <= burst_reg + 16'd1;
      if (state_reg == OPEN) read_last_reg <= 1'b1;
      else if (state_reg == WRITE) read_last_reg <= 1'b0;
    end
  end

  // -- Send immediate --

  localparam [15:0] QUIET = SILENCE[15:0] - 16'd1;
  localparam [15:0] ASKED = SILENCE[15:0] + ASK[15:0] - 16'd1;

  reg sent_reg;  // words were accepted since SIWU# last fell
  reg [15:0] quiet_reg;  // cycles without words to send, then cycles of SIWU#
  wire begin_ask = siwu_n_reg && quiet_reg == QUIET && sent_reg && !waits;
  wire end_ask = quiet_reg == ASKED;
  wire siwu_n_next = !begin_ask && (end_ask || siwu_n_reg);

  always @(posedge clk or posedge rst) begin
    if (rst) begin
      siwu_n_reg     <= 1'b1;
      siwu_n_pin_reg <= 1'b1;
      sent_reg       <= 1'b0;
      quiet_reg      <= 16'd0;
    end else begin
      siwu_n_reg     <= siwu_n_next;
      siwu_n_pin_reg <= siwu_n_next;
      sent_reg       <= taken || (sent_reg && !begin_ask);
      if (siwu_n_reg && (waits || !sent_reg)) quiet_reg <= 16'd0;
      else quiet_reg <= end_ask ? 16'd0 : quiet_reg + 16'd1;
    end
  end

`ifdef FORMAL
  // The chip: RXF# and TXE# are arbitrary in every cycle. Words are numbered in each direction,
  // modulo 8, more than can be inside. The watched words, any numbers, have known contents.
  (* anyconst *) reg [2:0] watched_rx;
  (* anyconst *) reg [2:0] watched_tx;
  (* anyconst *) reg [WIDTH-1:0] word_rx;
  (* anyconst *) reg [WIDTH:0] word_tx;
  reg was_reset = 1'b0;
  reg [2:0] given, got;  // words sent by the chip, and words taken at m_axis_rx
  reg [2:0] put, kept;  // words taken at s_axis_tx, and words accepted by the chip
  wire [2:0] rx_place = watched_rx - got;
  wire [2:0] rx_inside = given - got;
  wire [2:0] tx_place = watched_tx - kept;
  wire [2:0] tx_inside = put - kept;
  wire [2:0] tx_queued = tx_place - {2'd0, out_valid_reg};  // position in tx_words
  reg oe_n_was, oe_n_before, drive_was, rd_n_was, wr_n_was, txe_before, txe_earlier, rx_waited;
  reg last_taken;  // a word with tlast was accepted in the last cycle
  reg [WIDTH-1:0] rx_stood, out_stood;
  reg out_waited;
  reg [15:0] starved;  // cycles for which a word waited while TXE# was low at all edges
  reg [15:0] unheard;  // the same for RXF#, while m_axis_rx was taken in all cycles
  wire drive = !drive_n[0];

  always @(posedge clk) begin
    if (!rxf_n && !rd_n) given <= given + 1;
    if (m_axis_rx_tvalid && m_axis_rx_tready) got <= got + 1;
    if (s_axis_tx_tvalid && s_axis_tx_tready) put <= put + 1;
    if (!txe_n && !wr_n) kept <= kept + 1;
    oe_n_was <= oe_n;
    oe_n_before <= oe_n_was;
    drive_was <= drive;
    rd_n_was <= rd_n;
    wr_n_was <= wr_n;
    txe_before <= txe_n;
    txe_earlier <= txe_before;
    last_taken <= !txe_n && !wr_n && out_last_reg;
    rx_waited <= m_axis_rx_tvalid && !m_axis_rx_tready;
    rx_stood <= m_axis_rx_tdata;
    out_waited <= !wr_n && txe_n;
    out_stood <= data_out;
    starved <= waits && !txe_n && wr_n ? starved + 1 : 0;
    unheard <= !rxf_n && rd_n && m_axis_rx_tready ? unheard + 1 : 0;
    if (rst) begin
      was_reset <= 1'b1;
      given <= 0;
      got <= 0;
      put <= 0;
      kept <= 0;
      oe_n_was <= 1;
      oe_n_before <= 1;
      drive_was <= 0;
      rd_n_was <= 1;
      wr_n_was <= 1;
      txe_before <= 1;
      txe_earlier <= 1;
      last_taken <= 0;
      rx_waited <= 0;
      out_waited <= 0;
      starved <= 0;
      unheard <= 0;
    end
  end

  always @* begin
    if (!was_reset) assume (rst);
    if (was_reset && !rst) begin
      if (!rxf_n && !oe_n && given == watched_rx) assume (data_in == word_rx);
      if (s_axis_tx_tvalid && put == watched_tx)
        assume ({s_axis_tx_tlast, s_axis_tx_tdata} == word_tx);

      // Words stay in order; none is lost or repeated.
      assert (rx_inside == rx_count_reg + came && rx_inside <= 4);
      assert (rx_count_reg <= 4 && rx_coming <= 4);
      if (rx_place < rx_count_reg) assert (rx_words[rx_head_reg+rx_place[1:0]] == word_rx);
      if (came && rx_place == rx_count_reg) assert (in_pin_reg == word_rx);
      if (m_axis_rx_tvalid && got == watched_rx) assert (m_axis_rx_tdata == word_rx);
      assert (tx_inside == tx_count_reg + out_valid_reg && tx_count_reg <= 2);
      if (out_valid_reg && tx_place == 0) assert ({out_last_reg, out_pin_reg} == word_tx);
      if (tx_place >= out_valid_reg && tx_queued < tx_count_reg)
        assert (tx_words[tx_head_reg^tx_queued[0]] == word_tx);
      if (!wr_n && kept == watched_tx) assert (data_out == word_tx[WIDTH-1:0]);
      if (!wr_n) assert (out_valid_reg && tx_inside != 0);
      if (rx_waited) assert (m_axis_rx_tvalid && m_axis_rx_tdata == rx_stood);

      // The bus is never driven from both sides. A turnaround takes at least one cycle, or two
      // after a read.
      assert (!(drive && !oe_n));
      if (drive) assert (oe_n_was && oe_n_before);
      if (!oe_n) assert (!drive_was);
      // RD# is low only after OE# was low for a cycle. An offered word is stable until accepted.
      // WR# falls only if TXE# was low one edge before.
      if (!rd_n) assert (!oe_n && !oe_n_was);
      if (!wr_n) assert (drive);
      if (out_waited && !wr_n) assert (data_out == out_stood);
      if (wr_n_was && !wr_n) assert (!txe_earlier);
      // A burst's end is followed by a pause.
      if (last_taken) assert (wr_n);

      // The pins match the state.
      assert (rd_n == rd_n_reg && wr_n == wr_n_reg && siwu_n == siwu_n_reg);
      assert (oe_n == !(state_reg == OPEN || state_reg == READ));
      assert (drive_n == {WIDTH{state_reg != WRITE}});
      assert (rd_n_reg || state_reg == READ);
      assert (state_reg <= WRITE);
      assert (burst_reg <= BURST);
      assert (rd_reg == rd_n_was);
      assert (txe_reg == txe_before);
      if (state_reg == OPEN || state_reg == READ) assert (oe_n == 0);
      if (state_reg == READ) assert (!oe_n_was);
      if (state_reg == WRITE) assert (oe_n_was && oe_n_before);
      if (state_reg == FREE) assert (oe_n_was);
      if (state_reg == FREE || state_reg == TURN) assert (oe_n && !drive);
      if (state_reg == TURN) assert (!drive_was);

      assert (quiet_reg <= ASKED);
      if (!siwu_n) assert (quiet_reg > QUIET);

`ifdef FAIR
      // A word that waits and could pass waits no longer than a turn of the other direction.
      assert (starved <= BURST + 8);
      assert (unheard <= BURST + 8);
`endif

      cover (got == 7 && kept == 7);
      cover (out_waited && !wr_n && !txe_n);
      cover (rx_count_reg == 4 && rd_n);
      cover (!siwu_n && taken);
      cover (last_taken && out_valid_reg);
    end
  end
`endif

endmodule

`default_nettype wire
