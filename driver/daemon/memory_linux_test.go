package daemon

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tributary/driver/daemon/protocol"
)

// TestMemoryUsed: the memory of an ended session stays while somebody uses it, and nobody else may.
func TestMemoryUsed(t *testing.T) {
	m, err := newMemory(4096)
	if err != nil {
		t.Fatal(err)
	}
	if !m.enter() {
		t.Fatal("nobody may use new memory")
	}
	m.end()
	m.bytes()[0] = 1 // a fault if it is unmapped
	if m.enter() {
		t.Error("memory of an ended session gets another user")
	}
	m.leave()
}

// TestDataAfterTheEnd: a data connection comes when its session has just ended. It gets no descriptor: the
// memory's number may be that of another file by now.
func TestDataAfterTheEnd(t *testing.T) {
	m, err := newMemory(4096)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(&card{}, context.Background(), &protocol.Hello{})
	s.memory = m
	s.end(net.ErrClosed)
	m.end()
	for range 3 {
		other, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	s.data(conn)
	_ = client.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(client); len(got) > 0 || err != nil {
		t.Errorf("the client got %d bytes, %v", len(got), err)
	}
}
