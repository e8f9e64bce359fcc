package driver

// The scheme cpu: the card in software, in this process.

import (
	"context"

	"tributary/driver/cpu"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

func init() {
	transport.Register("cpu", openCPU)
	networkCards["cpu"] = func(g geometry, own wire.Address) (NetworkCard, error) { return cpu.NewEndpoint(cpu.Config(g), own) }
}

// openCPU opens "cpu:", "cpu:DIR" and "cpu:OPTION=VALUE,...".
func openCPU(_ context.Context, r transport.Request) (transport.Conn, error) {
	return openMade("cpu", r, func(g geometry) (server, error) { return cpu.New(cpu.Config(g)) })
}
