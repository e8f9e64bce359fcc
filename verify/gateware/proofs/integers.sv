// Proves the sum of four int32 contributions, in the leaves of an integer lane connected as in a
// card of four workers: section 7.6 of driver/wire/SPEC.md.

`default_nettype none

module integers #(
    parameter integer SATURATE = 0,
    parameter integer LATENCY  = 3
) (
    input wire        clk,
    input wire [31:0] a,
    input wire [31:0] b,
    input wire [31:0] c,
    input wire [31:0] d
);

  wire [32:0] sum_ab, sum_cd;
  wire [33:0] sum;
  wire [31:0] y, a0, b0, c0, d0;
  wire over, due;

  agg_int_add #(
      .WIDTH(32)
  ) first (
      .clk(clk),
      .a  (a),
      .b  (b),
      .y  (sum_ab)
  );

  agg_int_add #(
      .WIDTH(32)
  ) second (
      .clk(clk),
      .a  (c),
      .b  (d),
      .y  (sum_cd)
  );

  agg_int_add #(
      .WIDTH(33)
  ) root (
      .clk(clk),
      .a  (sum_ab),
      .b  (sum_cd),
      .y  (sum)
  );

  agg_int_clamp #(
      .IN(34),
      .OUT(32),
      .SATURATE(SATURATE)
  ) clamp (
      .clk (clk),
      .a   (sum),
      .y   (y),
      .over(over)
  );

  one_beat #(
      .WIDTH  (128),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   ({a, b, c, d}),
      .held({a0, b0, c0, d0}),
      .due (due)
  );

  wire signed [63:0] exact = $signed(a0) + $signed(b0) + $signed(c0) + $signed(d0);
  localparam signed [63:0] MOST = 64'sd2147483647;
  localparam signed [63:0] LEAST = -64'sd2147483648;

  always @* begin
    if (due) begin
      assert (over == (exact > MOST || exact < LEAST));
      if (SATURATE)
        assert ($signed(y) == (exact > MOST ? MOST : exact < LEAST ? LEAST : exact));
        else assert (y == exact[31:0]);

      cover (exact == MOST + 1);
      cover (exact == LEAST - 1);
      cover (exact == 4 * LEAST);
      cover (exact == LEAST && $signed(a0) + $signed(b0) < LEAST);
    end
  end

endmodule

`default_nettype wire
