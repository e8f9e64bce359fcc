package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"tributary/driver"
	"tributary/driver/transport"
)

// A host is a command of this user that drives a card and lets other commands read it.
type host struct {
	Card    string `json:"card"` // absolute
	Command string `json:"command"`
	Process int    `json:"process"`
	Socket  string `json:"socket"` // lets others read the card
}

// hostNotes names the notes of hosts.
const hostNotes = "host"

// showCard lets other commands read this command's card until the returned function is called. A
// failure to do so is not fatal.
func showCard(ctx context.Context, card *driver.Card, command string, errs io.Writer) (stop func()) {
	stop, err := serveHost(ctx, card, command)
	if err != nil {
		fmt.Fprintf(errs, "tributary top will not show this card: %v\n", err)
		return func() {}
	}
	return stop
}

func serveHost(ctx context.Context, card *driver.Card, command string) (stop func(), err error) {
	n, err := newNote(hostNotes)
	if err != nil {
		return nil, err
	}
	if err := transport.CheckSocket(n.socket()); err != nil {
		n.remove()
		return nil, err
	}
	listener, err := net.Listen("unix", n.socket())
	if err != nil {
		n.remove()
		return nil, err
	}
	err = n.publish(host{absoluteCard(card.Info().Name), command, os.Getpid(), n.socket()})
	if err != nil {
		listener.Close()
		n.remove()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the listener is closed
			}
			// the card's user, or the reader, sees any error
			serving.Go(func() { _ = card.ServeReads(ctx, conn) })
		}
	})
	return func() {
		n.remove()
		listener.Close()
		cancel()
		serving.Wait()
	}, nil
}

// hostOf returns the host of a card if it lets others read it.
func hostOf(card string) (h host, ok bool, err error) {
	hosts, err := readNotes[host](hostNotes)
	for _, h := range hosts {
		if h.Card == absoluteCard(card) {
			return h, true, nil
		}
	}
	return host{}, false, err
}
