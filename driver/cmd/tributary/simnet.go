package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tributary/driver"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// runOnNetwork runs a card in software at a UDP socket until Ctrl-C.
func (f *simFlags) runOnNetwork(cmd *cobra.Command, name string) error {
	address, err := f.networkAddress(cmd)
	if err != nil {
		return err
	}
	socket, err := udp.Listen(address)
	if err != nil {
		return err
	}
	card, err := driver.NewNetworkCard(name, socket.Address(), 0)
	if err != nil {
		socket.Close()
		return err
	}
	defer showRunning(runningCard{Card: socket.Name(), Made: name}, cmd.ErrOrStderr())()
	fmt.Fprintln(cmd.OutOrStdout(), "listening", socket.Name()) // list shows it by now
	return socket.Serve(cmd.Context(), card)
}

// networkAddress returns HOST:PORT of -listen. It refuses the flags of built cards.
func (f *simFlags) networkAddress(cmd *cobra.Command) (address string, err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "listen" && err == nil {
			err = usagef("-%s: a card in software is on the network alone; use -listen udp:HOST[:PORT]", flag.Name)
		}
	})
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(int(wire.NetworkPort))
	if f.listen == "" {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	address, ok := strings.CutPrefix(f.listen, "udp:")
	if !ok || address == "" {
		return "", usagef("-listen %s: for a card in software it must be udp:HOST[:PORT]", f.listen)
	}
	if !strings.Contains(address, ":") {
		address = net.JoinHostPort(address, port)
	}
	return address, nil
}
