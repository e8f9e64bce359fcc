package daemon

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
)

// openControl opens a control connection, which waits for gRPC at control when openControl returns.
func openControl(t *testing.T, s *Server) (control *handedOver, client net.Conn, opened <-chan *notOpened) {
	t.Helper()
	control = newHandedOver(&net.UnixAddr{})
	client, conn := net.Pipe()
	t.Cleanup(func() { client.Close() })
	done := make(chan *notOpened, 1)
	go func() { done <- s.open(conn, control) }()
	if _, err := client.Write([]byte(controlTag)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return control, client, done
}

// TestControlCountsOnce: a control connection has left the count of the unopened before gRPC gets it. Its
// stream counts then: a client needs two places, not three.
func TestControlCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{guards: newGuards(Limits{Sessions: 1}), running: t.Context()}
		if limit := s.guards.arrive(); limit != "" {
			t.Fatalf("a connection was refused by the limit %q", limit)
		}
		control, _, opened := openControl(t, s)
		if n := s.guards.unopened.inside.Load(); n != 0 {
			t.Errorf("%d connections have opened nothing, want 0", n)
		}
		handed, err := control.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := <-opened; err != nil {
			t.Errorf("not opened: %s", err.text)
		}
		handed.Close()
		if n := s.guards.open.inside.Load(); n != 0 {
			t.Errorf("%d connections are open, want 0", n)
		}
	})
}

// TestControlOutlivesTheServer: when the server ends, it leaves control connections to gRPC, which sends the
// last messages first. It once closed those that it had handed over a moment before.
func TestControlOutlivesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{guards: newGuards(Limits{Sessions: 1})}
		s.running, s.end = context.WithCancel(t.Context())
		control, client, _ := openControl(t, s)
		s.end()
		synctest.Wait()
		handed, err := control.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer handed.Close()
		go client.Read(make([]byte, 1))
		if _, err := handed.Write([]byte{0}); err != nil {
			t.Errorf("the connection was closed: %v", err)
		}
	})
}

// watched is a connection that calls closes before its peer sees the end.
type watched struct {
	net.Conn
	closes func()
}

func (w *watched) Close() error {
	w.closes()
	return w.Conn.Close()
}

// TestClosedIsCounted: when a peer sees that the daemon has closed its connection, the metrics have that,
// and the connection's places are free. The daemon once closed it first.
func TestClosedIsCounted(t *testing.T) {
	for _, x := range []struct {
		name   string
		limits Limits
		first  string // bytes of the connection
		closed string // why
	}{
		{"tag", Limits{Sessions: 1}, "TRIBDAT2", closedOther},
		{"key", Limits{Sessions: 1}, dataTag + "no such key here", closedKey},
		{"limit", Limits{Sessions: -1}, "", closedLimit},
		{"control", Limits{Sessions: 1}, controlTag, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Server{guards: newGuards(x.limits), running: t.Context(), options: Options{Log: slog.New(slog.DiscardHandler)}}
				s.meters = newMeters(s)
				listener, control := newHandedOver(&net.UnixAddr{}), newHandedOver(&net.UnixAddr{})
				var serving sync.WaitGroup
				serving.Go(func() { s.accept(listener, control, &serving) })
				client, conn := net.Pipe()
				defer client.Close()
				seen := 0
				if err := listener.hand(&watched{conn, func() {
					seen++
					if n := s.closedBecause(t, x.closed); x.closed != "" && n != 1 {
						t.Errorf("%g connections are counted, want 1", n)
					}
					if open, unopened := s.guards.open.inside.Load(), s.guards.unopened.inside.Load(); open != 0 || unopened != 0 {
						t.Errorf("%d connections are open, and %d have opened nothing; want none", open, unopened)
					}
				}}); err != nil {
					t.Fatal(err)
				}
				if x.first != "" {
					if _, err := client.Write([]byte(x.first)); err != nil {
						t.Error(err)
					}
				}
				if x.closed == "" {
					handed, err := control.Accept()
					if err != nil {
						t.Fatal(err)
					}
					handed.Close()
				}
				listener.Close()
				serving.Wait()
				if seen != 1 {
					t.Errorf("the connection was closed %d times", seen)
				}
			})
		})
	}
}

// closedBecause returns how many connections the metrics say the daemon has closed for a cause.
func (s *Server) closedBecause(t *testing.T, cause string) float64 {
	t.Helper()
	all, err := s.meters.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == "tributary_connections_closed_total" && m.GetLabel()[0].GetValue() == cause {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
