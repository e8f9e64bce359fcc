# Builds the bitstream of this card for Digilent Nexys Video (XC7A200T-1SBG484C) with Vivado. The Makefile in this folder runs it in build/:
#
#   vivado -mode batch -nojournal -log vivado.log -source ../build.tcl
#
# It writes new.bit only if every pin has a location and an I/O standard, every constraint matches an object, and every
# path meets its timing. Otherwise it exits with status 1. The results are also in summary.txt; Vivado's reports are in
# *.rpt.

set part xc7a200tsbg484-1
set top board_top
set constraints ../nexys-video.xdc
set crossings {
  ../agg_async_fifo.tcl
  ../agg_board_reset.tcl
  ../agg_sync.tcl
}
set sources {
  ../agg_async_fifo.v
  ../agg_board_reset.v
  ../agg_fifo_bus.v
  ../agg_led.v
  ../agg_link_break.v
  ../agg_link_cross.v
  ../agg_pads.v
  ../agg_pll.v
  ../agg_sync.v
  ../board_top.v
  ../../agg_arbiter.v
  ../../agg_beat_pack.v
  ../../agg_beat_unpack.v
  ../../agg_byte_fifo.v
  ../../agg_byte_pack.v
  ../../agg_cache.v
  ../../agg_commit.v
  ../../agg_counters.v
  ../../agg_crc16.v
  ../../agg_deadlines.v
  ../../agg_delay.v
  ../../agg_egress.v
  ../../agg_fp_add.v
  ../../agg_fp_nonfinite.v
  ../../agg_fp_over.v
  ../../agg_frame_rx.v
  ../../agg_frame_tx.v
  ../../agg_gate.v
  ../../agg_ingress.v
  ../../agg_job_checks.v
  ../../agg_job_counts.v
  ../../agg_job_places.v
  ../../agg_jobs.v
  ../../agg_labels.v
  ../../agg_lags.v
  ../../agg_link_session.v
  ../../agg_owed.v
  ../../agg_port_ranks.v
  ../../agg_ram.v
  ../../agg_ranks.v
  ../../agg_reader.v
  ../../agg_register_link.v
  ../../agg_registers.v
  ../../agg_replies.v
  ../../agg_route.v
  ../../agg_slot_fifo.v
  ../../agg_slots.v
  ../../agg_stage.v
  ../../agg_status.v
  ../../agg_tag_delay.v
  ../../agg_writer.v
  ../../agg_lane.v
  ../../agg_core.v
  ../../agg_top.v
}

# The clocks that the constraints must create, in MHz; the card's and the link's come first.
set card_clock clk
set link_clock fifo_clk
set clocks [list $card_clock 60 $link_clock 60 clk_in 100]

# Messages about a constraint that matches no cell, pin, net, port, clock or object. By default they are only warnings, and
# Vivado would not check the path that the constraint was for.
set found_nothing {
  {Vivado 12-180} {Vivado 12-508} {Vivado 12-507} {Vivado 12-584} {Vivado 12-627} {Vivado 12-646} {Vivado 12-4739}
}

# Prints a line to the log and to summary.txt.
proc say {line} {
  puts $line
  set file [open summary.txt a]
  puts $file $line
  close $file
}

# Prints all errors and, if there are any, ends the build.
proc stop_if {wrong} {
  foreach sentence $wrong { say "wrong: $sentence" }
  if {[llength $wrong] > 0} { error "nothing is written" }
}

# Returns errors for pins without a location or an I/O standard.
proc wrong_pins {} {
  set wrong {}
  foreach port [get_ports *] {
    if {[get_property PACKAGE_PIN $port] eq ""} { lappend wrong "$port has no pin" }
    if {[get_property IOSTANDARD $port] in {"" DEFAULT}} { lappend wrong "$port has no I/O standard" }
  }
  return $wrong
}

# Returns errors for clocks that are missing or have another period.
proc wrong_clocks {clocks} {
  set wrong {}
  foreach {name mhz} $clocks {
    set clock [get_clocks -quiet $name]
    if {[llength $clock] != 1} {
      lappend wrong "there is no clock $name"
      continue
    }
    set period [get_property PERIOD $clock]
    if {abs($period * $mhz / 1000.0 - 1) > 0.001} { lappend wrong "$name has a period of $period ns, not that of $mhz MHz" }
  }
  return $wrong
}

