// IEEE 754 addition, round to nearest, ties to even: y = a + b.
//
// Subnormals are supported. Every NaN result has sign 0 and only the top bit of its fraction set.
// Overflow gives infinity; an exact zero sum is +0 unless both operands are -0. Formats without
// infinities (fp8e4m3) have all ones as their only NaN, and overflow gives that.
//
// Throughput: one addition a cycle. LATENCY = 14 cycles from a, b to y:
//    1  compare the magnitudes
//    2  swap: the larger is "big", the smaller is "little"
//    3  subtract the exponents
//    4  shift little right by 0, 8, 16, 24    5  by 0, 2, 4, 6    6  by 0, 1, invert to subtract
//    7  add
//    8  decide, and   9  shift the sum left by 0, 8, 16, 24
//   10  decide, and  11  shift it left by 0, 2, 4, 6
//   12  shift it left by 0, 1, and decide the rounding
//   13  add exponent, shifts, fraction and rounding in one carry chain
//   14  overflow, infinity and NaN
//
// A register's number is the stage that it ends. Where a flag of the previous stage clears or sets
// a register, the flip-flop's own reset does it without logic. Carry chains have registered
// inputs.
//
// Not done here: reset, enable, valid bit. Whatever belongs to an addition is delayed beside it
// (agg_delay). There are no exception flags.

