// Sets the voltage of supplies that follow a pin's mean level, and then switches them on.
//
// set is high in HIGH of 1024 cycles; filters of the board make a level of it. After SETTLE_CYCLES the
// level stands, and enable rises; RISE_CYCLES later the supplies do, and good rises. When started falls,
// which is asynchronous, everything is switched off.
//
// Not done here: nothing is measured; the cycles are what the board's parts need at most.

`default_nettype none

module agg_supply #(
    parameter integer HIGH = 512,  // 1..1023
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
