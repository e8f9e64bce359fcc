package daemon

import (
	"net"
	"testing"
	"testing/synctest"
)

// TestControlCountsOnce: a control connection has left the count of the unopened before gRPC gets it. Its
// stream counts then: a client needs two places, not three.
func TestControlCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{guards: newGuards(Limits{Sessions: 1}), running: t.Context()}
		if limit := s.guards.arrive(); limit != "" {
			t.Fatalf("a connection was refused by the limit %q", limit)
		}
		control := newHandedOver(&net.UnixAddr{})
		client, conn := net.Pipe()
		defer client.Close()
		opened := make(chan *notOpened, 1)
		go func() { opened <- s.open(conn, control) }()
		if _, err := client.Write([]byte(controlTag)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the connection waits for gRPC
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