`default_nettype none

module agg_fp_add #(
    parameter integer EXP        = 8,   // bits in the exponent
    parameter integer FRAC       = 23,  // bits in the fraction
    parameter integer INFINITIES = 1    // 0: no infinities, and one NaN of each sign (fp8e4m3)
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] a,
    input  wire [EXP+FRAC : 0] b,
    output wire [EXP+FRAC : 0] y
);

  // Simulates cards a tenth faster: many small functions instead of one large one.
  /* verilator no_inline_module */

  generate
    if (EXP < 2 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_2_to_8_bits error ();
    end
    if (FRAC < 2 || FRAC > 24) begin : g_frac
      ERROR_fraction_must_have_2_to_24_bits error ();
    end
  endgenerate

  localparam integer WIDTH = 1 + EXP + FRAC;
  localparam integer SIG = FRAC + 1;  // significand with leading bit
  localparam integer ALIGNED = SIG + 2;  // plus guard and round bit below
  localparam integer SUM = ALIGNED + 2;  // plus carry above and sticky bit below
  localparam integer PAD = 32 - SUM;  // sums are the upper bits of 32

  // -- 1: compare ---------------------------------------------------------------------------------

  // Of two equal magnitudes with different signs, the positive one is big, and the sum has its
  // sign: so x - x is +0.
  wire             a_normal = |a[WIDTH-2:FRAC];
  wire             b_normal = |b[WIDTH-2:FRAC];

  reg              ordered1_reg;  // a is big
  reg              both_normal1_reg;
  reg              any_normal1_reg;
  reg  [WIDTH-1:0] a1_reg;
  reg  [WIDTH-1:0] b1_reg;

  always @(posedge clk) begin
    ordered1_reg     <= {a[WIDTH-2:0], b[WIDTH-1]} >= {b[WIDTH-2:0], a[WIDTH-1]};
    both_normal1_reg <= a_normal && b_normal;
    any_normal1_reg  <= a_normal || b_normal;
    a1_reg           <= a;
    b1_reg           <= b;
  end

  // -- 2: swap ------------------------------------------------------------------------------------

  // Big is normal if either operand is, little if both are. A subnormal has exponent 1, that of the
  // smallest normal number, and no leading bit.
  wire [WIDTH-1:0] big1 = ordered1_reg ? a1_reg : b1_reg;
  wire [WIDTH-2:0] little1 = ordered1_reg ? b1_reg[WIDTH-2:0] : a1_reg[WIDTH-2:0];

  reg  [      1:0] flags2_reg;  // big is normal, subtract
  reg  [WIDTH-1:0] big2_reg;  // sign, exponent, fraction
  reg  [WIDTH-1:0] little2_reg;  // leading bit, exponent, fraction

  always @(posedge clk) begin
    flags2_reg  <= {any_normal1_reg, a1_reg[WIDTH-1] ^ b1_reg[WIDTH-1]};
    big2_reg    <= big1 | {{EXP{1'b0}}, !any_normal1_reg, {FRAC{1'b0}}};
    little2_reg <= {both_normal1_reg, little1} | {{EXP{1'b0}}, !both_normal1_reg, {FRAC{1'b0}}};
  end

  // -- 3: distance --------------------------------------------------------------------------------

  wire [EXP-1:0] big_exp2 = big2_reg[WIDTH-2:FRAC];
  wire [EXP-1:0] little_exp2 = little2_reg[WIDTH-2:FRAC];
  wire [EXP-1:0] difference = big_exp2 - little_exp2;
  wire [7:0] distance = {{8 - EXP{1'b0}}, difference};
  wire distant = |distance[7:5];
  // The result is an infinity or NaN if big is.
  wire special2 = &big_exp2 && (INFINITIES != 0 || &big2_reg[FRAC-1:0]);

  reg [2:0] flags3_reg;  // big is normal, special, subtract
  reg [WIDTH-1:0] big3_reg;
  reg [ALIGNED-1:0] little3_reg;
  reg [4:0] shift3_reg;  // from 28 on, only little's sticky bit is left

  always @(posedge clk) begin
    flags3_reg  <= {flags2_reg[1], special2, flags2_reg[0]};
    big3_reg    <= big2_reg;
    little3_reg <= {little2_reg[WIDTH-1], little2_reg[FRAC-1:0], 2'b00};
    shift3_reg  <= {distance[4:2] | {3{distant}}, distance[1:0]};
  end

  // -- 4, 5, 6: align -----------------------------------------------------------------------------

  // Bits shifted out go into the sticky bit. Two infinities of opposite signs have distance 0.
  wire [31:0] ones = 32'hffffffff;
  wire [4:0] shift3 = {shift3_reg[4:3], 3'd0};
  wire [31:0] lost3 = {{32 - ALIGNED{1'b0}}, little3_reg} & ~(ones << shift3);

  reg [3:0] flags4_reg;  // distance 0 and subtract, big is normal, special, subtract
  reg [WIDTH-1:0] big4_reg;
  reg [ALIGNED-1:0] little4_reg;
  reg [1:0] sticky4_reg;  // OR of both
  reg [2:0] shift4_reg;

  always @(posedge clk) begin
    flags4_reg  <= {shift3_reg == 5'd0 && flags3_reg[0], flags3_reg};
    big4_reg    <= big3_reg;
    little4_reg <= little3_reg >> shift3;
    sticky4_reg <= {|lost3[31:16], |lost3[15:0]};
    shift4_reg  <= shift3_reg[2:0];
  end

  wire [2:0] shift4 = {shift4_reg[2:1], 1'b0};
  wire [31:0] lost4 = {{32 - ALIGNED{1'b0}}, little4_reg} & ~(ones << shift4);

  reg [3:0] flags5_reg;
  reg [WIDTH-1:0] big5_reg;
  reg [ALIGNED-1:0] little5_reg;
  reg sticky5_reg;
  reg shift5_reg;

  always @(posedge clk) begin
    flags5_reg  <= flags4_reg;
    big5_reg    <= big4_reg;
    little5_reg <= little4_reg >> shift4;
    sticky5_reg <= |sticky4_reg || |lost4;
    shift5_reg  <= shift4_reg[0];
  end

  wire subtract5 = flags5_reg[0];
  wire sticky5 = sticky5_reg || (shift5_reg && little5_reg[0]);
  wire [ALIGNED:0] aligned5 = {1'b0, little5_reg >> shift5_reg};

  reg [1:0] flags6_reg;  // big is normal, special
  reg [WIDTH-1:0] big6_reg;
  reg [SUM-1:0] little6_reg;  // carry in at the bottom
  reg sticky6_reg;

  // Adds all ones below the leading bit to an infinity or NaN, which carries if the fraction is
  // nonzero: a NaN. For infinities of opposite signs, a carry in makes it carry.
  always @(posedge clk) begin
    flags6_reg  <= flags5_reg[2:1];
    big6_reg    <= big5_reg;
    sticky6_reg <= sticky5;
    if (flags5_reg[1]) little6_reg <= {2'b00, {ALIGNED - 1{1'b1}}, flags5_reg[3]};
    else little6_reg <= {aligned5 ^ {ALIGNED + 1{subtract5}}, subtract5 && !sticky5};
  end

  // -- 7: add -------------------------------------------------------------------------------------

  wire [SUM-1:0] total = {1'b0, flags6_reg[1], big6_reg[FRAC-1:0], 3'b001} + little6_reg;
  wire [7:0] room6 = {{8 - EXP{1'b0}}, big6_reg[WIDTH-2:FRAC]};

  reg [EXP+1:0] pass7_reg;  // special, sign, exponent
  reg [31:0] sum7_reg;
  reg [2:0] may7_reg;  // room for a step of 8, for one of 16, and for one of 8 after that

  always @(posedge clk) begin
    pass7_reg <= {flags6_reg[0], big6_reg[WIDTH-1:FRAC]};
    may7_reg  <= {|room6[7:3], |room6[7:4], |room6[7:5] || room6[3]};
    sum7_reg  <= {total[SUM-1:1], sticky6_reg, {PAD{1'b0}}};
  end

  // -- 8, 9, 10, 11: normalize --------------------------------------------------------------------

  // The leading one moves to the carry's place, in steps of 16, 8, 4, 2 and 1. A step is taken if
  // it shifts out only zeros and there is room: the sum of all steps is at most the exponent, and a
  // sum that needs more is a subnormal. A step taken uses up its bit of the exponent. Any other
  // exponent bit, from the step's own upwards, is room for the step. A bit not used by its own step
  // is room for all smaller steps together.
  wire zeros8 = sum7_reg[31:24] == 8'd0;
  wire then16 = sum7_reg[23:16] == 8'd0 && may7_reg[1];
  wire then24 = sum7_reg[15:8] == 8'd0 && may7_reg[0];
  wire step16 = zeros8 && then16;
  wire step8 = zeros8 && (then16 ? then24 : may7_reg[2]);

  reg [EXP+1:0] pass8_reg;
  reg [31:0] sum8_reg;
  reg [4:0] steps8_reg;

  always @(posedge clk) begin
    pass8_reg  <= pass7_reg;
    sum8_reg   <= sum7_reg;
    steps8_reg <= {step16, step8, 3'd0};
  end

  wire [7:0] room8 = {{8 - EXP{1'b0}}, pass8_reg[EXP-1:0]} & ~{3'd0, steps8_reg};

  reg [EXP+1:0] pass9_reg;
  reg [31:0] sum9_reg;
  reg [4:0] steps9_reg;
  reg more9_reg;  // room for 4, 2 and 1 together

  always @(posedge clk) begin
    pass9_reg  <= pass8_reg;
    sum9_reg   <= sum8_reg << {steps8_reg[4:3], 3'd0};
    steps9_reg <= steps8_reg;
    more9_reg  <= |room8[7:3];
  end

  wire [7:0] room9 = {{8 - EXP{1'b0}}, pass9_reg[EXP-1:0]};
  wire zeros4 = sum9_reg[31:28] == 4'd0;
  wire step4 = zeros4 && (more9_reg || room9[2]);
  wire more4 = more9_reg || (room9[2] && !zeros4);
  wire zeros2 = (step4 ? sum9_reg[27:26] : sum9_reg[31:30]) == 2'd0;
  wire step2 = zeros2 && (more4 || room9[1]);

  reg [EXP+1:0] pass10_reg;
  reg [31:0] sum10_reg;
  reg [4:0] steps10_reg;
  reg more10_reg;  // room for 1

  always @(posedge clk) begin
    pass10_reg  <= pass9_reg;
    sum10_reg   <= sum9_reg;
    steps10_reg <= {steps9_reg[4:3], step4, step2, 1'b0};
    more10_reg  <= more4 || room9[0] || (room9[1] && !zeros2);
  end

  wire [31:0] sum10 = sum10_reg << {steps10_reg[2:1], 1'd0};
  wire last10 = !sum10[31] && more10_reg;

  reg [EXP+1:0] pass11_reg;
  reg [31:0] sum11_reg;
  reg [4:0] steps11_reg;

  always @(posedge clk) begin
    pass11_reg  <= pass10_reg;
    sum11_reg   <= sum10;
    steps11_reg <= {steps10_reg[4:1], last10};
  end

  // -- 12: last step, rounding --------------------------------------------------------------------

  // The fraction, with or without the last shift, is a sum of two numbers, one of them 0: this
  // turns resets and an existing carry chain into a multiplexer. The exponent is that of the
  // carry's place less the steps: the exponent plus minus = 1 - steps. For an infinity or NaN, the
  // leading one is in the first or second place, and in the first only for a NaN.
  wire step1 = steps11_reg[0];
  wire [31:0] sum11 = sum11_reg << step1;
  wire [3:0] pairs = ~steps11_reg[4:1] + 4'd1;
  wire [7:0] minus = {{3{|steps11_reg[4:1]}}, pairs, !step1};
  wire half = sum11[PAD+3];
  wire up = half && |{sum11[PAD+4], sum11[PAD+2:PAD]};

  reg [3:0] pass12_reg;  // subnormal or zero, NaN, special, sign
  reg [WIDTH-1:0] first12_reg;
  reg [WIDTH-1:0] second12_reg;

  always @(posedge clk) begin
    pass12_reg   <= {!sum11[31], pass11_reg[EXP+1] && !step1, pass11_reg[EXP+1:EXP]};
    first12_reg  <= {pass11_reg[EXP-1:0], step1 ? {FRAC{1'b0}} : sum11_reg[30-:FRAC], 1'b1};
    second12_reg <= {minus[EXP-1:0], step1 ? sum11_reg[29-:FRAC] : {FRAC{1'b0}}, up};
  end

  // -- 13: round ----------------------------------------------------------------------------------

  // A fraction of all ones that rounds up carries into the exponent, as required. A subnormal sum
  // is exact, and its exponent field is 0. Without infinities, the exponent may need one more bit.
  localparam integer MORE = INFINITIES != 0 ? 0 : 1;
  wire [WIDTH-1+MORE:0] rounded = {{MORE{1'b0}}, first12_reg} +
      {{MORE{second12_reg[WIDTH-1]}}, second12_reg};

  reg [2:0] pass13_reg;  // NaN, special, sign
  reg [WIDTH-2+MORE:0] magnitude13_reg;

  always @(posedge clk) begin
    pass13_reg      <= pass12_reg[2:0];
    magnitude13_reg <= rounded[WIDTH-1+MORE:1];
    if (pass12_reg[3]) magnitude13_reg[WIDTH-2+MORE:FRAC] <= {EXP + MORE{1'b0}};
  end

  // -- 14: overflow, infinity and NaN -------------------------------------------------------------

  localparam [WIDTH-2:0] BEYOND = {{EXP{1'b1}}, {FRAC{INFINITIES == 0}}};
  localparam [WIDTH-2:0] QUIET = {{EXP{1'b0}}, INFINITIES != 0, {FRAC - 1{1'b0}}};

  wire beyond = pass13_reg[1] || (INFINITIES != 0 ? &magnitude13_reg[WIDTH-2:FRAC] :
      magnitude13_reg[WIDTH-2+MORE] || &magnitude13_reg[WIDTH-2:0]);
  wire nan = INFINITIES != 0 ? pass13_reg[2] : beyond;

  reg [WIDTH-1:0] y_reg;

  always @(posedge clk) begin
    if (beyond) y_reg <= {pass13_reg[0] && !nan, BEYOND | (QUIET & {WIDTH - 1{nan}})};
    else y_reg <= {pass13_reg[0], magnitude13_reg[WIDTH-2:0]};
  end

  assign y = y_reg;

  // Bits for carries in, and unused bits of these words.
  wire unused = &{
    1'b0, total[0], rounded[0], room6[2:0], room8, room9, steps9_reg, steps10_reg, minus
  };

endmodule

`default_nettype wire
