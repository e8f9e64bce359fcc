// Package membershiptest has the tests that every engine passes.
package membershiptest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective/membership"
)

// patience is far longer than anything here takes.
const patience = 2 * time.Minute

// ttl is the time of leases.
const ttl = 10 * time.Second

// Opener opens engines on one empty store.
type Opener func(ctx context.Context) (membership.Engine, error)

// Run runs the tests. start makes an empty store.
func Run(t *testing.T, start func(t *testing.T) Opener) {
	open := start(t)
	for name, test := range map[string]func(*testing.T, *users){
		"Keys": keys, "Conditions": conditions, "Await": await, "AwaitOld": awaitOld, "Leases": leases,
		"Revoked": revoked, "Close": closing, "Race": race, "Elections": elections, "Ended": ended,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			test(t, &users{t, ctx, open, "test/" + name + "/"})
		})
	}
}

// users are engines on one store, below one prefix.
type users struct {
	*testing.T
	ctx    context.Context
	opens  Opener
	prefix string
}

func (u *users) open() membership.Engine {
	e, err := u.opens(u.ctx)
	require.NoError(u, err)
	u.Cleanup(func() { require.NoError(u, e.Close()) })
	return e
}

func (u *users) key(name string) string { return u.prefix + name }

func (u *users) commit(e membership.Engine, t membership.Txn) bool {
	u.Helper()
	done, err := e.Commit(u.ctx, t)
	require.NoError(u, err)
	return done
}

// put sets a key in any case.
func (u *users) put(e membership.Engine, name, value string, lease int64) {
	u.Helper()
	require.True(u, u.commit(e, membership.Txn{Put: []membership.Put{{Key: u.key(name), Value: value, Lease: lease}}}))
}

func (u *users) get(e membership.Engine) membership.Snapshot {
	u.Helper()
	s, err := e.Get(u.ctx, u.prefix)
	require.NoError(u, err)
	return s
}

// values returns the keys' names, without the prefix, with their values.
func (u *users) values(e membership.Engine) (all []string) {
	u.Helper()
	for _, k := range u.get(e).Keys {
		all = append(all, k.Name[len(u.prefix):]+"="+k.Value)
	}
	return all
}

// until waits until the keys are as wanted.
func (u *users) until(e membership.Engine, want ...string) {
	u.Helper()
	for {
		s := u.get(e)
		if got := u.values(e); len(got) == len(want) && (len(want) == 0 || fmt.Sprint(got) == fmt.Sprint(want)) {
			return
		}
		require.NoError(u, e.Await(u.ctx, u.prefix, s.Revision), "the keys never become %v", want)
	}
}

// keys: all users see the keys with a prefix, in order; revisions grow with every change.
func keys(t *testing.T, u *users) {
	a, b := u.open(), u.open()
	require.Empty(t, u.values(a))
	u.put(a, "b", "2", 0)
	u.put(b, "a", "1", 0)
	u.put(b, "c/d", "3", 0)
	require.Equal(t, []string{"a=1", "b=2", "c/d=3"}, u.values(a))
	require.Equal(t, u.get(a), u.get(b))
	s := u.get(a)
	require.Greater(t, s.Find(u.key("a")).Modified, s.Find(u.key("b")).Modified)
	require.Equal(t, s.Revision, s.Find(u.key("c/d")).Modified)
	require.Equal(t, membership.Key{Name: u.key("c")}, s.Find(u.key("c")))
	u.put(b, "b", "4", 0)
	later := u.get(a)
	require.Equal(t, "4", later.Find(u.key("b")).Value)
	require.Greater(t, later.Find(u.key("b")).Modified, s.Revision)
	require.Equal(t, s.Find(u.key("a")), later.Find(u.key("a")))
	require.True(t, u.commit(a, membership.Txn{Delete: []string{u.key("a"), u.key("none")}, Put: []membership.Put{{Key: u.key("e"), Value: ""}}}))
	require.Equal(t, []string{"b=4", "c/d=3", "e="}, u.values(b))
	part, err := a.Get(u.ctx, u.key("c/"))
	require.NoError(t, err)
	require.Len(t, part.Keys, 1)
}

