// Command releasing writes a card with bare AXI4-Stream ports whose core has agg_release instead of
// agg_owed. No configuration has such a card; it is for the bench of the core, cocotb/test_release.py.
// It takes hwgen's flags.
package main

import (
	"context"
	"fmt"
	"os"

	"tributary/hwgen/config"
	"tributary/hwgen/emit"
	"tributary/hwgen/plan"
	"tributary/rtl"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "releasing:", err)
		os.Exit(1)
	}
}

// write plans the card of hwgen's flags, and writes its folder.
func write(args []string) error {
	o, err := config.Parse(args, plan.Known())
	if err != nil {
		return err
	}
	p, err := plan.BuildReleasing(o.Config)
	if err != nil {
		return err
	}
	files, err := emit.Files(p, rtl.Files)
	if err != nil {
		return err
	}
	return emit.Write(context.Background(), o.Dir, files, o.Force)
}
