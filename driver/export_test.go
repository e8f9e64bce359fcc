package driver

import (
	"tributary/driver/cpu"
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
