// Package verilog prints netlists as Verilog-2005 that a hardware engineer can
// review: columns aligned, one port or connection a line, in the layout that
// verible-verilog-format gives with its defaults.
package verilog

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"tributary/hwgen/netlist"
)

// lineLimit is the formatter's column limit; longer concatenations are broken.
const lineLimit = 100

// Print writes module m with its doc comment, between `default_nettype none
// and wire. It fails if m has mistakes, if netlist.Link has not checked it, or if w fails.
func Print(w io.Writer, m *netlist.Module) error {
	if !m.Linked() {
		return fmt.Errorf("module %s has errors, or is not linked", m.Name)
	}
	p := &printer{w: w, indent: "  ", genvars: map[string]bool{}}
	p.comment("", m.Doc)
	p.line("")
	p.line("`default_nettype none")
	p.line("")
	p.header(m)
	p.body(m.Items)
	p.line("")
	p.line("endmodule")
	p.line("")
	p.line("`default_nettype wire")
	return p.err
}

// printer writes lines until the first error, which it keeps.
type printer struct {
	w       io.Writer
	err     error
	indent  string          // of items
	genvars map[string]bool // declared so far
}

func (p *printer) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	s := format
	if len(args) > 0 {
		s = fmt.Sprintf(format, args...)
	}
	_, p.err = io.WriteString(p.w, s+"\n")
}

// fail keeps the first error.
func (p *printer) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *printer) comment(indent, text string) {
	if text == "" {
		return
	}
	for l := range strings.SplitSeq(text, "\n") {
		p.line("%s", strings.TrimRight(indent+"// "+l, " "))
	}
}

// header prints the module's name and its ports. A comment in the list starts a
// group, after a blank line. Columns are aligned within a group.
func (p *printer) header(m *netlist.Module) {
	if len(m.Ports) == 0 {
		p.line("module %s;", m.Name)
		return
	}
	p.line("module %s (", m.Name)
	last := len(m.Ports) - 1
	for last >= 0 && !isPort(m.Ports[last]) {
		last--
	}
	for i := 0; i < len(m.Ports); {
		if c, ok := m.Ports[i].(netlist.Comment); ok {
			if i > 0 {
				p.line("")
			}
			p.comment("    ", c.Text)
			i++
			continue
		}
		end := i
		for end < len(m.Ports) && isPort(m.Ports[end]) {
			end++
		}
		if end == i {
			p.fail("%T in a port list cannot be printed", m.Ports[i])
			return
		}
		p.ports(m.Ports[i:end], end > last)
		i = end
	}
	p.line(");")
}

// ports prints one group of ports; the last port of the module has no comma.
func (p *printer) ports(group []netlist.Item, last bool) {
	var widths []int
	words := [...]string{netlist.In: "input", netlist.Out: "output", netlist.InOut: "inout"}
	column := 0
	for _, it := range group {
		port := it.(*netlist.Port)
		widths = append(widths, port.Width)
		column = max(column, len(words[port.Direction]))
	}
	ranges := newRanges(widths)
	for i, it := range group {
		port := it.(*netlist.Port)
		comma := ","
		if last && i == len(group)-1 {
			comma = ""
		}
		p.line("    %-*s wire %s%s%s", column, words[port.Direction], ranges.text(port.Width), port.Name, comma)
	}
}

// ranges prints the bit ranges of a group of declarations in one column.
type ranges struct {
	digits int // of the largest most significant bit; 0 when all are one bit wide
}

func newRanges(widths []int) ranges {
	var r ranges
	for _, w := range widths {
		if w > 1 {
			r.digits = max(r.digits, len(strconv.Itoa(w-1)))
		}
	}
	return r
}

// text returns "[ 7:0] ", or as many blanks for one bit.
func (r ranges) text(width int) string {
	switch {
	case r.digits == 0:
		return ""
	case width == 1:
		return strings.Repeat(" ", r.digits+len("[:0] "))
	}
	return fmt.Sprintf("[%*d:0] ", r.digits, width-1)
}

// body prints the items of a module or a loop, run by run.
func (p *printer) body(items []netlist.Item) {
	for start := 0; start < len(items); {
		end := runEnd(items, start)
		if start > 0 {
			p.line("")
		}
		p.run(items[start:end])
		start = end
	}
}

// runEnd returns the end of the run that begins at start: items of one kind
// and the comments before and between them, which do not end it.
func runEnd(items []netlist.Item, start int) int {
	var kind reflect.Type
	end := start
	for i := start; i < len(items); i++ {
		if isComment(items[i]) {
			continue
		}
		if kind == nil {
			kind = reflect.TypeOf(items[i])
		}
		if reflect.TypeOf(items[i]) != kind {
			return end
		}
		end = i + 1
	}
	return len(items) // comments at the end stay with the last run
}

// run prints items of one kind and their comments, aligned with one another.
func (p *printer) run(items []netlist.Item) {
	var widths []int
	var assigns []netlist.Pair
	for _, it := range items {
		switch it := it.(type) {
		case *netlist.Wire:
			widths = append(widths, it.Width)
		case *netlist.Assign:
			assigns = append(assigns, netlist.Pair{Name: it.Left, Expr: it.Right})
		}
	}
	left := column(assigns, p.indent+"assign ", " = ", ";")
	ranges := newRanges(widths)
	for i, it := range items {
		if i > 0 && !isComment(items[i-1]) && (isComment(it) || isInstance(it) || isLoop(it)) {
			p.line("")
		}
		switch it := it.(type) {
		case netlist.Comment:
			p.comment(p.indent, it.Text)
		case *netlist.Wire:
			p.wire(it, ranges)
		case *netlist.Assign:
			p.assign(it, left)
		case *netlist.Instance:
			p.instance(it)
		case *netlist.Loop:
			p.loop(it)
		case netlist.Include:
			p.line("%s`include \"%s\"", p.indent, it.File)
		default:
			p.fail("%T cannot be printed", it)
		}
	}
}

