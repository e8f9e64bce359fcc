package elastic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/collective/elastic"
	"tributary/driver/collective/membership"
	"tributary/driver/wire"
)

// TestRefused: an ID twice, an address twice, another token, other settings. The group goes on.
func TestRefused(t *testing.T) {
	m := newTeam(t, 2)
	m.cfg.TTL = 50 * time.Millisecond // how long a new member waits for another's lease; those in memory last
	mates := m.joinAll(m.selves("a", "b")...)
	m.sums(mates, 1)
	other := m.self("c")
	for reason, change := range map[elastic.Reason]func(s *elastic.Self, c *elastic.Config){
		elastic.ReasonID:       func(s *elastic.Self, c *elastic.Config) { s.ID = "a" },
		elastic.ReasonAddress:  func(s *elastic.Self, c *elastic.Config) { s.Address = m.self("b").Address },
		elastic.ReasonToken:    func(s *elastic.Self, c *elastic.Config) { c.Token = "another" },
		elastic.ReasonSettings: func(s *elastic.Self, c *elastic.Config) { c.OnFailure = elastic.Fail },
	} {
		self, cfg := other, m.cfg
		change(&self, &cfg)
		_, err := m.join(self, cfg)
		var refused *elastic.RefusedError
		require.ErrorAs(t, err, &refused, reason)
		require.Equal(t, reason, refused.Reason, "%v", err)
	}
	cfg := m.cfg
	cfg.Expect = 3
	_, err := m.join(other, cfg)
	require.ErrorContains(t, err, "it expects 3 members and runs with policy rerun, the group 2 and rerun")
	m.sums(mates, 2)
	require.EqualValues(t, 1, mates[0].Plan().Generation)
}

// TestForgery: a registration that a stranger writes itself is no member.
func TestForgery(t *testing.T) {
	m := newTeam(t, 2)
	e := m.store.Open()
	defer e.Close()
	_, err := e.Commit(m.ctx, membership.Txn{Put: []membership.Put{{Key: "tributary/group/members/x", Value: `{"ID":"x","Address":"unix:/x","Incarnation":"1","Proof":"00"}`}}})
	require.NoError(t, err)
	// It was there first: its settings are those of the group.
	_, err = m.join(m.self("a"), m.cfg)
	require.ErrorAs(t, err, new(*elastic.RefusedError))
	_, err = e.Commit(m.ctx, membership.Txn{Delete: []string{"tributary/group/members/x"}})
	require.NoError(t, err)
	mates := m.joinAll(m.selves("a", "b")...)
	_, err = e.Commit(m.ctx, membership.Txn{Put: []membership.Put{{Key: "tributary/group/members/x", Value: `{"ID":"x","Address":"unix:/x","Incarnation":"1","Proof":"00"}`}}})
	require.NoError(t, err)
	m.sums(mates, 1)
	require.Len(t, mates[0].Plan().Members, 2)
	require.Contains(t, m.warnings(), `registration "x" is ignored: its proof is wrong`)
}

// TestInput: what is invalid is refused before anything happens.
func TestInput(t *testing.T) {
	m := newTeam(t, 1)
	for want, change := range map[string]func(s *elastic.Self, c *elastic.Config){
		`name of the group: it is ""`:             func(s *elastic.Self, c *elastic.Config) { c.Name = "" },
		`name of the group: it is "a/b"`:          func(s *elastic.Self, c *elastic.Config) { c.Name = "a/b" },
		"expected members: they are 0":            func(s *elastic.Self, c *elastic.Config) { c.Expect = 0 },
		"policy: policy 9 is unknown":             func(s *elastic.Self, c *elastic.Config) { c.OnFailure = 9 },
		"time of leases: it is -1ns":              func(s *elastic.Self, c *elastic.Config) { c.TTL = -1 },
		`ID: it is "a/b"`:                         func(s *elastic.Self, c *elastic.Config) { s.ID = "a/b" },
		`address: it is "localhost:1"`:            func(s *elastic.Self, c *elastic.Config) { s.Address = "localhost:1" },
		"card: it is cpu:, but the member has no": func(s *elastic.Self, c *elastic.Config) { s.Card = "cpu:" },
	} {
		self, cfg := m.self("a"), m.cfg
		change(&self, &cfg)
		_, err := m.join(self, cfg)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*collective.InputError))
	}
	g := m.joinAll(m.self("a"))[0]
	array := make([]byte, 16)
	for want, arrays := range map[string][2][]byte{
		"it is empty":                 {nil, nil},
		"its 6 bytes are not whole":   {array[:6], array[:6]},
		"it has 8 bytes, src has 4":   {array[:8], array[8:12]},
		"it overlaps src; they must ": {array[:8], array[4:12]},
	} {
		err := g.AllReduce(m.ctx, wire.Int32, arrays[0], arrays[1])
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*collective.InputError))
	}
	require.NoError(t, g.AllReduce(m.ctx, wire.Int32, array[:4], array[4:8]))
	require.EqualValues(t, 1, g.Done(), "invalid calls are no calls")
}

