package netlist_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/netlist"
)

// vectors returns a module with two vectors of 4 bytes and 4 bits, and a loop over the bytes.
func vectors() (*netlist.Module, *netlist.Loop) {
	m := netlist.New("agg_m", "A module.")
	m.Input("clk", 1)
	m.Input("x", 32)
	m.Output("y", 32)
	m.Output("any", 4)
	return m, m.Loop("g_byte", "b", 0, 4)
}

// A loop's instances are joined by name, first to the nets of the pass. The passes drive all bits
// together.
func TestLinkLoops(t *testing.T) {
	m, l := vectors()
	l.Wire("d", 8, "")
	l.Wire("q", 8, "")
	i := l.Instance("agg_leaf", "u", "")
	l.Assign("d", "x[8*b+:8]")
	l.Assign("y[8*b+:8]", "q")
	l.Assign("any[b]", "b == 2 && |q")
	m.Loop("g_none", "b", 2, 4).Comment("Nothing.")
	require.NoError(t, link(m))
	var joined []string
	for _, p := range i.Ports {
		joined = append(joined, p.Name+"="+p.Expr)
	}
	assert.Equal(t, []string{"clk=clk", "d=d", "q=q"}, joined)
	assert.Equal(t, []string{"agg_leaf"}, m.Leaves())
	assert.Equal(t, []*netlist.Instance{i}, m.Instances())
	assert.NoError(t, link(m), "a second time changes nothing")
}

// Expressions may use the constants of a header.
func TestLinkIncludes(t *testing.T) {
	m := register()
	m.Include("names.vh", map[string]int{"LSB": 4, "BITS": 4})
	m.Assign("b", "{d[LSB+:BITS], d[BITS-1:0]}")
	require.NoError(t, link(m))
	m.Assign("b", "d[LSB+:BITS]")
	m.Assign("y", "d[LSB+:2*BITS]")
	err := link(m)
	assert.ErrorContains(t, err, "b has 8 bits, d[LSB+:BITS] has 4")
	assert.ErrorContains(t, err, "d[11:4] selects from 8 bits")
}

