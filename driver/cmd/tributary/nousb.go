//go:build !usb

package main

// Replaces the cards on USB in a build without libusb.

import (
	"context"
	"errors"

	"tributary/driver/transport"
	"tributary/driver/transport/bulk"
)

func init() {
	for _, scheme := range []string{"usb", "ftdi", "ft60x"} {
		transport.Register(scheme, func(context.Context, transport.Request) (transport.Conn, error) {
			return nil, errors.New("this tributary was built without libusb, which cards on USB need; install it (apt install libusb-1.0-0-dev pkg-config) and build again (make build)")
		})
	}
}

// listUSB returns no cards.
func listUSB() ([]bulk.Card, error) { return nil, nil }
