// Command tributary reduces gradients through a card, and looks after cards.
//
//	tributary reduce -o sum.npy w0.npy w1.npy w2.npy w3.npy
//	tributary reduce -card sim:tributary_l16_w4_fp32_tree -o sum.npy w0.npy w1.npy
//
// See `tributary -h` for its commands, and Exit status there for its statuses.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The first signal ends the command in an orderly way: it releases the card and leaves no output
	// file. The second signal ends it at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