// Every kind of mistake in a loop, by itself. A mistake of
// every pass is reported once.
func TestLinkReportsMistakesInLoops(t *testing.T) {
	for name, c := range map[string]struct {
		make func(m *netlist.Module, l *netlist.Loop)
		want []string
	}{
		"bits out of range in the last pass": {func(_ *netlist.Module, l *netlist.Loop) {
			l.Assign("y[9*b+:8]", "x[8*b+:8]")
			l.Assign("any[b]", "1'b0")
		}, []string{"y[34:27] selects from 32 bits"}},
		"a gap": {func(_ *netlist.Module, l *netlist.Loop) {
			l.Assign("y[8*b+:7]", "x[8*b+:7]")
			l.Assign("any[b]", "1'b0")
		}, []string{"nothing drives y[7]", "nothing drives y[15]", "nothing drives y[23]", "nothing drives y[31]"}},
		"passes drive the same bits": {func(m *netlist.Module, l *netlist.Loop) {
			m.Assign("any", "4'd0")
			l.Assign("y", "x")
		}, []string{"y is driven twice: also at "}},
		"a pass drives what the module drives": {func(m *netlist.Module, l *netlist.Loop) {
			m.Assign("any", "4'd0")
			m.Assign("y[31:24]", "8'd0")
			l.Assign("y[8*b+:8]", "8'd0")
		}, []string{"y is driven twice: also at "}},
		"a wrong width": {func(_ *netlist.Module, l *netlist.Loop) {
			l.Assign("any[b]", "1'b0")
			l.Instance("agg_leaf", "u", "").Connect("d", "x[8*b+:4]").Connect("q", "y[8*b+:8]")
		}, []string{"u.d has 8 bits, x[8*b+:4] has 4"}},
		"an open port": {func(m *netlist.Module, l *netlist.Loop) {
			l.Instance("agg_leaf", "u", "").Connect("q", "y[8*b+:8]")
		}, []string{"instance u: port d of agg_leaf is left open"}},
		"an unknown parameter": {func(m *netlist.Module, l *netlist.Loop) {
			l.Instance("agg_leaf", "u", "").Connect("d", "8'd0").Connect("q", "y[8*b+:8]").Param("DEPTH", "3")
		}, []string{"agg_leaf has no parameter DEPTH"}},
		"a wire without a driver": {func(m *netlist.Module, l *netlist.Loop) {
			l.Wire("w", 8, "")
			l.Assign("y[8*b+:8]", "w")
			l.Assign("any[b]", "^w")
		}, []string{"nothing drives g_byte[0].w", "nothing drives g_byte[1].w", "nothing drives g_byte[2].w", "nothing drives g_byte[3].w"}},
		"a wire of the loop outside": {func(m *netlist.Module, l *netlist.Loop) {
			l.Wire("w", 8, "")
			m.Assign("y[7:0]", "w")
		}, []string{"w is not declared"}},
		"a wire of another loop": {func(m *netlist.Module, l *netlist.Loop) {
			l.Wire("w", 8, "")
			m.Loop("g_other", "b", 0, 4).Assign("y[8*b+:8]", "w")
		}, []string{"w is not declared"}},
		"a wire before its declaration": {func(m *netlist.Module, l *netlist.Loop) {
			l.Assign("y[8*b+:8]", "w")
			l.Wire("w", 8, "")
			l.Assign("w", "x[8*b+:8]")
		}, []string{"w is used before its declaration"}},
		"a wire of the module before its declaration": {func(m *netlist.Module, l *netlist.Loop) {
			l.Assign("y[8*b+:8]", "late[8*b+:8]")
			m.Wire("late", 32, "")
			m.Assign("late", "x")
		}, []string{"late is used before its declaration"}},
		"the genvar outside": {func(m *netlist.Module, l *netlist.Loop) {
			m.Assign("y[7:0]", "x[b+:8]")
		}, []string{"b is not declared"}},
		"a name of both loop and module": {func(m *netlist.Module, l *netlist.Loop) {
			l.Wire("w", 8, "")
			m.Wire("w", 8, "")
		}, []string{"loop g_byte: w is declared twice"}},
		"an instance of both loop and module": {func(m *netlist.Module, l *netlist.Loop) {
			l.Instance("agg_leaf", "u", "").Connect("d", "8'd0").Connect("q", "y[8*b+:8]")
			m.Instance("agg_leaf", "u", "").Connect("d", "8'd0").Connect("q", "{any, any}")
		}, []string{"loop g_byte: u is declared twice"}},
		"a genvar with the name of a net": {func(m *netlist.Module, l *netlist.Loop) {
			m.Wire("b", 8, "")
		}, []string{"loop g_byte: b is declared twice"}},
		"the name of another loop": {func(m *netlist.Module, l *netlist.Loop) {
			m.Loop("g_byte", "c", 0, 1)
		}, []string{"loop g_byte is declared twice"}},
		"no passes": {func(m *netlist.Module, l *netlist.Loop) {
			m.Loop("g_empty", "c", 3, 3)
		}, []string{"loop g_empty runs from 3 to below 3"}},
		"names that are none": {func(m *netlist.Module, l *netlist.Loop) {
			m.Loop("g 1", "c", 0, 1)
		}, []string{`loop "g 1" over "c" is not an identifier`}},
		"a loop in a loop": {func(m *netlist.Module, l *netlist.Loop) {
			l.Items = append(l.Items, m.Loop("g_inner", "c", 0, 1))
		}, []string{"loop g_inner is inside a loop"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, l := vectors()
			c.make(m, l)
			err := link(m)
			require.Error(t, err)
			assert.False(t, m.Linked())
			for _, want := range c.want {
				assert.Equal(t, 1, strings.Count(err.Error(), want), "%s in\n%v", want, err)
			}
		})
	}
}
