package daemon_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"tributary/driver"
	"tributary/verify/reference/operands"
	"tributary/verify/reference/oracle"
)

// team is a job whose members have a session each. Its calls sum operands of all kinds. The sums of every
// member must be those of package oracle, bit for bit.
type team struct {
	members  []*driver.Member // by rank
	operands *operands.Source
	oracle   *oracle.Oracle
	shape    func(sum func(x ...uint32) uint32, x []uint32) uint32 // of the members' sum, from sums of one card
}

// newTeam takes the seats of a job: a session takes the rank of its index, nil leaves it to others.
// Operands differ by seed.
func newTeam(t testing.TB, j *driver.Job, sessions []*driver.Card, seed int) *team {
	t.Helper()
	info := j.Card().Info()
	m := &team{operands: operands.New(info.Format, info.Result, uint64(seed)),
		oracle: oracle.New(info.Sum, info.Format, info.Result, info.Saturate),
		shape:  func(sum func(x ...uint32) uint32, x []uint32) uint32 { return sum(x...) }}
	m.members = make([]*driver.Member, len(sessions))
	for rank, session := range sessions {
		var err error
		if session == j.Card() {
			m.members[rank] = j.Member(rank)
		} else if session != nil {
			m.members[rank], err = session.Join(testContext(t), j.Ticket(), rank)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// teamCall is a call of all members of a team.
type teamCall struct {
	in, sums [][]byte // by rank
	want     []byte
	pending  []*driver.Pending
}

// start starts a call of all members in this process.
func (m *team) start(ctx context.Context, elements int) (*teamCall, error) {
	c := &teamCall{in: make([][]byte, len(m.members))}
	x := make([]uint32, len(m.members))
	for range elements {
		m.operands.Next(x)
		for rank := range x {
			c.in[rank] = binary.LittleEndian.AppendUint32(c.in[rank], x[rank])
		}
		c.want = binary.LittleEndian.AppendUint32(c.want, m.shape(m.sumOf, x))
	}
	for rank, member := range m.members {
		if member == nil {
			continue
		}
		sum := make([]byte, len(c.want))
		p, err := member.StartAllReduceBytes(ctx, sum, c.in[rank])
		if err != nil {
			return nil, err
		}
		c.sums, c.pending = append(c.sums, sum), append(c.pending, p)
	}
	return c, nil
}

// sumOf is the sum of one card.
func (m *team) sumOf(x ...uint32) uint32 {
	y, _ := m.oracle.Sum(x)
	return y
}

// wait waits for the sums, and compares them.
func (c *teamCall) wait(ctx context.Context) error {
	for i, p := range c.pending {
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if !bytes.Equal(c.sums[i], c.want) {
			return fmt.Errorf("the sums of one member are\n%x, want\n%x", c.sums[i], c.want)
		}
	}
	return nil
}

// sum makes a call.
func (m *team) sum(ctx context.Context, elements int) error {
	c, err := m.start(ctx, elements)
	if err != nil {
		return err
	}
	return c.wait(ctx)
}

// finish finishes the members in this process.
func (m *team) finish(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make([]error, len(m.members))
	for rank, member := range m.members {
		if member != nil {
			all.Go(func() { errs[rank] = member.Job().Close(ctx) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// openAll opens sessions.
func openAll(t testing.TB, path string, n int) (sessions []*driver.Card) {
	t.Helper()
	for range n {
		sessions = append(sessions, open(t, path))
	}
	return sessions
}
