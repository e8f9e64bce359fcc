package main

// Cards with Ethernet ports, for tributary sim -port and tributary pcap.

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/driver/virtual/simulator"
	"tributary/driver/wire"
)

// device is a card with Ethernet ports, and what comes with it.
type device struct {
	ethernet.Device
	ports    int                         // that something is connected to
	endpoint ethernet.Endpoint           // of a card in software
	beside   func() frameport.Timekeeper // lets it run beside real time
	close    func() error
}

// Send is that of the card, without the frames at its ports that nothing is connected to.
func (d *device) Send(dst []byte) (frame []byte, port int, ok bool) {
	for {
		frame, port, ok = d.Device.Send(dst)
		if !ok || port < d.ports {
			return frame, port, ok
		}
	}
}

// openDevice starts the card of a name with as many Ethernet ports. A built card ends with ctx.
func openDevice(ctx context.Context, cmd *cobra.Command, name string, station *stationFlags, ports int) (*device, error) {
	if driver.IsSoftware(name) {
		return newSoftware(name, station.own(), ports)
	}
	if set := station.set(cmd); set != nil {
		return nil, usagef("-%s: the address of a built card was chosen when it was generated", set.Name)
	}
	d, err := startBuilt(ctx, name, ports, cmd.ErrOrStderr())
	if err != nil {
		return nil, &driver.NoCardError{Name: "sim:" + name, Err: err}
	}
	return d, nil
}

// newSoftware makes a card in software.
func newSoftware(name string, own wire.Address, ports int) (*device, error) {
	endpoint, err := driver.NewNetworkCard(name, own, ports)
	if err != nil {
		return nil, err
	}
	card, err := ethernet.New(endpoint, ports)
	if err != nil {
		return nil, err
	}
	beside := func() frameport.Timekeeper { return clock.Start(card) }
	return &device{card, ports, endpoint, beside, func() error { return nil }}, nil
}

// startBuilt starts the simulator in a card's folder.
func startBuilt(ctx context.Context, dir string, ports int, errs io.Writer) (*device, error) {
	folder, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	if folder.Shell != wire.ShellUDP.String() && folder.Shell != wire.ShellRoCE.String() {
		return nil, fmt.Errorf("its shell is %s; a card with Ethernet ports has the shell %v or %v", folder.Shell, wire.ShellUDP, wire.ShellRoCE)
	}
	if has := max(1, folder.Ethernet); ports > has {
		return nil, fmt.Errorf("%d Ethernet ports are needed; it has %d", ports, has)
	}
	const program = "card"
	if !folder.built(program) {
		return nil, fmt.Errorf("it is not built; build it with: %s", folder.buildCommand(""))
	}
	card, err := simulator.Start(ctx, folder.program(program), max(1, folder.Ethernet), errs)
	if err != nil {
		return nil, err
	}
	return &device{card, ports, nil, func() frameport.Timekeeper { return card.RunFreely() }, card.Close}, nil
}

// closeWith closes the device after a run that ended with err.
func (d *device) closeWith(ctx context.Context, err error) error {
	closing := d.close()
	if ctx.Err() != nil {
		return err // Ctrl-C has ended the simulator
	}
	return errors.Join(err, closing)
}
