package elastic_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/collective/elastic"
	"tributary/driver/collective/membership"
	"tributary/driver/daemon"
	_ "tributary/driver/transport/serve"
	"tributary/driver/wire"
)

// patience is far longer than any test takes.
const patience = 2 * time.Minute

// team makes members of one group, in this process.
type team struct {
	testing.TB
	ctx   context.Context
	store *membership.Memory
	open  func() (membership.Engine, error) // for each member; by default that of store
	cfg   elastic.Config
	dir   string

	mu    sync.Mutex
	warns []string
}

func newTeam(t testing.TB, expect int) *team {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	m := &team{TB: t, ctx: ctx, store: membership.NewMemory("memory"), dir: socketDir(t)}
	m.open = func() (membership.Engine, error) { return m.store.Open(), nil }
	m.cfg = elastic.Config{Name: "group", Token: "secret", Expect: expect, TTL: 2 * time.Second, Warn: m.warn}
	return m
}

// socketDir returns a new directory for sockets.
func socketDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "e") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (m *team) warn(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.warns = append(m.warns, text)
}

func (m *team) warnings() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.warns)
}

// self returns a member at a Unix socket.
func (m *team) self(id string) elastic.Self {
	return elastic.Self{ID: id, Address: "unix:" + filepath.Join(m.dir, id)}
}

// mate is one member with its own engine, which dies with it.
type mate struct {
	*elastic.Group
	id     string
	engine membership.Engine
}

func (m *team) join(self elastic.Self, cfg elastic.Config) (*mate, error) {
	e, err := m.open()
	if err != nil {
		return nil, err
	}
	g, err := elastic.Join(m.ctx, e, self, cfg)
	if err != nil {
		e.Close()
		return nil, err
	}
	m.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = g.Close(ctx)
		e.Close()
	})
	return &mate{g, self.ID, e}, nil
}

// joinAll joins members at once, since the first plan waits for all.
func (m *team) joinAll(selves ...elastic.Self) []*mate {
	m.Helper()
	mates, errs := make([]*mate, len(selves)), make([]error, len(selves))
	var wg sync.WaitGroup
	for i, s := range selves {
		wg.Go(func() { mates[i], errs[i] = m.join(s, m.cfg) })
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(m, err, selves[i].ID)
	}
	return mates
}

// add lets one more member join, and waits until all others have seen the plan with it: calls before may lack it.
func (m *team) add(mates []*mate, id string) []*mate {
	m.Helper()
	mates = append(mates, m.joinAll(m.self(id))...)
	m.until(mates, func(p elastic.Plan) bool {
		return slices.ContainsFunc(p.Members, func(other elastic.Member) bool { return other.ID == id })
	})
	return mates
}

func (m *team) selves(ids ...string) (all []elastic.Self) {
	for _, id := range ids {
		all = append(all, m.self(id))
	}
	return all
}

// together makes one call of each member and returns their errors.
func together(ctx context.Context, mates []*mate, call func(ctx context.Context, i int) error) []error {
	errs := make([]error, len(mates))
	var wg sync.WaitGroup
	for i := range mates {
		wg.Go(func() { errs[i] = call(ctx, i) })
	}
	wg.Wait()
	return errs
}

// values returns an array of int32 of one member in one call.
func values(member, call, n int) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(1_000_003*member+7919*call+i*i+i*member))
	}
	return b
}

// sum adds arrays of int32, by plain loops.
func sum(arrays ...[]byte) []byte {
	total := make([]byte, len(arrays[0]))
	for i := 0; i < len(total); i += 4 {
		var s uint32
		for _, a := range arrays {
			s += binary.LittleEndian.Uint32(a[i:])
		}
		binary.LittleEndian.PutUint32(total[i:], s)
	}
	return total
}

// sums makes one call of each mate, in place, and requires the sum of all.
func (m *team) sums(mates []*mate, call int) {
	m.Helper()
	const n = 1000
	var arrays [][]byte
	for i := range mates {
		arrays = append(arrays, values(i, call, n))
	}
	want := sum(arrays...)
	for i, err := range together(m.ctx, mates, func(ctx context.Context, i int) error {
		return mates[i].AllReduce(ctx, wire.Int32, arrays[i], arrays[i])
	}) {
		require.NoError(m, err, mates[i].id)
		require.Equal(m, want, arrays[i], mates[i].id)
	}
}

// serveCard runs a daemon with a card for a rack of n, and returns its name and its end.
func serveCard(t testing.TB, path string, n int) (stop func()) {
	t.Helper()
	c, err := driver.Open(t.Context(), "cpu:", driver.WithWorkers(n+1), driver.WithFormat(wire.Int32))
	require.NoError(t, err)
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.New(map[string]daemon.Card{"card": c}, daemon.Options{}).Serve(ctx, listener, 0)
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-ended)
			c.Close()
		})
	}
	t.Cleanup(stop)
	return stop
}
