package main

// The virtual card of tributary sim at Ethernet ports, with -port.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
)

// runAtPorts runs a card at frame ports until Ctrl-C.
func (f *simFlags) runAtPorts(cmd *cobra.Command, name string) (err error) {
	if err := f.checkPorts(cmd); err != nil {
		return err
	}
	card, err := openDevice(cmd.Context(), cmd, name, &f.station, len(f.ports))
	if err != nil {
		return err
	}
	defer func() { err = card.closeWith(cmd.Context(), err) }()
	ports, err := openPorts(f.ports)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if driver.IsSoftware(name) {
		fmt.Fprintln(out, "card", f.station.describe())
	}
	for i, p := range ports {
		fmt.Fprintf(out, "port %d is %s\n", i, p.Name())
	}
	return frameport.Serve(cmd.Context(), card, card.beside(), ports)
}

// checkPorts refuses invalid ports, and the flags of cards without any.
func (f *simFlags) checkPorts(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "port", "mac", "ip":
		default:
			err = usagef("-%s and -port: a card with Ethernet ports has no other link; use only one of the two", flag.Name)
		}
	})
	if len(f.ports) > ethernet.MaxPorts {
		return usagef("-port: a card has at most %d Ethernet ports", ethernet.MaxPorts)
	}
	seen := map[string]bool{}
	for _, name := range f.ports {
		if err := frameport.CheckName(name); err != nil {
			return usagef("-port %s: it must be unix:PATH or tap:NAME", name)
		}
		if seen[name] {
			return usagef("-port %s: it is named twice", name)
		}
		seen[name] = true
		if path, ok := strings.CutPrefix(name, "unix:"); ok {
			if err := transport.CheckSocket(path); err != nil {
				return usagef("-port: %w", err)
			}
		}
	}
	return err
}

// openPorts opens all ports, or none.
func openPorts(names []string) (ports []frameport.Port, err error) {
	for _, name := range names {
		p, err := frameport.Open(name)
		if err != nil {
			for _, open := range ports {
				err = errors.Join(err, open.Close())
			}
			return nil, fmt.Errorf("-port %w", err)
		}
		ports = append(ports, p)
	}
	return ports, nil
}
