// Marks the elements of a beat that are infinite or NaN, one bit for each lane. Combinational.

`default_nettype none

module agg_fp_nonfinite #(
    parameter integer LANES      = 16,
    parameter integer EXP        = 8,   // bits in the exponent
    parameter integer FRAC       = 23,  // bits in the fraction
    parameter integer INFINITIES = 1    // 0: only all ones is a NaN, nothing is infinite (fp8e4m3)
) (
    input  wire [LANES*(1+EXP+FRAC)-1:0] beat,
    output reg  [             LANES-1:0] nonfinite
);

  localparam integer WIDTH = 1 + EXP + FRAC;
  // The sign does not count, nor with infinities the fraction: the exponent is all ones.
  localparam integer LOWEST = INFINITIES != 0 ? FRAC : 0;

  wire    unused = &{1'b0, beat};

  integer lane;

  always @* begin
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      nonfinite[lane] = &beat[WIDTH*lane+LOWEST+:WIDTH-1-LOWEST];
    end
  end

endmodule

`default_nettype wire
