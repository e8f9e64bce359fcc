// Package transport opens the ways to cards.
//
// A Conn is only a full-duplex byte stream: package frame finds the frames in it, and package
// driver interprets them. A PacketConn carries datagrams instead. Schemes are registered by name.
// This package has tcp, unix and sim, and package driver adds model and others. A program can
// register its own scheme before it opens a card.
package transport

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tributary/driver/wire"
)

// Conn is a full-duplex byte stream to one card. One goroutine may call Read, another Write and
// a third Close at the same time. Close ends a Read and a Write in progress.
type Conn interface {
	io.ReadWriteCloser
}

// Request is the argument of an Opener.
type Request struct {
	Address string // the name after the scheme and its colon
	Needs
}

// Needs are the caller's requirements, for cards that are made to order. Other cards ignore
// them. 0 means no requirement.
type Needs struct {
	Workers int         // number of workers
	Format  wire.Format // of the caller's arrays

	// Patience is how long a card may take to reply while it is opened.
	Patience time.Duration

	// Admin asks the daemon of a shared card to pass on register writes, such as a reset.
	Admin bool
}

// Opener opens a card of one scheme. It returns when ctx ends.
type Opener func(ctx context.Context, r Request) (Conn, error)

var (
	mu      sync.Mutex
	schemes = map[string]Opener{
		"tcp":  openTCP,
		"unix": openUnix,
		"sim":  openSim,
	}
)

// Register adds a scheme. It panics if the scheme is registered already, which is a bug in the
// program.
func Register(scheme string, open Opener) {
	mu.Lock()
	defer mu.Unlock()
	mustBeNew(scheme)
	schemes[scheme] = open
}

// mustBeNew panics if the scheme is registered.
func mustBeNew(scheme string) {
	if schemes[scheme] != nil || packetSchemes[scheme] != nil {
		panic("transport: scheme " + scheme + " registered twice")
	}
}

// Schemes lists the registered schemes in alphabetical order.
func Schemes() []string {
	mu.Lock()
	defer mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(schemes)), maps.Keys(packetSchemes))
	slices.Sort(all)
	return all
}

// SchemeError is the error for a name whose scheme is not registered.
type SchemeError struct {
	Name  string
	Known []string
}

func (e *SchemeError) Error() string {
	return fmt.Sprintf("%q is not a card's name; names begin with %s:", e.Name, strings.Join(e.Known, ":, "))
}

// TakenError is an Opener's error for a card that another program uses.
type TakenError struct {
	Reason string
}

func (e *TakenError) Error() string { return e.Reason }

// Open opens the byte stream to the card called name, SCHEME:ADDRESS. OpenLink opens cards of packets
// as well.
func Open(ctx context.Context, name string, needs Needs) (Conn, error) {
	scheme, address, ok := strings.Cut(name, ":")
	mu.Lock()
	open, packets := schemes[scheme], packetSchemes[scheme] != nil
	mu.Unlock()
	if ok && packets {
		return nil, noStream(name)
	}
	if !ok || open == nil {
		return nil, &SchemeError{Name: name, Known: Schemes()}
	}
	return open(ctx, Request{Address: address, Needs: needs})
}
