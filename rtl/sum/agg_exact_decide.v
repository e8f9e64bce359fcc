// Whether the sum of a window suffices to round the exact sum.
//
// Every operand has in the place below the window not a bit of its own, but whether it lost any: half
// of what lost bits may amount to. So when one operand alone lost bits, the sum stands on the right
// side of everything that can be told from its other places. When several did, each may be off by less
// than that place, and the rounding is decided if it is the same for all that the sum may then be:
// unless the places below the result's last one are close to a half.
//
// Of these, normal has the half itself and PLACES more: so many that the others are worth more than
// all operands may be off, if the sum was shifted by NEAR places at most. With up to FAR the lower
// FAR - NEAR of them do not count; with more nothing is decided. With one loser all is decided, up to
// a shift by ONE.
//
// LATENCY = 2 cycles. Not done here: infinities and NaNs; where they are, nobody may have lost a bit.

`default_nettype none

module agg_exact_decide #(
    parameter integer PLACES = 11,
    parameter integer NEAR   = 5,
    parameter integer FAR    = 9,
    parameter integer ONE    = 18
) (
    input  wire            clk,
    input  wire            some,      // an operand lost bits
    input  wire            several,   // two or more did
    input  wire [     5:0] shift,
    input  wire [PLACES:0] normal,    // from the half on
    output wire            undecided
);

  generate
    if (FAR < NEAR || FAR - NEAR >= PLACES) begin : g_far
      ERROR_far_must_be_near_and_less_than_places_more error ();
    end
    if (ONE < FAR || ONE > 62) begin : g_one
      ERROR_one_must_be_at_least_far_and_at_most_62 error ();
    end
  endgenerate

  wire half = normal[PLACES];
  wire [PLACES-1:0] same = normal[PLACES-1:0] ^ {PLACES{half}};  // as in a number next to a half

  reg some_reg, several_reg;
  reg near_reg, far_reg, one_reg;  // shifted by so many places at most
  reg upper_reg, lower_reg;  // places that are the same
  reg  undecided_reg;

  wire tie = !far_reg || (upper_reg && (lower_reg || !near_reg));

  always @(posedge clk) begin
    some_reg      <= some;
    several_reg   <= several;
    near_reg      <= shift <= NEAR[5:0];
    far_reg       <= shift <= FAR[5:0];
    one_reg       <= shift <= ONE[5:0];
    upper_reg     <= &same[PLACES-1:FAR-NEAR];
    lower_reg     <= &same;
    undecided_reg <= (several_reg && tie) || (some_reg && !one_reg);
  end

  assign undecided = undecided_reg;

endmodule

`default_nettype wire
