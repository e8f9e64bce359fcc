package daemon_test

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/protocol/rpc"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// patience is far longer than any of these tests takes.
const patience = 2 * time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// serve runs a daemon with a model card of 4 lanes, chunks of 16 elements and a window of 4, and
// returns the path of its socket.
func serve(t testing.TB, o daemon.Options) string {
	t.Helper()
	card, err := driver.Open(testContext(t), "model:lanes=4,workers=4,chunk=16,window=4,jobs=2")
	if err != nil {
		t.Fatal(err)
	}
	return serveCard(t, card, o)
}

// serveCard runs a daemon with a card.
func serveCard(t testing.TB, card *driver.Card, o daemon.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	server := daemon.New(map[string]daemon.Card{"card": card}, o)
	go func() { ended <- server.Serve(ctx, listener, 0) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return path
}

// client is a session without the library of one: its test sends and reads every message and frame.
type client struct {
	testing.TB
	stream grpc.BidiStreamingClient[protocol.ToDaemon, protocol.ToClient]
	conn   net.Conn
	frames io.ReadWriter // conn, or rings in memory
	memory []byte        // that the daemon shares; nil without
	scan   *frame.Scanner
}

// attach opens a session, with rings if hello asks for them.
func attach(t testing.TB, path string, hello *protocol.Hello) *client {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &client{TB: t, scan: frame.NewScanner(frame.FromCard, 0)}
	if c.stream, err = rpc.NewTributaryClient(conn).Attach(testContext(t)); err != nil {
		t.Fatal(err)
	}
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Hello{Hello: hello}})
	welcome := c.receive().GetWelcome()
	if welcome == nil || welcome.Card != "card" || len(welcome.Key) != 16 {
		t.Fatalf("got %v", welcome)
	}
	if c.conn, err = net.Dial("unix", path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close() })
	c.frames = c.conn
	c.write(append([]byte("TRIBDAT1"), welcome.Key...))
	if hello.Rings && welcome.RingToDaemon > 0 {
		c.useRings(welcome)
	}
	return c
}

func (c *client) send(m *protocol.ToDaemon) {
	c.Helper()
	if err := c.stream.Send(m); err != nil {
		c.Fatal(err)
	}
}

func (c *client) receive() *protocol.ToClient {
	c.Helper()
	m, err := c.stream.Recv()
	if err != nil {
		c.Fatal(err)
	}
	return m
}

func (c *client) write(raw []byte) {
	c.Helper()
	if _, err := c.frames.Write(raw); err != nil {
		c.Fatal(err)
	}
}

// read returns the next frame.
func (c *client) read() frame.Frame {
	c.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	var f frame.Frame
	for !c.scan.Next(&f) {
		if _, err := c.scan.Fill(c.frames); err != nil {
			c.Fatal(err)
		}
	}
	return f
}

// create makes a job, and returns its nonce.
func (c *client) create(p *protocol.Parameters) uint64 {
	c.Helper()
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{Request: 1, Parameters: p}}})
	m := c.receive()
	if m.GetCreated() == nil {
		c.Fatalf("got %v", m)
	}
	return m.GetCreated().Nonce
}

// join takes a seat, and returns the answer.
func (c *client) join(nonce uint64, rank uint32, p *protocol.Parameters) *protocol.ToClient {
	c.Helper()
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Join{Join: &protocol.Join{Request: 2, Nonce: nonce, Rank: &rank, Parameters: p}}})
	return c.receive()
}

func (c *client) call(call *protocol.Call) {
	c.Helper()
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Call{Call: call}})
}

// announce sends a call and waits until the daemon has it: it answers a session's messages in their
// order, and refuses a seat that is taken.
func (c *client) announce(call *protocol.Call) {
	c.Helper()
	c.call(call)
	if r := c.join(call.Nonce, call.Rank, nil).GetRefused(); r.GetReason() != protocol.Reason_TAKEN {
		c.Fatalf("got %v", r)
	}
}

// begun waits for the beginning of an epoch.
func (c *client) begun() *protocol.Begin {
	c.Helper()
	for {
		if b := c.receive().GetBegin(); b != nil {
			return b
		}
	}
}

// data returns a frame with 16 equal elements.
func data(b *protocol.Begin, rank uint8, vid uint32, x float32) []byte {
	var payload []byte
	for range 16 {
		payload = binary.LittleEndian.AppendUint32(payload, math.Float32bits(x))
	}
	h := frame.Header{Kind: wire.KindData, Job: uint8(b.Number), Epoch: uint16(b.Epoch), Format: wire.FP32, Rank: rank, VID: vid, Length: 16}
	return frame.Append(nil, &h, payload)
}

func finish(b *protocol.Begin, rank uint8, vid uint32) []byte {
	return frame.Append(nil, &frame.Header{Kind: wire.KindFinish, Job: uint8(b.Number), Epoch: uint16(b.Epoch), Rank: rank, VID: vid}, nil)
}

