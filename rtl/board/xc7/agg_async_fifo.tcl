# Constraints of each instance of agg_async_fifo for Vivado:
#   the bits of a Gray code arrive less than a period of the faster clock apart, so at most one of them is in flight,
#   a word takes at most such a period from the memory to the reader's register. It is stable two edges before the read.
# agg_sync.tcl limits the delay of the Gray codes.
#
# Use it after synthesis: source it, or add it to a project for implementation only.

foreach cell [get_cells -quiet -hierarchical -filter {ORIG_REF_NAME == agg_async_fifo || REF_NAME == agg_async_fifo}] {
  set wr [get_clocks -of_objects [get_pins $cell/wr_gray_reg_reg\[*\]/C]]
  set rd [get_clocks -of_objects [get_pins $cell/rd_gray_reg_reg\[*\]/C]]
  if {$wr eq $rd} continue
  set limit [expr {min([get_property PERIOD $wr], [get_property PERIOD $rd])}]
  set_bus_skew -from [get_cells $cell/wr_gray_reg_reg\[*\]] -to [get_cells $cell/u_wr_seen/first_reg_reg\[*\]] $limit
  set_bus_skew -from [get_cells $cell/rd_gray_reg_reg\[*\]] -to [get_cells $cell/u_rd_seen/first_reg_reg\[*\]] $limit
  set_max_delay -datapath_only -from $wr -to [get_cells $cell/m_tdata_reg_reg\[*\]] $limit
}
