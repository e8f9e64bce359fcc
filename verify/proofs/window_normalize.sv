// Proves that the normalizer shifts the magnitude of a sum left by its leading zeros, or, where that is
// less, by as much as the exponent allows.

`default_nettype none

module window_normalize #(
    parameter integer EXP     = 8,
    parameter integer WIDTH   = 32,
    parameter integer GROWTH  = 3,
    parameter integer BITS    = 32,
    parameter integer LATENCY = 4
) (
    input wire             clk,
    input wire [WIDTH-1:0] sum,
    input wire [  EXP-1:0] exponent
);

  wire inverted, zero, due;
  wire [EXP:0] room;
  wire [BITS-1:0] normal;
  wire [WIDTH-1:0] sum0;
  wire [EXP-1:0] exponent0;

  agg_window_normalize #(
      .EXP(EXP),
      .WIDTH(WIDTH),
      .GROWTH(GROWTH),
      .BITS(BITS)
  ) normalizer (
      .clk(clk),
      .sum(sum),
      .exponent(exponent),
      .inverted(inverted),
      .zero(zero),
      .room(room),
      .normal(normal)
  );

  one_beat #(
      .WIDTH  (WIDTH + EXP),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   ({sum, exponent}),
      .held({sum0, exponent0}),
      .due (due)
  );

  // One's complement of a negative sum, and what is below it.
  wire negative = sum0[WIDTH-1];
  wire [WIDTH-2:0] magnitude = sum0[WIDTH-2:0] ^ {WIDTH - 1{negative}};
  wire [2*BITS-1:0] exact = {magnitude, {2 * BITS - WIDTH + 1{negative}}};

  // By how much it may be shifted, and was.
  wire [EXP+1:0] allowed = exponent0 + GROWTH - 1;
  wire [EXP+1:0] shift = allowed - room;
  wire [2*BITS-1:0] shifted = exact << shift;

  integer place;
  reg [EXP+1:0] zeros;  // before the leading bit
  always @* begin
    zeros = WIDTH - 1;
    for (place = 0; place < WIDTH - 1; place = place + 1)
    if (magnitude[place]) zeros = WIDTH - 2 - place;
  end

  always @* begin
    if (due && exponent0 != 0) begin
      assert (inverted == negative);
      assert (zero == (sum0 == 0));
      if (sum0 != 0) begin
        assert (room <= allowed);
        assert (normal == shifted[2*BITS-1-:BITS]);
        assert (shift == (zeros < allowed ? zeros : allowed));
      end

      cover (negative && shift == allowed && !normal[BITS-1]);
      cover (zeros == WIDTH - 2 && shift == zeros && !negative);
      cover (zeros == 0 && negative);
    end
  end

endmodule

`default_nettype wire
