package driver

// Members that exchange datagrams with a card on a network, while a daemon sets their jobs up
// (daemon/SPEC.md, section 12).

import (
	"context"
	"slices"

	"tributary/driver/daemon/protocol"
	"tributary/driver/wire"
)

// mostSeen is how many epochs of earlier jobs a Join reports. Packets of older ones have died.
const mostSeen = 256

// direct reports whether the frames of this Card's jobs go to a card on a network directly, past the
// daemon.
func (c *Card) direct() bool {
	return c.link.session != nil && c.link.network != ""
}

// origin is what a Join reports of this process's UDP port; zero where frames go through a daemon.
type origin struct {
	address wire.Address
	seen    []uint16
}

// joinFrom reads from the card which address it sees.
func (c *Card) joinFrom(ctx context.Context, l *link) (origin, error) {
	if l.network == "" {
		return origin{}, nil
	}
	address, err := c.source(ctx, l)
	if err != nil {
		return origin{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return origin{address, slices.Clone(c.seen)}, nil
}

// source returns the address from which the card gets this link's datagrams.
func (c *Card) source(ctx context.Context, l *link) (wire.Address, error) {
	got, err := c.accessOn(ctx, l, readHeader(wire.RegSource), readHeader(wire.RegSourceMAC))
	if err != nil {
		return wire.Address{}, err
	}
	return wire.Address{Station: got[0], MAC: got[1]}, nil
}

// join returns a Join from this origin.
func (o origin) join(nonce uint64) *protocol.Join {
	p := &protocol.Join{Nonce: nonce, Source: o.address.Station, SourceMac: o.address.MAC}
	for _, epoch := range o.seen {
		p.Seen = append(p.Seen, uint32(epoch))
	}
	return p
}

// noteSeen notes an epoch whose packets this process may have under way.
func (c *Card) noteSeen(epoch uint16) {
	if !c.direct() || slices.Contains(c.seen, epoch) {
		return
	}
	if c.seen = append(c.seen, epoch); len(c.seen) > mostSeen {
		c.seen = c.seen[1:]
	}
}

// noteAgreed notes that all members have announced the calls before a VID.
func (j *Job) noteAgreed(vid uint32) {
	if old := j.seats.agreed; old == nil || int32(vid-*old) > 0 {
		j.seats.agreed = &vid
	}
	j.card.kick()
	j.wakePairs()
}

// awaitsAgreement reports whether a direct member may not send a chunk yet.
func (j *Job) awaitsAgreement(vid uint32) bool {
	s := j.seats
	return s != nil && s.direct && (s.agreed == nil || int32(vid-*s.agreed) >= 0)
}

// tellFinished tells the daemon that the card has confirmed the finish of a direct member: the daemon
// does not see the card's answer.
func (j *Job) tellFinished(m *Member) {
	j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Finish{Finish: &protocol.Finish{Nonce: j.seats.nonce, Rank: uint32(m.rank)}}})
}

// networked is a link to a card on a network: directly, or past the daemon of its session.
type networked interface {
	// Network returns the card's name for other processes, udp:HOST:PORT; empty if frames take another way.
	Network() string
}

// Network returns the name under which members on other machines reach the card, udp:HOST:PORT; empty
// for a card that is not on a network.
func (c *Card) Network() string { return c.currentLink().network }