// conditions: a transaction does all or nothing.
func conditions(t *testing.T, u *users) {
	e := u.open()
	put := []membership.Put{{Key: u.key("a"), Value: "1"}, {Key: u.key("b"), Value: "1"}}
	absent := membership.Condition{Key: u.key("a")}
	require.True(t, u.commit(e, membership.Txn{If: []membership.Condition{absent}, Put: put}))
	require.False(t, u.commit(e, membership.Txn{If: []membership.Condition{absent}, Put: []membership.Put{{Key: u.key("c")}}}))
	s := u.get(e)
	a, b := s.Find(u.key("a")), s.Find(u.key("b"))
	require.Equal(t, a.Modified, b.Modified)
	same := []membership.Condition{{Key: a.Name, Modified: a.Modified}, {Key: b.Name, Modified: b.Modified}}
	u.put(e, "b", "2", 0)
	require.False(t, u.commit(e, membership.Txn{If: same, Put: []membership.Put{{Key: u.key("a"), Value: "3"}}, Delete: []string{u.key("b")}}))
	require.Equal(t, []string{"a=1", "b=2"}, u.values(e))
	require.True(t, u.commit(e, membership.Txn{If: same[:1], Delete: []string{u.key("a")}}))
	require.False(t, u.commit(e, membership.Txn{If: same[:1]}), "the key is deleted")
	require.True(t, u.commit(e, membership.Txn{If: []membership.Condition{absent}}))
}

// await: it returns when a key with the prefix changes or goes, and not for others.
func await(t *testing.T, u *users) {
	e := u.open()
	u.put(e, "a/b", "1", 0)
	change := func(f func()) {
		after := u.get(e).Revision
		var early atomic.Bool
		early.Store(true)
		came := make(chan error, 1)
		go func() {
			err := e.Await(u.ctx, u.key("a/"), after)
			if early.Load() && err == nil {
				err = fmt.Errorf("it returned before the change")
			}
			came <- err
		}()
		u.put(e, "other", "1", 0)
		early.Store(false)
		f()
		require.NoError(t, <-came)
	}
	change(func() { u.put(e, "a/c", "1", 0) })
	change(func() { u.put(e, "a/c", "1", 0) })
	change(func() { u.commit(e, membership.Txn{Delete: []string{u.key("a/b")}}) })
	ctx, cancel := context.WithCancel(u.ctx)
	came := make(chan error, 1)
	go func() { came <- e.Await(ctx, u.key("a/"), u.get(e).Revision) }()
	cancel()
	require.ErrorAs(t, <-came, new(*membership.UnavailableError))
}

// awaitOld: a change that Await was not waiting for is not missed, however old.
func awaitOld(t *testing.T, u *users) {
	e := u.open()
	after := u.get(e).Revision
	u.put(e, "a", "1", 0)
	require.NoError(t, e.Await(u.ctx, u.key("a"), after))
	for range 9 { // more changes than an engine in memory remembers
		var many membership.Txn
		for i := range 120 { // etcd takes 128
			many.Put = append(many.Put, membership.Put{Key: u.key(fmt.Sprint("b", i)), Value: "1"})
		}
		require.True(t, u.commit(e, many))
	}
	require.NoError(t, e.Await(u.ctx, u.key("a"), after))
}

// leases: keys go with their lease, and a key that has moved to another lease stays.
func leases(t *testing.T, u *users) {
	a, b := u.open(), u.open()
	grant := func() membership.Lease {
		l, err := a.Grant(u.ctx, ttl)
		require.NoError(t, err)
		require.NotZero(t, l.ID())
		return l
	}
	one, two := grant(), grant()
	require.NotEqual(t, one.ID(), two.ID())
	u.put(a, "one", "1", one.ID())
	u.put(a, "moved", "1", one.ID())
	u.put(a, "moved", "2", two.ID())
	u.put(a, "freed", "1", one.ID())
	u.put(a, "freed", "2", 0)
	after := u.get(b).Revision
	require.NoError(t, one.Revoke(u.ctx))
	require.NoError(t, b.Await(u.ctx, u.key("one"), after))
	<-one.Lost()
	require.Equal(t, []string{"freed=2", "moved=2"}, u.values(b))
	select {
	case <-two.Lost():
		t.Fatal("the other lease is lost")
	default:
	}
	_, err := a.Commit(u.ctx, membership.Txn{Put: []membership.Put{{Key: u.key("late"), Lease: one.ID()}}})
	require.ErrorAs(t, err, new(*membership.LeaseError))
	require.NoError(t, two.Revoke(u.ctx))
	u.until(b, "freed=2")
}

