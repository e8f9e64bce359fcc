package collective_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
)

// patience is far longer than any call of these tests takes.
const patience = 2 * time.Minute

// newGroup returns a group of members at Unix sockets. Rank is to be set.
func newGroup(t testing.TB, size int) collective.Group {
	t.Helper()
	dir := socketDir(t)
	g := collective.Group{Name: t.Name(), Generation: 7, Token: "secret"}
	for r := range size {
		g.Members = append(g.Members, collective.Member{ID: fmt.Sprintf("worker%d", r), Address: "unix:" + filepath.Join(dir, fmt.Sprint(r))})
	}
	return g
}

// socketDir returns a new directory for sockets.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "c") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// opener opens the member of a rank.
type opener func(ctx context.Context, g collective.Group) (collective.Collective, error)

// by returns the opener of an algorithm.
func by(a collective.Algorithm, opts ...collective.Option) opener {
	return func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		return collective.Open(ctx, a, g, opts...)
	}
}

// together runs f as every member of a group, closes the members and returns the errors of f.
func together(t testing.TB, g collective.Group, open opener, f func(ctx context.Context, c collective.Collective) error) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := make([]error, g.Size())
	var members []collective.Collective
	for rank := range g.Members {
		g.Rank = rank
		c, err := open(ctx, g)
		require.NoError(t, err)
		members = append(members, c)
	}
	var wg sync.WaitGroup
	for rank, c := range members {
		wg.Go(func() {
			errs[rank] = f(ctx, c)
			if err := c.Close(ctx); errs[rank] == nil {
				errs[rank] = err
			}
		})
	}
	wg.Wait()
	return errs
}

// allWell runs f as every member, and requires that none fails.
func allWell(t testing.TB, g collective.Group, open opener, f func(ctx context.Context, c collective.Collective) error) {
	t.Helper()
	for rank, err := range together(t, g, open, f) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// noLeak requires at the end of the test that no goroutine of this package is left.
func noLeak(t *testing.T) {
	t.Cleanup(func() {
		for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
			buf := make([]byte, 1<<20)
			stacks := string(buf[:runtime.Stack(buf, true)])
			if !strings.Contains(stacks, "collective.(*") {
				return
			}
		}
		buf := make([]byte, 1<<20)
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "collective.(*") {
				t.Errorf("a goroutine is left:\n%s", stack)
			}
		}
	})
}

// pipes is a network in memory, for bubbles: synchronous, without buffers.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
}

type pipeListener struct {
	net     *pipes
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, l.address)
		l.net.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: l.address} }

func (p *pipes) listen(_ context.Context, address string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners == nil {
		p.listeners = map[string]*pipeListener{}
	}
	if p.listeners[address] != nil {
		return nil, fmt.Errorf("%s is in use", address)
	}
	l := &pipeListener{net: p, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	p.listeners[address] = l
	return l, nil
}

func (p *pipes) dial(ctx context.Context, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[address]
	p.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("nobody listens at %s", address)
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, fmt.Errorf("nobody listens at %s", address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) option() collective.Option { return collective.WithNetwork(p.listen, p.dial) }

// tcpGroup returns a group of members at TCP ports, and the network with their listeners.
func tcpGroup(t testing.TB, size int) (collective.Group, collective.Option) {
	g := newGroup(t, size)
	listeners := map[string]net.Listener{}
	for r := range g.Members {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		g.Members[r].Address = "tcp:" + l.Addr().String()
		listeners[g.Members[r].Address] = l
	}
	return g, collective.WithNetwork(
		func(_ context.Context, address string) (net.Listener, error) { return listeners[address], nil },
		func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(address, "tcp:"))
		})
}
