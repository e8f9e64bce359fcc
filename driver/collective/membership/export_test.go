package membership

import (
	"context"
	"net"
	"net/rpc"
)

// Piped returns a client of a store, over a pipe in memory.
func Piped(ctx context.Context, m *Memory) Engine {
	here, there := net.Pipe()
	go serveConn(ctx, there, m)
	return &client{path: "pipe", link: rpc.NewClient(here), over: make(chan struct{})}
}

// Leases counts the leases that an engine of a store in memory remembers.
func Leases(e Engine) int { return len(e.(*memoryEngine).leases) }
