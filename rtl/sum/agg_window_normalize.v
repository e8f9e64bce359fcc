// Normalizes a window's sum: shifts its magnitude left until the leading one is at the top, or
// until the exponent is that of a subnormal.
//
// sum is in two's complement; its bit WIDTH-2 is the leading bit of a number with the exponent
// field exponent + GROWTH. exponent precedes its sum by one cycle.
//   inverted  sum is negative. normal is then its one's complement, with ones shifted in: the
//             magnitude is normal plus one unit in a place infinitely far below. So no adder has to
//             negate; agg_window_round takes that into account.
//   zero      sum is 0
//   shift     number of places shifted
//   normal    top KEEP bits. A leading one there has the exponent field exponent + GROWTH - shift.
//             Without one, shift is exponent + GROWTH - 1, a subnormal; or sum is 0; or, inverted,
//             normal is all ones below the top.
//   rest      the magnitude has nonzero places below normal
//
// LATENCY = 5 cycles from sum; 6 with BITS = 64:
//   1      find the bytes without a leading one
//   (2)    shift by 32, with BITS = 64
//   2      decide on shifts by 16 and 8
//   3      shift by 16 and 8, decide on a shift by 4
//   4      shift by 4 and 2
//   5      shift by 1, and invert
//
// Not done here: rounding; the exponent may be too large for the format.

