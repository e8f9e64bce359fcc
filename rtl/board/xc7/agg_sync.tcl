# Constraints of each instance of agg_sync for Vivado: a level takes at most a period of the faster clock to the first
# register, whatever the skew between the clocks.
#
# Use it after synthesis: source it, or add it to a project for implementation only. Not done here: inputs from pins, which
# have no clock.

foreach cell [get_cells -quiet -hierarchical -filter {ORIG_REF_NAME == agg_sync || REF_NAME == agg_sync}] {
  set to [get_clocks -of_objects [get_pins $cell/first_reg_reg\[*\]/C]]
  set starts [all_fanin -flat -startpoints_only [get_pins $cell/first_reg_reg\[*\]/D]]
  foreach from [get_clocks -quiet -of_objects $starts] {
    if {$from eq $to} continue
    set limit [expr {min([get_property PERIOD $from], [get_property PERIOD $to])}]
    set_max_delay -datapath_only -from $from -to [get_cells $cell/first_reg_reg\[*\]] $limit
  }
}
