// Decides whether the window's sum is sufficient to round the exact sum.
//
// The place below the window holds each operand's sticky bit: whether it lost bits. Lost bits
// can amount to twice that place. If one operand alone lost bits, the sum is on the correct
// side of every number that its other places represent. If several did, each may be off by
// less than that place. The rounding is decided if it is the same for all possible sums, that
// is, unless the places below the result's last one are close to one half.
//
// normal has the half place and PLACES below it, which outweigh the error of all operands if
// the sum was shifted by at most NEAR. Up to FAR, the low FAR - NEAR places do not count;
// beyond, nothing is decided. With one loser, all is decided up to ONE.
//
// LATENCY = 2 cycles. Not done here: infinities and NaNs; beside one, no operand may lose
// bits.

`default_nettype none

module agg_exact_decide #(
    parameter integer PLACES = 11,
    parameter integer NEAR   = 5,
    parameter integer FAR    = 9,
    parameter integer ONE    = 18
) (
    input  wire            clk,
    input  wire            some,      // an operand lost bits
    input  wire            several,   // two or more operands did
    input  wire [     5:0] shift,
    input  wire [PLACES:0] normal,    // from the half place on
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
  wire [PLACES-1:0] same = normal[PLACES-1:0] ^ {PLACES{half}};  // all ones if close to one half

  reg some_reg, several_reg;
  reg near_reg, far_reg, one_reg;  // shifted by at most that many places
  reg upper_reg, lower_reg;  // these places are all ones
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
