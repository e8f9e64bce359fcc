// Package transport opens the byte streams that lead to cards.
//
// A Conn is a full-duplex byte stream, no more: package frame cuts it into
// frames and package driver knows what they mean. Schemes are registered by
// name; this package brings tcp, unix and sim, package driver adds model, and a
// program can register its own before it opens a card.
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

// Conn is a full-duplex byte stream to one card. Read and Write may be called
// at the same time by two goroutines, Close by a third; Close ends a Read and a
// Write that are under way.
type Conn interface {
	io.ReadWriteCloser
}

// Request is what an opener is given.
type Request struct {
	Address string // what stands behind the scheme and its colon
	Needs
}

// Needs are what the caller will do with the card, for cards that are made to
// measure; other cards are what they are. 0 stands for what it did not say.
type Needs struct {
	Workers int         // how many workers it will have
	Format  wire.Format // of its arrays

	// Patience is for how long a card that must be asked may not answer.
	Patience time.Duration
}

// Opener opens a card of one scheme. It gives up when ctx is done.
type Opener func(ctx context.Context, r Request) (Conn, error)

var (
	mu      sync.Mutex
	schemes = map[string]Opener{
		"tcp":  openTCP,
		"unix": openUnix,
		"sim":  openSim,
	}
)

// Register adds a scheme. It panics when the scheme is there already, as that
// is a mistake in the program.
func Register(scheme string, open Opener) {
	mu.Lock()
	defer mu.Unlock()
	if _, ok := schemes[scheme]; ok {
		panic("transport: scheme " + scheme + " registered twice")
	}
	schemes[scheme] = open
}

// Schemes lists the registered schemes in alphabetical order.
func Schemes() []string {
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Keys(schemes))
}

// SchemeError is answered for a name whose scheme is not registered.
type SchemeError struct {
	Name  string
	Known []string
}

func (e *SchemeError) Error() string {
	return fmt.Sprintf("%q is no card's name; a name begins with one of %s:", e.Name, strings.Join(e.Known, ":, "))
}

// TakenError is answered by an opener whose card is there but another program's.
type TakenError struct {
	Reason string
}

func (e *TakenError) Error() string { return e.Reason }

// Open opens the byte stream to the card called name, SCHEME:ADDRESS.
func Open(ctx context.Context, name string, needs Needs) (Conn, error) {
	scheme, address, ok := strings.Cut(name, ":")
	mu.Lock()
	open := schemes[scheme]
	mu.Unlock()
	if !ok || open == nil {
		return nil, &SchemeError{Name: name, Known: Schemes()}
	}
	return open(ctx, Request{Address: address, Needs: needs})
}
