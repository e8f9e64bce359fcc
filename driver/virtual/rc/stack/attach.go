package stack

import (
	"context"
	"sync"

	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/frameport"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
)

// Attach makes a host at the socket path own, connects it to the frame port unix:card of a card, and runs it
// in real time until ctx ends. The stack's MTU is the largest. Wait returns when the host has ended.
func Attach(ctx context.Context, address rc.Address, own, card string) (s *Stack, wait func() error, err error) {
	port, err := frameport.Attach(own, card)
	if err != nil {
		return nil, nil, err
	}
	s = &Stack{Host: rc.New(address), Moved: sync.NewCond(new(sync.Mutex)), MaxMTU: wire.ConnectionMTUs[len(wire.ConnectionMTUs)-1]}
	device := &shared{s}
	ended := make(chan error, 1)
	go func() { ended <- frameport.Serve(ctx, device, clock.Start(device), []frameport.Port{port}) }()
	return s, sync.OnceValue(func() error { return <-ended }), nil
}

// shared is a stack's host as a device: Stack.Moved.L is held in each call.
type shared struct{ stack *Stack }

func (d *shared) Cycles() uint64 {
	d.stack.Moved.L.Lock()
	defer d.stack.Moved.L.Unlock()
	return d.stack.Host.Cycles()
}

func (d *shared) Advance(cycles uint64) {
	d.stack.Moved.L.Lock()
	defer d.stack.Moved.L.Unlock()
	d.stack.Host.Advance(cycles)
	d.stack.Moved.Broadcast()
}

func (d *shared) Receive(port int, frame []byte) {
	d.stack.Moved.L.Lock()
	defer d.stack.Moved.L.Unlock()
	d.stack.Host.Receive(port, frame)
	d.stack.Moved.Broadcast()
}

func (d *shared) Send(dst []byte) (frame []byte, port int, ok bool) {
	d.stack.Moved.L.Lock()
	defer d.stack.Moved.L.Unlock()
	return d.stack.Host.Send(dst)
}

func (d *shared) Err() error { return nil }