func isPort(it netlist.Item) bool {
	_, ok := it.(*netlist.Port)
	return ok
}

func isComment(it netlist.Item) bool {
	_, ok := it.(netlist.Comment)
	return ok
}

func isInstance(it netlist.Item) bool {
	_, ok := it.(*netlist.Instance)
	return ok
}

func isLoop(it netlist.Item) bool {
	_, ok := it.(*netlist.Loop)
	return ok
}

func (p *printer) wire(w *netlist.Wire, ranges ranges) {
	comment := ""
	if w.Comment != "" {
		comment = "  // " + w.Comment
	}
	p.line("%swire %s%s;%s", p.indent, ranges.text(w.Width), w.Name, comment)
}

// assign prints an assignment, its left side in a column. It breaks a concatenation on the left if
// the line does not fit.
func (p *printer) assign(a *netlist.Assign, column int) {
	before := fmt.Sprintf("assign %-*s = ", column, a.Left)
	if fits(p.indent+before+a.Right+";", a.Left) {
		p.expr(p.indent, before, a.Right, ";")
		return
	}
	p.expr(p.indent, "assign ", a.Left, " = "+a.Right+";")
}

func (p *printer) instance(i *netlist.Instance) {
	p.comment(p.indent, i.Comment)
	if len(i.Params) == 0 {
		p.line("%s%s %s (", p.indent, i.Module, i.Name)
	} else {
		p.line("%s%s #(", p.indent, i.Module)
		p.pairs(i.Params)
		p.line("%s) %s (", p.indent, i.Name)
	}
	p.pairs(i.Ports)
	p.line("%s);", p.indent)
}

// loop prints a generate block, after its genvar if no earlier loop declares it.
func (p *printer) loop(l *netlist.Loop) {
	around := p.indent
	if !p.genvars[l.Genvar] {
		p.genvars[l.Genvar] = true
		p.line("%sgenvar %s;", around, l.Genvar)
	}
	p.line("%sgenerate", around)
	p.line("%s  for (%s = %d; %[2]s < %[4]d; %[2]s = %[2]s + 1) begin : %[5]s", around, l.Genvar, l.From, l.To, l.Name)
	p.indent = around + "    "
	p.body(l.Items)
	p.indent = around
	p.line("%s  end", around)
	p.line("%sendgenerate", around)
}

// column returns the width of the names' column. Like the formatter, it returns 0,
// no alignment, if one of the lines will be broken.
func column(list []netlist.Pair, before, between, after string) int {
	width := 0
	for _, c := range list {
		width = max(width, len(c.Name))
	}
	for _, c := range list {
		line := fmt.Sprintf("%s%-*s%s%s%s", before, width, c.Name, between, c.Expr, after)
		if !fits(line, c.Name) || !fits(line, c.Expr) {
			return 0
		}
	}
	return width
}

// pairs prints named parameters or connections, the expressions in one column.
func (p *printer) pairs(list []netlist.Pair) {
	indent := p.indent + "    "
	width := column(list, indent+".", "(", "),")
	for i, c := range list {
		end := "),"
		if i == len(list)-1 {
			end = ")"
		}
		p.expr(indent, fmt.Sprintf(".%-*s(", width, c.Name), c.Expr, end)
	}
}

// expr prints an expression on one line. It breaks a concatenation that does not fit:
// all parts on a line of their own or, if that is too long, one part per line, and so on in each part.
func (p *printer) expr(indent, before, expr, after string) {
	if one := indent + before + expr + after; fits(one, expr) {
		p.line("%s", one)
		return
	}
	parts := concatParts(expr)
	p.line("%s{", indent+before)
	inner := indent + "  "
	if all := inner + strings.Join(parts, ", "); len(all) <= lineLimit {
		p.line("%s", all)
	} else {
		for i, part := range parts {
			end := ","
			if i == len(parts)-1 {
				end = ""
			}
			p.expr(inner, "", part, end)
		}
	}
	p.line("%s}%s", indent, after)
}

// fits reports whether a line with expr stays one line. The formatter breaks only
// concatenations.
func fits(line, expr string) bool {
	return len(line) <= lineLimit || concatParts(expr) == nil
}

// concatParts returns the parts of a concatenation {a, b, {c, d}}, or nil when
// expr is something else.
func concatParts(expr string) []string {
	if !strings.HasPrefix(expr, "{") || !strings.HasSuffix(expr, "}") {
		return nil
	}
	var parts []string
	depth, start := 0, 1
	for i, r := range expr {
		switch r {
		case '{', '(', '[':
			depth++
		case '}', ')', ']':
			depth--
			if depth == 0 && i < len(expr)-1 {
				return nil // {a} + {b}, or a replication
			}
		case ',':
			if depth == 1 {
				parts = append(parts, strings.TrimSpace(expr[start:i]))
				start = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(expr[start:len(expr)-1]))
}
