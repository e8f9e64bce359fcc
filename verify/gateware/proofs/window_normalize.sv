// Proves that the normalizer shifts a sum's magnitude left by its leading zeros, or by the limit
// that the exponent sets, whichever is less.

`default_nettype none

module window_normalize #(
    parameter integer EXP     = 8,
    parameter integer WIDTH   = 32,
    parameter integer GROWTH  = 3,
    parameter integer BITS    = 32,
    parameter integer KEEP    = 25,
    parameter integer LATENCY = 6    // from the exponent, which precedes its sum by one cycle
) (
    input wire             clk,
    input wire [WIDTH-1:0] sum,
    input wire [  EXP-1:0] exponent
);

  wire inverted, zero, rest, due;
  wire [5:0] shift;
  wire [KEEP-1:0] normal;
  wire [WIDTH-1:0] sum0;
  wire [EXP-1:0] exponent0;

  agg_window_normalize #(
      .EXP(EXP),
      .WIDTH(WIDTH),
      .GROWTH(GROWTH),
      .BITS(BITS),
      .KEEP(KEEP)
  ) normalizer (
      .clk(clk),
      .sum(sum),
      .exponent(exponent),
      .inverted(inverted),
      .zero(zero),
      .shift(shift),
      .normal(normal),
      .rest(rest)
  );

  one_beat #(
      .WIDTH  (EXP),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   (exponent),
      .held(exponent0),
      .due (due)
  );

  one_beat #(
      .WIDTH(WIDTH),
      .START(1)
  ) beat_sum (
      .clk (clk),
      .x   (sum),
      .held(sum0),
      .due ()
  );

  // The one's complement of a negative sum, the bits below it, and the magnitude.
  wire negative = sum0[WIDTH-1];
  wire [WIDTH-2:0] complement = sum0[WIDTH-2:0] ^ {WIDTH - 1{negative}};
  wire [WIDTH-1:0] magnitude = negative ? -sum0 : sum0;

  localparam integer LONG = 2 * BITS;
  wire [LONG-1:0] complement_shifted = {complement, {LONG - WIDTH + 1{negative}}} << shift;
  wire [LONG-1:0] magnitude_shifted = {magnitude, {LONG - WIDTH + 1{1'b0}}} << shift;

  integer place;
  reg [EXP+1:0] zeros;  // before the leading one
  always @* begin
    zeros = WIDTH - 1;
    for (place = 0; place < WIDTH - 1; place = place + 1)
    if (complement[place]) zeros = WIDTH - 2 - place;
  end

  // The limit set by the exponent. Only a sum of -1 needs a shift of more than BITS - 1: its
  // complement is all ones from the next place on.
  wire [EXP+1:0] field = exponent0 + GROWTH - 1;
  wire [EXP+1:0] allowed = field < BITS ? field : BITS - 1;

  always @* begin
    if (due && exponent0 != 0) begin
      assert (inverted == negative);
      assert (zero == (sum0 == 0));
      if (sum0 != 0) begin
        assert (shift == (zeros < allowed ? zeros : allowed));
        assert (normal == complement_shifted[LONG-1-:KEEP]);
        assert (rest == (magnitude_shifted[LONG-KEEP-1:0] != 0));
      end

      cover (negative && shift == allowed && !normal[KEEP-1]);
      cover (zeros == WIDTH - 2 && shift == zeros && !negative);
      cover (zeros == 0 && negative && !rest);
    end
  end

endmodule

`default_nettype wire
