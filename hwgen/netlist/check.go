package netlist

import (
	"cmp"
	"slices"

	"tributary/hwgen/expr"
)

// checker collects the mistakes of a module whose instances have all their ports.
type checker struct {
	*Module
	errs     []error
	undriven []error // reported alone: other mistakes often cause them
	driven   []driver
}

// driver is an input, assignment or instance that drives bits of a net.
type driver struct {
	expr.Bits
	where string
	both  bool // an inout port, which may share the bits with other drivers
}

// check returns the mistakes in a module's items: unknown names, selections out of range, and
// widths and directions that do not match. It also reports bits with several drivers and, without
// other mistakes, bits without a driver. earlier are the mistakes found before.
func (m *Module) check(earlier []error) []error {
	c := &checker{Module: m, errs: earlier}
	for _, it := range m.Ports {
		c.port(it)
	}
	for _, it := range m.Items {
		switch it := it.(type) {
		case *Assign:
			c.assign(it)
		case *Instance:
			c.instance(it)
		case *Wire, Comment:
		default:
			c.mistake("unknown", "%T is not an item of a module", it)
		}
	}
	c.drivers()
	if len(c.errs) == 0 {
		return c.undriven
	}
	return c.errs
}

func (c *checker) mistake(where, format string, args ...any) {
	c.errs = append(c.errs, c.Module.mistake(where, format, args...))
}

func (c *checker) port(it Item) {
	switch it := it.(type) {
	case *Port:
		if it.Direction != Out {
			c.driven = append(c.driven, driver{expr.Bits{Net: it.Name, MSB: it.Width - 1}, it.where, it.Direction == InOut})
		}
	case Comment:
	default:
		c.mistake("unknown", "%T is not an item of a port list", it)
	}
}

func (c *checker) assign(a *Assign) {
	if a.Left == "" || a.Right == "" {
		return // reported when it was made
	}
	left, ok := c.read(a.where, a.Left)
	right, ok2 := c.read(a.where, a.Right)
	if !ok || !ok2 {
		return
	}
	c.drive(a.where, a.Left, left, false)
	width, err := left.Width(c.widths)
	if err != nil {
		c.mistake(a.where, "width of %s: %w", a.Left, err)
		return
	}
	c.width(a.where, a.Left, width, a.Right, right)
}

func (c *checker) instance(i *Instance) {
	for n, p := range i.Ports {
		if p.Expr == "" {
			continue // reported when it was made
		}
		e, ok := c.read(p.where, p.Expr)
		if !ok || i.of == nil {
			continue
		}
		of, name := i.of[n], i.Name+"."+p.Name
		if of.Direction != In {
			c.drive(p.where, p.Expr, e, of.Direction == InOut)
		}
		c.width(p.where, name, of.Width, p.Expr, e)
	}
}

// read parses an expression. Its nets and their bits must exist.
func (c *checker) read(where, text string) (*expr.Expr, bool) {
	e, err := expr.Parse(text)
	if err != nil {
		c.mistake(where, "%w", err)
		return nil, false
	}
	before := len(c.errs)
	for _, name := range e.Names() {
		if c.widths[name] == 0 {
			c.mistake(where, "%s is not declared", name)
		}
	}
	for _, s := range e.Selections() {
		if w := c.widths[s.Net]; w == 1 || w > 0 && (s.MSB >= w || s.LSB < 0 || s.MSB < s.LSB) {
			c.mistake(where, "%s selects from %d bits", s, w)
		}
	}
	return e, len(c.errs) == before
}

// width compares the width of an expression with the width of its port or net.
func (c *checker) width(where, to string, want int, text string, e *expr.Expr) {
	got, err := e.Width(c.widths)
	switch {
	case err != nil:
		c.mistake(where, "width of %s: %w", text, err)
	case got != want:
		c.mistake(where, "%s has %d bits, %s has %d", to, want, text, got)
	}
}

// drive records the bits that are driven through an expression.
func (c *checker) drive(where, text string, e *expr.Expr, both bool) {
	all, err := e.Driven(c.widths)
	if err != nil {
		c.mistake(where, "%s is driven, but is %w", text, err)
	}
	for _, b := range all {
		c.driven = append(c.driven, driver{b, where, both})
	}
}

// drivers finds bits with several drivers, and bits without a driver.
func (c *checker) drivers() {
	of := map[string][]driver{}
	for _, d := range c.driven {
		of[d.Net] = append(of[d.Net], d)
	}
	for _, it := range slices.Concat(c.Ports, c.Items) {
		switch it := it.(type) {
		case *Port:
			c.net(it.Name, it.Width, it.where, of[it.Name])
		case *Wire:
			c.net(it.Name, it.Width, it.where, of[it.Name])
		}
	}
}

// nothing records a net, or bits of a net, without a driver.
func (c *checker) nothing(where string, drives any) {
	c.undriven = append(c.undriven, c.Module.mistake(where, "nothing drives %s", drives))
}

// net checks the drivers of one net.
func (c *checker) net(name string, width int, where string, by []driver) {
	slices.SortStableFunc(by, func(a, b driver) int { return cmp.Compare(a.LSB, b.LSB) })
	next := 0 // the lowest bit without a driver so far
	var last driver
	for _, d := range by {
		switch {
		case d.LSB > next:
			c.nothing(where, expr.Bits{Net: name, MSB: d.LSB - 1, LSB: next})
		case d.LSB < next && !(d.both && last.both):
			c.mistake(d.where, "%s is driven twice: also at %s", name, last.where)
		}
		if d.MSB >= next {
			next, last = d.MSB+1, d
		}
	}
	if next == 0 {
		c.nothing(where, name)
	} else if next < width {
		c.nothing(where, expr.Bits{Net: name, MSB: width - 1, LSB: next})
	}
}
