// Aligns one operand to the largest exponent of all, for a sum that wants to know what was cut off.
//
// The top bit of the window is the leading bit of a number with the exponent max. Below the window's
// last place stands one more, a mark: whether bits other than 0 were cut off. addend is {0,
// significand, zeros, mark}, shifted right by max - exponent, where a zero or a subnormal has the
// exponent 1; max is at least 1 and no smaller than the operand's.
//
// Signs are relative to that of one operand, base. turn says that the operand has the other one:
// then addend is inverted, and lacks 1 of being negated.
//
// Cycles, counted from x:
//   0  x, base
//   1  max             the largest exponent field of all operands, from a tree that began before
//   2  special         max says infinity or NaN (agg_window_special; 0 in formats without infinities)
//   3  negative, top   the sign of x; x itself is an infinity or a NaN
//   5  addend, turn, lost
//
// lost is the mark without turn, or 0 with MARK = 0. When special is high, addend is the fraction of an infinity or a NaN
// without a leading bit, and 0 for all other operands, nothing is turned or marked: then a sum is 0
// exactly if no operand is a NaN.
//
// Not done here: no maximum, no sum; whether infinities of both signs meet is agg_window_special's.

`default_nettype none

module agg_exact_align #(
    parameter integer EXP      = 8,   // bits of the exponent
    parameter integer FRAC     = 23,  // bits of the fraction
    parameter integer INFINITY = 1,   // 0: all ones is a NaN, and there are no infinities (fp8e4m3)
    parameter integer WINDOW   = 40,  // bits of the window
    parameter integer MARK     = 1    // 0: no mark, nothing can be cut off
) (
    input  wire                 clk,
    input  wire [   EXP+FRAC:0] x,
    input  wire                 base,
    input  wire [      EXP-1:0] max,
    input  wire                 special,
    output wire                 negative,
    output wire                 top,
    output wire [WINDOW+MARK:0] addend,
    output wire                 turn,
    output wire                 lost
);

  generate
    if (EXP < 2 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_2_to_8_bits error ();
    end
    if (WINDOW < FRAC + 8 || WINDOW > 56) begin : g_window
      ERROR_window_must_have_8_bits_more_than_a_fraction_and_56_at_most error ();
    end
  endgenerate

  // -- 1: the significand and its exponent --------------------------------------------------------

  wire           normal = x[EXP+FRAC-1:FRAC] != 0;

  reg            sign1_reg;
  reg            turn1_reg;
  reg  [EXP-1:0] exponent1_reg;
  reg  [ FRAC:0] significand1_reg;

  always @(posedge clk) begin
    sign1_reg        <= x[EXP+FRAC];
    turn1_reg        <= x[EXP+FRAC] ^ base;
    exponent1_reg    <= {x[EXP+FRAC-1:FRAC+1], x[FRAC] || !normal};
    significand1_reg <= {normal, x[FRAC-1:0]};
  end

  // -- 2: the distance to the largest exponent ----------------------------------------------------

  reg           sign2_reg;
  reg           turn2_reg;
  reg [EXP-1:0] distance2_reg;
  reg [ FRAC:0] significand2_reg;

  always @(posedge clk) begin
    sign2_reg        <= sign1_reg;
    turn2_reg        <= turn1_reg;
    distance2_reg    <= max - exponent1_reg;
    significand2_reg <= significand1_reg;
  end

  // -- 3: up to 7 places --------------------------------------------------------------------------

  localparam integer FINE = FRAC + 8;  // bits that the significand may be spread over

  wire [     8:0] distance = {{9 - EXP{1'b0}}, distance2_reg};
  wire [FINE-1:0] fine = {significand2_reg, 7'd0} >> distance[2:0];

  reg             sign3_reg;
  reg             turn3_reg;
  reg             special3_reg;
  reg             far3_reg;  // 64 places or more
  reg             away3_reg;  // 1 to 63
  reg  [     2:0] coarse3_reg;  // eights of places to go
  reg  [FINE-1:0] fine3_reg;

  always @(posedge clk) begin
    sign3_reg    <= sign2_reg;
    turn3_reg    <= turn2_reg && !special;
    special3_reg <= special;
    far3_reg     <= |distance[8:6];
    away3_reg    <= distance[5:0] != 6'd0;
    coarse3_reg  <= distance[5:3];
    fine3_reg    <= fine;
    if (special) fine3_reg[FINE-1] <= 1'b0;
  end

  // -- 4: 8 and 16 places; nothing is left of what is far, or no infinity nor NaN ------------------

  wire none = far3_reg || (special3_reg && away3_reg);

  // eight[k]: bits other than 0 are among those that a shift by 8 k cuts off, and one by less does not.
  reg [7:0] eight;
  integer k, i, j;

  always @* begin
    eight = 8'd0;
    for (k = 0; k < 8; k = k + 1) begin
      for (i = 0; i < FINE; i = i + 1) begin
        if (i < FINE + 8 * k - WINDOW && (k == 0 || i >= FINE + 8 * k - 8 - WINDOW)) begin
          eight[k] = eight[k] || fine3_reg[i];
        end
      end
    end
  end

  wire [WINDOW-1:0] word3 = {fine3_reg, {WINDOW - FINE{1'b0}}};

  reg               turn4_reg;
  reg               far4_reg;  // 32 places to go
  reg  [       7:0] eight4_reg;
  reg  [       7:0] reach4_reg;  // the eights that are cut off, if that counts
  reg  [WINDOW-1:0] word4_reg;

  always @(posedge clk) begin
    turn4_reg  <= turn3_reg;
    far4_reg   <= coarse3_reg[2];
    eight4_reg <= eight;
    word4_reg  <= word3 >> {coarse3_reg[1:0], 3'd0};
    if (none) word4_reg <= {WINDOW{1'b0}};
    for (j = 0; j < 8; j = j + 1) begin
      reach4_reg[j] <= !special3_reg && (far3_reg || coarse3_reg >= j[2:0]);
    end
  end

  // -- 5: 32 places, and turn over ----------------------------------------------------------------

  wire [WINDOW:0] word5 = {1'b0, far4_reg ? word4_reg >> 32 : word4_reg};
  wire [WINDOW+MARK:0] marked5;

  wire lost5 = |(eight4_reg & reach4_reg);

  reg turn5_reg;
  reg lost5_reg;
  reg [WINDOW+MARK:0] addend5_reg;

  generate
    if (MARK != 0) begin : g_mark
      assign marked5 = {word5, lost5};
    end else begin : g_no_mark
      assign marked5 = word5;
    end
  endgenerate

  always @(posedge clk) begin
    turn5_reg   <= turn4_reg;
    lost5_reg   <= MARK != 0 && lost5;
    addend5_reg <= marked5 ^ {WINDOW + 1 + MARK{turn4_reg}};
  end

  assign negative = sign3_reg;
  assign addend = addend5_reg;
  assign turn = turn5_reg;
  assign lost = lost5_reg;

  // -- infinities and NaNs ------------------------------------------------------------------------

  generate
    if (INFINITY != 0) begin : g_infinity
      reg top3_reg;
      always @(posedge clk) top3_reg <= special && distance == 0;
      assign top = top3_reg;
    end else begin : g_nan
      reg top1_reg;
      reg top2_reg;
      reg top3_reg;
      always @(posedge clk) begin
        top1_reg <= &x[EXP+FRAC-1:0];
        top2_reg <= top1_reg;
        top3_reg <= top2_reg;
      end
      assign top = top3_reg;
    end
  endgenerate

endmodule

`default_nettype wire