// TestDifferentCalls: members with other lengths or formats: all fail with the difference, and the next call is
// right.
func TestDifferentCalls(t *testing.T) {
	m := newTeam(t, 3)
	mates := m.joinAll(m.selves("a", "b", "c")...)
	m.sums(mates, 1)
	for _, other := range []struct {
		f wire.Format
		n int
	}{{wire.Int32, 80}, {wire.FP32, 40}} {
		for i, err := range together(m.ctx, mates, func(ctx context.Context, i int) error {
			f, n := wire.Int32, 40
			if i == 2 {
				f, n = other.f, other.n
			}
			b := make([]byte, n)
			return mates[i].AllReduce(ctx, f, b, b)
		}) {
			var failed *elastic.FailedError
			require.ErrorAs(t, err, &failed, mates[i].id)
			require.Contains(t, failed.Text, "all members make the same calls")
		}
		m.sums(mates, 2)
	}
}

// TestDeadline: a member that does not come: an error within the deadline names it; it shares the failure when
// it comes, and the call after is right.
func TestDeadline(t *testing.T) {
	m := newTeam(t, 3)
	mates := m.joinAll(m.selves("a", "b", "c")...)
	m.sums(mates, 1)
	mates = m.add(mates, "d") // so that they wait for a new generation, not in a call
	short, cancel := context.WithTimeout(m.ctx, 200*time.Millisecond)
	defer cancel()
	for i, err := range together(short, mates[:3], func(ctx context.Context, i int) error {
		b := make([]byte, 4)
		return mates[i].AllReduce(ctx, wire.Int32, b, b)
	}) {
		var late *elastic.WaitError
		require.ErrorAs(t, err, &late, mates[i].id)
		require.True(t, late.Timeout())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Contains(t, late.For, "generation")
	}
	for i, err := range together(m.ctx, mates, func(ctx context.Context, i int) error {
		b := values(i, 3, 100)
		err := mates[i].AllReduce(ctx, wire.Int32, b, b)
		if i == 3 {
			var failed *elastic.FailedError
			if !errors.As(err, &failed) || failed.ID != "a" {
				return fmt.Errorf("%v is not the failure of a", err)
			}
			b = values(i, 3, 100)
			err = mates[i].AllReduce(ctx, wire.Int32, b, b)
		}
		if err == nil && !bytes.Equal(b, sum(values(0, 3, 100), values(1, 3, 100), values(2, 3, 100), values(3, 3, 100))) {
			err = errors.New("the sum differs")
		}
		return err
	}) {
		require.NoError(t, err, mates[i].id)
	}
}

// TestEvicted: a member whose lease the engine lost is told by one call, and comes back as a newcomer. The other
// one loses it in one call.
func TestEvicted(t *testing.T) {
	m := newTeam(t, 2)
	mates := m.joinAll(m.selves("a", "b")...)
	m.sums(mates, 1)
	e := m.store.Open()
	defer e.Close()
	if leads, err := mates[1].Leads(m.ctx, e); err != nil || leads { // who leads makes the plan
		require.NoError(t, err)
		slices.Reverse(mates)
	}
	remember, err := mates[1].Forget(m.ctx, e)
	require.NoError(t, err)
	m.until(mates[:1], func(p elastic.Plan) bool { return p.Generation == 2 })
	err = mates[0].AllReduce(m.ctx, wire.Int32, make([]byte, 4), make([]byte, 4))
	require.Equal(t, &elastic.LostError{Call: 2, IDs: []string{mates[1].id}}, err)
	remember()
	err = mates[1].AllReduce(m.ctx, wire.Int32, make([]byte, 4), make([]byte, 4))
	require.Equal(t, &elastic.EvictedError{Group: "group", Generation: 2}, err)
	m.until(mates, func(p elastic.Plan) bool { return len(p.Members) == 2 })
	m.sums(mates, 3)
	m.sums(mates, 4)
}

