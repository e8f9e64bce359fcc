package udp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/net/ipv4"

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
}

// The clock of a card follows real time, with an update at least every tick.
const (
	cycle = 10 * time.Nanosecond
	tick  = time.Millisecond
)

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

// server is one run of Serve: the reader and the clock share the card and what leaves.
type server struct {
	conn  packets
	began time.Time
	from  uint64 // the card's clock at that time

	mu   sync.Mutex // guards the card and out
	card Card
	out  outbox
}

// serve runs a card at a socket until ctx ends, and closes the socket.
func serve(ctx context.Context, conn packets, card Card) error {
	s := &server{conn: conn, began: time.Now(), from: card.Cycles(), card: card, out: newOutbox(conn)}
	over := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() { s.keepTime(over) })
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err := s.receive()
	close(over)
	clock.Wait()
	if !stop() {
		return nil
	}
	return errors.Join(err, conn.Close())
}

// keepTime advances the card's clock while there is no traffic.
func (s *server) keepTime(over <-chan struct{}) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticks.C:
			s.mu.Lock()
			s.catchUp()
			s.out.collect(s.card)
			s.out.flush()
			s.mu.Unlock()
		}
	}
}

// catchUp advances the card's clock to real time, unless it is ahead; mu must be held.
func (s *server) catchUp() {
	now := s.from + uint64(time.Since(s.began)/cycle)
	if at := s.card.Cycles(); now > at {
		s.card.Advance(now - at)
	}
}

// receive passes datagrams to the card, and sends what it answers, until the socket fails.
func (s *server) receive() error {
	in := newMessages()
	for {
		n, err := s.conn.ReadBatch(in, 0)
		if err != nil {
			return err
		}
		s.take(in[:n])
	}
}

// take passes datagrams to the card. What the card answers to one is taken before it sees the next,
// so that no status replaces another.
func (s *server) take(in []ipv4.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	for i := range in {
		m := &in[i]
		if from, ok := m.Addr.(*net.UDPAddr); ok {
			s.card.Receive(m.Buffers[0][:m.N], addressOf(from.AddrPort()), receivedMark(m.OOB[:m.NN]))
			s.out.collect(s.card)
		}
	}
	s.out.flush()
}

// newMessages returns a batch to receive.
func newMessages() []ipv4.Message {
	ms := make([]ipv4.Message, batch)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, datagramBytes)}
		ms[i].OOB = make([]byte, controlBytes)
	}
	return ms
}
