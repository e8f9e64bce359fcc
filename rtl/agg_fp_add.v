// IEEE 754 addition, round to nearest, ties to even: y = a + b.
//
// Subnormals are kept, and every NaN result is the one with sign 0 that has the fraction's top bit
// alone. Overflow gives infinity; an exact zero sum is +0 unless both operands are -0. Without
// infinities (fp8e4m3) only all ones is a NaN, and it is what overflow gives.
//
// One addition a cycle, LATENCY = 14 cycles from a, b to y:
//    1  compare the magnitudes
//    2  swap: the larger is "big", the smaller "little"
//    3  subtract the exponents
//    4  shift little right by 0, 8, 16, 24   5  by 0, 2, 4, 6   6  by 0, 1, and invert it to subtract
//    7  add
//    8  see how far the sum can be shifted left
//    9  shift it by 0, 8, 16, 24   10  by 0, 4   11  by 0, 2   12  by 0, 1, and decide the rounding
//   13  add exponent, shifts and rounding in one carry chain
//   14  overflow, infinity and NaN
//
// What a stage must clear or set it clears and sets at its registers, from a flag of the stage
// before: such resets cost no logic, and a carry chain's operands are registers.
//
// Not done here: no reset, no enable and no valid bit; what belongs to an addition travels beside it
// in agg_delay. No exception flags.