// revoked: a lease whose Revoke fails is no longer kept alive. Once etcd kept it, and a member that had left stayed
// in its group.
func revoked(t *testing.T, u *users) {
	a, b := u.open(), u.open()
	over, cancel := context.WithCancel(u.ctx)
	cancel()
	for {
		l, err := a.Grant(u.ctx, time.Second)
		require.NoError(t, err)
		_, err = a.Commit(u.ctx, membership.Txn{Put: []membership.Put{{Key: u.key("a"), Lease: l.ID()}}})
		if errors.As(err, new(*membership.LeaseError)) { // on a busy machine
			continue
		}
		require.NoError(t, err)
		_ = l.Revoke(over)
		<-l.Lost()
		u.until(b)
		return
	}
}

// closing: Close ends an engine's leases, and no other's.
func closing(t *testing.T, u *users) {
	a, b := u.open(), u.open()
	for i, e := range []membership.Engine{a, b} {
		l, err := e.Grant(u.ctx, ttl)
		require.NoError(t, err)
		u.put(e, fmt.Sprint(i), "x", l.ID())
	}
	require.NoError(t, a.Close())
	u.until(b, "1=x")
	_, err := a.Get(u.ctx, u.prefix)
	require.ErrorAs(t, err, new(*membership.UnavailableError))
	_, err = a.Grant(u.ctx, ttl)
	require.ErrorAs(t, err, new(*membership.UnavailableError))
}

// race: of those who increment a number under a condition, each succeeds exactly once a value.
func race(t *testing.T, u *users) {
	const each, workers = 20, 4
	first := u.open()
	u.put(first, "n", "", 0)
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		e := u.open()
		wg.Go(func() {
			for done := 0; done < each; {
				s, err := e.Get(u.ctx, u.prefix)
				if err != nil {
					errs <- err
					return
				}
				k := s.Find(u.key("n"))
				ok, err := e.Commit(u.ctx, membership.Txn{
					If:  []membership.Condition{{Key: k.Name, Modified: k.Modified}},
					Put: []membership.Put{{Key: k.Name, Value: k.Value + "x"}},
				})
				if err != nil {
					errs <- err
					return
				}
				if ok {
					done++
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
	require.Len(t, u.get(first).Keys[0].Value, each*workers)
}

// elections: one leads at a time, the next when the lease of the one before has ended.
func elections(t *testing.T, u *users) {
	const workers = 4
	var leaders, most, total atomic.Int32
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for i := range workers {
		e := u.open()
		l, err := e.Grant(u.ctx, ttl)
		require.NoError(t, err)
		wg.Go(func() {
			for {
				s, err := e.Get(u.ctx, u.prefix)
				if err != nil {
					errs <- err
					return
				}
				won, err := membership.Lead(u.ctx, e, l, u.key("leader"), fmt.Sprint(i))
				if err != nil {
					errs <- err
					return
				}
				if won {
					most.Store(max(most.Load(), leaders.Add(1)))
					total.Add(1)
					leaders.Add(-1)
					if err := l.Revoke(u.ctx); err != nil {
						errs <- err
					}
					return
				}
				if err := e.Await(u.ctx, u.key("leader"), s.Revision); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
	require.EqualValues(t, workers, total.Load())
	require.EqualValues(t, 1, most.Load())
}

// ended: methods return when their context ends.
func ended(t *testing.T, u *users) {
	e := u.open()
	ctx, cancel := context.WithCancel(u.ctx)
	cancel()
	_, err := e.Get(ctx, u.prefix)
	require.ErrorAs(t, err, new(*membership.UnavailableError))
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Commit(ctx, membership.Txn{Put: []membership.Put{{Key: u.key("a")}}})
	require.ErrorAs(t, err, new(*membership.UnavailableError))
}
