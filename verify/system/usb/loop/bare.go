package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/gousb"

	"tributary/driver/wire"
)

// The sizes of package usb, so that the bare loop and the transport move the same bytes in
// transfers of the same size.
const (
	transferBytes = 64 << 10
	transfers     = 4
)

// loopBare sends bytes around with gousb's streams alone. size must be a whole number of
// transfers.
func loopBare(size int) error {
	ctx := gousb.NewContext()
	defer ctx.Close()
	dev, err := ctx.OpenDeviceWithVIDPID(gousb.ID(wire.USBVendor), gousb.ID(wire.USBProduct))
	if dev == nil {
		return fmt.Errorf("no device: %w", err)
	}
	defer dev.Close()
	config, err := dev.Config(wire.USBConfiguration)
	if err != nil {
		return err
	}
	defer config.Close()
	claimed, err := config.Interface(wire.USBInterface, wire.USBLinkUp)
	if err != nil {
		return err
	}
	defer claimed.Close()
	out, errOut := claimed.OutEndpoint(int(wire.USBOut))
	in, errIn := claimed.InEndpoint(int(wire.USBIn & 0x7f))
	if err := errors.Join(errOut, errIn); err != nil {
		return err
	}
	to, errOut := out.NewStream(transferBytes, transfers)
	from, errIn := in.NewStream(transferBytes, transfers)
	if err := errors.Join(errOut, errIn); err != nil {
		return err
	}
	return loop(
		func() error { return errors.Join(send(to, size, transferBytes), to.Close()) },
		func() error { return errors.Join(receive(from, size), takeBack(from)) })
}

// takeBack cancels the transfers that still wait for bytes.
func takeBack(from *gousb.ReadStream) error {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := from.Close(); err != nil {
		return err
	}
	for buf := make([]byte, transferBytes); ; {
		if n, err := from.ReadContext(over, buf); n > 0 {
			return fmt.Errorf("%d bytes too many came back", n)
		} else if err != nil {
			return nil
		}
	}
}
