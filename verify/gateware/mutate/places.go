package main

// A mutant's place in a leaf, independent of the elaboration: with two ports or five, in a
// proof or in a card.

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutant is a mistake: Yosys's change, and its place.
type mutant struct {
	Where  string // line.column-line.column of the leaf
	Kind   string // of the cell
	Target string // the cell's register or memory, or ""
	Number int    // among the cells of one place, kind and target
	Port   string
	Bit    int
	Mode   string // inv, const0, const1, cnot0, cnot1
	Other  int    // the control bit of cnot
}

// String returns the mutant's name in survivors.txt and on the page.
func (m mutant) String() string {
	s := fmt.Sprintf("%s %s#%d %s[%d] %s", m.Where, m.Kind, m.Number, m.Port, m.Bit, m.Mode)
	if strings.HasPrefix(m.Mode, "cnot") {
		s += fmt.Sprintf(":%d", m.Other)
	}
	if m.Target != "" {
		s += " of " + m.Target
	}
	return s
}

// spot is a place, kind and target, which several cells may share.
type spot struct{ source, kind, target string }

// spots groups a module's cells by spot, in the order in which Yosys made them.
func (m *module) spots() map[spot][]*cell {
	users := map[string][]*cell{}
	for _, c := range m.cells {
		for port, expression := range c.ports {
			if !isOutput(port) {
				for _, name := range operands(expression) {
					users[name] = append(users[name], c)
				}
			}
		}
	}
	all := map[spot][]*cell{}
	for _, c := range m.cells {
		s := spot{c.source, kindOf(c), target(c, users, 0)}
		all[s] = append(all[s], c)
	}
	for _, cells := range all {
		slices.SortStableFunc(cells, func(a, b *cell) int { return cmp.Compare(a.made(), b.made()) })
	}
	return all
}

// made is Yosys's number of the cell.
func (c *cell) made() int {
	n, _ := strconv.Atoi(c.name[strings.LastIndexByte(c.name, '$')+1:])
	return n
}

// kindOf is the cell's type. For an instance it is the instance's name, since the module's name
// includes parameters.
func kindOf(c *cell) string {
	if strings.HasPrefix(c.name, `\`) {
		return c.name
	}
	return c.kind
}

func isOutput(port string) bool { return port == `\Y` || port == `\Q` }

var (
	counted = regexp.MustCompile(`\$\d+`)
	bounds  = regexp.MustCompile(`\[[\d:]+\]$`)
	folders = regexp.MustCompile(`[\w./-]*/`)
)

// target follows a cell of an if or a case to the register, memory or variable that it drives.
// Many such cells share one source position.
func target(c *cell, users map[string][]*cell, depth int) string {
	switch {
	case depth > 100:
		return ""
	case strings.HasPrefix(c.kind, "$memwr"), strings.HasPrefix(c.kind, "$memrd"):
		return ""
	case c.kind != "$mux" && c.kind != "$pmux" && !strings.HasPrefix(c.kind, "$dff"):
		if depth > 0 {
			return ""
		}
	}
	for _, port := range []string{`\Q`, `\Y`} {
		names := operands(c.ports[port])
		if len(names) == 0 {
			continue
		}
		name := names[0]
		if strings.HasPrefix(name, `\`) {
			return strings.TrimPrefix(name, `\`)
		}
		if strings.HasPrefix(name, "$0") || strings.HasPrefix(name, "$1") || strings.HasPrefix(name, "$2") {
			if _, named, ok := strings.Cut(name, `\`); ok {
				return bounds.ReplaceAllString(counted.ReplaceAllString(folders.ReplaceAllString(named, ""), ""), "")
			}
		}
		if c.kind != "$mux" && c.kind != "$pmux" {
			return ""
		}
		for _, user := range users[name] {
			if found := target(user, users, depth+1); found != "" {
				return found
			}
		}
	}
	return ""
}

// command returns Yosys's command for a mutant of the module, or "" if this elaboration lacks its
// place.
func (m *module) command(leaf string, x mutant, spots map[spot][]*cell) string {
	cells := find(spots, spot{leaf + ".v:" + x.Where, x.Kind, x.Target})
	if len(cells) == 0 {
		return ""
	}
	c := cells[x.Number%len(cells)]
	expression, ok := c.ports[`\`+x.Port]
	if !ok {
		return ""
	}
	width := m.width(expression)
	if width == 0 {
		return ""
	}
	bit, mode := min(x.Bit, width-1), x.Mode
	other := min(x.Other, width-1)
	if strings.HasPrefix(mode, "cnot") {
		if other == bit {
			other = (bit + 1) % width
		}
		if width == 1 {
			mode = "inv"
		}
	}
	s := fmt.Sprintf("mutate -mode %s -module %s -cell %s -port %s -portbit %d", mode, trim(m.name), trim(c.name), x.Port, bit)
	if strings.HasPrefix(mode, "cnot") {
		s += fmt.Sprintf(" -ctrlbit %d", other)
	}
	return s
}

// find returns the cells of a spot. If there are none, it returns those of the only spot with this
// source and kind: of two names of one net, an elaboration may keep either.
func find(spots map[spot][]*cell, wanted spot) []*cell {
	if cells := spots[wanted]; len(cells) > 0 {
		return cells
	}
	var others [][]*cell
	for s, cells := range spots {
		if s.source == wanted.source && s.kind == wanted.kind {
			others = append(others, cells)
		}
	}
	if len(others) != 1 {
		return nil
	}
	return others[0]
}

// trim removes the backslash that RTLIL puts before names from the source.
func trim(name string) string { return strings.TrimPrefix(name, `\`) }

var option = regexp.MustCompile(`-(mode|cell|port|portbit|ctrlbit) (\S+)`)

// parse reads a line of "mutate -list" on the module.
func (m *module) parse(line string, spots map[spot][]*cell) (mutant, error) {
	var x mutant
	name := ""
	for _, found := range option.FindAllStringSubmatch(line, -1) {
		n, _ := strconv.Atoi(found[2])
		switch found[1] {
		case "mode":
			x.Mode = found[2]
		case "cell":
			name = found[2]
		case "port":
			x.Port = found[2]
		case "portbit":
			x.Bit = n
		case "ctrlbit":
			x.Other = n
		}
	}
	for s, cells := range spots {
		for i, c := range cells {
			if trim(c.name) == name {
				_, x.Where, _ = strings.Cut(s.source, ":")
				x.Kind, x.Target, x.Number = s.kind, s.target, i
				return x, nil
			}
		}
	}
	return x, fmt.Errorf("no cell %q in: %s", name, line)
}
