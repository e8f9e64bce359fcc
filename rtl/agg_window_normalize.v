// Normalizes the sum of a window: shifts its magnitude left until its leading bit is at the top, as
// far as the exponent of a subnormal allows.
//
// sum is two's complement; its bit WIDTH-2 is the leading bit of a number with the exponent field
// exponent + GROWTH.
//   inverted  sum is negative. Then normal is its one's complement, with ones shifted in: the
//             magnitude is that and one more in a place infinitely far below. So no adder is needed
//             to negate; agg_window_round knows what to make of it.
//   zero      sum is 0
//   normal    the magnitude; a leading bit at its top has the exponent field room + 1. Without one
//             there room is 0: a subnormal; or sum is 0; or, inverted, normal is all ones below.
//   room      how far it could still have been shifted
//
// LATENCY = 4 cycles from sum, exponent; 5 with BITS = 64:
//   1      which bytes hold no leading bit
//   (2)    shift by 32, with BITS = 64
//   2      shift by 16 and 8
//   3      shift by 4 and 2
//   4      shift by 1
//
// Not done here: no rounding; the exponent may be too large for the format.

`default_nettype none

module agg_window_normalize #(
    parameter integer EXP    = 8,   // bits of the exponent
    parameter integer WIDTH  = 32,  // bits of the sum
    parameter integer GROWTH = 3,   // bits that the sum may be longer than an operand
    parameter integer BITS   = 32   // of normal: 32, or 64 for sums of more than 33 bits
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] sum,
    input  wire [  EXP-1:0] exponent,
    output wire             inverted,
    output wire             zero,
    output wire [    EXP:0] room,
    output wire [ BITS-1:0] normal
);

  generate
    if (EXP < 3 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_3_to_8_bits error ();
    end
    if (BITS != 32 && BITS != 64) begin : g_bits
      ERROR_normal_must_have_32_or_64_bits error ();
    end
    if (WIDTH < 3 || WIDTH > BITS + 1) begin : g_width
      ERROR_sum_must_have_3_bits_and_at_most_one_more_than_normal error ();
    end
    if (GROWTH < 1 || GROWTH > 6) begin : g_growth
      ERROR_growth_must_be_1_to_6_bits error ();
    end
  endgenerate

  localparam integer MAGNITUDE = WIDTH - 1;
  localparam integer BYTES = BITS / 8;
  localparam [8:0] ROOM = GROWTH[8:0] - 9'd1;  // beyond the exponent

  // Shifts that a narrow sum never needs are never taken, and vanish.
  localparam [0:0] LONG16 = MAGNITUDE > 16;
  localparam [0:0] LONG8 = MAGNITUDE > 8;
  localparam [0:0] LONG4 = MAGNITUDE > 4;

  // -- 1: which bytes hold no leading bit ---------------------------------------------------------

  wire             negative = sum[WIDTH-1];
  wire [ BITS-1:0] padded;
  wire [ BITS-1:0] upright = padded ^ {BITS{negative}};

  reg              inverted1_reg;
  reg  [BYTES-1:0] empty1_reg;
  reg  [      8:0] room1_reg;
  reg  [ BITS-1:0] padded1_reg;

  generate
    if (MAGNITUDE == BITS) begin : g_full
      assign padded = sum[MAGNITUDE-1:0];
    end else begin : g_padded
      assign padded = {sum[MAGNITUDE-1:0], {BITS - MAGNITUDE{1'b0}}};
    end
  endgenerate

  integer i;
  always @(posedge clk) begin
    for (i = 0; i < BYTES; i = i + 1) empty1_reg[i] <= upright[8*i+:8] == 8'd0;
    inverted1_reg <= negative;
    room1_reg     <= {{9 - EXP{1'b0}}, exponent} + ROOM;
    padded1_reg   <= padded;
  end

  // -- (2): shift by 32 ---------------------------------------------------------------------------

  wire            inverted2;
  wire            zero2;
  wire [     2:0] empty2;  // the upper three bytes
  wire [     8:0] room2;
  wire [BITS-1:0] word2;

  generate
    if (BITS == 64) begin : g_step32
      wire            step32 = &empty1_reg[BYTES-1-:4] && |room1_reg[8:5];
      wire [BITS-1:0] word1 = padded1_reg ^ {BITS{inverted1_reg}};
      reg             inverted_reg;
      reg             zero_reg;
      reg  [     2:0] empty_reg;
      reg  [     8:0] room_reg;
      reg  [BITS-1:0] word_reg;

      always @(posedge clk) begin
        inverted_reg <= inverted1_reg;
        zero_reg     <= &empty1_reg && !inverted1_reg;
        empty_reg    <= step32 ? empty1_reg[3:1] : empty1_reg[BYTES-1-:3];
        room_reg     <= {room1_reg[8:5] - {3'd0, step32}, room1_reg[4:0]};
        word_reg     <= step32 ? {word1[BITS-33:0], {32{inverted1_reg}}} : word1;
      end

      assign inverted2 = inverted_reg;
      assign zero2 = zero_reg;
      assign empty2 = empty_reg;
      assign room2 = room_reg;
      assign word2 = word_reg;
    end else begin : g_no_step32
      assign inverted2 = inverted1_reg;
      assign zero2 = &empty1_reg && !inverted1_reg;
      assign empty2 = empty1_reg[3:1];
      assign room2 = room1_reg;
      assign word2 = padded1_reg ^ {BITS{inverted1_reg}};
    end
  endgenerate

  // -- 2: shift by 16 and 8 -----------------------------------------------------------------------

  // Whether there is room for 8 more is known for both cases before step16 is.
  wire            room24 = |room2[8:5] || &room2[4:3];
  wire            step16 = LONG16 && empty2[2] && empty2[1] && |room2[8:4];
  wire            step8 = LONG8 && (step16 ? empty2[0] && room24 : empty2[2] && |room2[8:3]);
  wire [BITS-1:0] word16 = step16 ? {word2[BITS-17:0], {16{inverted2}}} : word2;

  reg             inverted3_reg;
  reg             zero3_reg;
  reg  [     8:0] room3_reg;
  reg  [BITS-1:0] word3_reg;

  always @(posedge clk) begin
    inverted3_reg <= inverted2;
    zero3_reg     <= zero2;
    room3_reg     <= {room2[8:3] - {4'd0, step16, step8}, room2[2:0]};
    word3_reg     <= step8 ? {word16[BITS-9:0], {8{inverted2}}} : word16;
  end

  // -- 3: shift by 4 and 2 ------------------------------------------------------------------------

  wire            room6 = |room3_reg[8:3] || &room3_reg[2:1];
  wire            step4 = LONG4 && word3_reg[BITS-1-:4] == 4'd0 && |room3_reg[8:2];
  wire            step2_far = word3_reg[BITS-5-:2] == 2'd0 && room6;
  wire            step2_near = word3_reg[BITS-1-:2] == 2'd0 && |room3_reg[8:1];
  wire            step2 = step4 ? step2_far : step2_near;
  wire [BITS-1:0] word4 = step4 ? {word3_reg[BITS-5:0], {4{inverted3_reg}}} : word3_reg;

  reg             inverted4_reg;
  reg             zero4_reg;
  reg  [     8:0] room4_reg;
  reg  [BITS-1:0] word4_reg;

  always @(posedge clk) begin
    inverted4_reg <= inverted3_reg;
    zero4_reg     <= zero3_reg;
    room4_reg     <= {room3_reg[8:1] - {6'd0, step4, step2}, room3_reg[0]};
    word4_reg     <= step2 ? {word4[BITS-3:0], {2{inverted3_reg}}} : word4;
  end

  // -- 4: shift by 1 ------------------------------------------------------------------------------

  wire            step1 = !word4_reg[BITS-1] && room4_reg != 9'd0;

  reg             inverted5_reg;
  reg             zero5_reg;
  reg  [   EXP:0] room5_reg;
  reg  [BITS-1:0] word5_reg;

  always @(posedge clk) begin
    inverted5_reg <= inverted4_reg;
    zero5_reg     <= zero4_reg;
    room5_reg     <= room4_reg[EXP:0] - {{EXP{1'b0}}, step1};
    word5_reg     <= step1 ? {word4_reg[BITS-2:0], inverted4_reg} : word4_reg;
  end

  assign inverted = inverted5_reg;
  assign zero = zero5_reg;
  assign room = room5_reg;
  assign normal = word5_reg;

endmodule

`default_nettype wire
