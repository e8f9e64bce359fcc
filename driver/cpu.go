package driver

// The scheme cpu: the card in software, in this process.

import (
	"context"

	"tributary/driver/cpu"
	"tributary/driver/transport"
)

func init() { transport.Register("cpu", openCPU) }

// openCPU opens "cpu:", "cpu:DIR" and "cpu:OPTION=VALUE,...".
func openCPU(_ context.Context, r transport.Request) (transport.Conn, error) {
	return openMade("cpu", r, func(g geometry) (server, error) { return cpu.New(cpu.Config(g)) })
}
