package main

// The interesting signals of a card's waveform, for GTKWave and Surfer.

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// waveGroup is a group of signals, shown together.
type waveGroup struct {
	name    string // letters, digits and underscores, as Surfer requires
	signals []waveSignal
}

// waveSignal is a signal of the waveform.
type waveSignal struct {
	path string // from the top, with dots
	bits int
}

// modules holds the signals declared by a card's modules, with their bits.
type modules map[string]map[string]int

// readModules reads the Verilog of a card's folder, in one file or many.
func (c cardFolder) readModules() (modules, error) {
	paths, err := filepath.Glob(filepath.Join(c.dir, "*.v"))
	if err != nil {
		return nil, err
	}
	all := modules{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all.add(string(text))
	}
	return all, nil
}

// The lines of hwgen's Verilog that begin a module or declare a signal.
var (
	moduleLine = regexp.MustCompile(`^module (\w+)`)
	signalLine = regexp.MustCompile(`^\s+(?:(?:input|output)\s+)?(?:wire|reg)\s+(?:\[\s*(\d+):0\]\s+)?(\w+)\s*(?:[,;].*|//.*)?$`)
)

func (m modules) add(text string) {
	module := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if found := moduleLine.FindStringSubmatch(line); found != nil {
			module = map[string]int{}
			m[found[1]] = module
		} else if found := signalLine.FindStringSubmatch(line); found != nil {
			high, _ := strconv.Atoi(found[1]) // if absent, bit 0 alone
			module[found[2]] = high + 1
		}
	}
}

// The signals of an AXI4-Stream port.
var streamSignals = []string{"tvalid", "tready", "tlast", "tdata", "tkeep", "tuser"}

// stream names the signals of a stream.
func stream(prefix string, signals ...string) []string {
	names := make([]string, len(signals))
	for i, s := range signals {
		names[i] = prefix + "_" + s
	}
	return names
}

// view returns the groups of a card's waveform. It skips signals that the modules do not declare,
// because cards differ.
func (c cardFolder) view() ([]waveGroup, error) {
	declared, err := c.readModules()
	if err != nil {
		return nil, err
	}
	topName := c.Prefix + "_top"
	top := "TOP." + topName
	core := top + ".u_core"
	var groups []waveGroup
	add := func(group string, signals ...waveSignal) {
		if len(groups) == 0 || groups[len(groups)-1].name != group {
			groups = append(groups, waveGroup{name: group})
		}
		g := &groups[len(groups)-1]
		g.signals = append(g.signals, signals...)
	}
	in := func(group, path, module string, names ...string) {
		for _, name := range names {
			if bits := declared[module][name]; bits > 0 {
				add(group, waveSignal{path + "." + name, bits})
			}
		}
	}
	inTop := func(group string, names ...string) { in(group, top, topName, names...) }
	inCore := func(group string, names ...string) { in(group, core, c.Prefix+"_core", names...) }

	inTop("clock_and_reset", "clk", "rst", "link_up")
	inTop("link_in", stream("link_rx", "tvalid", "tready", "tdata", "tkeep")...)
	ports := c.Constants["PORTS"]
	for p := range ports {
		// The widths of a leaf's ports depend on parameters; the core has the ports of all inputs.
		for _, name := range stream("s_axis", streamSignals...) {
			if bits := declared[c.Prefix+"_core"][name] / int(ports); bits > 0 {
				add(fmt.Sprintf("port_%d_in", p), waveSignal{fmt.Sprintf("%s.g_port[%d].u_ingress.%s", core, p, name), bits})
			}
		}
	}
	inCore("commits", "judged", "e_port", "e_rank", "e_vid", "e_slot", "store", "refused", "refused_code", "turn_over", "complete")
	inCore("slots_read", "rd_en", "rd_slot", "rd_beat", "beat_strobe", "reduced", "sum_slot")
	inCore("result_cache", "cache_wr_en", "cache_wr_slot", "cache_wr_beat", "sum", "pick_ready", "pick_valid", "pick_slot", "pick_receivers", "pick_replay")
	inCore("results_out", stream("m_axis", streamSignals...)...)
	inTop("link_out", stream("link_tx", "tvalid", "tready", "tdata", "tkeep")...)
	for l := range c.Constants["LANES"] {
		group, lane := fmt.Sprintf("lane_%d", l), fmt.Sprintf("%s.g_lane[%d].u_lane", core, l)
		for p := range ports {
			in(group, lane, c.Prefix+"_lane", fmt.Sprintf("x_p%d", p))
		}
		in(group, lane, c.Prefix+"_lane", "y")
	}
	return groups, nil
}

// stretch is a part of a waveform.
type stretch struct {
	began, cycles uint64 // in cycles of the card's clock
}

// A cycle is two steps of the waveform.
const stepsPerCycle = 2

// gtkwave returns a GTKWave save file that shows the groups.
func gtkwave(wave string, groups []waveGroup, show stretch) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[dumpfile] %q\n[timestart] %d\n[size] 1600 1000\n", wave, stepsPerCycle*show.began)
	// The logarithm of pixels per step, without a marker.
	const width = 1000 // pixels, approximately
	zoom := 0 - math.Log2(max(1, float64(stepsPerCycle*show.cycles)/width))
	fmt.Fprintf(&b, "*%.6f%s\n", zoom, strings.Repeat(" -1", 27))
	// The flags of a line: a group's beginning and end, one bit, hexadecimal.
	const begin, end, bit, vector = "@800200", "@1000200", "@28", "@22"
	for _, g := range groups {
		fmt.Fprintf(&b, "%s\n-%s\n", begin, strings.ReplaceAll(g.name, "_", " "))
		for _, s := range g.signals {
			if s.bits == 1 {
				fmt.Fprintf(&b, "%s\n%s\n", bit, s.path)
			} else {
				fmt.Fprintf(&b, "%s\n%s[%d:0]\n", vector, s.path, s.bits-1)
			}
		}
		fmt.Fprintf(&b, "%s\n-%s\n", end, strings.ReplaceAll(g.name, "_", " "))
	}
	return b.String()
}

// surfer returns a Surfer command file that shows the groups.
func surfer(groups []waveGroup) string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "divider_add %s\n", g.name)
		for _, s := range g.signals {
			fmt.Fprintf(&b, "variable_add %s\n", s.path)
		}
	}
	b.WriteString("zoom_fit\n")
	return b.String()
}