`default_nettype none

module agg_window_normalize #(
    parameter integer EXP = 8,  // bits in the exponent
    parameter integer WIDTH = 32,  // bits in sum
    parameter integer GROWTH = 3,  // sum's bits beyond those of an operand
    parameter integer BITS = 32,  // width that sums are padded to: 32, or 64 for more than 33 bits
    parameter integer KEEP = 25  // bits in normal: at least two more than the fraction
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] sum,
    input  wire [  EXP-1:0] exponent,
    output wire             inverted,
    output wire             zero,
    output wire [      5:0] shift,
    output wire [ KEEP-1:0] normal,
    output wire             rest
);

  generate
    if (EXP < 2 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_2_to_8_bits error ();
    end
    if (BITS != 32 && BITS != 64) begin : g_bits
      ERROR_sums_are_padded_to_32_or_64_bits error ();
    end
    if (WIDTH < 3 || WIDTH > BITS + 1) begin : g_width
      ERROR_sum_must_have_3_bits_and_at_most_one_more_than_it_is_padded_to error ();
    end
    if (GROWTH < 1 || GROWTH > 6) begin : g_growth
      ERROR_growth_must_be_1_to_6_bits error ();
    end
    if (KEEP < 2 || KEEP > BITS - 7) begin : g_keep
      ERROR_kept_bits_must_be_7_less_than_the_padded_ones error ();
    end
  endgenerate

  localparam integer MAGNITUDE = WIDTH - 1;
  localparam integer BYTES = BITS / 8;
  localparam [8:0] MORE = GROWTH[8:0] - 9'd1;

  // Shifts that a narrow sum never needs are never taken; synthesis removes them.
  localparam [0:0] LONG16 = MAGNITUDE > 16;
  localparam [0:0] LONG8 = MAGNITUDE > 8;
  localparam [0:0] LONG4 = MAGNITUDE > 4;

  // Bits below these places end up below normal: before, between and after the last steps.
  localparam integer LOW4 = BITS - KEEP - 3;
  localparam integer LOW2 = BITS - KEEP - 1;

  // -- 1: bytes without a leading one -------------------------------------------------------------

  // The sum stays in two's complement until the end: zeros are shifted in below, and its leading
  // bits are all equal to its sign.
  wire sign = sum[WIDTH-1];
  wire [BITS-1:0] word;

  reg sign1_reg;
  reg [8:0] limit0_reg;  // maximum shift
  reg [8:0] limit1_reg;
  reg [BYTES-1:0] empty1_reg;
  reg [BYTES-1:0] half_empty1_reg;  // for the upper halves of the bytes
  reg [BITS-1:0] word1_reg;

  generate
    if (MAGNITUDE == BITS) begin : g_full
      assign word = sum[MAGNITUDE-1:0];
    end else begin : g_padded
      assign word = {sum[MAGNITUDE-1:0], {BITS - MAGNITUDE{1'b0}}};
    end
  endgenerate

  integer i;
  always @(posedge clk) begin
    for (i = 0; i < BYTES; i = i + 1) begin
      empty1_reg[i]      <= word[8*i+:8] == {8{sign}};
      half_empty1_reg[i] <= word[8*i+4+:4] == {4{sign}};
    end
    sign1_reg  <= sign;
    limit0_reg <= {{9 - EXP{1'b0}}, exponent} + MORE;
    limit1_reg <= limit0_reg;
    word1_reg  <= word;
  end

  // -- (2): shift by 32 ---------------------------------------------------------------------------

  wire sign2;
  wire zero2;
  wire step32_2;
  wire ample2;  // the remaining limit is at least 32
  wire [4:0] limit2;
  wire [2:0] empty2;
  wire [3:0] half_empty2;
  wire [BITS-1:0] word2;

  generate
    if (BITS == 64) begin : g_step32
      wire step32 = &empty1_reg[BYTES-1-:4] && |limit1_reg[8:5];

      reg sign_reg;
      reg zero_reg;
      reg step32_reg;
      reg ample_reg;
      reg [4:0] limit_reg;
      reg [2:0] empty_reg;
      reg [3:0] half_empty_reg;
      reg [BITS-1:0] word_reg;

      always @(posedge clk) begin
        sign_reg       <= sign1_reg;
        zero_reg       <= &empty1_reg && !sign1_reg;
        step32_reg     <= step32;
        ample_reg      <= |limit1_reg[8:6] || (limit1_reg[5] && !step32);
        limit_reg      <= limit1_reg[4:0];
        empty_reg      <= step32 ? empty1_reg[3:1] : empty1_reg[BYTES-1-:3];
        half_empty_reg <= step32 ? half_empty1_reg[3:0] : half_empty1_reg[BYTES-1-:4];
        word_reg       <= step32 ? {word1_reg[BITS-33:0], 32'd0} : word1_reg;
      end

      assign sign2 = sign_reg;
      assign zero2 = zero_reg;
      assign step32_2 = step32_reg;
      assign ample2 = ample_reg;
      assign limit2 = limit_reg;
      assign empty2 = empty_reg;
      assign half_empty2 = half_empty_reg;
      assign word2 = word_reg;
    end else begin : g_no_step32
      assign sign2 = sign1_reg;
      assign zero2 = &empty1_reg && !sign1_reg;
      assign step32_2 = 1'b0;
      assign ample2 = |limit1_reg[8:5];
      assign limit2 = limit1_reg[4:0];
      assign empty2 = empty1_reg[3:1];
      assign half_empty2 = half_empty1_reg;
      assign word2 = word1_reg;
    end
  endgenerate

  // -- 2: decide on shifts by 16 and 8 ------------------------------------------------------------

  wire step16 = LONG16 && empty2[2] && empty2[1] && (ample2 || limit2[4]);
  wire step8_far = empty2[0] && (ample2 || limit2[3]);
  wire step8_near = empty2[2] && (ample2 || |limit2[4:3]);
  wire step8 = LONG8 && (step16 ? step8_far : step8_near);

  reg sign3_reg;
  reg zero3_reg;
  reg ample3_reg;
  reg [5:3] shift3_reg;
  reg [4:0] limit3_reg;
  reg [3:0] half_empty3_reg;
  reg [BITS-1:0] word3_reg;

  always @(posedge clk) begin
    sign3_reg       <= sign2;
    zero3_reg       <= zero2;
    ample3_reg      <= ample2;
    shift3_reg      <= {step32_2, step16, step8};
    limit3_reg      <= limit2;
    half_empty3_reg <= half_empty2;
    word3_reg       <= word2;
  end

  // -- 3: shift by 16 and 8, decide on a shift by 4 -----------------------------------------------

  wire [BITS-1:0] word16 = shift3_reg[4] ? {word3_reg[BITS-17:0], 16'd0} : word3_reg;
  wire ample8 = ample3_reg || limit3_reg[4:3] != shift3_reg[4:3];
  wire empty4 = half_empty3_reg[~shift3_reg[4:3]];

  reg sign4_reg;
  reg zero4_reg;
  reg room2_far4_reg;  // room for a shift by two after one by four
  reg room2_near4_reg;  // or without that
  reg room1_4_reg;  // room for a shift by one in any case
  reg [5:2] shift4_reg;
  reg [2:1] limit4_reg;
  reg [BITS-1:0] word4_reg;

  always @(posedge clk) begin
    sign4_reg       <= sign3_reg;
    zero4_reg       <= zero3_reg;
    room2_far4_reg  <= ample8 || limit3_reg[1];
    room2_near4_reg <= ample8 || |limit3_reg[2:1];
    room1_4_reg     <= ample8 || limit3_reg[0];
    shift4_reg      <= {shift3_reg, LONG4 && empty4 && (ample8 || limit3_reg[2])};
    limit4_reg      <= limit3_reg[2:1];
    word4_reg       <= shift3_reg[3] ? {word16[BITS-9:0], 8'd0} : word16;
  end

  // -- 4: shift by 4 and 2 ------------------------------------------------------------------------

  wire step4 = shift4_reg[2];
  wire step2_far = word4_reg[BITS-5-:2] == {2{sign4_reg}} && room2_far4_reg;
  wire step2_near = word4_reg[BITS-1-:2] == {2{sign4_reg}} && room2_near4_reg;
  wire step2 = step4 ? step2_far : step2_near;
  wire [BITS-1:LOW4] word_far = step4 ? word4_reg[BITS-5:LOW4-4] : word4_reg[BITS-1:LOW4];
  wire [LOW4+3:0] low = {word4_reg[LOW4-1:0], 4'd0};  // bit i + 4 of low is bit i of the word
  wire rest4 = |low[LOW4-1:0] || (!step4 && |low[LOW4+3:LOW4]);

  reg sign5_reg;
  reg zero5_reg;
  reg room5_reg;
  reg rest5_reg;
  reg [5:1] shift5_reg;
  reg [KEEP:0] word5_reg;

  always @(posedge clk) begin
    sign5_reg  <= sign4_reg;
    zero5_reg  <= zero4_reg;
    room5_reg  <= room1_4_reg || limit4_reg != {step4, step2};
    rest5_reg  <= rest4 || (!step2 && |word_far[LOW2-1-:2]);
    shift5_reg <= {shift4_reg, step2};
    word5_reg  <= step2 ? word_far[BITS-3:LOW2-2] : word_far[BITS-1:LOW2];
  end

  // -- 5: shift by 1, and invert ------------------------------------------------------------------

  wire step1 = word5_reg[KEEP] == sign5_reg && room5_reg;
  wire [KEEP-1:0] kept = step1 ? word5_reg[KEEP-1:0] : word5_reg[KEEP:1];

  reg sign6_reg;
  reg zero6_reg;
  reg rest6_reg;
  reg [5:0] shift6_reg;
  reg [KEEP-1:0] normal6_reg;

  always @(posedge clk) begin
    sign6_reg   <= sign5_reg;
    zero6_reg   <= zero5_reg;
    rest6_reg   <= rest5_reg || (!step1 && word5_reg[0]);
    shift6_reg  <= {shift5_reg, step1};
    normal6_reg <= kept ^ {KEEP{sign5_reg}};
  end

  assign inverted = sign6_reg;
  assign zero = zero6_reg;
  assign shift = shift6_reg;
  assign normal = normal6_reg;
  assign rest = rest6_reg;

endmodule

`default_nettype wire