// finishBoth finishes the members of pair, before the chunk vid.
func finishBoth(one, two *client, b *protocol.Begin, vid uint32) {
	one.Helper()
	one.write(finish(b, 0, vid))
	two.write(finish(b, 1, vid))
	for _, c := range []*client{one, two} {
		if e := c.receive().GetEnded(); e.GetCause() != protocol.Cause_FINISHED {
			c.Errorf("got %v", e)
		}
	}
}

func pointer[T any](v T) *T { return &v }

// pair returns two sessions with a seat each in a job that has begun.
func pair(t testing.TB, path string, p *protocol.Parameters) (one, two *client, b *protocol.Begin) {
	t.Helper()
	one, two = attach(t, path, &protocol.Hello{Version: 1}), attach(t, path, &protocol.Hello{Version: 1})
	p.Workers = pointer(uint32(2))
	nonce := one.create(p)
	one.join(nonce, 0, nil)
	two.join(nonce, 1, p)
	two.begun()
	return one, two, one.begun()
}

// TestTwoProcesses sums a chunk of two sessions, and finishes their job.
func TestTwoProcesses(t *testing.T) {
	one, two, b := pair(t, serve(t, daemon.Options{}), &protocol.Parameters{})
	for rank, c := range []*client{one, two} {
		c.write(data(b, uint8(rank), 0, float32(rank+1))) // the announcement comes later
		c.call(&protocol.Call{Nonce: b.Nonce, Rank: uint32(rank), Elements: 16, Format: uint32(wire.FP32)})
	}
	for rank, c := range []*client{one, two} {
		f := c.read()
		if x := math.Float32frombits(binary.LittleEndian.Uint32(f.Payload)); f.Kind != wire.KindResult || x != 3 {
			t.Errorf("rank %d gets %+v, %g; want a result of 3", rank, f.Header, x)
		}
	}
	finishBoth(one, two, b, 1)
}

// TestCallsDiffer announces calls of different lengths: both sessions learn both calls, and nothing is
// summed.
func TestCallsDiffer(t *testing.T) {
	one, two, b := pair(t, serve(t, daemon.Options{}), &protocol.Parameters{})
	one.call(&protocol.Call{Nonce: b.Nonce, Elements: 16, Format: uint32(wire.FP32)})
	one.write(data(b, 0, 0, 1))
	two.call(&protocol.Call{Nonce: b.Nonce, Rank: 1, Elements: 15, Format: uint32(wire.FP32)})
	two.write(data(b, 1, 0, 1))
	for _, c := range []*client{one, two} {
		e := c.receive().GetEnded()
		if e.GetCause() != protocol.Cause_CALLS_DIFFER || e.One.Elements+e.Other.Elements != 31 {
			t.Errorf("got %v", e)
		}
	}
}

// TestLostMember ends a job when the connection of one of its members ends.
func TestLostMember(t *testing.T) {
	one, two, _ := pair(t, serve(t, daemon.Options{}), &protocol.Parameters{})
	two.conn.Close()
	e := one.receive().GetEnded()
	if e.GetCause() != protocol.Cause_MEMBER_LOST || len(e.Ranks) != 1 || e.Ranks[0] != 1 {
		t.Errorf("got %v", e)
	}
	if _, err := two.stream.Recv(); err == nil || err == io.EOF {
		t.Errorf("the session goes on without its data connection: %v", err)
	}
}

// TestJoinRefused checks the refusals of Join and Hello.
func TestJoinRefused(t *testing.T) {
	path := serve(t, daemon.Options{})
	c := attach(t, path, &protocol.Hello{Version: 1})
	nonce := c.create(&protocol.Parameters{Workers: pointer(uint32(3))})
	for _, x := range []struct {
		m      *protocol.ToClient
		reason protocol.Reason
		text   string
	}{
		{c.join(nonce+1, 0, nil), protocol.Reason_NO_JOB, ""},
		{c.join(nonce, 3, nil), protocol.Reason_TAKEN, "rank 3 is beyond the job's 3 members"},
		{c.join(nonce, 0, &protocol.Parameters{Workers: pointer(uint32(4))}), protocol.Reason_PARAMETERS, "workers: this member expects 4, the job has 3"},
		{c.join(nonce, 0, &protocol.Parameters{DeadlineNs: pointer(uint64(1e9))}), protocol.Reason_PARAMETERS, "deadline: this member expects 1s, the job has 0s"},
		{c.join(nonce, 0, &protocol.Parameters{Ports: []uint32{0, 1, 3}}), protocol.Reason_PARAMETERS, "ports: this member expects [0 1 3], the job has [0 1 2]"},
	} {
		if r := x.m.GetRefused(); r.GetReason() != x.reason || x.text != "" && r.Text != x.text {
			t.Errorf("got %v, want %s: %s", x.m, x.reason, x.text)
		}
	}
	if w := c.join(nonce, 1, nil).GetWaiting(); w.GetRank() != 1 || len(w.Missing) != 2 {
		t.Errorf("got %v", w)
	}
	if r := c.join(nonce, 1, nil).GetRefused(); r.GetText() != "rank 1 is taken" {
		t.Errorf("got %v", r)
	}
}
