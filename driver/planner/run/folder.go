package run

import (
	"encoding/json"
	"math/big"
	"os"

	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// checkFolder checks that the generated card in a node's folder can do what the plan wants: its manifest
// has its ports and jobs, and the rate of its link if it is for a board.
func (n *Node) checkFolder() error {
	m, err := transport.ReadManifest(n.Card)
	if err != nil {
		return wrong("node %q: %v", n.ID.Text, err)
	}
	ports, jobs := int(m.Constant(wire.RegPorts)), int(min(m.Constant(wire.RegJobs), m.Constant(wire.RegWindow)))
	rate, err := linkRate(m)
	switch {
	case err != nil:
		return wrong("node %q: %v", n.ID.Text, err)
	case n.Needs > ports:
		return wrong("node %q sums %d streams in a tree, and its card in %s has %d ports; plan with \"ports\": %d", n.ID.Text, n.Needs, n.Card, ports, ports)
	case n.Jobs > jobs:
		return wrong("node %q is in %d trees, and its card in %s holds %d jobs; plan with fewer -trees", n.ID.Text, n.Jobs, n.Card, jobs)
	case rate != nil && n.Load.Cmp(rate) > 0:
		return wrong("node %q takes %s Gb/s in this plan, and the link of its card in %s %s Gb/s; plan with that \"rate\"", n.ID.Text, n.Load.FloatString(2), n.Card, rate.FloatString(2))
	}
	n.Ports, n.chunk, n.window = ports, int(m.Constant(wire.RegChunk)), int(m.Constant(wire.RegWindow))
	return nil
}

// Supply gives nodes of a topology the ports and the rates of generated cards, by the folders of these cards:
// the lower of both, where the topology has some already. A card for no board has no rate.
//
// Errors: InputError, which names the node.
func Supply(t *topology.Topology, folders map[plan.ID]string) error {
	for i := range t.Nodes {
		n := &t.Nodes[i]
		folder, given := folders[plan.ID(n.ID)]
		if !given {
			continue
		}
		m, err := transport.ReadManifest(folder)
		if err != nil {
			return wrong("node %q: %v", n.ID.Text, err)
		}
		rate, err := linkRate(m)
		if err != nil {
			return wrong("node %q: %v", n.ID.Text, err)
		}
		if rate != nil && (n.Rate == nil || rate.Cmp(n.Rate) < 0) {
			n.Rate = rate
		}
		ports := int(m.Constant(wire.RegPorts))
		switch {
		case n.Kind == topology.Worker:
			return wrong("node %q is a worker, and has no card", n.ID.Text)
		case n.Kind == topology.Switch && (n.Ports == 0 || ports < n.Ports):
			n.Ports = ports
		}
	}
	return nil
}

// linkRate returns what the Ethernet ports of a card for a board take together, in Gb/s; nil for a card
// for no board, whose clock nobody knows.
func linkRate(m *transport.Manifest) (*big.Rat, error) {
	text, err := os.ReadFile(m.Path)
	if err != nil {
		return nil, err
	}
	var board struct {
		Clock int64 `json:"clock_mhz"`
	}
	if err := json.Unmarshal(text, &board); err != nil || board.Clock == 0 {
		return nil, err
	}
	bits := int64(m.Constant(wire.RegLink)) * int64(max(m.Ethernet, 1))
	return big.NewRat(bits*board.Clock, 1000), nil
}
