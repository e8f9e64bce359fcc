package collective

// One card for all (SPEC.md, section 7).

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/wire"
)

// OpenCard joins a group whose members are those of one job of a card: m is this member's, under the
// same rank. The job has a member for each of the group. All-gathers and broadcasts do not use the
// card. When the card is not fit for a format (see Fits), a ring sums instead, with a warning. The
// caller closes the job after the Collective. A call that fails ends the job too.
func OpenCard(ctx context.Context, m *driver.Member, g Group, opts ...Option) (Collective, error) {
	if workers := m.Job().Config().Workers; workers != g.Size() || m.Rank() != g.Rank {
		return nil, &InputError{"card", fmt.Sprintf("its member is rank %d of %d; that of the group is %d of %d", m.Rank(), workers, g.Rank, g.Size())}
	}
	o := newOptions(opts)
	return open(ctx, Card, &onCard{seat: m, unused: newUnused(o)}, g, o)
}

// Fits returns why a card is not fit to sum a format for a number of members; "" means that it is
// (SPEC.md, section 3).
func Fits(card driver.Info, f wire.Format, members int) (why string) {
	sum, _ := card.Sum.Info()
	switch {
	case card.Format != f:
		return fmt.Sprintf("it sums %s, not %s", card.Format, f)
	case card.Result != f:
		return fmt.Sprintf("it sums %s into %s; partial sums must be contributions", card.Format, card.Result)
	case !sum.Adds:
		return fmt.Sprintf("it computes %s, which is no sum", card.Sum)
	case card.Saturate:
		return "its sums saturate; those of other members wrap around"
	case card.Ports < members:
		return fmt.Sprintf("it has %d ports for %d members", card.Ports, members)
	}
	return ""
}

// unused warns of cards that are not used.
type unused struct {
	warn func(text string)

	mu     sync.Mutex
	warned map[wire.Format]bool
}

func newUnused(o options) *unused {
	return &unused{warn: o.warn, warned: map[wire.Format]bool{}}
}

// tell warns once for a format.
func (u *unused) tell(f wire.Format, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.warned[f] {
		u.warned[f] = true
		u.warn(text)
	}
}

// onCard implements algorithm 4.
type onCard struct {
	hostRing
	seat *driver.Member
	*unused
}

// fits reports whether the card of a seat is fit for a call of some members, or warns.
func (u *unused) fits(c *call, seat *driver.Member, members int) bool {
	info := seat.Job().Card().Info()
	why := Fits(info, c.format, members)
	if why != "" {
		u.tell(c.format, fmt.Sprintf("card %s is not used for %s: %s; a ring sums instead", info.Name, c.format, why))
	}
	return why == ""
}

func (o *onCard) allReduce(c *call) error {
	if !o.fits(c, o.seat, c.group.Size()) {
		return o.hostRing.allReduce(c)
	}
	return o.sum(c, c.dst)
}

func (o *onCard) reduceScatter(c *call) error {
	if !o.fits(c, o.seat, c.group.Size()) {
		return o.hostRing.reduceScatter(c)
	}
	work := make([]byte, len(c.src))
	if err := o.sum(c, work); err != nil {
		return err
	}
	from, to := c.piece(c.own())
	copy(c.dst, c.at(work, from, to))
	return nil
}

// sum agrees on the call and sums on the card.
func (o *onCard) sum(c *call, dst []byte) error {
	if err := whole(c, nil, 0).agree(); err != nil {
		return err
	}
	if err := o.seat.AllReduceBytes(c.ctx, dst, c.src); err != nil {
		return c.cardFailed(err)
	}
	return nil
}

// agree compares the calls of a ring's members, before any reaches their card.
func (r *ring) agree() error {
	if len(r.ranks) == 1 {
		return nil
	}
	if err := r.send(r.next(), phaseAgree, 0, 0, nil); err != nil {
		return err
	}
	m, err := r.recv(r.prev(), phaseAgree, 0, 0, 0)
	if err != nil {
		return err
	}
	m.release()
	return nil
}

// cardFailed returns why a call of the card failed: the end of the call's context, if it has ended. If
// the job has ended, the group may bring the reason. It does if another member has ended the job.
func (c *call) cardFailed(err error) error {
	if errors.As(err, new(*driver.EndedError)) {
		wait := graceTime
		if byMember(err) {
			wait = reasonTime
		}
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
		}
	}
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return &CardError{c.own(), err}
}

// byMember reports whether another member has ended a job.
func byMember(err error) bool {
	return errors.As(err, new(*driver.GivenUpError)) || errors.As(err, new(*driver.MemberLostError)) ||
		errors.As(err, new(*driver.MemberFailedError)) || errors.As(err, new(*driver.CallsDifferError))
}
