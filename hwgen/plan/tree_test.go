package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// expression follows the nets of a lane from y back to its inputs.
func expression(t *testing.T, m *netlist.Module, net string) string {
	t.Helper()
	if strings.HasPrefix(net, "x_p") {
		return strings.TrimPrefix(net, "x_")
	}
	for _, it := range m.Items {
		i, ok := it.(*netlist.Instance)
		if !ok {
			continue
		}
		pins := map[string]string{}
		for _, p := range i.Ports {
			pins[p.Name] = p.Expr
		}
		switch {
		case i.Module == "agg_delay" && pins["q"] == net:
			return expression(t, m, pins["d"])
		case pins["y"] == net && i.Module == "agg_fp_canon":
			return "canon(" + expression(t, m, pins["a"]) + ")"
		case pins["y"] == net:
			return "(" + expression(t, m, pins["a"]) + "+" + expression(t, m, pins["b"]) + ")"
		}
	}
	t.Fatalf("nothing drives %s", net)
	return ""
}

// tryTree builds the tree of a lane of fp32.
func tryTree(t *testing.T, workers int) (*netlist.Module, int) {
	t.Helper()
	p := &Plan{Format: Format{wire.Formats[0]}, Result: Format{wire.Formats[0]}}
	p.Lanes = 1
	p.Workers = workers
	p.size()
	lane := treeLane(p)
	m := lane.Modules[len(lane.Modules)-1]
	linkLane(t, lane)
	return m, lane.Latency
}

// depth returns the number of nodes on every path of a beat.
func depth(t *testing.T, m *netlist.Module, net string) int {
	t.Helper()
	if strings.HasPrefix(net, "x_p") {
		return 0
	}
	below := map[int]bool{}
	for _, it := range m.Items {
		if i, ok := it.(*netlist.Instance); ok && (i.Ports[len(i.Ports)-1].Expr == net) {
			for _, p := range i.Ports[1 : len(i.Ports)-1] {
				below[depth(t, m, p.Expr)] = true
			}
		}
	}
	require.Len(t, below, 1, "the operands of %s come at different times", net)
	for d := range below {
		return d + 1
	}
	return 0
}

// The trees of the specification: neighbours pair up by port number, an unpaired operand
// passes unchanged.
func TestTreeShape(t *testing.T) {
	for workers, want := range map[int]string{
		1: "canon(p0)",
		2: "(p0+p1)",
		3: "((p0+p1)+p2)",
		5: "(((p0+p1)+(p2+p3))+p4)",
		6: "(((p0+p1)+(p2+p3))+(p4+p5))",
		7: "(((p0+p1)+(p2+p3))+((p4+p5)+p6))",
		8: "(((p0+p1)+(p2+p3))+((p4+p5)+(p6+p7)))",
	} {
		m, latency := tryTree(t, workers)
		assert.Equal(t, want, expression(t, m, "y"), "%d workers", workers)
		if workers > 1 {
			assert.Equal(t, depth(t, m, "y")*nodeLatency, latency, "%d workers", workers)
		}
	}
}

// Every path is as long as the others, for every number of workers.
func TestTreeIsBalanced(t *testing.T) {
	for workers := 2; workers <= 64; workers++ {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			m, _ := tryTree(t, workers)
			depth(t, m, "y")
		})
	}
}
