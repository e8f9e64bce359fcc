package verilog_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/netlist"
	"tributary/hwgen/verilog"
)

// sample holds one of everything that is laid out in a way of its own.
func sample() *netlist.Module {
	m := netlist.New("agg_sample", "Purpose.\n\nMore of it.")
	m.Input("clk", 1)
	m.Input("rst", 1)
	m.PortComment("A stream.")
	m.Input("s_tdata", 512)
	m.Input("s_tkeep", 8)
	m.Output("s_tready", 1)
	m.Wire("sum", 32, "workers 0, 1")
	m.Wire("fine", 1, "")
	m.Comment("Lower half,\nthen the rest.")
	m.Assign("s_tready", "fine")
	m.Wire("first_of_two_long_names_that_need_most_of_a_line", 1, "")
	m.Wire("second_of_two_long_names", 1, "")
	m.Assign("{first_of_two_long_names_that_need_most_of_a_line, second_of_two_long_names}", "s_tkeep[1:0]")
	m.Assign("sum[15:0]", "s_tdata[15:0]")
	m.Instance("agg_leaf", "u_leaf", "workers 0, 1").
		Param("WIDTH", "32").Param("CYCLES", "4").
		Connect("q", "sum[31:16]").Connect("ok", "fine")
	var beats []string
	for range 8 {
		beats = append(beats, "s_tdata[100:0]")
	}
	m.Instance("agg_wide", "u_wide", "").
		Connect("together", netlist.Concat(append(beats[:5:5], "fine")...)).Connect("all", netlist.Concat(beats...))
	m.Include("names.vh", map[string]int{"BITS": 16})
	m.Wire("halves", 32, "")
	m.Wire("oks", 2, "")
	m.Comment("-- Halves --")
	half := m.Loop("g_half", "h", 0, 2)
	half.Wire("ok", 1, "")
	half.Wire("half", 16, "of a sum")
	half.Assign("oks[h]", "ok")
	half.Assign("halves[BITS*h+:BITS]", "half")
	half.Instance("agg_leaf", "u_half", "").Connect("q", "half")
	m.Loop("g_more", "h", 0, 1).Comment("Nothing yet.")
	return m
}

// sampleLeaves are those of the sample.
type sampleLeaves struct{}

func (sampleLeaves) Ports(leaf string, _ []netlist.Pair) ([]netlist.Port, error) {
	clk := netlist.Port{Direction: netlist.In, Name: "clk", Width: 1}
	switch leaf {
	case "agg_leaf":
		return []netlist.Port{clk, {Direction: netlist.Out, Name: "q", Width: 16}, {Direction: netlist.Out, Name: "ok", Width: 1}}, nil
	case "agg_wide":
		return []netlist.Port{clk, {Name: "together", Width: 5*101 + 1}, {Name: "all", Width: 8 * 101}}, nil
	}
	return nil, errors.New("no leaf " + leaf)
}

// linked returns the sample, linked.
func linked(t *testing.T) *netlist.Module {
	t.Helper()
	m := sample()
	require.NoError(t, netlist.Link([]*netlist.Module{m}, nil, sampleLeaves{}))
	return m
}

