//go:build linux

// Namespaces shows a card among hosts that each have the kernel's own IP stack. Four worker processes
// live in four network namespaces and sum arrays through the card at its UDP port, while `ping` and
// `iperf3` cross the same network interfaces. In the first network the card is one-armed behind a
// learning bridge; in the second it is in path, and all frames between hosts pass through it.
//
// Every bit of every sum is compared with the Go model. A wrong bit, a lost ping or a failed iperf3
// ends the program with status 1.
//
// Everything lives in a network namespace of its own, so the program needs no root and changes nothing
// in the network of the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// roleVariable is set in the environment of worker processes.
const roleVariable = "TRIBUTARY_NAMESPACES_ROLE"

func main() {
	if os.Getenv(roleVariable) != "" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fail(err)
		}
		return
	}
	if err := requireOwnNetwork(); err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := demo{screen: newScreen(os.Stdout)}
	flag.StringVar(&d.card, "card", "", "use this `CARD` in software, such as model:lanes=4 (default the gateware in build/net)")
	flag.StringVar(&d.tributary, "tributary", "bin/tributary", "the `PROGRAM` tributary")
	flag.IntVar(&d.elements, "elements", 20_000, "sum arrays of `N` elements in a reduction")
	flag.IntVar(&d.pings, "pings", 50, "send at least `N` pings in each network")
	flag.Parse()
	if err := d.run(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "demo-net:", err)
	os.Exit(1)
}
