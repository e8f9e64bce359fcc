// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// Says which elements of a beat are an infinity or a NaN, one bit a lane. Combinational, for
// binary32.

`default_nettype none

module agg_fp32_nonfinite #(
    parameter integer LANES = 16
) (
    input  wire [LANES*32-1:0] beat,
    output reg  [   LANES-1:0] nonfinite
);

  // The sign and the fraction do not matter: all ones in the exponent say it.
  wire    unused = &{1'b0, beat};

  integer lane;

  always @* begin
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      nonfinite[lane] = &beat[32*lane+23+:8];
    end
  end

endmodule

`default_nettype wire
