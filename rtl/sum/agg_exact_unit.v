// The exact sum of finite numbers, one by one, rounded once: to nearest, ties to even, with
// subnormals. A zero sum is +0 unless all numbers are -0. over: y overflowed.
//
// The accumulator has digits: digit k has weight 2^(32k) relative to digit 0, and bit 31 of digit 0
// is the leading bit of the smallest normal number. A number is added to two adjacent digits, one
// after the other. Above its 32 bits, a digit has room for the carries of 64 numbers, so carries do
// not propagate meanwhile. Then two passes, from the lowest digit up, propagate the carries: the
// first finds the sign, the second gives the magnitude word by word. The highest nonzero word, the
// next one, and a sticky bit for the rest are normalized and rounded while a third pass clears the
// digits.
//
// A number comes every third cycle at most, the last with in_last; the next sum starts at least GAP
// = 33 cycles later. LATENCY = 33 cycles from the last number to done. A sum of n numbers takes 3n
// + 30 cycles, and sums follow one another every 3n + 30. y and over are valid from done to the
// next done. After a reset, too, the first number comes at least GAP cycles later.
//
// Not done here: infinities and NaNs, which must not occur; exponents of other than 8 bits: lanes
// cover smaller ranges without a unit.

`default_nettype none

module agg_exact_unit #(
    parameter integer FRAC = 23  // bits in the fraction
) (
    input wire clk,
    input wire rst,

    input wire            in_valid,
    input wire            in_last,
    input wire [FRAC+8:0] in_x,

    output wire            done,
    output wire [FRAC+8:0] y,
    output wire            over
);

  generate
    if (FRAC < 2 || FRAC > 23) begin : g_frac
      ERROR_fraction_must_have_2_to_23_bits error ();
    end
  endgenerate

  localparam integer DIGIT = 40;  // bits in a digit, two's complement
  localparam [3:0] TOP = 4'd8;  // number of the highest digit

  // -- Position of a number -----------------------------------------------------------------------

  // The leading bit is at place field + 30, or 31 if subnormal: bit 31 of digit 0. The significand
  // starts at the top of a digit and is shifted right, into the digit below.
  wire [7:0] in_field = in_x[FRAC+:8];
  wire in_normal = |in_field;

  reg a_valid_reg, a_last_reg, a_sign_reg;
  reg [8:0] a_place_reg;
  reg [FRAC:0] a_significand_reg;
  reg b_valid_reg, b_last_reg, b_sign_reg;
  reg [3:0] b_digit_reg;
  reg [2:0] b_place_reg;
  reg [FRAC+24:0] b_word_reg;
  reg upper_reg, lower_reg;  // the digit being read and the part being formed
  reg c_last_reg, c_sign_reg, c_place_reg;
  reg [FRAC+30:0] c_word_reg;

  wire [FRAC+24:0] a_word = {a_significand_reg, 24'd0};
  wire [FRAC+24:0] a_shift16 = a_place_reg[4] ? a_word : a_word >> 16;
  wire [FRAC+30:0] b_word = {b_word_reg, 6'd0};
  wire [FRAC+30:0] b_shift4 = b_place_reg[2] ? b_word : b_word >> 4;
  wire [63:0] c_word = {c_word_reg, {33 - FRAC{1'b0}}};
  wire [63:0] c_shift1 = c_place_reg ? c_word : c_word >> 1;

  always @(posedge clk) begin
    a_valid_reg       <= in_valid;
    a_last_reg        <= in_last;
    a_sign_reg        <= in_x[FRAC+8];
    a_place_reg       <= {1'b0, in_field[7:1], in_field[0] || !in_normal} + 9'd30;
    a_significand_reg <= {in_normal, in_x[FRAC-1:0]};
    b_valid_reg       <= a_valid_reg;
    b_last_reg        <= a_last_reg;
    b_sign_reg        <= a_sign_reg;
    b_digit_reg       <= a_place_reg[8:5];
    b_place_reg       <= a_place_reg[2:0];
    b_word_reg        <= a_place_reg[3] ? a_shift16 : a_shift16 >> 8;
    upper_reg         <= b_valid_reg;
    lower_reg         <= upper_reg;
    if (b_valid_reg) begin
      c_last_reg  <= b_last_reg;
      c_sign_reg  <= b_sign_reg;
      c_place_reg <= b_place_reg[0];
      c_word_reg  <= b_place_reg[1] ? b_shift4 : b_shift4 >> 2;
    end
    if (rst) begin
      a_valid_reg <= 1'b0;
      b_valid_reg <= 1'b0;
      upper_reg   <= 1'b0;
      lower_reg   <= 1'b0;
    end
  end

  // -- Digits -------------------------------------------------------------------------------------

  // A digit is read in one cycle, and added to and written in the next. A number has no
  // lower part in digit 0; it goes into digit 15, which no pass visits.
  //
  // A digit is stored less 128. The addend of a pass compensates: the carry, -64 to 64, plus
  // 128, or minus 128 if negated. So the addend's sign depends on the pass, not on the
  // carry.
  reg [DIGIT-1:0] digits[0:15];

  reg [3:0] at_reg;  // digit being read
  reg find_reg, give_reg, clear_reg;  // passes: find the sign, give the magnitude's words, clear
  reg [3:0] to_reg;  // digit being added to
  reg finds_reg, gives_reg, clears_reg;
  reg adds_reg, last_reg;  // a part is added; it is the sum's last part
  reg [DIGIT-1:0] addend_reg;  // a part, inverted if negative; or the carry from below
  reg one_reg;  // completes the negation of a part or digit
  reg [DIGIT-1:0] held_reg;  // the digit; inverted if the sum is negated
  reg [DIGIT-1:0] sum_reg;  // in a pass: a word, and the carry above it
  reg negative_reg;  // the sum is negative, and is negated
  reg all_negative_reg;  // all numbers are negative or -0

  wire [31:0] part = lower_reg ? c_shift1[31:0] : c_shift1[63:32];
  wire [DIGIT-1:0] digit = digits[at_reg];
  wire [DIGIT-1:0] sum = held_reg + addend_reg + {{DIGIT - 1{1'b0}}, one_reg};

  wire at_top = at_reg == TOP;
  reg to_top_reg;

  always @(posedge clk) begin
    if (b_valid_reg) at_reg <= b_digit_reg;
    else if (upper_reg) at_reg <= at_reg - 4'd1;
    else if (find_reg || give_reg || clear_reg) at_reg <= at_reg + 4'd1;
    else at_reg <= 4'd0;

    // A pass starts two cycles after its predecessor reads its last digit: the sign is known then.
    if (last_reg) find_reg <= 1'b1;
    if (find_reg && at_top) find_reg <= 1'b0;
    if (finds_reg && to_top_reg) give_reg <= 1'b1;
    if (give_reg && at_top) give_reg <= 1'b0;
    if (gives_reg && to_top_reg) clear_reg <= 1'b1;
    if (clear_reg && at_top) clear_reg <= 1'b0;

    finds_reg             <= find_reg;
    gives_reg             <= give_reg;
    clears_reg            <= clear_reg;
    to_reg                <= at_reg;
    to_top_reg            <= at_top;
    adds_reg              <= upper_reg || lower_reg;
    last_reg              <= lower_reg && c_last_reg;
    held_reg              <= clear_reg ? {DIGIT{1'b0}} : digit ^ {DIGIT{negative_reg}};
    sum_reg               <= sum;

    one_reg               <= upper_reg || lower_reg ? c_sign_reg : negative_reg && give_reg;
    addend_reg[DIGIT-1:8] <= {DIGIT - 8{negative_reg || clear_reg}};
    addend_reg[7:0]       <= 8'h80;
    if ((finds_reg || gives_reg) && !to_top_reg) addend_reg[7:0] <= sum[DIGIT-1:32] ^ 8'h80;
    if (upper_reg || lower_reg) addend_reg <= {8'd0, part} ^ {DIGIT{c_sign_reg}};
    if (adds_reg || clears_reg) digits[to_reg] <= sum;

    if (adds_reg) all_negative_reg <= all_negative_reg && one_reg;
    if (finds_reg && to_top_reg) negative_reg <= sum[DIGIT-1];
    if (gives_reg && to_top_reg) begin
      negative_reg     <= 1'b0;
      all_negative_reg <= 1'b1;
    end

    if (rst) begin
      find_reg         <= 1'b0;
      give_reg         <= 1'b0;
      clear_reg        <= 1'b1;
      at_reg           <= 4'd0;
      finds_reg        <= 1'b0;
      gives_reg        <= 1'b0;
      clears_reg       <= 1'b0;
      adds_reg         <= 1'b0;
      last_reg         <= 1'b0;
      negative_reg     <= 1'b0;
      all_negative_reg <= 1'b1;
    end
  end

  // -- Words of the magnitude ---------------------------------------------------------------------

  reg word_valid_reg, word_top_reg;  // sum_reg holds a word
  reg [3:0] word_at_reg;
  reg seen_valid_reg, seen_top_reg, seen_zero_reg;  // the same word, one cycle later
  reg [3:0] seen_at_reg;
  reg [31:0] seen_reg;
  reg [31:0] before_reg;  // next lower word
  reg before_zero_reg;
  reg below_left_reg;  // sticky bit for everything below that
  reg found_reg;
  reg [31:0] high_reg;  // highest nonzero word, or the lowest word
  reg [31:0] low_reg;
  reg left_reg;
  reg [3:0] high_at_reg;
  reg too_large_reg;  // 2^128 or more
  reg minus_reg;  // sign of the result

  always @(posedge clk) begin
    if (give_reg) minus_reg <= negative_reg || all_negative_reg;
    word_valid_reg  <= gives_reg;
    word_top_reg    <= to_top_reg;
    word_at_reg     <= to_reg;
    seen_valid_reg  <= word_valid_reg;
    seen_top_reg    <= word_valid_reg && word_top_reg;
    seen_zero_reg   <= ~|sum_reg[31:0];
    seen_at_reg     <= word_at_reg;
    seen_reg        <= sum_reg[31:0];
    before_reg      <= seen_valid_reg ? seen_reg : 32'd0;
    before_zero_reg <= !seen_valid_reg || seen_zero_reg;
    below_left_reg  <= seen_valid_reg && (below_left_reg || !before_zero_reg);
    found_reg       <= seen_top_reg;
    if (word_valid_reg) too_large_reg <= |sum_reg[DIGIT-1:29];  // bits of the top word that count
    if (seen_valid_reg && (!seen_zero_reg || seen_at_reg == 4'd0)) begin
      high_reg    <= seen_reg;
      low_reg     <= before_reg;
      left_reg    <= below_left_reg;
      high_at_reg <= seen_at_reg;
    end
    if (rst) begin
      word_valid_reg <= 1'b0;
      seen_valid_reg <= 1'b0;
      seen_top_reg   <= 1'b0;
      found_reg      <= 1'b0;
    end
  end

  // -- Normalize ----------------------------------------------------------------------------------

  // Shifts leading zeros out of the highest word, except for digit 0: without bit 31, that number
  // is subnormal. Bits that no later step can shift up become sticky.
  localparam integer KEEP = FRAC + 2;  // significand and one more bit

  reg norm16_valid_reg, norm8_valid_reg, norm4_valid_reg, norm1_valid_reg;
  reg left16_reg, left8_reg, left4_reg, left1_reg;
  reg [KEEP+14:0] norm16_reg;
  reg [KEEP+6:0] norm8_reg;
  reg [KEEP+2:0] norm4_reg;
  reg [KEEP-1:0] norm1_reg;
  reg scaled_reg;
  reg [7:0] exp_reg;  // 32 per digit, less 1 and the shifts; 0 if not scaled

  wire [63:0] words = {high_reg, low_reg};
  wire scaled = high_at_reg != 4'd0;
  wire step16 = scaled && ~|high_reg[31:16];
  wire step8 = scaled_reg && ~|norm16_reg[KEEP+14-:8];
  wire step4 = scaled_reg && ~|norm8_reg[KEEP+6-:4];
  wire step2 = scaled_reg && ~|norm4_reg[KEEP+2-:2];
  wire [KEEP:0] norm2 = step2 ? norm4_reg[KEEP:0] : norm4_reg[KEEP+2:2];
  wire step1 = scaled_reg && !norm2[KEEP];

  always @(posedge clk) begin
    norm16_valid_reg <= found_reg;
    norm8_valid_reg  <= norm16_valid_reg;
    norm4_valid_reg  <= norm8_valid_reg;
    norm1_valid_reg  <= norm4_valid_reg;
    if (rst) begin
      norm16_valid_reg <= 1'b0;
      norm8_valid_reg  <= 1'b0;
      norm4_valid_reg  <= 1'b0;
      norm1_valid_reg  <= 1'b0;
    end

    if (found_reg) begin
      scaled_reg <= scaled;
      exp_reg    <= {scaled ? high_at_reg[2:0] - 3'd1 : 3'd0, scaled && !step16, {4{scaled}}};
    end
    if (norm16_valid_reg && step8) exp_reg[3] <= 1'b0;
    if (norm8_valid_reg && step4) exp_reg[2] <= 1'b0;
    if (norm4_valid_reg && step2) exp_reg[1] <= 1'b0;
    if (norm4_valid_reg && step1) exp_reg[0] <= 1'b0;

    norm16_reg <= step16 ? words[47-:KEEP+15] : words[63-:KEEP+15];
    left16_reg <= left_reg || |words[32-KEEP:0] || (!step16 && |words[48-KEEP:33-KEEP]);
    norm8_reg  <= step8 ? norm16_reg[KEEP+6:0] : norm16_reg[KEEP+14:8];
    left8_reg  <= left16_reg || (!step8 && |norm16_reg[7:0]);
    norm4_reg  <= step4 ? norm8_reg[KEEP+2:0] : norm8_reg[KEEP+6:4];
    left4_reg  <= left8_reg || (!step4 && |norm8_reg[3:0]);
    norm1_reg  <= step1 ? norm2[KEEP-1:0] : norm2[KEEP:1];
    left1_reg  <= left4_reg || (!step2 && |norm4_reg[1:0]) || (!step1 && norm2[0]);
  end

  // -- Round --------------------------------------------------------------------------------------

  // The exponent field is exp_reg plus 2, or the leading bit if not scaled. A significand that
  // rounds up to 2 carries into the exponent, up to infinity's.
  wire leading = norm1_reg[KEEP-1];
  wire up = norm1_reg[0] && (left1_reg || norm1_reg[1]);
  wire [FRAC+7:0] rounded = {exp_reg, norm1_reg[KEEP-2:1]} +
      {6'd0, scaled_reg, leading && !scaled_reg, {FRAC{1'b0}}} + {{FRAC + 7{1'b0}}, up};

  reg done_reg;
  reg [FRAC+8:0] y_reg;

  always @(posedge clk) begin
    done_reg <= norm1_valid_reg && !rst;
    if (norm1_valid_reg) y_reg <= {minus_reg, too_large_reg ? {8'hff, {FRAC{1'b0}}} : rounded};
  end

  assign done = done_reg;
  assign y    = y_reg;
  assign over = &y_reg[FRAC+:8];

endmodule

`default_nettype wire
