// Command serve shares a card among processes until its input ends: serve CARD PATH.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"tributary/driver"
	"tributary/driver/daemon"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	card, err := driver.Open(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println("ready")
	if err := daemon.New(map[string]*driver.Card{"card": card}, daemon.Options{}).Serve(ctx, listener, 0); err != nil {
		log.Fatal(err)
	}
}