// TestLeaseIsLost: a member that registers again before a plan lacks it stays what it was.
func TestLeaseIsLost(t *testing.T) {
	m := newTeam(t, 2)
	mates := m.joinAll(m.selves("a", "b")...)
	m.sums(mates, 1)
	e := m.store.Open()
	defer e.Close()
	if leads, err := mates[1].Leads(m.ctx, e); err != nil || leads {
		require.NoError(t, err)
		slices.Reverse(mates)
	}
	require.NoError(t, mates[1].LoseLease(m.ctx, e, mates[0].Group))
	m.sums(mates, 2)
	require.EqualValues(t, 1, mates[0].Plan().Generation)
}

// TestEngineForgets: an engine that comes back without its keys ends no call and loses no member: not one that
// has not registered again when a newcomer leads, and none in silence that died meanwhile.
func TestEngineForgets(t *testing.T) {
	m := newTeam(t, 3)
	m.cfg.TTL = 6 * time.Second // of a busy machine: these leases are kept alive
	path := filepath.Join(m.dir, "engine")
	m.open = func() (membership.Engine, error) { return membership.Open(m.ctx, "unix:"+path) }
	stop := serveEngine(t, path, m.store)
	mates := m.joinAll(m.selves("a", "b", "c")...)
	mates = m.add(mates, "d") // more than the first plan waits for
	m.sums(mates, 1)
	generation := mates[0].Plan().Generation

	stop()
	m.sums(mates, 2)
	m.store = membership.NewMemory("memory")
	stop = serveEngine(t, path, m.store)
	m.until(mates, func(p elastic.Plan) bool { return p.Generation > generation && len(p.Members) == 4 })
	m.sums(mates, 3)
	mates = m.add(mates, "e")
	m.sums(mates, 4)
	generation = mates[0].Plan().Generation

	stop()
	mates[3].engine.Close() // d
	mates[3].Abandon()
	mates = slices.Delete(mates, 3, 4)
	m.store = membership.NewMemory("memory")
	m.open = func() (membership.Engine, error) { return m.store.Open(), nil }
	var newcomer []*mate
	var joining sync.WaitGroup
	joining.Go(func() { newcomer = m.joinAll(m.self("f")) })
	e := m.store.Open()
	defer e.Close()
	awaitKey(m.ctx, t, e, "tributary/group/leader")
	serveEngine(t, path, m.store)
	m.until(mates, func(p elastic.Plan) bool { return p.Generation > generation && len(p.Members) == 5 })
	joining.Wait()
	mates = append(mates, newcomer...)
	for i, err := range together(m.ctx, mates, func(ctx context.Context, i int) error {
		return mates[i].AllReduce(ctx, wire.Int32, make([]byte, 4), make([]byte, 4))
	}) {
		var lost *elastic.LostError
		require.ErrorAs(t, err, &lost, mates[i].id)
		require.Equal(t, []string{"d"}, lost.IDs)
	}
	m.sums(mates, 5)
}

// awaitKey waits until an engine has a key.
func awaitKey(ctx context.Context, t *testing.T, e membership.Engine, name string) {
	t.Helper()
	for {
		s, err := e.Get(ctx, name)
		require.NoError(t, err)
		if len(s.Keys) > 0 {
			return
		}
		require.NoError(t, e.Await(ctx, name, s.Revision))
	}
}

// serveEngine serves a store at a Unix socket until stop.
func serveEngine(t *testing.T, path string, store *membership.Memory) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- membership.Serve(ctx, listener, store) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-ended)
		})
	}
	t.Cleanup(stop)
	return stop
}

