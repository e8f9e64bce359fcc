package walks

import (
	"tributary/driver/cpu"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// Software is the same card in software: package cpu, with a link for each port or one for all.
type Software struct {
	card *cpu.Card
	link *cpu.Link      // nil: each port has its own
	scan *frame.Scanner // of the link
	sent []byte         // by the link, since the last call of Until
	now  uint64
}

// NewSoftware returns the card after its hard reset. With shell stream, the ports share a link.
func NewSoftware(shell wire.Shell) (*Software, error) {
	cfg := cpu.Config{Lanes: 1, Ports: cardPorts, Chunk: cardChunk, Window: cardWindow, Jobs: cardJobs, Format: wire.Int32, Shell: shell}
	if shell == wire.ShellStream {
		cfg.Link = 32
	}
	card, err := cpu.New(cfg)
	if err != nil || shell == wire.ShellNone {
		return &Software{card: card}, err
	}
	link, err := cpu.NewLink(card)
	return &Software{card: card, link: link, scan: frame.NewScanner(frame.FromCard, 0)}, err
}

// Close does nothing.
func (s *Software) Close() error { return nil }

func (s *Software) Shared() bool { return s.link != nil }
func (s *Software) Now() uint64  { return s.now }

func (s *Software) Send(port int, p *model.Packet) error {
	if s.link != nil {
		h := frame.Header(p.Header)
		s.sent = s.link.Exchange(s.sent, frame.Append(nil, &h, p.Payload))
		return nil
	}
	s.card.Handle(port, &cpu.Packet{Header: frame.Header(p.Header), Payload: p.Payload})
	return nil
}

func (s *Software) Register(write bool, addr uint32, value uint64) (code uint8, read uint64, err error) {
	c, read := s.card.Register(write, addr, value)
	return uint8(c), read, nil
}

func (s *Software) Until(cycle uint64) ([]model.Packet, error) {
	var sent []model.Packet
	for {
		sent = append(sent, s.leaving()...)
		_, s.now = s.card.Register(false, wire.RegCycles, 0)
		if s.now >= cycle {
			return sent, nil
		}
		s.card.Advance(min(lookCycles, cycle-s.now))
	}
}

// leaving returns what the card sends now, and what the link has sent since the last call.
func (s *Software) leaving() (sent []model.Packet) {
	if s.link == nil {
		for {
			var p cpu.Packet
			ports, ok := s.card.Next(cpu.AllPorts, &p)
			if !ok {
				return sent
			}
			p.Receivers = ports
			sent = append(sent, model.Packet{Header: model.Header(p.Header), Payload: p.Payload})
		}
	}
	s.scan.Feed(s.link.Exchange(s.sent, nil))
	s.sent = s.sent[:0]
	for f := (frame.Frame{}); s.scan.Next(&f); {
		sent = append(sent, model.Packet{Header: model.Header(f.Header), Payload: append([]byte(nil), f.Payload...)})
	}
	return sent
}
