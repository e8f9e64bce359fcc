// Reduces an integer in two's complement to OUT bits and detects overflow, LATENCY = 1 cycle: y is
// a modulo 2^OUT, or with SATURATE the nearest integer of OUT bits.
//
// Not done here: reset, enable, valid bit.

`default_nettype none

module agg_int_clamp #(
    parameter integer IN       = 35,
    parameter integer OUT      = 32,
    parameter integer SATURATE = 0
) (
    input  wire           clk,
    input  wire [ IN-1:0] a,
    output wire [OUT-1:0] y,
    output wire           over
);

  generate
    if (OUT < 2 || IN < OUT) begin : g_widths
      ERROR_an_integer_is_brought_to_2_bits_at_least_and_to_as_many_as_it_has_at_most error ();
    end
  endgenerate

  // It fits if the bits removed all equal the sign bit that remains.
  wire           beyond = |a[IN-1:OUT-1] && !(&a[IN-1:OUT-1]);

  reg  [OUT-1:0] y_reg;
  reg            over_reg;

  always @(posedge clk) begin
    y_reg    <= SATURATE != 0 && beyond ? {a[IN-1], {OUT - 1{!a[IN-1]}}} : a[OUT-1:0];
    over_reg <= beyond;
  end

  assign y = y_reg;
  assign over = over_reg;

endmodule

`default_nettype wire
