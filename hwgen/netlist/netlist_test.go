package netlist_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/netlist"
)

func TestCheckAcceptsAModuleThatHoldsTogether(t *testing.T) {
	m := netlist.New("agg_m", "A module.")
	m.Input("clk", 1)
	m.Input("a", 32)
	m.Output("y", 32)
	m.Wire("b", 32, "")
	m.Assign("b", "{a[15:0], 16'hbeef} & ~32'd7")
	m.Instance("agg_leaf", "u_leaf", "").Param("WIDTH", "32").Connect("clk", "clk").Connect("d", "b").Connect("q", "y")
	assert.NoError(t, m.Check())
	assert.Equal(t, []string{"agg_leaf"}, m.Leaves())
}

// Every mistake is reported, each with the line that made it.
func TestCheckReportsEveryMistake(t *testing.T) {
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
	err := m.Check()
	require.Error(t, err)
	for _, want := range []string{
		`netlist_test.go:26: module 9bad: module name "9bad" is no identifier`,
		"netlist_test.go:28: module 9bad: a is declared twice",
		`netlist_test.go:29: module 9bad: "b-c" is no identifier`,
		"netlist_test.go:30: module 9bad: w has a width of 0 bits",
		`netlist_test.go:31: module 9bad: assign "w" = "" lacks a side`,
		"netlist_test.go:32: module 9bad: gone is not declared",
		"netlist_test.go:33: module 9bad: instance u: parameter N is given twice",
		"netlist_test.go:33: module 9bad: instance u: parameter M has no value",
		"netlist_test.go:33: module 9bad: instance u: port x is given twice",
		"netlist_test.go:33: module 9bad: lost is not declared",
		"netlist_test.go:36: module 9bad: instance u stands there twice",
		`netlist_test.go:37: module 9bad: instance "u2" of "agg leaf": no identifier`,
		"netlist_test.go:39: module 9bad: v[8:1] selects from 8 bits",
		"netlist_test.go:39: module 9bad: a[0] selects from 1 bits",
	} {
		assert.ErrorContains(t, err, want)
	}
}

// A module's instances are held against its ports; instances of leaves, whose
// ports are not known here, are not.
func TestCheckInstances(t *testing.T) {
	child := netlist.New("agg_child", "")
	child.Input("clk", 1)
	child.PortComment("Data.")
	child.Input("d", 8)
	child.Output("q", 8)
	m := netlist.New("agg_m", "")
	m.Input("clk", 1)
	m.Instance("agg_leaf", "u_leaf", "").Connect("whatever", "clk")
	good := m.Instance("agg_child", "u_good", "")
	good.Connect("clk", "clk").Connect("d", "8'd0").Connect("q", "q")
	require.NoError(t, m.CheckInstances([]*netlist.Module{child, m}))
	m.Instance("agg_child", "u_bad", "").Connect("clk", "clk").Connect("data", "8'd0").Connect("q", "")
	err := m.CheckInstances([]*netlist.Module{child, m})
	assert.ErrorContains(t, err, "module agg_m: instance u_bad: port d of agg_child is not connected")
	assert.ErrorContains(t, err, "module agg_m: instance u_bad: agg_child has no port data")
	assert.NotContains(t, err.Error(), "port q")
	assert.ErrorContains(t, m.Check(), "module agg_m: instance u_bad: port q is left open")
}

func TestSlice(t *testing.T) {
	assert.Equal(t, "x[39:8]", netlist.Slice("x", 8, 32))
	assert.Equal(t, "x[3]", netlist.Slice("x", 3, 1))
	assert.Equal(t, "{a, b[1:0]}", netlist.Concat("a", "b[1:0]"))
}
