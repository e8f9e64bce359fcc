// Byte FIFO between a link and a frame parser, with rewind.
//
// Accepts words of up to LINK_BYTES bytes. The parser sees the next WINDOW bytes and takes any
// number of them each cycle. Taken bytes are kept until a commit. A rewind returns to the byte
// after the first one kept, so that the parser can search a bad frame for another that begins
// inside it.
//
// Latency: a byte is in the window in the cycle after it was accepted.
//
// Not done here: frames. The memory has asynchronous reads (distributed RAM).

`default_nettype none

module agg_byte_fifo #(
    parameter integer LINK_BYTES = 4,  // 1, 2, 4 or 8
    parameter integer WINDOW = 4,  // bytes in the window: 4 or 8, at least LINK_BYTES
    parameter integer DEPTH = 64  // capacity in bytes: a power of two
) (
    input wire clk,
    input wire rst,  // also empties the FIFO; nothing is accepted meanwhile

    input  wire [8*LINK_BYTES-1:0] s_axis_tdata,
    input  wire [  LINK_BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0, at least one byte
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,

    output wire [8*WINDOW-1:0] window,  // the next byte in bits 7:0
    output wire [3:0] count,  // valid bytes in the window, 0..WINDOW
    input wire [3:0] take,  // bytes to take, 0..count
    input wire commit,  // frees the bytes taken so far, including this cycle's
    input wire rewind  // instead of take and commit: return to the byte after the first one kept
);

  generate
    if (LINK_BYTES != 1 && LINK_BYTES != 2 && LINK_BYTES != 4 && LINK_BYTES != 8) begin : g_link
      ERROR_a_link_has_1_2_4_or_8_bytes error ();
    end
    if ((WINDOW != 4 && WINDOW != 8) || WINDOW < LINK_BYTES) begin : g_window
      ERROR_a_window_has_4_or_8_bytes_and_at_least_those_of_the_link error ();
    end
    if (DEPTH < 4 * WINDOW || (DEPTH & (DEPTH - 1)) != 0) begin : g_depth
      ERROR_the_depth_is_a_power_of_two_of_at_least_4_windows error ();
    end
  endgenerate

  localparam integer PTR = $clog2(DEPTH);
  localparam integer LANE = $clog2(WINDOW);  // pointer bits that select the bank
  localparam integer ROW = PTR - LANE;  // pointer bits that select the row

  // Pointers are modulo twice the depth, to distinguish full from empty.
  reg  [PTR:0] write_reg;
  reg  [PTR:0] read_reg;
  reg  [PTR:0] base_reg;  // the first byte kept; everything before it is committed

  wire [PTR:0] used = write_reg - base_reg;
  wire [PTR:0] ahead = write_reg - read_reg;

  localparam [PTR:0] ROOM = DEPTH[PTR:0] - LINK_BYTES[PTR:0];

  assign s_axis_tready = used <= ROOM && !rst;
  assign count = ahead < WINDOW[PTR:0] ? ahead[3:0] : WINDOW[3:0];

  reg     [3:0] arriving;  // bytes in the input word
  integer       i;

  always @* begin
    arriving = 4'd0;
    for (i = 0; i < LINK_BYTES; i = i + 1) arriving = arriving + {3'd0, s_axis_tkeep[i]};
  end

  wire         write = s_axis_tvalid && s_axis_tready;
  wire [PTR:0] read_next = read_reg + {{PTR - 3{1'b0}}, take};
  wire [PTR:0] base_next = base_reg + {{PTR{1'b0}}, 1'b1};

  always @(posedge clk) begin
    if (write) write_reg <= write_reg + {{PTR - 3{1'b0}}, arriving};
    if (rewind) begin
      read_reg <= base_next;
      base_reg <= base_next;
    end else begin
      read_reg <= read_next;
      if (commit) base_reg <= read_next;
    end
    if (rst) begin
      write_reg <= {PTR + 1{1'b0}};
      read_reg  <= {PTR + 1{1'b0}};
      base_reg  <= {PTR + 1{1'b0}};
    end
  end

  // One bank for each byte of the window. The input word is rotated so that its first byte is at
  // the bank of write_reg; the banks' outputs are rotated back by read_reg. Banks below the
  // addressed one use the next row.
  wire [    LANE-1:0] write_lane = write_reg[LANE-1:0];
  wire [    LANE-1:0] read_lane = read_reg[LANE-1:0];
  wire [    LANE-1:0] write_lane_left = {LANE{1'b0}} - write_lane;
  wire [    LANE-1:0] read_lane_left = {LANE{1'b0}} - read_lane;
  wire [     ROW-1:0] write_row = write_reg[PTR-1:LANE];
  wire [     ROW-1:0] read_row = read_reg[PTR-1:LANE];
  wire [  WINDOW-1:0] write_same_row = {WINDOW{1'b1}} << write_lane;
  wire [  WINDOW-1:0] read_same_row = {WINDOW{1'b1}} << read_lane;

  wire [8*WINDOW-1:0] word;
  wire [8*WINDOW-1:0] word_turned = word << {write_lane, 3'd0} | word >> {write_lane_left, 3'd0};
  wire [8*WINDOW-1:0] banks;

  assign word[8*LINK_BYTES-1:0] = s_axis_tdata;
  assign window = banks >> {read_lane, 3'd0} | banks << {read_lane_left, 3'd0};

  genvar k;
  generate
    if (WINDOW > LINK_BYTES) begin : g_narrow_link
      assign word[8*WINDOW-1:8*LINK_BYTES] = {8 * (WINDOW - LINK_BYTES) {1'b0}};
    end
    for (k = 0; k < WINDOW; k = k + 1) begin : g_bank
      localparam [LANE-1:0] SELF = k;
      reg [7:0] bytes[0:DEPTH/WINDOW-1];
      wire [LANE-1:0] place = SELF - write_lane;  // position of this bank's byte in the word
      wire [ROW-1:0] to_row = write_row + {{ROW - 1{1'b0}}, !write_same_row[k]};
      wire [ROW-1:0] from_row = read_row + {{ROW - 1{1'b0}}, !read_same_row[k]};

      always @(posedge clk) begin
        if (write && {{4 - LANE{1'b0}}, place} < arriving) bytes[to_row] <= word_turned[8*k+:8];
      end

      assign banks[8*k+:8] = bytes[from_row];
    end
  endgenerate

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th byte accepted is the n-th byte in the window, until the parser commits it. Numbers are
  // modulo twice the depth; watched is any of them.
  (* anyconst *) reg [PTR:0] watched;
  reg was_reset = 1'b0;
  reg [PTR:0] came, taken, kept;  // bytes: kept is the first that a rewind can return to
  reg [7:0] put;
  wire [PTR:0] place = watched - came;  // of the watched byte in the arriving word
  wire [PTR:0] bytes_kept = came - kept;
  wire [PTR:0] bytes_taken = taken - kept;  // and not committed
  wire [PTR:0] bytes_left = came - taken;
  wire watched_kept = watched - kept < bytes_kept;
  integer b;

  always @(posedge clk) begin
    if (write) came <= came + arriving;
    if (write && place < arriving) put <= s_axis_tdata[8*place+:8];
    taken <= rewind ? kept + 1 : taken + take;
    kept  <= rewind ? kept + 1 : commit ? taken + take : kept;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      taken <= 0;
      kept <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      // The link sends words of one or more contiguous bytes from bit 0. The parser takes only
      // valid bytes, and rewinds only if it took some since its last commit.
      `PROMISED(!s_axis_tvalid || (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0));
      `PROMISED(take <= count);
      `PROMISED(!rewind || taken != kept);

      assert (write_reg == came && read_reg == taken && base_reg == kept);
      assert (bytes_kept <= DEPTH && bytes_taken <= bytes_kept);
      assert (s_axis_tready == (!rst && bytes_kept + LINK_BYTES <= DEPTH));
      assert (count == (bytes_left < WINDOW ? bytes_left : WINDOW));
      for (b = 0; b < WINDOW; b = b + 1) begin
        if (b < count && taken + b[PTR:0] == watched) assert (window[8*b+:8] == put);
      end

      cover (rewind && bytes_kept == DEPTH && bytes_taken > WINDOW);
      cover (count == WINDOW && kept[PTR]);
    end
  end

  generate
    for (k = 0; k < WINDOW; k = k + 1) begin : g_watched
      always @* begin
        if (was_reset && watched_kept && watched[LANE-1:0] == k)
          assert (g_bank[k].bytes[watched[PTR-1:LANE]] == put);
      end
    end
  endgenerate
`endif

endmodule

`default_nettype wire
