package membership_test

import (
	"context"
	"crypto/rand"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective/membership"
	"tributary/driver/collective/membership/membershiptest"
)

// patience is far longer than any of these tests takes.
const patience = 2 * time.Minute

// daemon serves a store at a Unix socket until stop.
func daemon(t *testing.T) (path string, stop func()) {
	dir, err := os.MkdirTemp("", "m") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	return path, daemonAt(t, path)
}

func daemonAt(t *testing.T, path string) (stop func()) {
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- membership.Serve(ctx, l, membership.NewMemory("daemon")) }()
	var stopped bool
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(stop)
	return stop
}

func TestMemory(t *testing.T) {
	membershiptest.Run(t, func(t *testing.T) membershiptest.Opener {
		store := "memory:" + rand.Text()
		return func(ctx context.Context) (membership.Engine, error) { return membership.Open(ctx, store) }
	})
}

// TestLeasesAreForgotten: an engine that grants and revokes for ever does not grow.
func TestLeasesAreForgotten(t *testing.T) {
	e := membership.NewMemory(t.Name()).Open()
	defer e.Close()
	for range 100 {
		l, err := e.Grant(t.Context(), time.Hour)
		require.NoError(t, err)
		require.NoError(t, l.Revoke(t.Context()))
	}
	require.Equal(t, 1, membership.Leases(e))
}

func TestDaemon(t *testing.T) {
	membershiptest.Run(t, func(t *testing.T) membershiptest.Opener {
		path, _ := daemon(t)
		return func(ctx context.Context) (membership.Engine, error) { return membership.Open(ctx, "unix:"+path) }
	})
}

// TestSilentClient: a lease ends when nobody keeps it alive, though the connection stays; and at once when
// the connection goes.
func TestSilentClient(t *testing.T) {
	path, _ := daemon(t)
	e, err := membership.Open(t.Context(), "unix:"+path)
	require.NoError(t, err)
	defer e.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	grant := func(ttl time.Duration) *rpc.Client {
		conn, err := rpc.Dial("unix", path)
		require.NoError(t, err)
		for {
			var id int64
			require.NoError(t, conn.Call("Session.Grant", ttl, &id))
			var reply membership.TxnReply
			require.NoError(t, conn.Call("Session.Commit", membership.Txn{Put: []membership.Put{{Key: "k", Value: "v", Lease: id}}}, &reply))
			if reply.Done {
				return conn
			}
			ttl *= 2 // on a busy machine the lease may end before it has a key
		}
	}
	gone := func() {
		for {
			s, err := e.Get(ctx, "k")
			require.NoError(t, err)
			if len(s.Keys) == 0 {
				return
			}
			require.NoError(t, e.Await(ctx, "k", s.Revision), "the key stays")
		}
	}
	silent := grant(time.Millisecond)
	gone()
	require.NoError(t, silent.Close())
	require.NoError(t, grant(time.Hour).Close())
	gone()
}

// TestKeptLease: a client keeps its lease alive beyond its time, until it closes.
func TestKeptLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := membership.Piped(t.Context(), membership.NewMemory("memory"))
		l, err := e.Grant(t.Context(), 3*time.Second)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		select {
		case <-l.Lost():
			t.Error("the lease is lost while its client lives")
		default:
		}
		require.NoError(t, e.Close())
		<-l.Lost()
	})
}

// TestDaemonRestarts: calls wait for a daemon that comes back, leases are lost, and calls end with their
// context while it is away.
func TestDaemonRestarts(t *testing.T) {
	path, stop := daemon(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := membership.Open(ctx, "unix:"+path)
	require.NoError(t, err)
	defer e.Close()
	l, err := e.Grant(ctx, time.Second)
	require.NoError(t, err)
	stop()
	short, end := context.WithTimeout(ctx, 10*time.Millisecond)
	_, err = e.Get(short, "")
	end()
	require.ErrorAs(t, err, new(*membership.UnavailableError))
	<-l.Lost()
	came := make(chan error, 1)
	go func() {
		_, err := e.Get(ctx, "")
		came <- err
	}()
	daemonAt(t, path)
	require.NoError(t, <-came)
	_, err = e.Grant(ctx, time.Second)
	require.NoError(t, err)
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"memory":     "must be SCHEME:ADDRESS; known are memory, unix",
		"etcd:x":     "needs the import of driver/collective/membership/etcd",
		"unix:/none": "does not answer",
	} {
		_, err := membership.Open(t.Context(), name)
		require.ErrorContains(t, err, want)
	}
	require.Panics(t, func() { membership.Register("memory", nil) })
}

// TestSmall: a program that imports this package has no etcd in it.
func TestSmall(t *testing.T) {
	for pkg, has := range map[string]bool{".": false, "./etcd": true} {
		out, err := exec.Command("go", "list", "-deps", pkg).Output()
		require.NoError(t, err)
		require.Equal(t, has, strings.Contains(string(out), "go.etcd.io/etcd"), pkg)
	}
}