# Returns a property of the worst path of a kind (max: setup, min: hold); "" if no path exists.
proc worst {property kind args} {
  set paths [get_timing_paths -quiet -delay_type $kind -max_paths 1 -nworst 1 {*}$args]
  if {[llength $paths] == 0} { return "" }
  return [get_property $property [lindex $paths 0]]
}

# Prints the maximum frequency of each clock, and returns errors for clocks that are too slow.
proc wrong_speed {clocks} {
  set wrong {}
  foreach {name mhz} $clocks {
    set period [get_property PERIOD [get_clocks $name]]
    set slack [worst SLACK max -from [get_clocks $name] -to [get_clocks $name]]
    if {$slack eq ""} {
      lappend wrong "no path of $name is timed"
      continue
    }
    set can [expr {1000.0 / ($period - $slack)}]
    say [format "  %-8s %6.1f MHz; must have %s" $name $can $mhz]
    if {$slack < 0} { lappend wrong [format "%s has %.1f MHz, not %s" $name $can $mhz] }
  }
  return $wrong
}

# Prints the longest delay of the clock crossings, and returns errors for delays over the limit. Without a limit, Vivado would
# time a crossing as if the two clocks were related, or not at all.
proc wrong_crossing {one other limit} {
  set wrong {}
  foreach {from to} [list $one $other $other $one] {
    set ends [list -from [get_clocks $from] -to [get_clocks $to]]
    set required [worst REQUIREMENT max {*}$ends]
    if {$required eq "" || $required > $limit + 0.001} {
      lappend wrong "what goes from $from to $to has no limit, or a longer one than $limit ns"
      continue
    }
    set delay [worst DATAPATH_DELAY max {*}$ends]
    say [format "  crossing %6.1f ns from %s to %s; must be below %s" $delay $from $to $limit]
    if {[worst SLACK max {*}$ends] < 0} { lappend wrong [format "a path from %s to %s takes %.1f ns" $from $to $delay] }
  }
  return $wrong
}

# Prints the slack of the link's pins, and returns errors for negative slack.
proc wrong_pads {} {
  set wrong {}
  foreach {what ends} [list \
      "from a pin to a register" [list -from [all_inputs] -to [all_registers]] \
      "from a register to a pin" [list -from [all_registers] -to [all_outputs]]] {
    foreach {kind time} {max setup min hold} {
      set slack [worst SLACK $kind {*}$ends]
      if {$slack eq ""} {
        lappend wrong "no path $what is timed"
        continue
      }
      say [format "  pads     %6.2f ns left %s (%s)" $slack $what $time]
      if {$slack < 0} { lappend wrong [format "a path %s misses its %s time by %.2f ns" $what $time [expr {-$slack}]] }
    }
  }
  return $wrong
}

# Returns errors for any path with negative slack.
proc wrong_paths {} {
  set wrong {}
  foreach {kind time} {max setup min hold} {
    set slack [worst SLACK $kind]
    if {$slack eq ""} {
      lappend wrong "no path is timed for $time"
    } elseif {$slack < 0} {
      lappend wrong [format "%s misses its %s time by %.2f ns; timing.rpt tells more" [worst ENDPOINT_PIN $kind] $time [expr {-$slack}]]
    }
  }
  return $wrong
}

proc build {} {
  global part top constraints crossings sources card_clock link_clock clocks found_nothing
  foreach id $found_nothing { set_msg_config -id $id -new_severity ERROR }

  read_verilog $sources
  read_xdc $constraints
  synth_design -top $top -part $part -include_dirs ../.. -flatten_hierarchy rebuilt
  stop_if [concat [wrong_pins] [wrong_clocks $clocks]]
  foreach file $crossings { source $file }

  opt_design
  place_design
  phys_opt_design
  route_design
  report_timing_summary -file timing.rpt
  report_utilization -file utilization.rpt
  report_io -file io.rpt
  report_cdc -details -file cdc.rpt
  report_bus_skew -file skew.rpt

  set limit [get_property PERIOD [get_clocks $card_clock]]
  set link_period [get_property PERIOD [get_clocks $link_clock]]
  if {$link_period < $limit} { set limit $link_period }
  stop_if [concat [wrong_speed [lrange $clocks 0 3]] [wrong_crossing $card_clock $link_clock $limit] [wrong_pads] [wrong_paths]]
  write_bitstream -force new.bit
}

file delete summary.txt new.bit
if {[catch build why]} {
  puts stderr "nexys-video: $why"
  exit 1
}
