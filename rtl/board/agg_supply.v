// Sets the voltage of supplies that follow a pin's mean level, and then enables them.
//
// set is high in HIGH of 1024 cycles; filters on the board turn it into a level. After
// SETTLE_CYCLES the level is stable, and enable rises. RISE_CYCLES later the supplies are up, and
// good rises. started is asynchronous; when it falls, everything is switched off.
//
// Not done here: measurement. The cycles are upper bounds for the board's parts.

`default_nettype none

module agg_supply #(
    parameter integer HIGH = 512,  // 1..1023, in 1/1024
    parameter integer SETTLE_CYCLES = 1,
    parameter integer RISE_CYCLES = 1
) (
    input  wire clk,
    input  wire started,
    output wire set,
    output wire enable,
    output wire good
);

  localparam integer COUNT = $clog2(SETTLE_CYCLES + RISE_CYCLES + 1);
  localparam integer WHOLE = SETTLE_CYCLES + RISE_CYCLES;

  reg  [      9:0] phase_reg;
  reg              set_reg;
  reg  [COUNT-1:0] count_reg;
  reg              enable_reg;
  reg              good_reg;

  wire             counted = count_reg == WHOLE[COUNT-1:0];

  always @(posedge clk or negedge started) begin
    if (!started) begin
      phase_reg  <= 10'd0;
      set_reg    <= 1'b0;
      count_reg  <= {COUNT{1'b0}};
      enable_reg <= 1'b0;
      good_reg   <= 1'b0;
    end else begin
      phase_reg <= phase_reg + 10'd1;
      set_reg   <= phase_reg < HIGH[9:0];
      if (!counted) count_reg <= count_reg + 1'b1;
      if (count_reg == SETTLE_CYCLES[COUNT-1:0]) enable_reg <= 1'b1;
      good_reg <= counted;
    end
  end

  assign set    = set_reg;
  assign enable = enable_reg;
  assign good   = good_reg;

endmodule

`default_nettype wire
