# Digilent Nexys Video: pins and clocks. Pins as in
#   Nexys-Video-Master.xdc (digilent-xdc 16e3b34)
#   litex_boards/platforms/digilent_nexys_video.py (litex-boards 2023.12)

# Clocks. clk is the PLL's output, 60 MHz.
create_clock -name clk_in -period 10.000 [get_ports clk_in]
create_generated_clock -name clk [get_pins u_pll/u_pll/CLKOUT0]
create_clock -name fifo_clk -period 16.666 [get_ports fifo_clk]

# Timing of the chip at the link's pins, from a rising edge of fifo_clk at its own pins:
#   its outputs change 0 to 9 ns after the edge,
#   its inputs need 7.5 ns of setup and 0 ns of hold
# (FTDI, DS_FT232H 2.1, table 4.1: t4, t5, t11; t7, t9, t12, t14; t8, t10, t13, t15).
# The maximum delays include 1.1 ns for traces.
set_input_delay -clock fifo_clk -min 0.00 [get_ports {fifo_rxf_n fifo_txe_n fifo_data[*]}]
set_input_delay -clock fifo_clk -max 10.10 [get_ports {fifo_rxf_n fifo_txe_n fifo_data[*]}]
set_output_delay -clock fifo_clk -min 0.00 [get_ports {fifo_rd_n fifo_wr_n fifo_oe_n fifo_siwu_n fifo_data[*]}]
set_output_delay -clock fifo_clk -max 8.60 [get_ports {fifo_rd_n fifo_wr_n fifo_oe_n fifo_siwu_n fifo_data[*]}]

# Signals between the unrelated clocks clk and fifo_clk:
#   the Gray codes of agg_link_cross's FIFOs: bits arrive in order if their delays differ by less than a period,
#   the words in these FIFOs: stable two edges of the reader's clock before the read,
#   levels into agg_sync, and resets from agg_board_reset.
# The period of the faster clock is a sufficient limit for all of them, whatever the skew.
set_max_delay -datapath_only -from [get_clocks clk] -to [get_clocks fifo_clk] 16.666
set_max_delay -datapath_only -from [get_clocks fifo_clk] -to [get_clocks clk] 16.666

# LEDs: their timing is irrelevant.
set_false_path -to [get_ports {led_link led_traffic led_error}]

# Pins
set_property -dict {PACKAGE_PIN R4 IOSTANDARD LVCMOS33} [get_ports {clk_in}]
set_property -dict {PACKAGE_PIN Y18 IOSTANDARD LVCMOS33} [get_ports {fifo_clk}]
set_property -dict {PACKAGE_PIN N17 IOSTANDARD LVCMOS33} [get_ports {fifo_rxf_n}]
set_property -dict {PACKAGE_PIN Y19 IOSTANDARD LVCMOS33} [get_ports {fifo_txe_n}]
set_property -dict {PACKAGE_PIN P19 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_rd_n}]
set_property -dict {PACKAGE_PIN R19 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_wr_n}]
set_property -dict {PACKAGE_PIN V17 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_oe_n}]
set_property -dict {PACKAGE_PIN P17 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_siwu_n}]
set_property -dict {PACKAGE_PIN U20 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[0]}]
set_property -dict {PACKAGE_PIN P14 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[1]}]
set_property -dict {PACKAGE_PIN P15 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[2]}]
set_property -dict {PACKAGE_PIN U17 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[3]}]
set_property -dict {PACKAGE_PIN R17 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[4]}]
set_property -dict {PACKAGE_PIN P16 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[5]}]
set_property -dict {PACKAGE_PIN R18 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[6]}]
set_property -dict {PACKAGE_PIN N14 IOSTANDARD LVCMOS33 SLEW FAST DRIVE 12} [get_ports {fifo_data[7]}]
set_property -dict {PACKAGE_PIN T14 IOSTANDARD LVCMOS25} [get_ports {led_link}]
set_property -dict {PACKAGE_PIN T15 IOSTANDARD LVCMOS25} [get_ports {led_traffic}]
set_property -dict {PACKAGE_PIN T16 IOSTANDARD LVCMOS25} [get_ports {led_error}]

# Configuration bank and bitstream
set_property CONFIG_VOLTAGE 3.3 [current_design]
set_property CFGBVS VCCO [current_design]
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
