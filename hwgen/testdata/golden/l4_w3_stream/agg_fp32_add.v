// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// IEEE 754 addition, round to nearest, ties to even: y = a + b.
//
// Subnormals are kept, overflow gives infinity, every NaN result is the quiet NaN with sign 0 and
// payload 0 (32'h7fc00000), and an exact zero sum is +0 unless both operands are -0.
//
// One addition a cycle, LATENCY = 4 cycles from a, b to y:
//   1  compare   the operand of larger magnitude becomes "big", the other "little"
//   2  add       little is aligned to big, with a sticky bit, and added or subtracted
//   3  normalize leading zeros are shifted out, as far as the exponent allows
//   4  round
//
// The defaults are binary32. Other widths (EXP <= 8, FRAC <= 24) are formats of the same kind; the
// benches try tiny ones exhaustively.
//
// Not done here: no reset, no enable and no valid bit; what belongs to an addition travels beside it
// in agg_delay. No exception flags.

`default_nettype none

module agg_fp32_add #(
    parameter integer EXP  = 8,  // bits of the exponent
    parameter integer FRAC = 23  // bits of the fraction
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] a,
    input  wire [EXP+FRAC : 0] b,
    output wire [EXP+FRAC : 0] y
);

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
  localparam integer SUM = SIG + 4;  // with carry above, and guard, round and sticky below

  // Exponents are computed in 9 bits and sums normalized in 32 whatever the format; what a format
  // does not need is constant and vanishes.
  localparam integer EXP_PAD = 9 - EXP;
  localparam integer SUM_PAD = 32 - SUM;

  // -- 1: compare ---------------------------------------------------------------------------------

  wire             swap = a[WIDTH-2:0] < b[WIDTH-2:0];
  wire [WIDTH-1:0] big = swap ? b : a;
  wire [WIDTH-1:0] little = swap ? a : b;

  wire [  EXP-1:0] big_field = big[WIDTH-2:FRAC];
  wire [  EXP-1:0] little_field = little[WIDTH-2:FRAC];
  wire             big_normal = |big_field;
  wire             little_normal = |little_field;

  // A subnormal has the exponent of the smallest normal number, and no leading bit.
  wire [      8:0] big_exp = {{EXP_PAD{1'b0}}, big_field} | {8'd0, !big_normal};
  wire [      8:0] little_exp = {{EXP_PAD{1'b0}}, little_field} | {8'd0, !little_normal};
  wire [      8:0] distance = big_exp - little_exp;
  wire             subtract = big[WIDTH-1] ^ little[WIDTH-1];

  reg              sign1_reg;
  reg              subtract1_reg;
  reg              special1_reg;  // the result is an infinity or NaN
  reg              nan1_reg;
  reg  [      8:0] exp1_reg;
  reg  [  SIG-1:0] big1_reg;
  reg  [  SIG-1:0] little1_reg;
  reg  [      4:0] shift1_reg;  // 31 leaves nothing of little but its sticky bit

  always @(posedge clk) begin
    sign1_reg     <= big[WIDTH-1] & !(subtract && a[WIDTH-2:0] == b[WIDTH-2:0]);
    subtract1_reg <= subtract;
    special1_reg  <= &big_field;
    nan1_reg      <= |big[FRAC-1:0] || (subtract && &little_field);
    exp1_reg      <= big_exp;
    big1_reg      <= {big_normal, big[FRAC-1:0]};
    little1_reg   <= {little_normal, little[FRAC-1:0]};
    shift1_reg    <= |distance[8:5] ? 5'd31 : distance[4:0];
  end

  // -- 2: add -------------------------------------------------------------------------------------

  wire [   63:0] aligned = {little1_reg, {64 - SIG{1'b0}}} >> shift1_reg;
  wire [SUM-1:0] addend = {1'b0, aligned[63-:SUM-2], |aligned[65-SUM:0]};
  wire [SUM-1:0] augend = {1'b0, big1_reg, 3'b000};

  reg            sign2_reg;
  reg            special2_reg;
  reg            nan2_reg;
  reg  [    8:0] exp2_reg;
  reg  [SUM-1:0] sum2_reg;

  always @(posedge clk) begin
    sign2_reg    <= sign1_reg;
    special2_reg <= special1_reg;
    nan2_reg     <= nan1_reg;
    exp2_reg     <= exp1_reg;
    sum2_reg     <= subtract1_reg ? augend - addend : augend + addend;
  end

  // -- 3: normalize -------------------------------------------------------------------------------

  // Bit 31 is the carry's place: a leading bit there has an exponent one above exp2_reg. Each step is
  // taken when it shifts out zeros alone and the exponent allows it, down to that of a subnormal.
  wire [   31:0] norm0 = {sum2_reg, {SUM_PAD{1'b0}}};
  wire           step16 = norm0[31:16] == 16'd0 && |exp2_reg[8:4];
  wire [   31:0] norm16 = step16 ? {norm0[15:0], 16'd0} : norm0;
  wire [    8:0] exp16 = step16 ? exp2_reg - 9'd16 : exp2_reg;
  wire           step8 = norm16[31:24] == 8'd0 && |exp16[8:3];
  wire [   31:0] norm8 = step8 ? {norm16[23:0], 8'd0} : norm16;
  wire [    8:0] exp8 = step8 ? exp16 - 9'd8 : exp16;
  wire           step4 = norm8[31:28] == 4'd0 && |exp8[8:2];
  wire [   31:0] norm4 = step4 ? {norm8[27:0], 4'd0} : norm8;
  wire [    8:0] exp4 = step4 ? exp8 - 9'd4 : exp8;
  wire           step2 = norm4[31:30] == 2'd0 && |exp4[8:1];
  wire [   31:0] norm2 = step2 ? {norm4[29:0], 2'd0} : norm4;
  wire [    8:0] exp2 = step2 ? exp4 - 9'd2 : exp4;
  wire           step1 = !norm2[31] && |exp2;
  wire [   31:0] norm1 = step1 ? {norm2[30:0], 1'b0} : norm2;

  reg            sign3_reg;
  reg            special3_reg;
  reg            nan3_reg;
  reg  [EXP-1:0] field3_reg;  // exponent field; 0 without a leading bit: a subnormal or zero
  reg  [   30:0] norm3_reg;  // below the leading bit

  always @(posedge clk) begin
    sign3_reg    <= sign2_reg;
    special3_reg <= special2_reg;
    nan3_reg     <= nan2_reg;
    field3_reg   <= norm1[31] ? exp2[EXP-1:0] + {{EXP - 1{1'b0}}, !step1} : {EXP{1'b0}};
    norm3_reg    <= norm1[30:0];
  end

  // -- 4: round -----------------------------------------------------------------------------------

  // A fraction of all ones that rounds up carries into the exponent field, as it should.
  wire half = norm3_reg[30-FRAC];
  wire rest = |norm3_reg[29-FRAC:0];
  wire up = half && (rest || norm3_reg[31-FRAC]);
  wire [WIDTH-2:0] rounded = {field3_reg, norm3_reg[30-:FRAC]} + {{WIDTH - 2{1'b0}}, up};

  localparam [WIDTH-2:0] INFINITY = {{EXP{1'b1}}, {FRAC{1'b0}}};
  localparam [WIDTH-1:0] QUIET_NAN = {1'b0, {EXP{1'b1}}, 1'b1, {FRAC - 1{1'b0}}};

  reg [WIDTH-1:0] y_reg;

  always @(posedge clk) begin
    if (special3_reg && nan3_reg) y_reg <= QUIET_NAN;
    else if (special3_reg || &rounded[WIDTH-2:FRAC]) y_reg <= {sign3_reg, INFINITY};
    else y_reg <= {sign3_reg, rounded};
  end

  assign y = y_reg;

endmodule

`default_nettype wire
