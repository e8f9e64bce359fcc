package walks

import (
	"tributary/driver/model"
	"tributary/driver/wire"
)

// lookCycles is the step of the model's clock, in cycles. The model acts on a deadline at the
// first step after it.
const lookCycles = 20

// Modelled is the Go model of the same card, with a link for each port.
type Modelled struct {
	card *model.Card
	now  uint64
}

// NewModelled returns the model after its hard reset.
func NewModelled() (*Modelled, error) {
	card, err := model.NewCard(model.Config{Lanes: 1, Ports: cardPorts, Chunk: cardChunk, Window: cardWindow, Jobs: cardJobs, Format: wire.Int32})
	return &Modelled{card: card}, err
}

// Close does nothing.
func (m *Modelled) Close() error { return nil }

func (m *Modelled) Shared() bool { return false }
func (m *Modelled) Now() uint64  { return m.now }

func (m *Modelled) Send(port int, p *model.Packet) error {
	m.card.Handle(port, p)
	return nil
}

func (m *Modelled) Register(write bool, addr uint32, value uint64) (code uint8, read uint64, err error) {
	c, read := m.card.Register(write, addr, value)
	return uint8(c), read, nil
}

func (m *Modelled) Until(cycle uint64) ([]model.Packet, error) {
	var sent []model.Packet
	for {
		for {
			var p model.Packet
			ports, ok := m.card.Next(model.AllPorts, &p)
			if !ok {
				break
			}
			p.Receivers = ports
			sent = append(sent, p)
		}
		_, m.now = m.card.Register(false, wire.RegCycles, 0)
		if m.now >= cycle {
			return sent, nil
		}
		m.card.Advance(min(lookCycles, cycle-m.now))
	}
}
