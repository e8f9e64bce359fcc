# Builds the bitstream of this card for Digilent Nexys Video (XC7A200T-1SBG484C) with Vivado; the Makefile beside it runs it in build/:
#
#   vivado -mode batch -nojournal -log vivado.log -source ../build.tcl
#
# It writes new.bit only when every pin has its place and its standard, every constraint has found what it is for, and
# every path keeps its time. Else it ends with status 1. What an owner is to read goes into summary.txt as well, and what
# Vivado reports into *.rpt.

set part xc7a200tsbg484-1
set top board_top
set constraints ../nexys-video.xdc
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
  ../../agg_job_counts.v
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
  ../../agg_route.v
  ../../agg_slot_fifo.v
  ../../agg_slots.v
  ../../agg_status.v
  ../../agg_tag_delay.v
  ../../agg_writer.v
  ../../agg_lane.v
  ../../agg_core.v
  ../../agg_top.v
}

# The clocks that the constraints must make, in MHz; the card's and the link's go first.
set card_clock clk
set link_clock fifo_clk
set clocks [list $card_clock 60 $link_clock 60 clk_in 100]

# What a constraint says that finds nothing to constrain: cells, pins, nets, ports, clocks, or nothing at all. Left as they
# are these are warnings, and the path that they were for is not looked at.
set found_nothing {
  {Vivado 12-180} {Vivado 12-508} {Vivado 12-507} {Vivado 12-584} {Vivado 12-627} {Vivado 12-646} {Vivado 12-4739}
}

# Says a line, to whoever reads the log and in summary.txt.
proc say {line} {
  puts $line
  set file [open summary.txt a]
  puts $file $line
  close $file
}

# Ends the build when there is something wrong, after all of it is said.
proc stop_if {wrong} {
  foreach sentence $wrong { say "wrong: $sentence" }
  if {[llength $wrong] > 0} { error "nothing is written" }
}

# What is wrong with pins: those that the constraints leave to the tool.
proc wrong_pins {} {
  set wrong {}
  foreach port [get_ports *] {
    if {[get_property PACKAGE_PIN $port] eq ""} { lappend wrong "$port has no pin" }
    if {[get_property IOSTANDARD $port] in {"" DEFAULT}} { lappend wrong "$port has no I/O standard" }
  }
  return $wrong
}

# What is wrong with clocks: those that there are not, or not with that period.
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

# A property of the worst path of a kind (max: setup, min: hold); "" where there is none.
proc worst {property kind args} {
  set paths [get_timing_paths -quiet -delay_type $kind -max_paths 1 -nworst 1 {*}$args]
  if {[llength $paths] == 0} { return "" }
  return [get_property $property [lindex $paths 0]]
}

# Says how fast each clock could be, and returns what is wrong with that.
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

# Says how long what crosses takes, and returns what is wrong with that. A crossing without its limit would be timed as if
# the two clocks had to do with one another, or not at all.
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

# Says what time the link's pins leave, and returns what is wrong with that.
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

# What is wrong with any path at all.
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
  global part top constraints sources card_clock link_clock clocks found_nothing
  foreach id $found_nothing { set_msg_config -id $id -new_severity ERROR }

  read_verilog $sources
  read_xdc $constraints
  synth_design -top $top -part $part -include_dirs ../..
  stop_if [concat [wrong_pins] [wrong_clocks $clocks]]

  opt_design
  place_design
  phys_opt_design
  route_design
  report_timing_summary -file timing.rpt
  report_utilization -file utilization.rpt
  report_io -file io.rpt
  report_cdc -details -file cdc.rpt

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
