# A replacement for Vivado: a Tcl interpreter with commands of the same names. They read the constraints, refuse
# steps out of order, and report the paths that a test chooses.
#
#   PORTS=... PATHS=... tclsh vivado.tcl -mode batch ... -source SCRIPT
#
# PORTS are the top's ports, one for each bit of a vector. PINS are inner pins that constraints may name, with their periods
# in ns. CELLS are instances of modules where signals change clocks, four words each: module, path, its clock and the other
# one. PATHS are the worst paths, six words each: max or min, from, to, slack, delay, end. Constraints do not change them.
# FAILS names a command that fails. The file calls lists the build commands that ran, the file limits those on cells.

foreach name {PORTS PINS CELLS PATHS FAILS} { set given($name) [expr {[info exists env($name)] ? $env($name) : ""}] }
set steps {read_verilog read_xdc synth_design opt_design place_design phys_opt_design route_design write_bitstream}
set done -1
array set severity {}
array set clock {}
array set property {}
array set limit {}

# Records a step, which must come in order.
proc step {name} {
  global steps done given
  set file [open calls a]
  puts $file $name
  close $file
  set at [lsearch $steps $name]
  if {$at < $done || $at > $done + 1} { error "$name comes out of its order" }
  set done $at
  if {$given(FAILS) eq $name} {
    puts "ERROR: this is why"
    error "ERROR: \[Common 17-39\] '$name' failed due to earlier errors."
  }
}

foreach name {opt_design place_design phys_opt_design route_design} { proc $name args "step $name" }

proc read_verilog {files} {
  step read_verilog
  foreach file $files { if {![file exists $file]} { error "no file $file" } }
}

# Constraints apply once there is a design.
proc read_xdc {file} {
  step read_xdc
  set ::xdc $file
}

proc synth_design {args} {
  step synth_design
  if {[dict get $args -top] ne "board_top" || [dict get $args -part] ne "xc7a200tsbg484-1"} { error "synth_design $args" }
  if {![file exists [dict get $args -include_dirs]/zwire.vh]} { error "no headers" }
  uplevel #0 [list source $::xdc]
}

proc write_bitstream {args} {
  step write_bitstream
  set file [open [lindex $args end] w]
  puts $file bits
  close $file
}

foreach name {report_timing_summary report_utilization report_io report_cdc report_bus_skew} {
  proc $name args {
    if {$::done < [lsearch $::steps route_design]} { error "a report of what is not routed" }
    close [open [lindex $args end] w]
  }
}

proc set_msg_config {args} { set ::severity([dict get $args -id]) [dict get $args -new_severity] }

# The matches of a pattern. No match is a warning, or an error if the script asked for that.
proc found {id quiet names pattern} {
  set hits [lsearch -all -inline -glob $names [string map {[ \\[ ] \\]} [string map {[*] *} $pattern]]]
  if {[llength $hits] == 0 && !$quiet} {
    if {[info exists ::severity($id)] && $::severity($id) eq "ERROR"} { error "ERROR: \[$id\] nothing matched '$pattern'." }
    puts "CRITICAL WARNING: \[$id\] nothing matched '$pattern'."
  }
  return $hits
}

proc get_ports {patterns} {
  set all {}
  foreach pattern $patterns { lappend all {*}[found {Vivado 12-584} 0 $::given(PORTS) $pattern] }
  return $all
}

# The cells of a module, or a pattern of registers in a cell.
proc get_cells {args} {
  if {[llength $args] == 1} { return [lindex $args 0] }
  set hits {}
  foreach {module path own other} $::given(CELLS) {
    if {[lindex $args end] eq "ORIG_REF_NAME == $module || REF_NAME == $module"} { lappend hits $path }
  }
  return $hits
}

proc get_pins {pattern} {
  if {[regexp {_reg_reg\[\*\]/[CD]$} $pattern]} { return $pattern }
  return [found {Vivado 12-508} 0 [dict keys $::given(PINS)] $pattern]
}

# The clocks of a cell's registers: those written by the other clock, by the own clock, and what the first register reads.
proc clocks_of {pin} {
  foreach {module path own other} $::given(CELLS) {
    if {[file dirname [file dirname $pin]] ne $path} continue
    switch -regexp $pin {
      {/first_reg.*D$} { return [list $own $other] }
      {/(wr_gray|phy_run)_reg_reg} { return $other }
      default { return $own }
    }
  }
  error "no clock of $pin"
}

proc all_fanin {args} { return [lindex $args end] }

proc get_clocks {args} {
  if {"-of_objects" in $args} { return [clocks_of [lindex $args end]] }
  set quiet [expr {[lindex $args 0] eq "-quiet"}]
  return [found {Vivado 12-627} $quiet [array names ::clock] [lindex $args end]]
}

proc current_design {} { return design }
proc all_inputs {} { return inputs }
proc all_outputs {} { return outputs }
proc all_registers {} { return registers }

proc create_clock {args} {
  foreach port [lindex $args end] { set ::clock([dict get [lrange $args 0 end-1] -name]) [dict get [lrange $args 0 end-1] -period] }
}

proc create_generated_clock {args} {
  foreach pin [lindex $args end] { set ::clock([dict get [lrange $args 0 end-1] -name]) [dict get $::given(PINS) $pin] }
}

proc set_property {args} {
  if {[lindex $args 0] ne "-dict"} { set args [list -dict [lrange $args 0 1] [lindex $args end]] }
  foreach object [lindex $args 2] { foreach {name value} [lindex $args 1] { set ::property($object,$name) $value } }
}

foreach name {set_input_delay set_output_delay set_false_path} { proc $name args {} }

proc set_max_delay {args} {
  if {[lindex $args 0] ne "-datapath_only"} { error "set_max_delay $args: the clocks' skew is in it" }
  foreach {from to} [list [lindex $args 2] [lindex $args 4]] { set ::limit($from,$to) [lindex $args 5] }
  if {$to ni [array names ::clock]} { limited delay $from $to [lindex $args 5] }
}

proc set_bus_skew {args} { limited skew [lindex $args 1] [lindex $args 3] [lindex $args 4] }

proc limited {args} {
  set file [open limits a]
  puts $file $args
  close $file
}

# The worst paths of a kind with these ends.
proc get_timing_paths {args} {
  set asked [dict merge {-from "" -to ""} [lrange $args 1 end]]
  set hits {}
  foreach {kind from to slack delay end} $::given(PATHS) {
    if {$kind eq [dict get $asked -delay_type] && [dict get $asked -from] in [list "" $from] && [dict get $asked -to] in [list "" $to]} {
      lappend hits [list $kind,$from,$to $slack]
    }
  }
  return [lindex [lsort -real -index 1 $hits] 0 0]
}

proc get_property {name object} {
  if {$name eq "PERIOD"} { return $::clock($object) }
  if {$name in {PACKAGE_PIN IOSTANDARD}} {
    return [expr {[info exists ::property($object,$name)] ? $::property($object,$name) : ""}]
  }
  lassign [split $object ,] kind from to
  foreach {k f t slack delay end} $::given(PATHS) {
    if {"$k,$f,$t" ne $object} continue
    switch $name {
      SLACK { return $slack }
      DATAPATH_DELAY { return $delay }
      ENDPOINT_PIN { return $end }
      REQUIREMENT { return [expr {[info exists ::limit($from,$to)] ? $::limit($from,$to) : 1000}] }
    }
  }
  error "no property $name of $object"
}

source [dict get $argv -source]
