// Releases a board's resets in order: the PHY, the clock domain of the PHY's clock, the card. A
// card reset this way needs a PHY with a running clock; without one it stays in reset.
//
// 1. started is high: PLL locked, supplies up. It is asynchronous; when it falls, all resets are
//    active at once, with or without clocks.
// 2. phy_reset, for the PHY's pin, lasts PHY_CYCLES cycles of clk.
// 3. phy_rst falls with the fourth edge of phy_clk, which may start only now.
// 4. rst falls with the third edge of clk after that.
//
// So each reset spans at least three edges of its clock, and the two overlap.

`default_nettype none

module agg_board_reset #(
    parameter integer PHY_CYCLES = 65536  // in cycles of clk, at least 1
) (
    input  wire clk,
    input  wire phy_clk,
    input  wire started,
    output wire phy_reset,  // active high; to the PHY's pin
    output wire phy_rst,    // falls synchronously to phy_clk
    output wire rst         // falls synchronously to clk
);

  localparam integer COUNT = $clog2(PHY_CYCLES + 1);

  (* ASYNC_REG = "TRUE" *)
  reg  [      1:0] started_reg;
  (* ASYNC_REG = "TRUE" *)
  reg  [      3:0] phy_run_reg;
  (* ASYNC_REG = "TRUE" *)
  reg  [      2:0] run_reg;
  reg  [COUNT-1:0] count_reg;
  reg              phy_reset_reg;

  wire             counted = count_reg == PHY_CYCLES[COUNT-1:0];

  always @(posedge clk or negedge started) begin
    if (!started) begin
      started_reg   <= 2'd0;
      count_reg     <= {COUNT{1'b0}};
      phy_reset_reg <= 1'b1;
      run_reg       <= 3'd0;
    end else begin
      started_reg <= {started_reg[0], 1'b1};
      if (started_reg[1] && !counted) count_reg <= count_reg + 1'b1;
      phy_reset_reg <= !counted;
      run_reg <= {run_reg[1:0], phy_run_reg[3]};
    end
  end

  always @(posedge phy_clk or posedge phy_reset_reg) begin
    if (phy_reset_reg) phy_run_reg <= 4'd0;
    else phy_run_reg <= {phy_run_reg[2:0], 1'b1};
  end

  assign phy_reset = phy_reset_reg;
  assign phy_rst   = !phy_run_reg[3];
  assign rst       = !run_reg[2];

endmodule

`default_nettype wire
