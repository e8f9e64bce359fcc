package driver_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/wire"
)

// TestShareTreeRefuses: a tree whose ranks have a gap is not shared, and neither is what is no tree.
func TestShareTreeRefuses(t *testing.T) {
	a, b := openName(t, newPlant(t, smallTree).name), openName(t, newPlant(t, smallTree).name)
	_, err := driver.ShareTree("grove", []driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{0}}, {Card: b, Ranks: []int{2, 3}}})
	wantError[*driver.InputError](t, err, "ranks [0 2 3]", "without a gap")
	_, err = driver.ShareTree("grove", []driver.TreeCard{{Card: a, Parent: -1}, {Card: b, Parent: -1}})
	wantError[*driver.InputError](t, err, name(a), name(b), "one card is the root")
}

// TestShareTree: a shared tree takes only jobs that all cards take, of all workers. It is done when one of its
// cards is.
func TestShareTree(t *testing.T) {
	wide := smallTree
	wide.Lanes, wide.Chunk, wide.Window, wide.Jobs = 8, 24, 16, 4
	narrow := smallTree
	narrow.Jobs = 2
	a, b := openName(t, newPlant(t, wide).name), openName(t, newPlant(t, narrow).name)
	tree, err := driver.ShareTree("grove", []driver.TreeCard{{Card: a, Parent: -1, Workers: 1}, {Card: b, Workers: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint32]uint64{
		wire.RegMagic: wire.Magic, wire.RegLanes: 8, wire.RegPorts: 3, wire.RegChunk: 16, wire.RegWindow: 4, wire.RegJobs: 2,
		wire.RegShell: 0, wire.RegLink: 0, wire.JobAddr(wire.RegJobMembers, 1): 7,
	} {
		if value, err := tree.ReadRegister(testContext(t), addr); err != nil || value != want {
			t.Errorf("register %x is %x (%v), want %x", addr, value, err, want)
		}
	}
	complete, err := tree.Complete(driver.JobConfig{Ports: []int{0, 1, 2}})
	if err != nil || complete.Workers != 3 || complete.Chunk != 16 || complete.Window != 2 || !slices.Equal(complete.Ports, []int{0, 1, 2}) {
		t.Errorf("%+v (%v)", complete, err)
	}
	for what, cfg := range map[string]driver.JobConfig{
		"chunk: 12 elements": {Chunk: 12}, "chunk: 24 elements": {Chunk: 24}, "window: 8 chunks": {Window: 8},
		"ports: 2 ports": {Ports: []int{0, 1}}, "ports: port 1 follows": {Ports: []int{0, 2, 1}}, "workers: 2 workers": {Workers: 2},
	} {
		_, err := tree.Configure(testContext(t), cfg)
		wantError[*driver.InputError](t, err, what)
	}
	if tree.Away() || tree.Err() != nil || tree.Responds(testContext(t)) != nil {
		t.Error("the tree is not there")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	<-tree.Done()
	if tree.Err() == nil {
		t.Error("a tree without a card is there")
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if tree.Responds(ctx) == nil {
		t.Error("a card that is closed responds")
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if a.Err() == nil {
		t.Error("the tree has left a card open")
	}
}

// TestShapeOfADescription: a daemon's description of a tree has its shape. A client believes no other one.
func TestShapeOfADescription(t *testing.T) {
	card := func(parent int32, ports uint32, ranks ...uint32) *protocol.TreeCard {
		return &protocol.TreeCard{Parent: parent, Ports: ports, Ranks: ranks}
	}
	shape, err := driver.ShapeOf([]*protocol.TreeCard{card(2, 2, 0, 1), card(2, 1, 3), card(-1, 4, 2)}, 4)
	if err != nil || fmt.Sprint(shape) != "[2 [0 1] [3] -]" {
		t.Errorf("%v (%v)", shape, err)
	}
	for what, cards := range map[string][]*protocol.TreeCard{
		"nothing":         nil,
		"an empty card":   {nil},
		"no root":         {card(1, 3, 0, 1), card(0, 3, 2)},
		"a circle":        {card(-1, 3, 0, 1, 2), card(2, 3), card(1, 3)},
		"its own parent":  {card(-1, 3, 0, 1, 2), card(1, 3)},
		"two roots":       {card(-1, 3, 0, 1, 2), card(-1, 3)},
		"a far parent":    {card(-1, 3, 0, 1, 2), card(2, 3)},
		"a full parent":   {card(-1, 2, 0, 1), card(0, 3, 2)},
		"too many ports":  {card(-1, 65, 0, 1, 2)},
		"too many ranks":  {card(-1, 2, 0, 1, 2)},
		"a rank twice":    {card(-1, 4, 0, 1, 2, 2)},
		"a missing rank":  {card(-1, 3, 0, 1)},
		"a rank beyond":   {card(-1, 4, 0, 1, 2, 3)},
		"a rank far away": {card(-1, 4, 0, 1, 2, 1<<31)},
	} {
		if shape, err := driver.ShapeOf(cards, 3); err == nil {
			t.Errorf("%s: %v", what, shape)
		}
	}
}
