// Package netlist describes the structure of a Verilog module: ports, wires,
// instances, assignments and loops, in the order of the printed text. A module has no
// behaviour of its own; the hand-written leaves that it instantiates do the work.
//
// The package collects all mistakes in a module, each with the line of Go that
// made it. Link returns them.
package netlist

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Module is one Verilog module.
type Module struct {
	Name  string
	Doc   string // purpose, printed as a comment above the module; may have several lines
	Ports []Item // *Port and Comment
	*Body

	constants map[string]int64
	errs      []error
	linked    bool // Link found no mistake
}

// Body holds the items of a module or of a loop.
type Body struct {
	Items []Item // *Wire, *Assign, *Instance, *Loop, Include and Comment; loops only in a module

	module *Module
	widths map[string]int  // of the nets declared here, by name
	named  map[string]bool // instances and loops
}

// Loop repeats its items for each value of the genvar, from From to To-1. Its wires belong to one
// pass of the loop: neither other passes nor the rest of the module can name them.
type Loop struct {
	Name     string // of the block
	Genvar   string
	From, To int
	*Body

	where string
}

// Item is an element of a module's port list or body.
type Item interface{ item() }

// Direction is the direction of a port.
type Direction uint8

// The directions of a port.
const (
	In Direction = iota
	Out
	InOut
)

// Port is a port of a module: one bit when Width is 1, else [Width-1:0].
type Port struct {
	Direction Direction
	Name      string
	Width     int
	where     string
}

// Wire is a net inside a module: one bit when Width is 1, else [Width-1:0].
type Wire struct {
	Name    string
	Width   int
	Comment string // printed after the declaration
	where   string
}

// Assign drives a wire, an output or a part of one from an expression.
type Assign struct {
	Left, Right string
	where       string
}

// Include reads a header into the module.
type Include struct{ File string }

// Comment is one or more lines of their own, above the next item.
type Comment struct{ Text string }

// Instance is an instance of a leaf or of another module.
type Instance struct {
	Module  string
	Name    string
	Comment string // printed above the instance
	Params  []Pair
	Ports   []Pair // after Link: all ports, in the order of the module's declaration

	owner *Body
	of    []Port // the module's ports, in the same order; nil before Link
	where string
}

// Pair is a named parameter or port of an instance, and its expression.
type Pair struct {
	Name, Expr string
	where      string
}

func (*Port) item()     {}
func (*Wire) item()     {}
func (*Assign) item()   {}
func (*Instance) item() {}
func (*Loop) item()     {}
func (Include) item()   {}
func (Comment) item()   {}

// New returns an empty module. doc is its purpose.
func New(name, doc string) *Module {
	m := &Module{Name: name, Doc: doc, constants: map[string]int64{}}
	m.Body = newBody(m)
	if !identifier.MatchString(name) {
		m.fail(caller(), "module name %q is not an identifier", name)
	}
	return m
}

func newBody(m *Module) *Body {
	return &Body{module: m, widths: map[string]int{}, named: map[string]bool{}}
}

// Input declares an input of width bits.
func (m *Module) Input(name string, width int) { m.port(In, name, width, caller()) }

// Output declares an output of width bits.
func (m *Module) Output(name string, width int) { m.port(Out, name, width, caller()) }

// InOut declares a bidirectional port of width bits.
func (m *Module) InOut(name string, width int) { m.port(InOut, name, width, caller()) }

// PortComment writes a comment into the port list, above the next port.
func (m *Module) PortComment(text string) { m.Ports = append(m.Ports, Comment{text}) }

// Wire declares a wire of width bits. The comment may be empty.
func (b *Body) Wire(name string, width int, comment string) {
	where := caller()
	b.declare(name, width, where)
	b.Items = append(b.Items, &Wire{name, width, comment, where})
}

// Comment writes a comment into the body, above the next item.
func (b *Body) Comment(text string) { b.Items = append(b.Items, Comment{text}) }

// Assign drives left, a wire or output or a part of one, from the expression
// right.
func (b *Body) Assign(left, right string) {
	where := caller()
	if left == "" || right == "" {
		b.module.fail(where, "assign %q = %q lacks one side", left, right)
	}
	b.Items = append(b.Items, &Assign{left, right, where})
}

// Instance adds an instance of module under a name of its own. The comment is
// printed above it and may be empty.
func (b *Body) Instance(module, name, comment string) *Instance {
	i := &Instance{Module: module, Name: name, Comment: comment, owner: b, where: caller()}
	if !identifier.MatchString(module) || !identifier.MatchString(name) {
		b.module.fail(i.where, "instance %q of %q is not an identifier", name, module)
	}
	b.name("instance", name, i.where)
	b.Items = append(b.Items, i)
	return i
}

