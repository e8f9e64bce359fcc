# Constraints of each instance of agg_board_reset for Vivado: a reset takes at most a period of the faster clock from one
# clock to the other. Registers in a row follow.
#
# Use it after synthesis: source it, or add it to a project for implementation only. Not done here: started, which is
# asynchronous to both clocks.

foreach cell [get_cells -quiet -hierarchical -filter {ORIG_REF_NAME == agg_board_reset || REF_NAME == agg_board_reset}] {
  set phy [get_clocks -of_objects [get_pins $cell/phy_run_reg_reg\[*\]/C]]
  set own [get_clocks -of_objects [get_pins $cell/run_reg_reg\[*\]/C]]
  if {$phy eq $own} continue
  set limit [expr {min([get_property PERIOD $phy], [get_property PERIOD $own])}]
  set_max_delay -datapath_only -from $own -to [get_cells $cell/phy_run_reg_reg\[*\]] $limit
  set_max_delay -datapath_only -from $phy -to [get_cells $cell/run_reg_reg\[*\]] $limit
}
