// Appends zeros to every element of a beat: converts to a format with the same exponent width and a
// longer fraction; infinities and NaNs likewise. Combinational.

`default_nettype none

module agg_exact_extend #(
    parameter integer LANES = 16,
    parameter integer FROM  = 16,  // bits per element
    parameter integer TO    = 32
) (
    input  wire [LANES*FROM-1:0] x,
    output wire [  LANES*TO-1:0] y
);

  generate
    if (TO <= FROM) begin : g_to
      ERROR_elements_must_become_longer error ();
    end
  endgenerate

  genvar lane;
  generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : g_lane
      assign y[lane*TO+:TO] = {x[lane*FROM+:FROM], {TO - FROM{1'b0}}};
    end
  endgenerate

endmodule

`default_nettype wire
