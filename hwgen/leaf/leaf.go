// Package leaf reads the parameters and ports of hand-written Verilog modules from their source, so
// that the generator can check its connections.
package leaf

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tributary/hwgen/expr"
	"tributary/hwgen/netlist"
)

// Leaf is the head of a module.
type Leaf struct {
	Name   string
	Params []Param
	Ports  []Port
}

// Param is an integer parameter.
type Param struct {
	Name    string
	Default *expr.Expr
}

// Port is a port; a port without a range has one bit.
type Port struct {
	Direction netlist.Direction
	Name      string
	msb, lsb  *expr.Expr
}

var (
	comments  = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	heading   = regexp.MustCompile(`(?m)^\s*module\s+(\w+)`)
	paramText = regexp.MustCompile(`^parameter\s*(?:integer\b|\[[^\]]*\])?\s*(\w+)\s*=\s*(.+)$`)
	portText  = regexp.MustCompile(`^(input|output|inout)\s*\b(?:wire|reg)?\s*(\[[^\]]*\])?\s*(\w+)$`)
	direction = map[string]netlist.Direction{"input": netlist.In, "output": netlist.Out, "inout": netlist.InOut}
)

// Code returns the source without its comments.
func Code(source string) string { return comments.ReplaceAllString(source, " ") }

// Parse reads the head of the only module in a source. It fails on every unknown construct.
func Parse(source string) (*Leaf, error) {
	source = Code(source)
	found := heading.FindAllStringSubmatchIndex(source, -1)
	if len(found) != 1 {
		return nil, fmt.Errorf("%d modules in a file, want 1", len(found))
	}
	l := &Leaf{Name: source[found[0][2]:found[0][3]]}
	rest := strings.TrimSpace(source[found[0][1]:])
	if after, ok := strings.CutPrefix(rest, "#"); ok {
		items, after, err := list(after)
		if err != nil {
			return nil, fmt.Errorf("parameters of %s: %w", l.Name, err)
		}
		for _, item := range items {
			if err := l.param(item); err != nil {
				return nil, fmt.Errorf("%s: %w", l.Name, err)
			}
		}
		rest = after
	}
	items, rest, err := list(rest)
	if err != nil {
		return nil, fmt.Errorf("ports of %s: %w", l.Name, err)
	}
	for _, item := range items {
		if err := l.port(item); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	if !strings.HasPrefix(strings.TrimSpace(rest), ";") {
		return nil, fmt.Errorf("%s: no semicolon after the ports", l.Name)
	}
	return l, nil
}

// list returns the items between the parentheses at the start of text, and the text after them.
// Commas in inner parentheses do not separate items.
func list(text string) (items []string, rest string, err error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "(") {
		return nil, "", errors.New("no parenthesis")
	}
	depth, start := 0, 1
	for i, c := range text {
		switch {
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
		}
		if depth == 1 && c == ',' || depth == 0 {
			items = append(items, strings.Join(strings.Fields(text[start:i]), " "))
			start = i + 1
		}
		if depth == 0 {
			return items, text[start:], nil
		}
	}
	return nil, "", errors.New("a parenthesis is not closed")
}

func (l *Leaf) param(item string) error {
	found := paramText.FindStringSubmatch(item)
	if found == nil {
		return fmt.Errorf("cannot read the parameter %q", item)
	}
	value, err := expr.Parse(found[2])
	l.Params = append(l.Params, Param{found[1], value})
	return err
}

func (l *Leaf) port(item string) (err error) {
	found := portText.FindStringSubmatch(item)
	if found == nil {
		return fmt.Errorf("cannot read the port %q", item)
	}
	p := Port{Direction: direction[found[1]], Name: found[3]}
	if found[2] != "" {
		p.msb, p.lsb, err = expr.Range(found[2])
	}
	l.Ports = append(l.Ports, p)
	return err
}

// Bind returns the ports of an instance with these parameters.
func (l *Leaf) Bind(given []netlist.Pair) ([]netlist.Port, error) {
	values, err := l.values(given)
	if err != nil {
		return nil, err
	}
	var ports []netlist.Port
	var errs []error
	for _, p := range l.Ports {
		width, err := p.width(values)
		if err != nil {
			errs = append(errs, fmt.Errorf("port %s of %s: %w", p.Name, l.Name, err))
		}
		ports = append(ports, netlist.Port{Direction: p.Direction, Name: p.Name, Width: width})
	}
	return ports, errors.Join(errs...)
}

// values returns the value of every parameter.
func (l *Leaf) values(given []netlist.Pair) (map[string]int64, error) {
	values := map[string]int64{}
	var errs []error
	for _, g := range given {
		if !slices.ContainsFunc(l.Params, func(p Param) bool { return p.Name == g.Name }) {
			errs = append(errs, fmt.Errorf("%s has no parameter %s", l.Name, g.Name))
			continue
		}
		e, err := expr.Parse(g.Expr)
		if err == nil {
			values[g.Name], err = e.Value(nil)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("parameter %s: %w", g.Name, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for _, p := range l.Params {
		if _, ok := values[p.Name]; ok {
			continue
		}
		value, err := p.Default.Value(values)
		if err != nil {
			return nil, fmt.Errorf("parameter %s of %s: %w", p.Name, l.Name, err)
		}
		values[p.Name] = value
	}
	return values, nil
}

func (p Port) width(values map[string]int64) (int, error) {
	if p.msb == nil {
		return 1, nil
	}
	msb, err := p.msb.Value(values)
	if err != nil {
		return 0, err
	}
	lsb, err := p.lsb.Value(values)
	if err == nil && (lsb != 0 || msb < 0) {
		err = fmt.Errorf("its bits are [%d:%d]", msb, lsb)
	}
	return int(msb) + 1, err
}
