package driver

// Members that exchange datagrams with a card on a network, while a daemon sets their jobs up
// (daemon/SPEC.md, section 12).

import (
	"context"
	"slices"

	"tributary/driver/daemon/protocol"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// MemberAddress is where a member's datagrams come from: the values of MEMBER_ADDRESS and MEMBER_MAC
// (NETWORK.md, section 3).
type MemberAddress struct {
	Source, MAC uint64
}

// mostSeen is how many epochs of earlier jobs a Join reports. Packets of older ones have died.
const mostSeen = 256

// direct reports whether the frames of this Card's jobs go to a card on a network directly, past the
// daemon.
func (c *Card) direct() bool {
	l := c.link
	return l != nil && l.session != nil && l.session.Network() != ""
}

// origin is what a Join reports of this process's UDP port; zero where frames go through a daemon.
type origin struct {
	address MemberAddress
	seen    []uint16
}

// joinFrom reads from the card which address it sees.
func (c *Card) joinFrom(ctx context.Context, l *link) (origin, error) {
	if l.session.Network() == "" {
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
func (c *Card) source(ctx context.Context, l *link) (MemberAddress, error) {
	got, err := c.accessOn(ctx, l, []frame.Header{readHeader(wire.RegSource), readHeader(wire.RegSourceMAC)}...)
	if err != nil {
		return MemberAddress{}, err
	}
	return MemberAddress{Source: got[0], MAC: got[1]}, nil
}

// join returns a Join from this origin.
func (o origin) join(nonce uint64) *protocol.Join {
	p := &protocol.Join{Nonce: nonce, Source: o.address.Source, SourceMac: o.address.MAC}
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
}

// awaitsAgreement reports whether a direct member may not send a chunk yet.
func (j *Job) awaitsAgreement(vid uint32) bool {
	s := j.seats
	return s != nil && s.direct && (s.agreed == nil || int32(vid-*s.agreed) >= 0)
}

// tellFinished tells the daemon that the card has confirmed the finish of a direct member: the daemon
// does not see the card's answer.
func (j *Job) tellFinished(m *Member) {
	if j.seats != nil && j.seats.direct {
		j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Finish{Finish: &protocol.Finish{Nonce: j.seats.nonce, Rank: uint32(m.rank)}}})
	}
}
