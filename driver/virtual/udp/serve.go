package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/net/ipv4"

	"tributary/driver/virtual/clock"
	"tributary/driver/wire"
)

// Card is a card on a network, in software. Serve calls its methods one at a time.
type Card interface {
	// Receive takes a datagram that came from an address with a mark in its IP header. It keeps no
	// reference to it.
	Receive(datagram []byte, from wire.Address, mark wire.ECN)

	// Send appends the next datagram that leaves to dst, and returns its destination and its mark. ok
	// is false if there is none.
	Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool)

	Cycles() uint64        // the card's clock
	Advance(cycles uint64) // advances it
	Own() wire.Address     // the card's own address, in effect when everything has left
}

// Sizes of the batches that one call of the system moves.
const (
	batch         = 32      // datagrams
	datagramBytes = 1 << 16 // more than the longest datagram of UDP, so that none arrives cut
)

// packets is what serve needs of a socket.
type packets interface {
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
	WriteBatch(ms []ipv4.Message, flags int) (int, error)
	Close() error
}

// site is where a card is reached.
type site struct {
	packets
	station uint64 // IPv4 address and UDP port, as in wire.Address
}

// server is one run of Serve: the reader and the clock share the card and what leaves.
type server struct {
	move func(to wire.Address) (packets, error)
	time clock.Clock

	readers sync.WaitGroup // of upward ports

	mu       sync.Mutex // guards the rest; the reader alone changes at
	at       site
	over     bool // at is closed
	card     Card
	out      outbox
	upper    upper              // the card, if it has an up port
	links    map[uint16]*uplink // by upward UDP port
	datagram []byte             // reused
}

// serve runs a card at a site until ctx ends, and closes the site. move opens another one.
func serve(ctx context.Context, at site, move func(wire.Address) (packets, error), card Card) error {
	s := &server{move: move, time: clock.Start(card), at: at, card: card, out: newOutbox(), links: map[uint16]*uplink{}}
	s.upper, _ = card.(upper)
	defer s.readers.Wait()
	stopped := make(chan struct{})
	var keeper sync.WaitGroup
	keeper.Go(func() { s.keepTime(stopped) })
	cancelled := context.AfterFunc(ctx, func() { s.close() })
	err := s.receive()
	close(stopped)
	keeper.Wait()
	if !cancelled() {
		return nil // ctx has closed the site, which the reader found
	}
	return errors.Join(err, s.close())
}

// close closes the site, for ever.
func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.cutAll()
	return s.at.Close()
}

// keepTime advances the card's clock while there is no traffic.
func (s *server) keepTime(stopped <-chan struct{}) {
	ticks := time.NewTicker(clock.Tick)
	defer ticks.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-ticks.C:
			s.mu.Lock()
			s.time.CatchUp(s.card)
			s.collect()
			s.flush()
			s.mu.Unlock()
		}
	}
}

// receive passes datagrams to the card, and sends what it answers, until a socket fails.
func (s *server) receive() error {
	in := newMessages()
	for {
		n, err := s.at.ReadBatch(in, 0)
		if err != nil {
			return err
		}
		if err := s.take(in[:n]); err != nil {
			return err
		}
	}
}

// take passes datagrams to the card. What the card answers to one is taken before it sees the next,
// so that no status replaces another.
func (s *server) take(in []ipv4.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time.CatchUp(s.card)
	for i := range in {
		m := &in[i]
		if from, ok := m.Addr.(*net.UDPAddr); ok {
			s.card.Receive(m.Buffers[0][:m.N], addressOf(from.AddrPort()), ReceivedMark(m.OOB[:m.NN]))
			if err := s.raise(); err != nil {
				return err
			}
			s.collect()
		}
	}
	s.flush()
	return s.follow()
}

// follow moves to the card's own address if a host has changed that; mu must be held.
func (s *server) follow() error {
	own := s.card.Own()
	if own.Station == s.at.station || s.over {
		return nil
	}
	to, err := s.move(own)
	if err != nil {
		return fmt.Errorf("udp: the card was given the address %v: %w", addrPortOf(own), err)
	}
	old := s.at
	s.at = site{to, own.Station}
	s.cutAll()
	return errors.Join(old.Close(), s.raise())
}

// newMessages returns a batch to receive.
func newMessages() []ipv4.Message {
	ms := make([]ipv4.Message, batch)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, datagramBytes)}
		ms[i].OOB = make([]byte, ControlBytes)
	}
	return ms
}
