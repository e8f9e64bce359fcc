package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"tributary/driver/daemon/protocol"
)

// TestFlushNow: a connection takes some bytes of the queued frames at once. The rest stays, in order, and
// counts.
func TestFlushNow(t *testing.T) {
	for took := range 10 {
		s := newSession(&card{}, context.Background(), &protocol.Hello{})
		s.offer = func([][]byte) int { return took }
		for _, raw := range []string{"abc", "defg", "hi"} {
			s.forward(&outgoing{raw: []byte(raw)})
		}
		s.flushNow()
		if left := string(slices.Concat(s.frames...)); left != "abcdefghi"[took:] || s.bytes != len(left) {
			t.Errorf("%d bytes were taken, and %q are left, counted as %d", took, left, s.bytes)
		}
	}
}

// TestOffer: a socket takes what fits without a wait, and the session's writer sends the rest after it.
func TestOffer(t *testing.T) {
	path := fmt.Sprintf("%s/s", t.TempDir())
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := newSession(&card{}, context.Background(), &protocol.Hello{})
	s.offer = newOffer(conn)
	var sent []byte
	for i := range 500 { // two megabytes: more than the socket holds
		raw := bytes.Repeat([]byte{byte(i)}, 4000)
		sent = append(sent, raw...)
		s.forward(&outgoing{raw: raw})
		s.flushNow()
	}
	if len(s.frames) == 0 {
		t.Error("the socket has taken all")
	}
	over := make(chan error)
	go func() { over <- s.write(conn) }()
	got := make([]byte, len(sent))
	_ = client.SetReadDeadline(time.Now().Add(time.Minute))
	for n := 0; n < len(got); {
		m, err := client.Read(got[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	if !bytes.Equal(got, sent) {
		t.Error("the client has other bytes")
	}
	s.end(net.ErrClosed)
	s.mu.Lock()
	s.changed.Broadcast()
	s.mu.Unlock()
	<-over
}

// TestBatch: frames that follow one another in the scanner's buffer are one batch. Other bytes, and frames
// that are dropped, part batches.
func TestBatch(t *testing.T) {
	buffer := []byte("aabbbxccdd....")
	b := &batch{}
	for _, step := range []struct {
		from, to int
		added    bool
		holds    string
	}{{0, 2, true, "aa"}, {2, 5, true, "aabbb"}, {6, 8, false, "aabbb"}, {5, 6, true, "aabbbx"}} {
		if added := b.add(buffer[step.from:step.to]); added != step.added || string(b.frames) != step.holds {
			t.Errorf("add %q: %t, and the batch has %q", buffer[step.from:step.to], added, b.frames)
		}
	}
	b = &batch{frames: buffer[:len(buffer):len(buffer)]}
	if b.add([]byte("e")) {
		t.Error("a batch goes on beyond the buffer")
	}
}

// TestQuestionsEndNoSession: a daemon that pauses for seconds finds many questions of many seats at once. Their
// answers leave room for other messages. They once filled the queue, which ended the session.
func TestQuestionsEndNoSession(t *testing.T) {
	s := newSession(&card{}, context.Background(), &protocol.Hello{})
	j := &job{state: running, arrays: &arrays{per: []*arraySeat{{}}}}
	for range 2 * queueMessages {
		j.takeAsk(&seat{session: s}, &protocol.Ask{})
	}
	s.tell(&protocol.ToClient{Message: &protocol.ToClient_Stop{Stop: &protocol.Stop{}}})
	if err := context.Cause(s.over); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
	if answer := (<-s.messages).GetMissing(); answer.GetMask() != 1 {
		t.Errorf("got %v", answer)
	}
}
