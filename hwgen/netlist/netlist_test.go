package netlist_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/netlist"
)

// leaves are the leaves of a test: each a port list.
type leaves map[string][]netlist.Port

func (l leaves) Ports(name string, params []netlist.Pair) ([]netlist.Port, error) {
	ports, ok := l[name]
	if !ok {
		return nil, fmt.Errorf("no leaf %s in rtl", name)
	}
	for _, p := range params {
		if p.Name != "WIDTH" {
			return nil, fmt.Errorf("%s has no parameter %s", name, p.Name)
		}
	}
	return ports, nil
}

// known has a leaf that is a register of 8 bits, and one that is a pad.
var known = leaves{
	"agg_leaf": {
		{Direction: netlist.In, Name: "clk", Width: 1},
		{Direction: netlist.In, Name: "d", Width: 8},
		{Direction: netlist.Out, Name: "q", Width: 8},
	},
	"agg_pad": {
		{Direction: netlist.InOut, Name: "pad", Width: 1},
		{Direction: netlist.In, Name: "out", Width: 1},
	},
}

// register returns a module with a clock, an input d, an output y and a wire b, which y is.
func register() *netlist.Module {
	m := netlist.New("agg_m", "A module.")
	m.Input("clk", 1)
	m.Input("d", 8)
	m.Output("y", 8)
	m.Wire("b", 8, "")
	m.Assign("y", "b")
	return m
}

func link(modules ...*netlist.Module) error { return netlist.Link(modules, nil, known) }

func TestLinkAcceptsAModuleThatHoldsTogether(t *testing.T) {
	m := register()
	m.InOut("pad", 1)
	m.Assign("b[7:4]", "{d[3:0]} & ~4'd7")
	m.Assign("b[3:0]", "d[0] ? {2{d[2:1]}} : d[7:4] << 4'd1")
	m.Wire("c", 8, "")
	m.Wire("e", 8, "")
	m.Instance("agg_leaf", "u_leaf", "").Param("WIDTH", "8").Connect("q", "{c[0], c[7:1]}")
	m.Instance("agg_leaf", "u_other", "").Connect("q", "e").Connect("d", "c ^ e")
	m.Instance("agg_pad", "u_pad", "").Connect("out", "|e || d == 8'd3")
	m.Instance("agg_pad", "u_pad2", "").Connect("out", "1'b0")
	assert.NoError(t, link(m))
	assert.True(t, m.Linked())
	assert.Equal(t, []string{"agg_leaf", "agg_pad"}, m.Leaves())
}

// Ports that are not connected are joined to the nets of their names, and all come in the order of
// their declaration.
func TestLinkJoinsByName(t *testing.T) {
	m := register()
	i := m.Instance("agg_leaf", "u", "").Connect("q", "b")
	require.NoError(t, link(m))
	var joined []string
	for _, p := range i.Ports {
		joined = append(joined, p.Name+"="+p.Expr)
	}
	assert.Equal(t, []string{"clk=clk", "d=d", "q=b"}, joined)
	assert.NoError(t, link(m), "a second time changes nothing")
}

// An item of a kind that nobody knows.
type strange struct{ netlist.Comment }

// Every kind of mistake, by itself, with the line that made it.
func TestLinkReports(t *testing.T) {
	for want, make := range map[string]func(m *netlist.Module){
		"netlist_test.go:93: module agg_m: instance u: agg_leaf has no port e": func(m *netlist.Module) {
			m.Instance("agg_leaf", "u", "").Connect("q", "b").
				Connect("e", "d")
		},
		"netlist_test.go:96: module agg_m: u.d has 8 bits, d[6:0] has 7": func(m *netlist.Module) {
			m.Instance("agg_leaf", "u", "").Connect("q", "b").Connect("d", "d[6:0]")
		},
		"netlist_test.go:99: module agg_m: d + 8'd1 is driven, but is neither a net nor bits of one": func(m *netlist.Module) {
			m.Instance("agg_leaf", "u", "").Connect("q", "d + 8'd1")
			m.Assign("b", "8'd0")
		},
		"netlist_test.go:103: module agg_m: d is driven twice: also at netlist_test.go:46": func(m *netlist.Module) {
			m.Instance("agg_leaf", "u", "").Connect("q", "d")
			m.Assign("b", "8'd0")
		},
		"netlist_test.go:107: module agg_m: instance u: port q of agg_leaf is left open": func(m *netlist.Module) {
			m.Instance("agg_leaf", "u", "")
			m.Assign("b", "8'd0")
		},
		"netlist_test.go:112: module agg_m: b is driven twice: also at netlist_test.go:111": func(m *netlist.Module) {
			m.Instance("agg_leaf", "u", "").Connect("q", "b")
			m.Assign("b[7]", "d[0]")
		},
		"netlist_test.go:48: module agg_m: nothing drives b": func(*netlist.Module) {},
		"netlist_test.go:48: module agg_m: nothing drives b[2:0]": func(m *netlist.Module) {
			m.Assign("b[7:3]", "d[4:0]")
		},
		"unknown: module agg_m: netlist_test.strange is not an item of a module": func(m *netlist.Module) {
			m.Assign("b", "d")
			m.Items = append(m.Items, strange{})
		},
		"unknown: module agg_m: netlist_test.strange is not an item of a port list": func(m *netlist.Module) {
			m.Assign("b", "d")
			m.Ports = append(m.Ports, strange{})
		},
		"netlist_test.go:127: module agg_m: instance u: agg_leaf has no parameter DEPTH": func(m *netlist.Module) {
			m.Instance("agg_leaf", "u", "").Connect("q", "y").Param("DEPTH", "3")
			m.Assign("b", "d")
		},
		"netlist_test.go:131: module agg_m: instance u: no leaf agg_less in rtl": func(m *netlist.Module) {
			m.Instance("agg_less", "u", "")
			m.Assign("b", "d")
		},
		"netlist_test.go:135: module agg_m: b has 8 bits, d[3:0] has 4": func(m *netlist.Module) {
			m.Assign("b", "d[3:0]")
		},
		"netlist_test.go:138: module agg_m: width of 0: 0 has no size": func(m *netlist.Module) {
			m.Assign("b", "0")
		},
		`netlist_test.go:141: module agg_m: cannot read "d +": "" instead of an operand`: func(m *netlist.Module) {
			m.Assign("b[7:0]", "d +")
			m.Assign("b", "d")
		},
	} {
		t.Run(want, func(t *testing.T) {
			m := register()
			make(m)
			assert.ErrorContains(t, link(m), want)
			assert.False(t, m.Linked())
		})
	}
}