`default_nettype none

module agg_fp_add #(
    parameter integer EXP      = 8,   // bits of the exponent
    parameter integer FRAC     = 23,  // bits of the fraction
    parameter integer INFINITY = 1    // 0: no infinities, and one NaN of each sign (fp8e4m3)
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] a,
    input  wire [EXP+FRAC : 0] b,
    output wire [EXP+FRAC : 0] y
);

  // A third more cycles a second when cards are simulated: many small functions instead of one.
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
  localparam integer SIG = FRAC + 1;  // significand with its leading bit
  localparam integer ALIGNED = SIG + 2;  // with guard and round bit below
  localparam integer SUM = ALIGNED + 1;  // with the carry above

  // How many bits a shift by 16 and by 8 pushes out.
  localparam integer LOW16 = ALIGNED < 16 ? ALIGNED : 16;
  localparam integer LOW8 = ALIGNED < 8 ? ALIGNED : 8;

  // -- 1: compare ---------------------------------------------------------------------------------

  wire             a_normal = |a[WIDTH-2:FRAC];
  wire             b_normal = |b[WIDTH-2:FRAC];

  reg              swap1_reg;
  reg              both_normal1_reg;
  reg              any_normal1_reg;
  reg  [WIDTH-1:0] a1_reg;
  reg  [WIDTH-1:0] b1_reg;

  always @(posedge clk) begin
    swap1_reg        <= a[WIDTH-2:0] < b[WIDTH-2:0];
    both_normal1_reg <= a_normal && b_normal;
    any_normal1_reg  <= a_normal || b_normal;
    a1_reg           <= a;
    b1_reg           <= b;
  end

  // -- 2: swap ------------------------------------------------------------------------------------

  // A subnormal has the exponent of the smallest normal number, and no leading bit. Little is
  // normal when both are, big when any is.
  wire [WIDTH-1:0] big = swap1_reg ? b1_reg : a1_reg;
  wire [WIDTH-1:0] little = swap1_reg ? a1_reg : b1_reg;

  reg              sign2_reg;
  reg              subtract2_reg;
  reg  [  EXP-1:0] exp2_reg;
  reg  [  SIG-1:0] big2_reg;
  reg  [  EXP-1:0] little_exp2_reg;
  reg  [  SIG-1:0] little2_reg;

  always @(posedge clk) begin
    sign2_reg       <= big[WIDTH-1];
    subtract2_reg   <= a1_reg[WIDTH-1] ^ b1_reg[WIDTH-1];
    exp2_reg        <= {big[WIDTH-2:FRAC+1], big[FRAC] | !any_normal1_reg};
    big2_reg        <= {any_normal1_reg, big[FRAC-1:0]};
    little_exp2_reg <= {little[WIDTH-2:FRAC+1], little[FRAC] | !both_normal1_reg};
    little2_reg     <= {both_normal1_reg, little[FRAC-1:0]};
  end

  // -- 3: distance --------------------------------------------------------------------------------

  // A shift by 28 leaves nothing of little but its sticky bit.
  wire [EXP-1:0] difference = exp2_reg - little_exp2_reg;
  wire [    7:0] distance = {{8 - EXP{1'b0}}, difference};
  wire           far = |distance[7:5];

  reg            sign3_reg;
  reg            subtract3_reg;
  reg            special3_reg;  // the result is an infinity or NaN
  reg            invalid3_reg;  // infinities of both signs, when special
  reg  [EXP-1:0] exp3_reg;
  reg  [SIG-1:0] big3_reg;
  reg  [SIG-1:0] little3_reg;
  reg  [    4:0] shift3_reg;

  always @(posedge clk) begin
    sign3_reg     <= sign2_reg;
    subtract3_reg <= subtract2_reg;
    special3_reg  <= &exp2_reg && (INFINITY != 0 || &big2_reg[FRAC-1:0]);
    invalid3_reg  <= &little_exp2_reg && subtract2_reg;
    exp3_reg      <= exp2_reg;
    big3_reg      <= big2_reg;
    little3_reg   <= little2_reg;
    shift3_reg    <= {distance[4:2] | {3{far}}, distance[1:0]};
  end

  // -- 4, 5, 6: align -----------------------------------------------------------------------------

  // Bits that fall out below stick.
  wire [ALIGNED-1:0] right0 = {little3_reg, 2'b00};
  wire [ALIGNED-1:0] right16 = shift3_reg[4] ? right0 >> 16 : right0;
  wire [ALIGNED-1:0] right8 = shift3_reg[3] ? right16 >> 8 : right16;
  wire sticky8 = (shift3_reg[4] && |right0[LOW16-1:0]) || (shift3_reg[3] && |right16[LOW8-1:0]);

  reg sign4_reg;
  reg subtract4_reg;
  reg special4_reg;
  reg invalid4_reg;
  reg [EXP-1:0] exp4_reg;
  reg [SIG-1:0] big4_reg;
  reg [ALIGNED-1:0] little4_reg;
  reg sticky4_reg;
  reg [2:0] shift4_reg;

  always @(posedge clk) begin
    sign4_reg     <= sign3_reg;
    subtract4_reg <= subtract3_reg;
    special4_reg  <= special3_reg;
    invalid4_reg  <= invalid3_reg;
    exp4_reg      <= exp3_reg;
    big4_reg      <= big3_reg;
    little4_reg   <= right8;
    sticky4_reg   <= sticky8;
    shift4_reg    <= shift3_reg[2:0];
  end

  wire [ALIGNED-1:0] right4 = shift4_reg[2] ? little4_reg >> 4 : little4_reg;
  wire [ALIGNED-1:0] right2 = shift4_reg[1] ? right4 >> 2 : right4;
  wire               sticky2 = sticky4_reg || (shift4_reg[2] && |little4_reg[3:0]) ||
      (shift4_reg[1] && |right4[1:0]);

  reg sign5_reg;
  reg subtract5_reg;
  reg special5_reg;
  reg invalid5_reg;
  reg [EXP-1:0] exp5_reg;
  reg [SIG-1:0] big5_reg;
  reg [ALIGNED-1:0] little5_reg;
  reg sticky5_reg;
  reg shift5_reg;

  always @(posedge clk) begin
    sign5_reg     <= sign4_reg;
    subtract5_reg <= subtract4_reg;
    special5_reg  <= special4_reg;
    invalid5_reg  <= invalid4_reg;
    exp5_reg      <= exp4_reg;
    big5_reg      <= big4_reg;
    little5_reg   <= right2;
    sticky5_reg   <= sticky2;
    shift5_reg    <= shift4_reg[0];
  end

  wire [ALIGNED-1:0] right1 = shift5_reg ? little5_reg >> 1 : little5_reg;
  wire               sticky1 = sticky5_reg || (shift5_reg && little5_reg[0]);

  reg                sign6_reg;
  reg                subtract6_reg;
  reg                special6_reg;
  reg  [    EXP-1:0] exp6_reg;
  reg  [    SIG-1:0] big6_reg;
  reg  [    SUM-1:0] little6_reg;
  reg                sticky6_reg;
  reg                carry6_reg;

  // To an infinity or NaN all ones below its leading bit are added: the carry then says that its
  // fraction is not 0, a NaN's. The carry in does so for infinities of both signs.
  always @(posedge clk) begin
    sign6_reg     <= sign5_reg;
    subtract6_reg <= subtract5_reg;
    special6_reg  <= special5_reg;
    exp6_reg      <= exp5_reg;
    big6_reg      <= big5_reg;
    sticky6_reg   <= sticky1;
    if (special5_reg) begin
      little6_reg <= {2'b00, {SUM - 2{1'b1}}};
      carry6_reg  <= invalid5_reg;
    end else begin
      little6_reg <= {1'b0, right1} ^ {SUM{subtract5_reg}};
      carry6_reg  <= subtract5_reg && !sticky1;
    end
  end

  // -- 7: add -------------------------------------------------------------------------------------

  // The carry comes in through a bit of its own at the bottom.
  wire [  SUM:0] total = {1'b0, big6_reg, 3'b001} + {little6_reg, carry6_reg};

  reg            sign7_reg;
  reg            subtract7_reg;
  reg            special7_reg;
  reg  [EXP-1:0] exp7_reg;
  reg  [SUM-1:0] sum7_reg;
  reg            sticky7_reg;

  always @(posedge clk) begin
    sign7_reg     <= sign6_reg;
    subtract7_reg <= subtract6_reg;
    special7_reg  <= special6_reg;
    exp7_reg      <= exp6_reg;
    sum7_reg      <= total[SUM:1];
    sticky7_reg   <= sticky6_reg;
  end

  // -- 8: see how far the sum can be shifted left ---------------------------------------------------

  // The carry's place becomes the leading bit's. Each step is taken when it shifts out zeros alone and
  // the exponent allows it: their sum must not be more than the exponent, which is then a subnormal's.
  // There is room when the exponent is larger than all steps that may still come.
  wire [31:0] left0 = {sum7_reg, {32 - SUM{1'b0}}};
  wire [ 7:0] room0 = {{8 - EXP{1'b0}}, exp7_reg};
  wire [ 7:0] zero;  // nibbles, the uppermost first

  genvar i;
  generate
    for (i = 0; i < 8; i = i + 1) begin : g_zero
      assign zero[i] = left0[31-4*i-:4] == 4'd0;
    end
  endgenerate

  wire step16 = &zero[3:0] && |room0[7:4];
  wire step8 = step16 ? &zero[5:4] && (|room0[7:5] || room0[3]) : &zero[1:0] && |room0[7:3];

  reg sign8_reg;
  reg special8_reg;
  reg nan8_reg;
  reg [EXP-1:0] exp8_reg;
  reg [SUM-1:0] sum8_reg;
  reg sticky8_reg;
  reg step16_8_reg;
  reg step8_8_reg;
  reg [3:0] zero8_reg;

  always @(posedge clk) begin
    sign8_reg <= sign7_reg && !(subtract7_reg && &zero);
    special8_reg <= special7_reg;
    nan8_reg <= special7_reg && sum7_reg[SUM-1];
    exp8_reg <= exp7_reg;
    sum8_reg <= sum7_reg;
    sticky8_reg <= sticky7_reg;
    step16_8_reg <= step16;
    step8_8_reg <= step8;
    zero8_reg <= {zero[6], zero[4], zero[2], zero[0]};
  end

  // -- 9 -------------------------------------------------------------------------------------------

  wire [SUM-1:0] left16 = step16_8_reg ? sum8_reg << 16 : sum8_reg;
  wire [SUM-1:0] left8 = step8_8_reg ? left16 << 8 : left16;
  wire [7:0] room8 = {{8 - EXP{1'b0}}, exp8_reg};
  wire more8 = |room8[7:5] || (room8[4] && !step16_8_reg) || (room8[3] && !step8_8_reg);
  wire step4 = zero8_reg[{step16_8_reg, step8_8_reg}] && (more8 || room8[2]);

  reg sign9_reg;
  reg special9_reg;
  reg nan9_reg;
  reg [EXP-1:0] exp9_reg;
  reg [SUM-1:0] sum9_reg;
  reg sticky9_reg;
  reg [2:0] steps9_reg;
  reg more9_reg;

  always @(posedge clk) begin
    sign9_reg <= sign8_reg;
    special9_reg <= special8_reg;
    nan9_reg <= nan8_reg;
    exp9_reg <= exp8_reg;
    sum9_reg <= left8;
    sticky9_reg <= sticky8_reg;
    steps9_reg <= {step16_8_reg, step8_8_reg, step4};
    more9_reg <= more8 || (room8[2] && !step4);
  end

  // -- 10 ------------------------------------------------------------------------------------------

  wire step4_9 = steps9_reg[0];
  wire [SUM-1:0] left4 = step4_9 ? sum9_reg << 4 : sum9_reg;
  wire step2 = left4[SUM-1:SUM-2] == 2'd0 && (more9_reg || exp9_reg[1]);

  reg sign10_reg;
  reg special10_reg;
  reg nan10_reg;
  reg [EXP-1:0] exp10_reg;
  reg [SUM-1:0] sum10_reg;
  reg sticky10_reg;
  reg [3:0] steps10_reg;
  reg more10_reg;

  always @(posedge clk) begin
    sign10_reg <= sign9_reg;
    special10_reg <= special9_reg;
    nan10_reg <= nan9_reg;
    exp10_reg <= exp9_reg;
    sum10_reg <= left4;
    sticky10_reg <= sticky9_reg;
    steps10_reg <= {steps9_reg, step2};
    more10_reg <= more9_reg || (exp9_reg[1] && !step2);
  end

  // -- 11 ------------------------------------------------------------------------------------------

  wire step2_10 = steps10_reg[0];
  wire [SUM-1:0] left2 = step2_10 ? sum10_reg << 2 : sum10_reg;
  wire step1 = !left2[SUM-1] && (more10_reg || exp10_reg[0]);

  reg sign11_reg;
  reg special11_reg;
  reg nan11_reg;
  reg [EXP-1:0] exp11_reg;
  reg [SUM-1:0] sum11_reg;
  reg sticky11_reg;
  reg [3:0] steps11_reg;
  reg step1_11_reg;

  always @(posedge clk) begin
    sign11_reg <= sign10_reg;
    special11_reg <= special10_reg;
    nan11_reg <= nan10_reg;
    exp11_reg <= exp10_reg;
    sum11_reg <= left2;
    sticky11_reg <= sticky10_reg;
    steps11_reg <= steps10_reg;
    step1_11_reg <= step1;
  end

  // -- 12 ------------------------------------------------------------------------------------------

  // The last step is an addition of two numbers of which one is 0, in the carry chain that adds
  // everything up: a multiplexer without logic.
  wire [3:0] guard = step1_11_reg ? {sum11_reg[2:0], 1'b0} : sum11_reg[3:0];
  wire [7:0] minus = {{4{|steps11_reg}}, (~steps11_reg + 4'd1)};

  reg sign12_reg;
  reg special12_reg;
  reg nan12_reg;
  reg subnormal12_reg;
  reg [EXP-1:0] exp12_reg;
  reg [EXP-1:0] minus12_reg;
  reg [FRAC-1:0] frac12_reg;
  reg [FRAC-1:0] shifted12_reg;
  reg up12_reg;

  always @(posedge clk) begin
    sign12_reg <= sign11_reg;
    special12_reg <= special11_reg;
    nan12_reg <= nan11_reg;
    subnormal12_reg <= !(step1_11_reg ? sum11_reg[SUM-2] : sum11_reg[SUM-1]);
    exp12_reg <= exp11_reg;
    minus12_reg <= {minus[EXP-2:0], !step1_11_reg};
    frac12_reg <= step1_11_reg ? {FRAC{1'b0}} : sum11_reg[SUM-2-:FRAC];
    shifted12_reg <= step1_11_reg ? sum11_reg[SUM-3-:FRAC] : {FRAC{1'b0}};
    up12_reg <= guard[2] && (guard[3] || |guard[1:0] || sticky11_reg);
  end

  // -- 13: round -----------------------------------------------------------------------------------

  // A fraction of all ones that rounds up carries into the exponent, as it should.
  wire [WIDTH:0] rounded = {1'b0, exp12_reg, frac12_reg, 1'b1} +
      {minus12_reg[EXP-1], minus12_reg, shifted12_reg, up12_reg};

  reg sign13_reg;
  reg special13_reg;
  reg nan13_reg;
  reg [EXP:0] exp13_reg;
  reg [FRAC-1:0] frac13_reg;

  always @(posedge clk) begin
    sign13_reg <= sign12_reg;
    special13_reg <= special12_reg;
    nan13_reg <= nan12_reg;
    exp13_reg <= subnormal12_reg ? {EXP + 1{1'b0}} : rounded[WIDTH-:EXP+1];
    frac13_reg <= rounded[FRAC:1];
  end

  // -- 14: overflow, infinity and NaN --------------------------------------------------------------

  wire all_ones = INFINITY != 0 ? &exp13_reg[EXP-1:0] :
      exp13_reg[EXP] || &{exp13_reg[EXP-1:0], frac13_reg};
  wire overflow = special13_reg || all_ones;

  reg sign14_reg;
  reg [EXP-1:0] exp14_reg;
  reg [FRAC-1:0] frac14_reg;

  always @(posedge clk) begin
    sign14_reg <= sign13_reg;
    exp14_reg  <= exp13_reg[EXP-1:0];
    frac14_reg <= frac13_reg;
    if (overflow) begin
      exp14_reg  <= {EXP{1'b1}};
      frac14_reg <= INFINITY == 0 ? {FRAC{1'b1}} : {nan13_reg, {FRAC - 1{1'b0}}};
    end
    if (INFINITY == 0 ? overflow : nan13_reg) sign14_reg <= 1'b0;
  end

  assign y = {sign14_reg, exp14_reg, frac14_reg};

  // The bits through which carries come in; and what exponents narrower than 8 bits have not.
  wire unused = &{1'b0, total[0], rounded[0], room0[2:0], room8[1:0], minus[7:EXP-1]};

endmodule

`default_nettype wire