// The layout is that of verible-verilog-format; `make lint` holds what hwgen
// emits against the tool itself.
const sampleText = `// Purpose.
//
// More of it.

` + "`default_nettype none" + `

module agg_sample (
    input wire clk,
    input wire rst,

    // A stream.
    input  wire [511:0] s_tdata,
    input  wire [  7:0] s_tkeep,
    output wire         s_tready
);
  wire [31:0] sum;  // workers 0, 1
  wire        fine;

  // Lower half,
  // then the rest.
  assign s_tready = fine;

  wire first_of_two_long_names_that_need_most_of_a_line;
  wire second_of_two_long_names;

  assign {
    first_of_two_long_names_that_need_most_of_a_line, second_of_two_long_names
  } = s_tkeep[1:0];
  assign sum[15:0] = s_tdata[15:0];

  // workers 0, 1
  agg_leaf #(
      .WIDTH (32),
      .CYCLES(4)
  ) u_leaf (
      .clk(clk),
      .q  (sum[31:16]),
      .ok (fine)
  );

  agg_wide u_wide (
      .clk(clk),
      .together({
        s_tdata[100:0], s_tdata[100:0], s_tdata[100:0], s_tdata[100:0], s_tdata[100:0], fine
      }),
      .all({
        s_tdata[100:0],
        s_tdata[100:0],
        s_tdata[100:0],
        s_tdata[100:0],
        s_tdata[100:0],
        s_tdata[100:0],
        s_tdata[100:0],
        s_tdata[100:0]
      })
  );

  ` + "`include" + ` "names.vh"

  wire [31:0] halves;
  wire [ 1:0] oks;

  // -- Halves --
  genvar h;
  generate
    for (h = 0; h < 2; h = h + 1) begin : g_half
      wire        ok;
      wire [15:0] half;  // of a sum

      assign oks[h]               = ok;
      assign halves[BITS*h+:BITS] = half;

      agg_leaf u_half (
          .clk(clk),
          .q  (half),
          .ok (ok)
      );
    end
  endgenerate

  generate
    for (h = 0; h < 1; h = h + 1) begin : g_more
      // Nothing yet.
    end
  endgenerate

endmodule

` + "`default_nettype wire\n"

func TestPrint(t *testing.T) {
	var b strings.Builder
	require.NoError(t, verilog.Print(&b, linked(t)))
	assert.Equal(t, sampleText, b.String())
}

// A module that has mistakes, or was not looked at, is not printed.
func TestPrintRefusesWhatIsNotLinked(t *testing.T) {
	m := netlist.New("agg_m", "")
	m.Assign("y", "x")
	require.ErrorContains(t, netlist.Link([]*netlist.Module{m}, nil, sampleLeaves{}), "y is not declared")
	var b strings.Builder
	assert.EqualError(t, verilog.Print(&b, m), "module agg_m has errors, or is not linked")
	assert.ErrorContains(t, verilog.Print(&b, sample()), "is not linked")
	assert.Empty(t, b.String())
}

// strange is an item that the printer does not know.
type strange struct{ netlist.Comment }

func TestPrintRefusesUnknownItems(t *testing.T) {
	m := linked(t)
	m.Items = append(m.Items, strange{})
	assert.EqualError(t, verilog.Print(&strings.Builder{}, m), "verilog_test.strange cannot be printed")
	m = linked(t)
	m.Ports = append(m.Ports, strange{})
	assert.EqualError(t, verilog.Print(&strings.Builder{}, m), "verilog_test.strange in a port list cannot be printed")
}

// failing takes some bytes and then fails for ever; it counts the calls after
// the first failure.
type failing struct {
	room  int
	after int
}

func (f *failing) Write(b []byte) (int, error) {
	if f.room < 0 {
		f.after++
	}
	if f.room -= len(b); f.room < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

func TestPrintStopsAtTheFirstFailure(t *testing.T) {
	w := &failing{room: 100}
	assert.EqualError(t, verilog.Print(w, linked(t)), "disk full")
	assert.Zero(t, w.after)
}

// A part that does not fit a line is broken as the whole is.
func TestConcatenationsInConcatenations(t *testing.T) {
	m := netlist.New("agg_nested", "")
	m.Input("a_long_name_of_an_input", 8)
	m.Output("y", 48)
	in := "a_long_name_of_an_input"
	m.Assign("y", netlist.Concat(netlist.Concat(in, in, in, in, in), in))
	require.NoError(t, netlist.Link([]*netlist.Module{m}, nil, sampleLeaves{}))
	var b strings.Builder
	require.NoError(t, verilog.Print(&b, m))
	assert.Contains(t, b.String(), `  assign y = {
    {
      a_long_name_of_an_input,
      a_long_name_of_an_input,
      a_long_name_of_an_input,
      a_long_name_of_an_input,
      a_long_name_of_an_input
    },
    a_long_name_of_an_input
  };
`)
}
