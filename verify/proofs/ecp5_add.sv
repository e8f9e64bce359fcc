// Proves that agg_window_add out of an ECP5's carry cells does as the portable one.

`default_nettype none

module ecp5_add #(
    parameter integer WIDTH = 29
) (
    input wire             clk,
    input wire             plain,
    input wire             a_negative,
    input wire             b_negative,
    input wire [WIDTH-1:0] a,
    input wire [WIDTH-1:0] b
);

  wire sign, cell_sign;
  wire [WIDTH:0] y, cell_y;

  agg_window_add #(
      .WIDTH(WIDTH)
  ) plainly (
      .clk(clk),
      .plain(plain),
      .a_negative(a_negative),
      .a(a),
      .b_negative(b_negative),
      .b(b),
      .y_negative(sign),
      .y(y)
  );

  // The same name, but for the script, which reads this one first.
  cells_window_add #(
      .WIDTH(WIDTH)
  ) in_cells (
      .clk(clk),
      .plain(plain),
      .a_negative(a_negative),
      .a(a),
      .b_negative(b_negative),
      .b(b),
      .y_negative(cell_sign),
      .y(cell_y)
  );

  reg [1:0] begun = 2'd0;
  always @(posedge clk) begun <= {begun[0], 1'b1};

  always @* begin
    if (begun[0]) assert (cell_sign == sign);
    if (begun[1]) assert (cell_y == y);
    cover (begun[1] && y[WIDTH]);
  end

endmodule

`default_nettype wire
