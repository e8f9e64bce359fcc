// Aligns one operand to the largest exponent of all: its magnitude as a multiple of the window's last
// place, cut towards zero.
//
// The top bit of the window is the leading bit of a number with the exponent max. magnitude is
// {significand, zeros} shifted right by max - exponent, where a zero or a subnormal has the exponent 1;
// max is at least 1 and no smaller than the operand's.
//
// Cycles, counted from x:
//   0  x
//   1  max       the largest exponent field of all operands, from a tree that began before
//   2  special   max says infinity or NaN (agg_window_special; 0 in formats without infinities)
//   3  negative  the sign of x, one cycle before its magnitude (agg_window_add wants it so)
//      top       x itself is an infinity or a NaN
//   4  magnitude, lost
//
// When special is high, magnitude is the fraction of an infinity or a NaN without a leading bit, and 0
// for all other operands: then a sum of magnitudes is 0 exactly if no operand is a NaN.
//
// Not done here: no maximum, no sum; whether infinities of both signs meet is agg_window_special's.

`default_nettype none

module agg_window_align #(
    parameter integer EXP = 8,  // bits of the exponent
    parameter integer FRAC = 23,  // bits of the fraction
    parameter integer INFINITY = 1,  // 0: all ones is a NaN, and there are no infinities (fp8e4m3)
    parameter integer WINDOW = 28,  // bits of the window
    parameter integer LOST = 0  // 1: lost says that bits other than 0 were cut off; else it is 0
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] x,
    input  wire [     EXP-1:0] max,
    input  wire                special,
    output wire                negative,
    output wire                top,
    output wire [  WINDOW-1:0] magnitude,
    output wire                lost
);

  generate
    if (EXP < 2 || EXP > 9) begin : g_exp
      ERROR_exponent_must_have_2_to_9_bits error ();
    end
    if (WINDOW <= FRAC || WINDOW > 64) begin : g_window
      ERROR_window_must_hold_a_significand_and_have_64_bits_at_most error ();
    end
  endgenerate

  localparam integer LEVELS = $clog2(WINDOW);  // of the shift; what is further away leaves nothing
  localparam [9:0] NEAR = (10'd1 << LEVELS) - 10'd1;

  // -- 1: the significand and its exponent --------------------------------------------------------

  wire           normal = x[EXP+FRAC-1:FRAC] != 0;

  reg            sign1_reg;
  reg  [EXP-1:0] exponent1_reg;
  reg  [ FRAC:0] significand1_reg;

  always @(posedge clk) begin
    sign1_reg        <= x[EXP+FRAC];
    exponent1_reg    <= {x[EXP+FRAC-1:FRAC+1], x[FRAC] || !normal};
    significand1_reg <= {normal, x[FRAC-1:0]};
  end

  // -- 2: the distance to the largest exponent ----------------------------------------------------

  reg           sign2_reg;
  reg [EXP-1:0] distance2_reg;
  reg [ FRAC:0] significand2_reg;

  always @(posedge clk) begin
    sign2_reg        <= sign1_reg;
    distance2_reg    <= max - exponent1_reg;
    significand2_reg <= significand1_reg;
  end

  // -- 3: up to 7 places --------------------------------------------------------------------------

  wire [       9:0] distance = {{10 - EXP{1'b0}}, distance2_reg};
  wire [       9:0] near = distance & NEAR;
  wire              far = |(distance & ~NEAR);
  wire [WINDOW-1:0] fine = {significand2_reg, {WINDOW - FRAC - 1{1'b0}}} >> near[2:0];

  reg               sign3_reg;
  reg               none3_reg;  // nothing is left
  reg  [       2:0] coarse3_reg;  // eights of places to go
  reg  [WINDOW-1:0] fine3_reg;

  always @(posedge clk) begin
    sign3_reg   <= sign2_reg;
    none3_reg   <= far || special && near != 0;
    coarse3_reg <= near[5:3];
    fine3_reg   <= fine;
    if (special) fine3_reg[WINDOW-1] <= 1'b0;
  end

  assign negative = sign3_reg;

  // -- 4: the rest --------------------------------------------------------------------------------

  reg [WINDOW-1:0] magnitude4_reg;

  generate
    if (WINDOW > 16) begin : g_wide
      // Where nothing comes from above, places are cleared at their registers, which takes no logic.
      wire [7:0] first = fine3_reg[WINDOW-1-:8];
      wire [7:0] second = fine3_reg[WINDOW-9-:8];
      always @(posedge clk) begin
        magnitude4_reg <= fine3_reg >> {coarse3_reg, 3'd0};
        magnitude4_reg[WINDOW-1-:16] <= {first, coarse3_reg[0] ? first : second};
        if (none3_reg || coarse3_reg != 0) magnitude4_reg[WINDOW-1-:8] <= 8'd0;
        if (none3_reg || coarse3_reg[2:1] != 0) magnitude4_reg[WINDOW-9-:8] <= 8'd0;
        if (none3_reg) magnitude4_reg[WINDOW-17:0] <= {WINDOW - 16{1'b0}};
      end
    end else begin : g_narrow
      always @(posedge clk) begin
        magnitude4_reg <= fine3_reg >> {coarse3_reg, 3'd0};
        if (none3_reg) magnitude4_reg <= {WINDOW{1'b0}};
      end
    end
  endgenerate

  assign magnitude = magnitude4_reg;

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

    // -- what is cut off --------------------------------------------------------------------------

    if (LOST != 0) begin : g_lost
      // Places below the window hold what a shift pushes out of it.
      wire [WINDOW+6:0] fine_wide = {significand2_reg, {WINDOW + 6 - FRAC{1'b0}}} >> near[2:0];
      wire [WINDOW+55:0] coarse_wide = {fine3_reg, 56'd0} >> {coarse3_reg, 3'd0};
      wire [6:0] fine_rest = fine_wide[6:0];
      wire [55:0] coarse_rest = coarse_wide[55:0];
      wire unused_kept = &{fine_wide, coarse_wide};  // the places in the window
      reg some3_reg;  // the significand is not 0, and a number's
      reg fine_lost3_reg;
      reg lost4_reg;
      always @(posedge clk) begin
        some3_reg      <= significand2_reg != 0 && !special;
        fine_lost3_reg <= |fine_rest;
        lost4_reg      <= none3_reg ? some3_reg : fine_lost3_reg || |coarse_rest;
      end
      assign lost = lost4_reg;
    end else begin : g_not_lost
      assign lost = 1'b0;
    end
  endgenerate

endmodule

`default_nettype wire
