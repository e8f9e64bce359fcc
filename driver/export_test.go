package driver

import (
	"time"

	"tributary/driver/cpu"
	"tributary/driver/daemon/protocol"
	"tributary/driver/model"
	"tributary/driver/transport"
)

// ServeCPU starts a card in software and returns the link to it, as Open does for "cpu:".
func ServeCPU(cfg cpu.Config) (transport.Conn, error) {
	card, err := cpu.New(cfg)
	if err != nil {
		return nil, err
	}
	return serve(card), nil
}

// ShapeOf returns the shape of a tree that a daemon describes.
func ShapeOf(cards []*protocol.TreeCard, workers int) (*model.Shape, error) {
	return shapeOf(cards, workers)
}

// Hold lets the card hear nothing until it is released.
func (c *Card) Hold() (release func()) {
	c.mu.Lock()
	return c.mu.Unlock
}

// A card of a test confirms the end of a job, however busy the machine is.
func init() { closeTimeout = time.Minute }