// Include reads a header with constants, by name, which expressions may use.
func (m *Module) Include(file string, constants map[string]int) {
	m.Items = append(m.Items, Include{file})
	for name, value := range constants {
		m.constants[name] = int64(value)
	}
}

// Loop adds a loop over from <= genvar < to, and names its block. Expressions of its items may use
// the genvar as a constant, for example x[8*p+:8] or y[p]. Parameters of its instances may not.
func (m *Module) Loop(name, genvar string, from, to int) *Loop {
	l := &Loop{Name: name, Genvar: genvar, From: from, To: to, where: caller()}
	l.Body = newBody(m)
	if !identifier.MatchString(name) || !identifier.MatchString(genvar) {
		m.fail(l.where, "loop %q over %q is not an identifier", name, genvar)
	}
	if from < 0 || from >= to {
		m.fail(l.where, "loop %s runs from %d to below %d", name, from, to)
	}
	m.name("loop", name, l.where)
	m.Items = append(m.Items, l)
	return l
}

// name registers the name of an instance or of a loop.
func (b *Body) name(what, name, where string) {
	if b.named[name] {
		b.module.fail(where, "%s %s is declared twice", what, name)
	}
	b.named[name] = true
}

// names returns the genvar and the names of the loop's nets and instances.
func (l *Loop) names() []string {
	return append(slices.Sorted(maps.Keys(l.widths)), append(slices.Sorted(maps.Keys(l.named)), l.Genvar)...)
}

// width returns the width of a net that the body can name, or 0.
func (b *Body) width(net string) int {
	if w := b.widths[net]; w != 0 {
		return w
	}
	return b.module.widths[net]
}

// Param sets a parameter of the instance.
func (i *Instance) Param(name, value string) *Instance {
	i.Params = i.add(i.Params, "parameter", Pair{name, value, i.where})
	if value == "" {
		i.owner.module.fail(i.where, "instance %s: parameter %s has no value", i.Name, name)
	}
	return i
}

// Connect connects a port of the instance to an expression. Link connects each other port to the
// net of the same name. No port stays open: linters cannot distinguish that from an oversight.
func (i *Instance) Connect(port, expr string) *Instance {
	where := caller()
	if expr == "" {
		i.owner.module.fail(where, "instance %s: port %s is left open", i.Name, port)
	}
	i.Ports = i.add(i.Ports, "port", Pair{port, expr, where})
	return i
}

func (i *Instance) add(list []Pair, what string, pair Pair) []Pair {
	for _, p := range list {
		if p.Name == pair.Name {
			i.owner.module.fail(pair.where, "instance %s: %s %s is given twice", i.Name, what, pair.Name)
		}
	}
	return append(list, pair)
}

// Leaves returns the names of the modules that m instantiates, each once, in
// the order of their first appearance.
func (m *Module) Leaves() []string {
	var names []string
	seen := map[string]bool{}
	for _, i := range m.Instances() {
		if !seen[i.Module] {
			seen[i.Module] = true
			names = append(names, i.Module)
		}
	}
	return names
}

// Instances returns the instances in the body and in its loops, in order. It returns an instance
// in a loop once.
func (b *Body) Instances() []*Instance {
	var all []*Instance
	for _, it := range b.Items {
		switch it := it.(type) {
		case *Instance:
			all = append(all, it)
		case *Loop:
			all = append(all, it.Instances()...)
		}
	}
	return all
}

// Concat returns the concatenation of the parts, the most significant first.
func Concat(parts ...string) string { return "{" + strings.Join(parts, ", ") + "}" }

// Slice returns bits [lsb+width-1:lsb] of a vector.
func Slice(name string, lsb, width int) string {
	if width == 1 {
		return fmt.Sprintf("%s[%d]", name, lsb)
	}
	return fmt.Sprintf("%s[%d:%d]", name, lsb+width-1, lsb)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (m *Module) port(d Direction, name string, width int, where string) {
	m.declare(name, width, where)
	m.Ports = append(m.Ports, &Port{d, name, width, where})
}

func (b *Body) declare(name string, width int, where string) {
	if !identifier.MatchString(name) {
		b.module.fail(where, "%q is not an identifier", name)
	}
	if b.widths[name] != 0 {
		b.module.fail(where, "%s is declared twice", name)
	}
	if width < 1 {
		b.module.fail(where, "%s has a width of %d bits", name, width)
	}
	b.widths[name] = max(width, 1)
}

func (m *Module) fail(where, format string, args ...any) {
	m.errs = append(m.errs, m.mistake(where, format, args...))
}

func (m *Module) mistake(where, format string, args ...any) error {
	return fmt.Errorf("%s: module %s: %w", where, m.Name, fmt.Errorf(format, args...))
}

// caller returns the position of the call to the exported function that called caller.
func caller() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}
