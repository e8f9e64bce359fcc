// Selects one lane's sum from a beat: y is the element of the lane in select, one-hot.
//
// LATENCY = 2 cycles from beat to y; select is sampled with the beat. Not done here: the control of
// select, and a valid bit (agg_exact_queue).

`default_nettype none

module agg_exact_select #(
    parameter integer LANES = 16,
    parameter integer ELEM_BITS = 32
) (
    input  wire                       clk,
    input  wire [          LANES-1:0] select,
    input  wire [LANES*ELEM_BITS-1:0] beat,
    output wire [      ELEM_BITS-1:0] y
);

  localparam integer GROUPS = (LANES + 3) / 4;

  reg [GROUPS*ELEM_BITS-1:0] groups_reg, groups;  // four lanes each
  reg [ELEM_BITS-1:0] y_reg, all;

  integer i;

  always @* begin
    groups = {GROUPS * ELEM_BITS{1'b0}};
    for (i = 0; i < LANES; i = i + 1) begin
      groups[i/4*ELEM_BITS+:ELEM_BITS] = groups[i/4*ELEM_BITS+:ELEM_BITS] |
          (beat[i*ELEM_BITS+:ELEM_BITS] & {ELEM_BITS{select[i]}});
    end
    all = {ELEM_BITS{1'b0}};
    for (i = 0; i < GROUPS; i = i + 1) all = all | groups_reg[i*ELEM_BITS+:ELEM_BITS];
  end

  always @(posedge clk) begin
    groups_reg <= groups;
    y_reg      <= all;
  end

  assign y = y_reg;

endmodule

`default_nettype wire
