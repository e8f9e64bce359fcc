// Command exhaustive adds all 2^32 pairs of the 16-bit formats with the Verilated node of the sum
// tree, and compares every sum with the processor's. It takes minutes. RESULT.md in this folder
// has the last result.
package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"tributary/driver/wire"
	"tributary/verify/gateware/vectors"
)

var (
	//go:embed programs/nodes.v
	wrapper string
	//go:embed programs/nodes.cpp
	program string
)

// log2Nodes is the logarithm of the number of nodes in the simulation. More nodes amortize the
// cost of a cycle; too many do not fit the cache.
const log2Nodes = 4

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "exhaustive:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	const leaf = "rtl/sum/agg_fp_add.v"
	text, err := os.ReadFile(leaf)
	if err != nil {
		return err
	}
	fmt.Printf("%s, SHA-256 %x\n", leaf, sha256.Sum256(text))
	builder := &vectors.Builder{Folder: "build/vectors"}
	for _, format := range []wire.Format{wire.BF16, wire.FP16} {
		info, _ := format.Info()
		defines := []string{
			fmt.Sprintf("EXP=%d", info.Exp),
			fmt.Sprintf("FRAC=%d", info.Frac),
			fmt.Sprintf("LOG2=%d", log2Nodes),
		}
		path, err := builder.Program(ctx, vectors.Program{
			Name:     "nodes",
			Text:     program,
			Defines:  defines,
			Optimize: "-O3",
			Modules:  []vectors.Module{{Name: "nodes", Top: "nodes", Text: wrapper, Folders: []string{"rtl/sum"}, Parameters: defines}},
		})
		if err != nil {
			return err
		}
		fmt.Printf("%v node: ", format)
		command := exec.CommandContext(ctx, path)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("%v node: %w", format, err)
		}
	}
	return nil
}
