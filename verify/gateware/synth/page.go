package main

// The table as Markdown.

import (
	_ "embed"
	"fmt"
	"strings"

	"tributary/hwgen/boards"
	"tributary/hwgen/cells"
)

//go:embed introduction.md
var introduction string

// page returns the tables as Markdown.
func page(t cells.Table, whole boards.Table) string {
	var b strings.Builder
	b.WriteString(introduction)
	fmt.Fprintf(&b, "Tools: %s.\n\n", strings.Join(t.Tools, ", "))
	b.WriteString("| circuit | COMB | FF | block RAM | DSP | MHz (seeds) | cycles | k adds/s/COMB | must | Xilinx LUT | FF | DSP |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range circuits() {
		row, ok := find(t, c.name)
		if !ok {
			fmt.Fprintf(&b, "| %s | not recorded | | | | | | | %s | | | |\n", c.name, limits(c))
			continue
		}
		comb := fmt.Sprint(row.COMB)
		share, err := share(c, t)
		if share > 0 {
			comb += fmt.Sprintf(" (%d with its share)", row.COMB+share)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s | %s | %s | %s | %d | %d | %d |\n",
			c.name, comb, row.FF, row.BRAM, row.DSP, speed(c, row), cycles(row), rate(c, row), verdict(c, row, share, err),
			row.Xilinx.LUT, row.Xilinx.FF, row.Xilinx.DSP)
	}
	b.WriteString(boardsPage(whole))
	return b.String()
}

// share returns the COMB of the circuits that lanes share, divided by their number. It is an
// error if one is not recorded.
func share(c circuit, t cells.Table) (int, error) {
	sum := 0
	for _, name := range c.shared {
		row, ok := find(t, name)
		if !ok {
			return 0, fmt.Errorf("%s is not recorded", name)
		}
		sum += row.COMB
	}
	if sum == 0 {
		return 0, nil
	}
	return (sum + c.sharedBy - 1) / c.sharedBy, nil
}

// speed returns the median frequency and those of the seeds, and the part if it is not the
// default.
func speed(c circuit, row cells.Row) string {
	var seeds []string
	for _, mhz := range row.Seeds {
		seeds = append(seeds, fmt.Sprintf("%.0f", mhz))
	}
	text := fmt.Sprintf("%.1f (%s)", row.MHz, strings.Join(seeds, ", "))
	if c.part != part25F {
		text += " on " + row.Part
	}
	return text
}

func cycles(row cells.Row) string {
	if row.Latency == 0 {
		return ""
	}
	return fmt.Sprint(row.Latency)
}

// rate returns the speed of one table, in thousand additions of two numbers per second.
func rate(c circuit, row cells.Row) string {
	if c.additions == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(c.additions)*row.MHz*1000/float64(row.COMB))
}

// limits returns the limits of a circuit.
func limits(c circuit) string {
	if c.leastMHz == 0 {
		return ""
	}
	text := fmt.Sprintf("≥ %d MHz", c.leastMHz)
	if c.mostCOMB > 0 {
		text = fmt.Sprintf("≤ %d, %s", c.mostCOMB, text)
	}
	return text
}

// verdict returns the limits, and whether the circuit keeps them.
func verdict(c circuit, row cells.Row, share int, err error) string {
	text := limits(c)
	switch {
	case text == "":
	case err != nil:
		text += ": " + err.Error()
	case (c.mostCOMB > 0 && row.COMB+share > c.mostCOMB) || row.MHz < float64(c.leastMHz):
		text += ": **falls short**"
	}
	return text
}
