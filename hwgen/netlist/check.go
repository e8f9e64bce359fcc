package netlist

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tributary/hwgen/expr"
)

// checker collects the mistakes of a module whose instances have all their ports. It unrolls
// loops: each pass has its own nets, called LOOP[INDEX].NET.
type checker struct {
	*Module
	errs     []error
	undriven []error // reported alone: other mistakes often cause them
	nets     []net
	widths   map[string]int // of all nets
	driven   []driver
}

// net is a port, or a wire of the module or of one pass of a loop.
type net struct {
	name  string
	width int
	where string
}

// pass is one pass of a loop, or the module around the loops.
type pass struct {
	*Body
	prefix string           // of the nets declared in the loop
	values map[string]int64 // of the names that are constants
}

// declares reports whether the pass, or the module around it, declares a net of this name.
func (p pass) declares(net string) bool {
	return p.width(strings.TrimPrefix(net, p.prefix)) != 0
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
	c := &checker{Module: m, errs: earlier, widths: map[string]int{}}
	for _, it := range m.Ports {
		c.port(it)
	}
	c.items(pass{m.Body, "", m.constants})
	c.drivers()
	if len(c.errs) == 0 {
		return c.undriven
	}
	return c.errs
}

// items checks the items of a pass in order: an item may use only nets that are declared before it.
func (c *checker) items(p pass) {
	for _, it := range p.Items {
		switch it := it.(type) {
		case *Wire:
			c.net(p.prefix+it.Name, it.Width, it.where)
		case *Assign:
			c.assign(p, it)
		case *Instance:
			c.instance(p, it)
		case *Loop:
			c.loop(p, it)
		case Include, Comment:
		default:
			c.mistake("unknown", "%T is not an item of a module", it)
		}
	}
}

// loop checks each pass of a loop.
func (c *checker) loop(around pass, l *Loop) {
	if around.Body != c.Body {
		c.mistake(l.where, "loop %s is inside a loop", l.Name)
		return
	}
	for _, name := range l.names() {
		if c.Module.widths[name] != 0 || c.named[name] {
			c.mistake(l.where, "loop %s: %s is declared twice", l.Name, name)
		}
	}
	for i := l.From; i < l.To; i++ {
		values := maps.Clone(around.values)
		values[l.Genvar] = int64(i)
		c.items(pass{l.Body, fmt.Sprintf("%s[%d].", l.Name, i), values})
	}
}

// mistake records a mistake once, although every pass of a loop may have it.
func (c *checker) mistake(where, format string, args ...any) {
	err := c.Module.mistake(where, format, args...)
	if !slices.ContainsFunc(c.errs, func(e error) bool { return e.Error() == err.Error() }) {
		c.errs = append(c.errs, err)
	}
}

func (c *checker) net(name string, width int, where string) {
	c.nets = append(c.nets, net{name, width, where})
	c.widths[name] = width
}

func (c *checker) port(it Item) {
	switch it := it.(type) {
	case *Port:
		c.net(it.Name, it.Width, it.where)
		if it.Direction != Out {
			c.driven = append(c.driven, driver{expr.Bits{Net: it.Name, MSB: it.Width - 1}, it.where, it.Direction == InOut})
		}
	case Comment:
	default:
		c.mistake("unknown", "%T is not an item of a port list", it)
	}
}

func (c *checker) assign(p pass, a *Assign) {
	if a.Left == "" || a.Right == "" {
		return // reported when it was made
	}
	left, ok := c.read(p, a.where, a.Left)
	right, ok2 := c.read(p, a.where, a.Right)
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

func (c *checker) instance(p pass, i *Instance) {
	for n, to := range i.Ports {
		if to.Expr == "" {
			continue // reported when it was made
		}
		e, ok := c.read(p, to.where, to.Expr)
		if !ok || i.of == nil {
			continue
		}
		of, name := i.of[n], i.Name+"."+to.Name
		if of.Direction != In {
			c.drive(to.where, to.Expr, e, of.Direction == InOut)
		}
		c.width(to.where, name, of.Width, to.Expr, e)
	}
}

// read parses an expression of a pass. Its nets and their bits must exist.
func (c *checker) read(p pass, where, text string) (*expr.Expr, bool) {
	e, err := expr.Parse(text)
	if err != nil {
		c.mistake(where, "%w", err)
		return nil, false
	}
	e = e.In(p.values, func(name string) string {
		if p.Body.widths[name] != 0 {
			return p.prefix + name
		}
		return name
	})
	before := len(c.errs)
	for _, name := range e.Names() {
		switch {
		case c.widths[name] != 0:
		case p.declares(name):
			c.mistake(where, "%s is used before its declaration", strings.TrimPrefix(name, p.prefix))
		default:
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
	for _, n := range c.nets {
		c.drivenOnce(n, of[n.name])
	}
}

// nothing records a net, or bits of a net, without a driver.
func (c *checker) nothing(where string, drives any) {
	c.undriven = append(c.undriven, c.Module.mistake(where, "nothing drives %s", drives))
}

// drivenOnce checks the drivers of one net.
func (c *checker) drivenOnce(n net, by []driver) {
	slices.SortStableFunc(by, func(a, b driver) int { return cmp.Compare(a.LSB, b.LSB) })
	next := 0 // the lowest bit without a driver so far
	var last driver
	for _, d := range by {
		switch {
		case d.LSB > next:
			c.nothing(n.where, expr.Bits{Net: n.name, MSB: d.LSB - 1, LSB: next})
		case d.LSB < next && !(d.both && last.both):
			c.mistake(d.where, "%s is driven twice: also at %s", n.name, last.where)
		}
		if d.MSB >= next {
			next, last = d.MSB+1, d
		}
	}
	if next == 0 {
		c.nothing(n.where, n.name)
	} else if next < n.width {
		c.nothing(n.where, expr.Bits{Net: n.name, MSB: n.width - 1, LSB: next})
	}
}