// Every mistake is reported, not the first alone.
func TestLinkReportsEveryMistake(t *testing.T) {
	m := netlist.New("9bad", "")
	m.Input("a", 1)
	m.Input("a", 1)
	m.Output("b-c", 1)
	m.Wire("w", 0, "")
	m.Assign("w", "")
	m.Assign("w", "gone & 8'hff")
	u := m.Instance("agg_leaf", "u", "")
	u.Param("N", "1").Param("N", "2").Param("M", "")
	u.Connect("x", "a").Connect("x", "lost")
	m.Instance("agg_leaf", "u", "")
	m.Instance("agg leaf", "u2", "")
	m.Wire("v", 8, "")
	m.Assign("v[8:1]", "a[0]")
	u.Connect("q", "")
	err := link(m)
	require.Error(t, err)
	for _, want := range []string{
		`netlist_test.go:156: module 9bad: module name "9bad" is not an identifier`,
		"netlist_test.go:158: module 9bad: a is declared twice",
		`netlist_test.go:159: module 9bad: "b-c" is not an identifier`,
		"netlist_test.go:160: module 9bad: w has a width of 0 bits",
		`netlist_test.go:161: module 9bad: assign "w" = "" lacks one side`,
		"netlist_test.go:162: module 9bad: gone is not declared",
		"netlist_test.go:163: module 9bad: instance u: parameter N is given twice",
		"netlist_test.go:163: module 9bad: instance u: parameter M has no value",
		"netlist_test.go:165: module 9bad: instance u: port x is given twice",
		"netlist_test.go:165: module 9bad: lost is not declared",
		"netlist_test.go:166: module 9bad: instance u is declared twice",
		`netlist_test.go:167: module 9bad: instance "u2" of "agg leaf" is not an identifier`,
		"netlist_test.go:169: module 9bad: v[8:1] selects from 8 bits",
		"netlist_test.go:169: module 9bad: a[0] selects from 1 bits",
		"netlist_test.go:170: module 9bad: instance u: port q is left open",
	} {
		assert.ErrorContains(t, err, want)
	}
}

// Instances of other netlists are held against the ports that these declare.
func TestLinkInstancesOfNetlists(t *testing.T) {
	child := netlist.New("agg_child", "")
	child.Input("clk", 1)
	child.PortComment("Data.")
	child.Input("d", 8)
	child.Output("q", 8)
	child.Instance("agg_leaf", "u_leaf", "")
	m := register()
	m.Instance("agg_child", "u_good", "").Connect("q", "b")
	require.NoError(t, link(child, m))
	require.NoError(t, netlist.Link([]*netlist.Module{m}, []*netlist.Module{child}, known))
	m.Instance("agg_child", "u_bad", "").Connect("clk", "clk").Connect("data", "8'd0").Param("N", "1")
	err := link(child, m)
	assert.ErrorContains(t, err, "module agg_m: instance u_bad: port q of agg_child is left open")
	assert.ErrorContains(t, err, "module agg_m: instance u_bad: agg_child has no port data")
	assert.ErrorContains(t, err, "module agg_m: instance u_bad: agg_child has no parameter N")
	assert.True(t, child.Linked())
}

func TestSlice(t *testing.T) {
	assert.Equal(t, "x[39:8]", netlist.Slice("x", 8, 32))
	assert.Equal(t, "x[3]", netlist.Slice("x", 3, 1))
	assert.Equal(t, "{a, b[1:0]}", netlist.Concat("a", "b[1:0]"))
}
