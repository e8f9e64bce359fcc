package driver

// The scheme model: the Go model of a card, in this process. Only this file of the driver
// imports the model; real and virtual cards work without it.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tributary/driver/daemon/protocol"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

func init() {
	transport.Register("model", openModel)
	networkCards["model"] = func(g geometry, own wire.Address) (NetworkCard, error) {
		return model.NewEndpoint(model.Config(g), own)
	}
}

// openModel opens "model:", "model:DIR" and "model:OPTION=VALUE,...".
func openModel(_ context.Context, r transport.Request) (transport.Conn, error) {
	return openMade("model", r, func(g geometry) (server, error) { return model.NewCard(model.Config(g)) })
}

// Shape returns which ports of the cards add up what, as model.Arithmetic.Nested needs it.
func (t *Tree) Shape() *model.Shape { return t.shape(t.root) }

// Nested returns a function that computes the tree's sum of one element as the models of its cards do, from
// the contributions by global rank, as encodings. It must not be called concurrently.
func (t *Tree) Nested() (func(contributions []uint32) uint32, error) {
	return t.cards[t.root].Card.info.nested(t.Shape())
}

// Nested is Tree.Nested for a shared card that is a tree of cards (IsTree). Its global ranks are those of the
// members.
func (c *Card) Nested() (func(contributions []uint32) uint32, error) {
	shape, err := shapeOf(c.currentLink().session.Tree(), c.info.Ports)
	if err != nil {
		return nil, fmt.Errorf("card %s: the daemon describes no tree of cards: %w", c.name, err)
	}
	return c.info.nested(shape)
}

// nested returns the function of Nested for cards of this kind.
func (i Info) nested(shape *model.Shape) (func(contributions []uint32) uint32, error) {
	a, err := model.NewArithmetic(i.Sum, i.Format, i.Result, i.Saturate)
	if err != nil {
		return nil, err
	}
	return func(contributions []uint32) uint32 { return a.Nested(shape, contributions) }, nil
}

// shapeOf returns the shape of a tree with so many workers, as a daemon describes it.
func shapeOf(cards []*protocol.TreeCard, workers int) (*model.Shape, error) {
	shapes, ranks := make([]*model.Shape, len(cards)), 0
	for i, c := range cards {
		if c.GetPorts() > wire.MaxPorts || len(c.GetRanks()) > int(c.GetPorts()) {
			return nil, fmt.Errorf("card %d has %d workers at %d ports", i, len(c.GetRanks()), c.GetPorts())
		}
		shapes[i] = &model.Shape{Ports: make([]*model.Shape, c.GetPorts())}
		ranks += len(c.GetRanks())
		for port, rank := range c.GetRanks() {
			if int(rank) >= workers {
				return nil, fmt.Errorf("card %d has rank %d of %d workers", i, rank, workers)
			}
			shapes[i].Ports[port] = &model.Shape{Worker: int(rank)}
		}
	}
	var root *model.Shape
	for i, c := range cards {
		switch parent := int(c.GetParent()); {
		case parent == -1 && root == nil:
			root = shapes[i]
		case parent < 0 || parent >= len(cards):
			return nil, fmt.Errorf("card %d has parent %d", i, parent)
		default:
			free := slices.Index(shapes[parent].Ports, nil)
			if free < 0 {
				return nil, fmt.Errorf("card %d has no port for card %d", parent, i)
			}
			shapes[parent].Ports[free] = shapes[i]
		}
	}
	// Cards in a circle have no root above them, so these would be missing.
	if root == nil || countCards(root) != len(cards) || ranks != workers || root.Ranks() != ^uint64(0)>>(64-workers) {
		return nil, errors.New("it does not join all cards and workers")
	}
	return root, nil
}

// countCards returns the number of cards in a shape.
func countCards(s *model.Shape) (n int) {
	if s == nil || s.Ports == nil {
		return 0
	}
	for _, member := range s.Ports {
		n += countCards(member)
	}
	return n + 1
}

func (t *Tree) shape(i int) *model.Shape {
	s := &model.Shape{Ports: make([]*model.Shape, t.cards[i].Card.info.Ports)}
	for port, rank := range t.cards[i].Ranks {
		s.Ports[port] = &model.Shape{Worker: rank}
	}
	for n, child := range t.below[i] {
		s.Ports[t.cards[i].Workers+n] = t.shape(child)
	}
	return s
}
