// Package netlist describes the structure of a Verilog module: ports, wires,
// instances and assignments, in the order of the printed text. A module has no
// behaviour of its own; the hand-written leaves that it instantiates do the work.
//
// The package collects all mistakes in a module, each with the line of Go that
// made it. Link returns them.
package netlist

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Module is one Verilog module.
type Module struct {
	Name  string
	Doc   string // purpose, printed as a comment above the module; may have several lines
	Ports []Item // *Port and Comment
	Items []Item // *Wire, *Assign, *Instance and Comment

	widths map[string]int  // of ports and wires, by name
	named  map[string]bool // instances
	errs   []error
	linked bool // Link found no mistake
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

// Comment is one or more lines of their own, above the next item.
type Comment struct{ Text string }

// Instance is an instance of a leaf or of another module.
type Instance struct {
	Module  string
	Name    string
	Comment string // printed above the instance
	Params  []Pair
	Ports   []Pair // after Link: all ports, in the order of the module's declaration

	owner *Module
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
func (Comment) item()   {}

// New returns an empty module. doc is its purpose.
func New(name, doc string) *Module {
	m := &Module{Name: name, Doc: doc, widths: map[string]int{}, named: map[string]bool{}}
	if !identifier.MatchString(name) {
		m.fail(caller(), "module name %q is not an identifier", name)
	}
	return m
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
func (m *Module) Wire(name string, width int, comment string) {
	where := caller()
	m.declare(name, width, where)
	m.Items = append(m.Items, &Wire{name, width, comment, where})
}

// Comment writes a comment into the body, above the next item.
func (m *Module) Comment(text string) { m.Items = append(m.Items, Comment{text}) }

// Assign drives left, a wire or output or a part of one, from the expression
// right.
func (m *Module) Assign(left, right string) {
	where := caller()
	if left == "" || right == "" {
		m.fail(where, "assign %q = %q lacks one side", left, right)
	}
	m.Items = append(m.Items, &Assign{left, right, where})
}

// Instance adds an instance of module under a name of its own. The comment is
// printed above it and may be empty.
func (m *Module) Instance(module, name, comment string) *Instance {
	i := &Instance{Module: module, Name: name, Comment: comment, owner: m, where: caller()}
	if !identifier.MatchString(module) || !identifier.MatchString(name) {
		m.fail(i.where, "instance %q of %q is not an identifier", name, module)
	}
	if m.named[name] {
		m.fail(i.where, "instance %s is declared twice", name)
	}
	m.named[name] = true
	m.Items = append(m.Items, i)
	return i
}

// Param sets a parameter of the instance.
func (i *Instance) Param(name, value string) *Instance {
	i.Params = i.add(i.Params, "parameter", Pair{name, value, i.where})
	if value == "" {
		i.owner.fail(i.where, "instance %s: parameter %s has no value", i.Name, name)
	}
	return i
}

// Connect connects a port of the instance to an expression. Link connects each other port to the
// net of the same name. No port stays open: linters cannot distinguish that from an oversight.
func (i *Instance) Connect(port, expr string) *Instance {
	where := caller()
	if expr == "" {
		i.owner.fail(where, "instance %s: port %s is left open", i.Name, port)
	}
	i.Ports = i.add(i.Ports, "port", Pair{port, expr, where})
	return i
}

func (i *Instance) add(list []Pair, what string, pair Pair) []Pair {
	for _, p := range list {
		if p.Name == pair.Name {
			i.owner.fail(pair.where, "instance %s: %s %s is given twice", i.Name, what, pair.Name)
		}
	}
	return append(list, pair)
}

// Leaves returns the names of the modules that m instantiates, each once, in
// the order of their first appearance.
func (m *Module) Leaves() []string {
	var names []string
	seen := map[string]bool{}
	for _, it := range m.Items {
		if i, ok := it.(*Instance); ok && !seen[i.Module] {
			seen[i.Module] = true
			names = append(names, i.Module)
		}
	}
	return names
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

func (m *Module) declare(name string, width int, where string) {
	if !identifier.MatchString(name) {
		m.fail(where, "%q is not an identifier", name)
	}
	if m.widths[name] != 0 {
		m.fail(where, "%s is declared twice", name)
	}
	if width < 1 {
		m.fail(where, "%s has a width of %d bits", name, width)
	}
	m.widths[name] = max(width, 1)
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
