// Converts a number to a wider format, exactly: y is a, LATENCY = 2 cycles later.
//
// With a wider exponent, a subnormal becomes normal. A NaN becomes the canonical one. The wider
// format has infinities.
//
//   1  detect infinity and NaN; count a subnormal's leading zeros
//   2  shift them out of the fraction
//
// Not done here: reset, enable, valid bit.

`default_nettype none

module agg_fp_widen #(
    parameter integer EXP        = 5,   // bits in the exponent
    parameter integer FRAC       = 10,  // bits in the fraction
    parameter integer INFINITIES = 1,   // 0: only all ones is a NaN, nothing is infinite (fp8e4m3)
    parameter integer TO_EXP     = 8,   // bits in y's exponent
    parameter integer TO_FRAC    = 23   // bits in y's fraction
) (
    input  wire                    clk,
    input  wire [      EXP+FRAC:0] a,
    output wire [TO_EXP+TO_FRAC:0] y
);

  localparam integer MORE = TO_EXP - EXP;  // additional exponent bits

  generate
    if (MORE < 0 || TO_FRAC < FRAC) begin : g_wider
      ERROR_the_format_must_become_wider error ();
    end
    if (MORE == 0 && INFINITIES == 0) begin : g_infinity
      ERROR_a_format_without_infinities_needs_a_wider_exponent error ();
    end
    if (MORE > 0 && (FRAC > 15 || FRAC > (1 << (EXP - 1)))) begin : g_normal
      ERROR_every_subnormal_must_become_normal error ();
    end
  endgenerate

  // -- 1: classify --------------------------------------------------------------------------------

  wire    [ EXP-1:0] field = a[EXP+FRAC-1:FRAC];
  wire    [FRAC-1:0] fraction = a[FRAC-1:0];

  wire               nan = &field && (INFINITIES != 0 ? |fraction : &fraction);

  // A subnormal is shifted by the leading zeros of its fraction and by one more, which removes the
  // leading one. Its exponent is that of the smallest normal number less the zeros.
  integer            place;
  integer            shift;
  reg     [     3:0] zeros;
  reg     [ EXP-1:0] less;  // negated zeros, two's complement

  always @* begin
    zeros = 4'd0;
    less  = {EXP{1'b0}};
    shift = 0;
    for (place = 0; place < FRAC; place = place + 1) begin
      if (MORE > 0 && field == 0 && fraction[place]) begin
        shift = FRAC - 1 - place;
        zeros = shift[3:0];
        shift = -shift;
        less  = shift[EXP-1:0];
      end
    end
  end

  reg            sign1_reg;
  reg [ EXP-1:0] exp1_reg;
  reg            negative1_reg;  // the exponent is negative
  reg [FRAC-1:0] frac1_reg;
  reg [     3:0] zeros1_reg;
  reg            zero1_reg;
  reg            special1_reg;
  reg            nan1_reg;

  always @(posedge clk) begin
    sign1_reg     <= a[EXP+FRAC] && !nan;
    exp1_reg      <= {field[EXP-1], field[EXP-2:0] | less[EXP-2:0]};
    negative1_reg <= less[EXP-1];
    frac1_reg     <= MORE > 0 && field == 0 ? fraction << 1 : fraction;
    zeros1_reg    <= zeros;
    zero1_reg     <= MORE > 0 && field == 0 && fraction == 0;
    special1_reg  <= &field && (INFINITIES != 0 || nan);
    nan1_reg      <= nan;
  end

  // -- 2: convert ---------------------------------------------------------------------------------

  // The new bias adds MORE ones, in a row below the top bit.
  integer              at;
  reg     [TO_EXP-1:0] exponent;

  always @* begin
    for (at = 0; at < TO_EXP; at = at + 1) begin
      if (at < EXP - 1) exponent[at] = exp1_reg[at];
      else if (at == TO_EXP - 1) exponent[at] = exp1_reg[EXP-1];
      else exponent[at] = !exp1_reg[EXP-1] && !(at == EXP - 1 && negative1_reg);
    end
  end

  wire [   FRAC-1:0] shifted = frac1_reg << zeros1_reg;
  wire [TO_FRAC-1:0] widened = {{TO_FRAC - FRAC{1'b0}}, shifted} << (TO_FRAC - FRAC);

  reg                sign2_reg;
  reg  [ TO_EXP-1:0] exp2_reg;
  reg  [TO_FRAC-1:0] frac2_reg;

  always @(posedge clk) begin
    sign2_reg <= sign1_reg;
    exp2_reg  <= exponent;
    frac2_reg <= widened;
    if (zero1_reg) exp2_reg <= {TO_EXP{1'b0}};
    if (special1_reg) begin
      exp2_reg  <= {TO_EXP{1'b1}};
      frac2_reg <= {nan1_reg, {TO_FRAC - 1{1'b0}}};
    end
  end

  assign y = {sign2_reg, exp2_reg, frac2_reg};

endmodule

`default_nettype wire
