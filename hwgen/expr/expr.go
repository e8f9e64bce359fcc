// Package expr parses the Verilog expressions of constants, parameters and connections: values,
// widths, and nets. It supports only the part of the language that rtl and plan use, and fails on
// everything else.
package expr

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// kind is the kind of a node.
type kind uint8

const (
	number   kind = iota // value, width: 0 when the constant has no size
	name                 // text
	selected             // text[args[0]], text[args[0]:args[1]] or text[args[0]+:args[1]]; op says which
	concat               // {args...}
	repeat               // {args[0]{args[1]}}
	unary                // op args[0]
	binary               // args[0] op args[1]
	choice               // args[0] ? args[1] : args[2]
	call                 // text(args...)
)

// Expr is a parsed expression.
type Expr struct {
	kind    kind
	op      string
	text    string
	args    []*Expr
	value   int64
	width   int
	unknown bool // a constant with x or z
}

// Value returns the value of a constant expression, given the values of its names.
func (e *Expr) Value(names map[string]int64) (int64, error) {
	var args []int64
	if e.kind != selected && e.kind != concat && e.kind != repeat {
		for _, a := range e.args {
			v, err := a.Value(names)
			if err != nil {
				return 0, err
			}
			args = append(args, v)
		}
	}
	switch e.kind {
	case number:
		if e.unknown {
			return 0, fmt.Errorf("%s has no value", e.text)
		}
		return e.value, nil
	case name:
		v, ok := names[e.text]
		if !ok {
			return 0, fmt.Errorf("%s is not a parameter", e.text)
		}
		return v, nil
	case unary:
		return unaryValue(e.op, args[0])
	case binary:
		return binaryValue(e.op, args[0], args[1])
	case choice:
		if args[0] != 0 {
			return args[1], nil
		}
		return args[2], nil
	case call:
		if e.text == "$clog2" && len(args) == 1 && args[0] > 0 {
			return int64(bits.Len64(uint64(args[0] - 1))), nil
		}
	}
	return 0, errors.New("an expression of this kind has no value here")
}

func unaryValue(op string, a int64) (int64, error) {
	switch op {
	case "-":
		return -a, nil
	case "+":
		return a, nil
	case "!":
		return truth(a == 0), nil
	}
	return 0, fmt.Errorf("%s has no value here", op)
}

func binaryValue(op string, a, b int64) (int64, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/", "%":
		if b == 0 {
			return 0, errors.New("a division by 0")
		}
		if op == "/" {
			return a / b, nil
		}
		return a % b, nil
	case "<<", ">>":
		if b < 0 || b > 63 {
			return 0, fmt.Errorf("a shift by %d", b)
		}
		if op == "<<" {
			return a << b, nil
		}
		return int64(uint64(a) >> b), nil
	case "<":
		return truth(a < b), nil
	case "<=":
		return truth(a <= b), nil
	case ">":
		return truth(a > b), nil
	case ">=":
		return truth(a >= b), nil
	case "==":
		return truth(a == b), nil
	case "!=":
		return truth(a != b), nil
	case "&&":
		return truth(a != 0 && b != 0), nil
	case "||":
		return truth(a != 0 || b != 0), nil
	}
	return 0, fmt.Errorf("%s has no value here", op)
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Width returns the self-determined width of the expression, given the widths of its nets. An
// operation is as wide as its widest operand. Width fails for an expression without a definite
// width, such as an unsized constant.
func (e *Expr) Width(nets map[string]int) (int, error) {
	switch e.kind {
	case number:
		if e.width == 0 {
			return 0, fmt.Errorf("%s has no size", e.text)
		}
		return e.width, nil
	case name:
		return nets[e.text], nil
	case selected:
		return e.selectedWidth()
	case concat:
		return e.sum(nets)
	case repeat:
		times, err := e.args[0].Value(nil)
		if err != nil {
			return 0, err
		}
		width, err := e.args[1].Width(nets)
		return int(times) * width, err
	case choice:
		return widest(nets, e.args[1:])
	case unary:
		if strings.Contains("~-+", e.op) {
			return e.args[0].Width(nets)
		}
		return 1, nil
	case binary:
		switch e.op {
		case "&&", "||", "==", "!=", "<", "<=", ">", ">=":
			return 1, nil
		case "<<", ">>":
			return e.args[0].Width(nets)
		}
		return widest(nets, e.args)
	}
	return 0, fmt.Errorf("the width of %s() is not known here", e.text)
}

