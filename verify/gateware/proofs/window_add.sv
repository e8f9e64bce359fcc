// Proves that a node adds its operands, each a value that its sign may negate. Signs precede their
// values by one cycle, at the input and the output.

`default_nettype none

module window_add #(
    parameter integer WIDTH   = 29,
    parameter integer LATENCY = 2    // from the signs at the input to the value at the output
) (
    input wire             clk,
    input wire             plain,
    input wire             a_negative,
    input wire [WIDTH-1:0] a,
    input wire             b_negative,
    input wire [WIDTH-1:0] b
);

  wire y_negative;
  wire [WIDTH:0] y;
  agg_window_add #(
      .WIDTH(WIDTH)
  ) node (
      .clk(clk),
      .plain(plain),
      .a_negative(a_negative),
      .a(a),
      .b_negative(b_negative),
      .b(b),
      .y_negative(y_negative),
      .y(y)
  );

  wire plain0, a_negative0, b_negative0, due;
  wire [WIDTH-1:0] a0, b0;

  one_beat #(
      .WIDTH(3)
  ) signs (
      .clk (clk),
      .x   ({plain, a_negative, b_negative}),
      .held({plain0, a_negative0, b_negative0}),
      .due ()
  );

  one_beat #(
      .WIDTH  (2 * WIDTH),
      .LATENCY(LATENCY),
      .START  (1)
  ) values (
      .clk (clk),
      .x   ({a, b}),
      .held({a0, b0}),
      .due (due)
  );

  // The result's sign, one cycle before the result.
  reg y_negative_reg;
  always @(posedge clk) y_negative_reg <= y_negative;

  wire signed [WIDTH+1:0] a_value = $signed(a0);
  wire signed [WIDTH+1:0] b_value = $signed(b0);
  wire signed [WIDTH+1:0] y_value = $signed(y);
  wire signed [WIDTH+1:0] a_turned = a_negative0 ? -a_value : a_value;
  wire signed [WIDTH+1:0] b_turned = b_negative0 ? -b_value : b_value;
  wire signed [WIDTH+1:0] y_turned = y_negative_reg ? -y_value : y_value;

  always @* begin
    if (due) begin
      assert (plain0 ? y_value == a_value + b_value : y_turned == a_turned + b_turned);

      cover (!plain0 && a_negative0 && b_negative0 && y_turned > 0);
      cover (!plain0 && a_negative0 && !b_negative0 && y_turned < 0);
      cover (plain0 && a_negative0 && !b_negative0);
    end
  end

endmodule

`default_nettype wire
