// Says which elements of a beat are an infinity or a NaN, one bit a lane. Combinational.

`default_nettype none

module agg_fp_nonfinite #(
    parameter integer LANES    = 16,
    parameter integer EXP      = 8,   // bits of the exponent
    parameter integer FRAC     = 23,  // bits of the fraction
    parameter integer INFINITY = 1    // 0: only all ones is a NaN, nothing an infinity (fp8e4m3)
) (
    input  wire [LANES*(1+EXP+FRAC)-1:0] beat,
    output reg  [             LANES-1:0] nonfinite
);

  localparam integer WIDTH = 1 + EXP + FRAC;
  // The sign does not matter. With infinities neither does the fraction: all ones in the exponent say it.
  localparam integer LOWEST = INFINITY != 0 ? FRAC : 0;

  wire    unused = &{1'b0, beat};

  integer lane;

  always @* begin
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      nonfinite[lane] = &beat[WIDTH*lane+LOWEST+:WIDTH-1-LOWEST];
    end
  end

endmodule

`default_nettype wire