// selectedWidth returns the width of a bit or of a range of bits, whose size must be constant.
func (e *Expr) selectedWidth() (int, error) {
	switch e.op {
	case "":
		return 1, nil
	case "+:":
		n, err := e.args[1].Value(nil)
		return int(n), err
	}
	msb, lsb, err := e.Constant()
	return msb - lsb + 1, err
}

// Constant returns the bits of a selection, if they are constant.
func (e *Expr) Constant() (msb, lsb int, err error) {
	first, err := e.args[0].Value(nil)
	if err != nil || e.op == "" {
		return int(first), int(first), err
	}
	second, err := e.args[1].Value(nil)
	if e.op == "+:" {
		return int(first + second - 1), int(first), err
	}
	return int(first), int(second), err
}

func (e *Expr) sum(nets map[string]int) (int, error) {
	sum := 0
	for _, a := range e.args {
		w, err := a.Width(nets)
		if err != nil {
			return 0, err
		}
		sum += w
	}
	return sum, nil
}

func widest(nets map[string]int, args []*Expr) (int, error) {
	width := 0
	for _, a := range args {
		w, err := a.Width(nets)
		if err != nil {
			return 0, err
		}
		width = max(width, w)
	}
	return width, nil
}

// Names returns the nets in the expression, in order.
func (e *Expr) Names() []string {
	var names []string
	if e.kind == name || e.kind == selected {
		names = append(names, e.text)
	}
	for _, a := range e.args {
		names = append(names, a.Names()...)
	}
	return names
}

// In returns the expression inside a scope: names that values has are constants, and rename
// returns the names of all others.
func (e *Expr) In(values map[string]int64, rename func(string) string) *Expr {
	v, constant := values[e.text]
	if e.kind == name && constant {
		return &Expr{kind: number, text: e.text, value: v}
	}
	in := *e
	if e.kind == name || e.kind == selected {
		in.text = rename(e.text)
	}
	in.args = nil
	for _, a := range e.args {
		in.args = append(in.args, a.In(values, rename))
	}
	return &in
}

// Bits are the bits [MSB:LSB] of a net, by constants.
type Bits struct {
	Net      string
	MSB, LSB int
}

// Selections returns the constant selections in the expression, in order.
func (e *Expr) Selections() []Bits {
	var all []Bits
	if e.kind == selected {
		if msb, lsb, err := e.Constant(); err == nil {
			all = append(all, Bits{e.text, msb, lsb})
		}
	}
	for _, a := range e.args {
		all = append(all, a.Selections()...)
	}
	return all
}

// Driven returns the bits that a driver of the expression drives. The expression is a net, constant
// bits of a net, or a concatenation of these; Driven fails on everything else.
func (e *Expr) Driven(nets map[string]int) ([]Bits, error) {
	switch e.kind {
	case name:
		return []Bits{{e.text, nets[e.text] - 1, 0}}, nil
	case selected:
		msb, lsb, err := e.Constant()
		return []Bits{{e.text, msb, lsb}}, err
	case concat:
		var all []Bits
		for _, a := range e.args {
			parts, err := a.Driven(nets)
			if err != nil {
				return nil, err
			}
			all = append(all, parts...)
		}
		return all, nil
	}
	return nil, errors.New("neither a net nor bits of one")
}

// String returns the bits as a Verilog selection.
func (b Bits) String() string {
	if b.MSB == b.LSB {
		return fmt.Sprintf("%s[%d]", b.Net, b.MSB)
	}
	return fmt.Sprintf("%s[%d:%d]", b.Net, b.MSB, b.LSB)
}
