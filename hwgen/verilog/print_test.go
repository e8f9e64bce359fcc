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
	m.Wire("ok", 1, "")
	m.Comment("Lower half,\nthen the rest.")
	m.Assign("s_tready", "ok")
	m.Assign("sum[15:0]", "s_tdata[15:0]")
	m.Instance("agg_leaf", "u_leaf", "workers 0, 1").
		Param("WIDTH", "32").Param("CYCLES", "4").
		Connect("clk", "clk").Connect("q", "sum[31:16]")
	var beats []string
	for range 8 {
		beats = append(beats, "s_tdata[100:0]")
	}
	m.Instance("agg_wide", "u_wide", "").Connect("clk", "clk").Connect("together", netlist.Concat(append(beats[:5:5], "ok")...)).Connect("all", netlist.Concat(beats...))
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
  wire        ok;

  // Lower half,
  // then the rest.
  assign s_tready  = ok;
  assign sum[15:0] = s_tdata[15:0];

  // workers 0, 1
  agg_leaf #(
      .WIDTH (32),
      .CYCLES(4)
  ) u_leaf (
      .clk(clk),
      .q  (sum[31:16])
  );

  agg_wide u_wide (
      .clk(clk),
      .together({
        s_tdata[100:0], s_tdata[100:0], s_tdata[100:0], s_tdata[100:0], s_tdata[100:0], ok
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

endmodule

` + "`default_nettype wire\n"

func TestPrint(t *testing.T) {
	var b strings.Builder
	require.NoError(t, verilog.Print(&b, sample()))
	assert.Equal(t, sampleText, b.String())
}

func TestPrintRefusesABrokenModule(t *testing.T) {
	m := netlist.New("agg_m", "")
	m.Assign("y", "x")
	var b strings.Builder
	assert.ErrorContains(t, verilog.Print(&b, m), "y is not declared")
	assert.Empty(t, b.String())
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
	assert.EqualError(t, verilog.Print(w, sample()), "disk full")
	assert.Zero(t, w.after)
}
