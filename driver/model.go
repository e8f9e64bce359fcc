package driver

// The scheme model: the Go model of a card, in this process. Only this file of the driver
// imports the model; real and virtual cards work without it.

import (
	"context"

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