// TestLostMember: under Rest the sum lacks the lost member; under Fail one call fails.
func TestLostMember(t *testing.T) {
	for _, policy := range []elastic.Policy{elastic.Rest, elastic.Fail} {
		t.Run(policy.String(), func(t *testing.T) {
			m := newTeam(t, 3)
			m.cfg.OnFailure = policy
			mates := m.joinAll(m.selves("a", "b", "c")...)
			m.sums(mates, 1)
			mates[2].engine.Close() // its process dies: the lease ends, and so do its connections
			mates[2].Abandon()
			mates = mates[:2]
			if policy == elastic.Fail {
				for i, err := range together(m.ctx, mates, func(ctx context.Context, i int) error {
					return mates[i].AllReduce(ctx, wire.Int32, make([]byte, 4), make([]byte, 4))
				}) {
					var lost *elastic.LostError
					require.ErrorAs(t, err, &lost, mates[i].id)
					require.Equal(t, []string{"c"}, lost.IDs)
				}
			}
			m.sums(mates, 2)
		})
	}
}

// contended is an engine in which the leader changes before a member leaves, as when many leave at once.
type contended struct {
	membership.Engine
	changes atomic.Int32
}

func (c *contended) Commit(ctx context.Context, t membership.Txn) (bool, error) {
	leaves := slices.ContainsFunc(t.Put, func(p membership.Put) bool { return strings.Contains(p.Key, "/left/") })
	if leaves && c.changes.Add(-1) >= 0 {
		s, err := c.Get(ctx, "tributary/group/leader")
		if err != nil {
			return false, err
		}
		for _, key := range s.Keys { // none if a leader has just left
			if _, err := c.Engine.Commit(ctx, membership.Txn{Put: []membership.Put{{Key: key.Name, Value: key.Value}}}); err != nil {
				return false, err
			}
		}
	}
	return c.Engine.Commit(ctx, t)
}

// TestLeadersChange: a member leaves in order however often the leader changes meanwhile. Others once lost it.
func TestLeadersChange(t *testing.T) {
	m := newTeam(t, 3)
	m.open = func() (membership.Engine, error) {
		c := &contended{Engine: m.store.Open()}
		c.changes.Store(10)
		return c, nil
	}
	mates := m.joinAll(m.selves("a", "b", "c")...)
	m.sums(mates, 1)
	require.NoError(t, mates[2].Close(m.ctx))
	m.sums(mates[:2], 2)
}

// failing fails a call at the moment in which its context ends.
type failing struct {
	collective.Collective
	end context.CancelFunc
}

func (f *failing) AllReduce(context.Context, wire.Format, []byte, []byte) error {
	f.end()
	return &collective.GivenUpError{Rank: 0, ID: "other", Text: "too slow"}
}

// TestFailsAtTheEnd: the error of a call has the end of its context, also when the group has failed before. The call
// once returned the group's failure alone.
func TestFailsAtTheEnd(t *testing.T) {
	m := newTeam(t, 1)
	ctx, end := context.WithCancel(m.ctx)
	m.cfg = m.cfg.Over(func(ctx context.Context, g collective.Group, r collective.RinaConfig, opts ...collective.Option) (collective.Collective, error) {
		c, err := collective.OpenRina(ctx, g, r, opts...)
		return &failing{c, end}, err
	})
	err := m.joinAll(m.self("a"))[0].AllReduce(ctx, wire.Int32, make([]byte, 4), make([]byte, 4))
	require.ErrorAs(t, err, new(*elastic.WaitError))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, `group "group", waiting for generation 2: context canceled (rank 0 (other) has given up: too slow)`)
}

