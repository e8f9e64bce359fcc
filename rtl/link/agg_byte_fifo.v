// Byte FIFO between a link and a frame parser, with rewind.
//
// Accepts words of up to LINK_BYTES bytes. The parser sees the next WINDOW bytes and takes any
// number of them each cycle. Taken bytes are kept until a commit. A rewind returns to the byte
// after the first one kept, so that the parser can search a bad frame for another that begins
// inside it.
//
// The window is in registers, and so are valid and the comparison with the sync word: the parser's
// decision begins there. Bytes pass from the memory to a row of one byte for each bank, and from
// there into the window, as far as there is place. Bytes are compared with the sync word before
// they enter the memory.
//
// Latency: a byte is in the window three cycles after it was accepted, and two after a rewind.
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
    output wire [WINDOW-1:0] valid,  // bytes in the window, contiguous from bit 0
    output wire [3:0] sync_bytes,  // bit k: byte k is valid, and byte k of the sync word
    input wire [3:0] take,  // bytes to take, all valid
    input wire commit,  // frees the bytes taken so far, including this cycle's
    input wire rewind  // instead of take and commit: return to the byte after the first one kept
);

  `include "zwire.vh"

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
  reg [PTR:0] write_reg;
  reg [PTR:0] fetch_reg;  // the next byte to leave the memory for the row
  reg [PTR:0] read_reg;  // the next byte in the window
  reg [PTR:0] base_reg;  // the first byte kept; everything before it is committed
  reg         ready_reg;

  // A word may arrive in the cycle in which ready_reg is decided.
  localparam [PTR:0] ROOM = DEPTH[PTR:0] - 2 * LINK_BYTES[PTR:0];

  wire [PTR:0] used = write_reg - base_reg;

  assign s_axis_tready = ready_reg && !rst;

  reg [3:0] arriving;  // bytes in the input word
  integer i, n;

  always @* begin
    arriving = 4'd0;
    for (i = 0; i < LINK_BYTES; i = i + 1) arriving = arriving + {3'd0, s_axis_tkeep[i]};
  end

  wire         write = s_axis_tvalid && s_axis_tready;
  wire [PTR:0] read_next = read_reg + {{PTR - 3{1'b0}}, take};
  wire [PTR:0] base_next = base_reg + {{PTR{1'b0}}, 1'b1};

  // -- Memory -------------------------------------------------------------------------------------

  // A byte, and for each byte of the sync word whether it is equal
  localparam integer CELL = 12;

  function automatic [CELL-1:0] compared;
    input [7:0] value;
    compared = {
      value == SYNC[31:24], value == SYNC[23:16], value == SYNC[15:8], value == SYNC[7:0], value
    };
  endfunction

  // One bank for each byte of the window. The input word is rotated so that its first byte is at
  // the bank of write_reg. Banks below the addressed one use the next row.
  wire [       LANE-1:0] write_lane = write_reg[LANE-1:0];
  wire [       LANE-1:0] write_lane_left = {LANE{1'b0}} - write_lane;
  wire [        ROW-1:0] write_row = write_reg[PTR-1:LANE];
  wire [        ROW-1:0] fetch_row = fetch_reg[PTR-1:LANE];
  wire [     WINDOW-1:0] write_same_row = {WINDOW{1'b1}} << write_lane;
  wire [     WINDOW-1:0] fetch_same_row = {WINDOW{1'b1}} << fetch_reg[LANE-1:0];

  wire [   8*WINDOW-1:0] word;
  wire [   8*WINDOW-1:0] word_turned = word << {write_lane, 3'd0} | word >> {write_lane_left, 3'd0};
  wire [CELL*WINDOW-1:0] banks;

  assign word[8*LINK_BYTES-1:0] = s_axis_tdata;

  genvar k;
  generate
    if (WINDOW > LINK_BYTES) begin : g_narrow_link
      assign word[8*WINDOW-1:8*LINK_BYTES] = {8 * (WINDOW - LINK_BYTES) {1'b0}};
    end
    for (k = 0; k < WINDOW; k = k + 1) begin : g_bank
      localparam [LANE-1:0] SELF = k;
      reg [CELL-1:0] bytes[0:DEPTH/WINDOW-1];
      wire [LANE-1:0] place = SELF - write_lane;  // position of this bank's byte in the word
      wire [ROW-1:0] to_row = write_row + {{ROW - 1{1'b0}}, !write_same_row[k]};
      wire [ROW-1:0] from_row = fetch_row + {{ROW - 1{1'b0}}, !fetch_same_row[k]};

      always @(posedge clk) begin
        if (write && {{4 - LANE{1'b0}}, place} < arriving)
          bytes[to_row] <= compared(word_turned[8*k+:8]);
      end

      assign banks[CELL*k+:CELL] = bytes[from_row];
    end
  endgenerate

  // -- Row ----------------------------------------------------------------------------------------

  reg  [  CELL*WINDOW-1:0] row_reg;  // by bank
  reg  [       WINDOW-1:0] row_valid_reg;  // its bytes, in the order of the window

  wire [            PTR:0] ahead = write_reg - fetch_reg;
  wire                     whole = |ahead[PTR:LANE];  // at least a row of bytes
  reg                      row_moves;  // into the window

  wire                     row_loads = row_moves || !row_valid_reg[0];

  // -- Window -------------------------------------------------------------------------------------

  // Twice the window: as long as a row does not fit in, no byte of the window is missing. Other
  // cells than those of held_reg are undefined.
  reg  [2*CELL*WINDOW-1:0] hold_reg;
  reg  [     2*WINDOW-1:0] held_reg;  // contiguous from bit 0
  reg  [     2*WINDOW-1:0] held_next;
  reg  [2*CELL*WINDOW-1:0] hold_next;

  wire [3*CELL*WINDOW-1:0] joined;  // the window's cells, and the row's after them
  reg  [       3*WINDOW:0] joined_valid;

  generate
    for (k = 0; k < 3 * WINDOW; k = k + 1) begin : g_joined
      localparam [4:0] PLACE = k;
      wire [LANE-1:0] bank = read_reg[LANE-1:0] + PLACE[LANE-1:0];
      wire [CELL-1:0] of_row = row_reg[CELL*bank+:CELL];
      if (k < 2 * WINDOW) begin : g_either
        assign joined[CELL*k+:CELL] = held_reg[k] ? hold_reg[CELL*k+:CELL] : of_row;
      end else begin : g_row
        assign joined[CELL*k+:CELL] = of_row;
      end
    end
  endgenerate

  // There are more than k bytes if the row has n of them and the window more than k - n.
  always @* begin
    joined_valid = {{WINDOW + 1{1'b0}}, held_reg};
    for (i = 0; i < 3 * WINDOW; i = i + 1) begin
      for (n = 1; n <= WINDOW; n = n + 1) begin
        if (i - n == -1) joined_valid[i] = joined_valid[i] || row_valid_reg[n-1];
        if (i - n >= 0 && i - n < 2 * WINDOW)
          joined_valid[i] = joined_valid[i] || (row_valid_reg[n-1] && held_reg[i-n]);
      end
    end
  end

  // For each number of bytes that may be taken, so that take comes last. The row moves if all bytes
  // fit in then.
  always @* begin
    row_moves = !joined_valid[2*WINDOW];
    hold_next = joined[2*CELL*WINDOW-1:0];
    held_next = row_moves ? joined_valid[2*WINDOW-1:0] : held_reg;
    for (i = 1; i <= WINDOW; i = i + 1) begin
      if (take == i[3:0]) begin
        row_moves = !joined_valid[2*WINDOW+i];
        hold_next = joined[CELL*i+:2*CELL*WINDOW];
        held_next = joined_valid[2*WINDOW+i] ? held_reg >> i : joined_valid[i+:2*WINDOW];
      end
    end
  end

  always @(posedge clk) begin
    ready_reg <= used <= ROOM;
    if (write) write_reg <= write_reg + {{PTR - 3{1'b0}}, arriving};
    hold_reg <= hold_next;
    if (row_loads) row_reg <= banks;
    if (rewind) begin
      read_reg      <= base_next;
      base_reg      <= base_next;
      fetch_reg     <= base_next;
      held_reg      <= {2 * WINDOW{1'b0}};
      row_valid_reg <= {WINDOW{1'b0}};
    end else begin
      read_reg <= read_next;
      held_reg <= held_next;
      if (commit) base_reg <= read_next;
      if (row_loads) begin
        fetch_reg     <= whole ? fetch_reg + WINDOW[PTR:0] : write_reg;
        row_valid_reg <= whole ? {WINDOW{1'b1}} : ~({WINDOW{1'b1}} << ahead[LANE-1:0]);
      end
    end
    if (rst) begin
      ready_reg     <= 1'b0;
      write_reg     <= {PTR + 1{1'b0}};
      read_reg      <= {PTR + 1{1'b0}};
      base_reg      <= {PTR + 1{1'b0}};
      fetch_reg     <= {PTR + 1{1'b0}};
      held_reg      <= {2 * WINDOW{1'b0}};
      row_valid_reg <= {WINDOW{1'b0}};
    end
  end

  assign valid = held_reg[WINDOW-1:0];

  generate
    for (k = 0; k < WINDOW; k = k + 1) begin : g_shown
      assign window[8*k+:8] = hold_reg[CELL*k+:8];
    end
    for (k = 0; k < 4; k = k + 1) begin : g_matches
      assign sync_bytes[k] = valid[k] && hold_reg[CELL*k+8+k];
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
  reg running_was = 1'b0;  // no reset in the last cycle
  reg [1:0] calm;  // cycles since a rewind
  reg [PTR:0] came_was, came_before, kept_was;  // a cycle ago, two cycles ago
  wire [PTR:0] lately = came - came_was;
  wire [PTR:0] earlier = came_was - came_before;
  reg [4:0] count, held, in_row;  // bytes in the window, in hold_reg, and in the row
  integer b, v;

  always @* begin
    count  = 0;
    held   = 0;
    in_row = 0;
    for (v = 0; v < 2 * WINDOW; v = v + 1) held = held + held_reg[v];
    for (v = 0; v < WINDOW; v = v + 1) begin
      count  = count + valid[v];
      in_row = in_row + row_valid_reg[v];
    end
  end

  always @(posedge clk) begin
    if (write) came <= came + arriving;
    if (write && place < arriving) put <= s_axis_tdata[8*place+:8];
    taken <= rewind ? kept + 1 : taken + take;
    kept <= rewind ? kept + 1 : commit ? taken + take : kept;
    running_was <= was_reset && !rst;
    calm <= rst || rewind ? 0 : calm + (calm != 3);
    came_was <= came;
    came_before <= came_was;
    kept_was <= bytes_kept;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      taken <= 0;
      kept <= 0;
      came_was <= 0;
      came_before <= 0;
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
      assert (fetch_reg == taken + held + in_row && ahead <= bytes_left);
      assert ((held_reg & (held_reg + 1'b1)) == 0 && (row_valid_reg & (row_valid_reg + 1'b1)) == 0);
      assert (bytes_kept <= DEPTH && bytes_taken <= bytes_kept);
      assert (s_axis_tready == (!rst && ready_reg));
      assert (!ready_reg || bytes_kept + LINK_BYTES <= DEPTH);
      if (running_was) assert (ready_reg == (kept_was + 2 * LINK_BYTES <= DEPTH));
      // A byte is in the window three cycles after it was accepted, if the window has place.
      assert ((valid & (valid + 1'b1)) == 0 && count <= bytes_left);
      if (calm >= 2 && count < WINDOW) assert (count + earlier + lately >= bytes_left);
      if (calm >= 1 && in_row < WINDOW && held + in_row <= 2 * WINDOW)
        assert (held + in_row + lately >= bytes_left);
      assert (lately <= LINK_BYTES && earlier <= LINK_BYTES);
      for (b = 0; b < 2 * WINDOW; b = b + 1) begin
        if (held_reg[b] && taken + b[PTR:0] == watched)
          assert (hold_reg[CELL*b+:CELL] == compared(put));
      end
      for (b = 0; b < WINDOW; b = b + 1) begin
        if (valid[b] && taken + b[PTR:0] == watched) begin
          assert (window[8*b+:8] == put);
          if (b < 4) assert (sync_bytes[b] == (put == SYNC[8*b+:8]));
        end
        if (b < 4 && !valid[b]) assert (!sync_bytes[b]);
        if (row_valid_reg[b] && taken + held + b[PTR:0] == watched)
          assert (row_reg[CELL*watched[LANE-1:0]+:CELL] == compared(put));
      end

      cover (rewind && bytes_kept == DEPTH && bytes_taken > WINDOW);
      cover (count == WINDOW && kept[PTR]);
    end
  end

  generate
    for (k = 0; k < WINDOW; k = k + 1) begin : g_watched
      always @* begin
        if (was_reset && watched_kept && watched[LANE-1:0] == k)
          assert (g_bank[k].bytes[watched[PTR-1:LANE]] == compared(put));
      end
    end
  endgenerate
`endif

endmodule

`default_nettype wire
