package frameport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
)

// Timekeeper advances a card's clock: clock.Clock, or simulator.Pace.
type Timekeeper interface{ CatchUp(clock.Card) }

// Sizes of what Serve keeps for each port.
const (
	frameBytes = 1 << 16 // more than the longest frame, so that none arrives cut
	maxWaiting = 1024    // frames that leave; what comes beyond is lost
)

// server is one run of Serve.
type server struct {
	ports []Port
	out   []chan []byte // by port
	time  Timekeeper

	mu   sync.Mutex // guards card
	card ethernet.Device
}

// Serve runs a card at its ports, of which there is one for each Ethernet port, until ctx ends. It then
// returns nil; otherwise it returns the error of a port or of the card. In any case it closes the ports.
func Serve(ctx context.Context, card ethernet.Device, time Timekeeper, ports []Port) error {
	s := &server{ports: ports, time: time, card: card}
	for range ports {
		s.out = append(s.out, make(chan []byte, maxWaiting))
	}
	inner, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	for i := range ports {
		running.Go(func() { fail(s.send(inner, i)) })
		running.Go(func() { fail(s.receive(i)) })
	}
	running.Go(func() { fail(s.keepTime(inner)) })
	<-inner.Done()
	var closing error
	for _, p := range ports {
		closing = errors.Join(closing, p.Close())
	}
	running.Wait()
	if ctx.Err() == nil {
		return errors.Join(context.Cause(inner), closing)
	}
	return closing
}

// receive passes frames of a port to the card until the port fails.
func (s *server) receive(port int) error {
	frame := make([]byte, frameBytes)
	for {
		n, err := s.ports[port].ReadFrame(frame)
		if err != nil {
			return fmt.Errorf("%s: %w", s.ports[port].Name(), err)
		}
		if err := s.take(port, frame[:n]); err != nil {
			return err
		}
	}
}

// take passes a frame to the card. What it causes is taken before the card sees the next.
func (s *server) take(port int, frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time.CatchUp(s.card)
	s.collect()
	s.card.Receive(port, frame)
	s.collect()
	return s.card.Err()
}

// keepTime advances the card's clock while there is no traffic.
func (s *server) keepTime(ctx context.Context) error {
	ticks := time.NewTicker(clock.Tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := s.passTime(); err != nil {
				return err
			}
		}
	}
}

func (s *server) passTime() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time.CatchUp(s.card)
	s.collect()
	return s.card.Err()
}

// collect takes all frames that leave the card; mu must be held.
func (s *server) collect() {
	for {
		frame, port, ok := s.card.Send(nil)
		if !ok {
			return
		}
		select {
		case s.out[port] <- frame:
		default: // lost: its receiver is too slow
		}
	}
}

// send writes the frames that leave at a port until ctx ends. A port that blocks holds up no other.
func (s *server) send(ctx context.Context, port int) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case frame := <-s.out[port]:
			if err := s.ports[port].WriteFrame(frame); err != nil {
				return fmt.Errorf("%s: %w", s.ports[port].Name(), err)
			}
		}
	}
}