// TestCannotListen: a member that cannot listen at its address warns of that while it tries. It once did so in silence.
func TestCannotListen(t *testing.T) {
	m := newTeam(t, 2)
	ctx, cancel := context.WithCancel(m.ctx)
	m.cfg.Warn = func(text string) {
		if strings.Contains(text, `group "group": a tries again after generation`) && strings.Contains(text, "cannot listen at unix:") {
			cancel()
		}
	}
	self := m.self("a")
	self.Address += "/none"
	mates := m.joinAll(self, m.self("b"))
	for _, err := range together(ctx, mates, func(ctx context.Context, i int) error {
		return mates[i].AllReduce(ctx, wire.Int32, make([]byte, 4), make([]byte, 4))
	}) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// TestClosedLate: a member whose context has ended leaves in order all the same. Others once lost it.
func TestClosedLate(t *testing.T) {
	m := newTeam(t, 3)
	mates := m.joinAll(m.selves("a", "b", "c")...)
	m.sums(mates, 1)
	over, cancel := context.WithCancel(m.ctx)
	cancel()
	require.NoError(t, mates[2].Close(over))
	m.sums(mates[:2], 2)
}

// seated counts the groups that were opened with seats at a card.
func (m *team) seated() *atomic.Int32 {
	n := new(atomic.Int32)
	m.cfg = m.cfg.Over(func(ctx context.Context, g collective.Group, r collective.RinaConfig, opts ...collective.Option) (collective.Collective, error) {
		if r.Seat != nil {
			n.Add(1)
		}
		return collective.OpenRina(ctx, g, r, opts...)
	})
	return n
}

// TestCardOfOne: a rack of one member uses any card.
func TestCardOfOne(t *testing.T) {
	m := newTeam(t, 2)
	seats := m.seated()
	selves := m.selves("a", "b")
	selves[0].Rack, selves[0].Card = "r", "cpu:workers=2,format=int32"
	mates := m.joinAll(selves...)
	m.until(mates, func(p elastic.Plan) bool { return len(p.Cards) == 1 })
	m.sums(mates, 1)
	m.sums(mates, 2)
	require.EqualValues(t, 1, seats.Load())
}

// TestCardIsNotShared: a rack of two whose members reach a card each: it is not used, and a warning says why.
func TestCardIsNotShared(t *testing.T) {
	m := newTeam(t, 2)
	seats := m.seated()
	selves := m.selves("a", "b")
	for i := range selves {
		selves[i].Rack, selves[i].Card = "r", "cpu:workers=3,format=int32"
	}
	mates := m.joinAll(selves...)
	m.until(mates, func(p elastic.Plan) bool { return len(p.Cards) == 1 })
	m.sums(mates, 1)
	require.Zero(t, seats.Load())
	require.Contains(t, m.warnings(), "share it by `tributary serve`")
}

// TestCardTooSmall: a card without a port for the ring is not used, and its members join the ring singly.
func TestCardTooSmall(t *testing.T) {
	m := newTeam(t, 2)
	seats := m.seated()
	selves := m.selves("a", "b")
	selves[0].Rack, selves[0].Card = "r", "cpu:workers=1,format=int32"
	mates := m.joinAll(selves...)
	m.until(mates, func(p elastic.Plan) bool { return len(p.Cards) == 1 })
	m.sums(mates, 1)
	require.Zero(t, seats.Load())
	require.Contains(t, m.warnings(), "it has 1 ports; the members and the ring need 2")
}

// TestPlanForOtherCards: a member whose card is not the plan's refuses it, by name, and the next plan is right.
func TestPlanForOtherCards(t *testing.T) {
	m := newTeam(t, 2)
	selves := m.selves("a", "b")
	selves[0].Rack, selves[0].Card = "r", "cpu:workers=2,format=int32"
	var wrong atomic.Value
	first := true
	m.cfg = m.cfg.Over(func(ctx context.Context, g collective.Group, r collective.RinaConfig, opts ...collective.Option) (collective.Collective, error) {
		if r.Seat != nil && first {
			first = false
			r.Cards = slices.Clone(r.Cards)
			r.Cards[0].Info.Ports++
			_, err := collective.OpenRina(ctx, g, r, opts...)
			wrong.Store(err)
			return nil, err
		}
		return collective.OpenRina(ctx, g, r, opts...)
	})
	mates := m.joinAll(selves...)
	m.until(mates, func(p elastic.Plan) bool { return len(p.Cards) == 1 })
	m.sums(mates, 1)
	require.ErrorContains(t, wrong.Load().(error), "is another one than the plan's")
	require.Greater(t, mates[0].Plan().Generation, uint64(1))
}

// TestErrors: what errors wrap.
func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	w := &elastic.WaitError{Group: "g", For: "x", Err: context.DeadlineExceeded, Cause: cause}
	require.ErrorIs(t, w, cause)
	require.ErrorIs(t, w, context.DeadlineExceeded)
	require.True(t, strings.Contains(w.Error(), "waiting for x") && w.Timeout())
	require.ErrorIs(t, &elastic.FailedError{Err: cause}, cause)
	require.Equal(t, "policy 7", elastic.Policy(7).String())
}
