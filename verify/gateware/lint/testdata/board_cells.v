// The ports of what a board's top instantiates and no card holds: the USB devices and the Ethernet
// MAC, which scripts write, and the cells of an ECP5 and of AMD's 7 series.

`default_nettype none

/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */

(* blackbox *)
module agg_usb_device (
    input  wire       clk,
    input  wire       rst,
    input  wire [7:0] ulpi_data_in,
    output wire [7:0] ulpi_data_out,
    output wire       ulpi_data_oe,
    input  wire       ulpi_dir,
    input  wire       ulpi_nxt,
    output wire       ulpi_stp,
    output wire       ulpi_rst,
    output wire       link_up,
    input  wire       link_clear,
    output wire [7:0] rx_tdata,
    output wire       rx_tvalid,
    input  wire       rx_tready,
    input  wire [7:0] tx_tdata,
    input  wire       tx_tvalid,
    output wire       tx_tready,
    output wire       configured,
    output wire       traffic,
    output wire       suspended
);
endmodule

(* blackbox *)
module agg_eth_mac (
    input  wire       rst,
    output wire       eth_clk,
    output wire       link_up,
    input  wire       rgmii_rx_clk,
    input  wire       rgmii_rx_ctl,
    input  wire [3:0] rgmii_rx_data,
    output wire       rgmii_tx_clk,
    output wire       rgmii_tx_ctl,
    output wire [3:0] rgmii_tx_data,
    output wire [7:0] m_axis_tdata,
    output wire       m_axis_tvalid,
    output wire       m_axis_tlast,
    output wire       m_axis_tuser,
    input  wire [7:0] s_axis_tdata,
    input  wire       s_axis_tvalid,
    output wire       s_axis_tready,
    input  wire       s_axis_tlast
);
endmodule

(* blackbox *)
module agg_usb_pins_device (
    input  wire       clk,
    input  wire       rst,
    input  wire       usb_d_p_in,
    output wire       usb_d_p_out,
    input  wire       usb_d_n_in,
    output wire       usb_d_n_out,
    output wire       usb_d_oe,
    output wire       usb_pull_up,
    output wire       link_up,
    input  wire       link_clear,
    output wire [7:0] rx_tdata,
    output wire       rx_tvalid,
    input  wire       rx_tready,
    input  wire [7:0] tx_tdata,
    input  wire       tx_tvalid,
    output wire       tx_tready,
    output wire       configured,
    output wire       traffic,
    output wire       suspended
);
endmodule

(* blackbox *)
module BB (
    inout  wire B,
    input  wire I,
    input  wire T,
    output wire O
);
endmodule

(* blackbox *)
module ODDRX1F (
    input  wire SCLK,
    input  wire RST,
    input  wire D0,
    input  wire D1,
    output wire Q
);
endmodule

(* blackbox *)
module EHXPLLL #(
    parameter CLKI_DIV = 1,
    parameter CLKFB_DIV = 1,
    parameter FEEDBK_PATH = "CLKOP",
    parameter CLKOP_ENABLE = "ENABLED",
    parameter CLKOP_DIV = 8,
    parameter CLKOP_CPHASE = 0,
    parameter CLKOP_FPHASE = 0,
    parameter CLKOS_ENABLE = "DISABLED",
    parameter CLKOS_DIV = 8,
    parameter CLKOS_CPHASE = 0,
    parameter CLKOS_FPHASE = 0,
    parameter CLKOS2_ENABLE = "DISABLED",
    parameter CLKOS3_ENABLE = "DISABLED",
    parameter OUTDIVIDER_MUXA = "DIVA",
    parameter OUTDIVIDER_MUXB = "DIVB",
    parameter OUTDIVIDER_MUXC = "DIVC",
    parameter OUTDIVIDER_MUXD = "DIVD",
    parameter PLLRST_ENA = "DISABLED",
    parameter STDBY_ENABLE = "DISABLED",
    parameter DPHASE_SOURCE = "DISABLED",
    parameter INTFB_WAKE = "DISABLED",
    parameter PLL_LOCK_MODE = 0
) (
    input  wire CLKI,
    input  wire CLKFB,
    input  wire RST,
    input  wire STDBY,
    input  wire PHASESEL0,
    input  wire PHASESEL1,
    input  wire PHASEDIR,
    input  wire PHASESTEP,
    input  wire PHASELOADREG,
    input  wire PLLWAKESYNC,
    input  wire ENCLKOP,
    input  wire ENCLKOS,
    input  wire ENCLKOS2,
    input  wire ENCLKOS3,
    output wire CLKOP,
    output wire CLKOS,
    output wire CLKOS2,
    output wire CLKOS3,
    output wire LOCK,
    output wire INTLOCK,
    output wire REFCLK,
    output wire CLKINTFB
);
endmodule

(* blackbox *)
module IOBUF (
    inout  wire IO,
    input  wire I,
    input  wire T,
    output wire O
);
endmodule

(* blackbox *)
module BUFG (
    input  wire I,
    output wire O
);
endmodule

(* blackbox *)
module PLLE2_BASE #(
    parameter BANDWIDTH = "OPTIMIZED",
    parameter real CLKIN1_PERIOD = 0.0,
    parameter DIVCLK_DIVIDE = 1,
    parameter CLKFBOUT_MULT = 5,
    parameter CLKOUT0_DIVIDE = 1,
    parameter CLKOUT1_DIVIDE = 1
) (
    input  wire CLKIN1,
    input  wire CLKFBIN,
    input  wire RST,
    input  wire PWRDWN,
    output wire CLKFBOUT,
    output wire CLKOUT0,
    output wire CLKOUT1,
    output wire CLKOUT2,
    output wire CLKOUT3,
    output wire CLKOUT4,
    output wire CLKOUT5,
    output wire LOCKED
);
endmodule

`default_nettype wire
