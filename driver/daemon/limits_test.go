package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/protocol/rpc"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// openModel opens the card of serve.
func openModel(t testing.TB) *driver.Card {
	t.Helper()
	card, err := driver.Open(testContext(t), "model:lanes=4,workers=4,chunk=16,window=4,jobs=2")
	if err != nil {
		t.Fatal(err)
	}
	return card
}

func newServer(card *driver.Card, o daemon.Options) *daemon.Server {
	return daemon.New(map[string]daemon.Card{"card": card}, o)
}

// serveOn is serve for any address. It returns the server, and a function that stops it.
func serveOn(t testing.TB, address string, o daemon.Options) (s *daemon.Server, at net.Addr, stop func()) {
	t.Helper()
	return serveCardOn(t, address, openModel(t), o)
}

func serveCardOn(t testing.TB, address string, card *driver.Card, o daemon.Options) (s *daemon.Server, at net.Addr, stop func()) {
	t.Helper()
	s = newServer(card, o)
	at, stop = listen(t, s, address)
	return s, at, stop
}

// serveNamed runs a daemon with the card of a name, and returns the path of its socket.
func serveNamed(t testing.TB, name string, o daemon.Options) (*daemon.Server, string) {
	t.Helper()
	card, err := driver.Open(testContext(t), name)
	if err != nil {
		t.Fatal(err)
	}
	s, path := newServer(card, o), socket(t)
	listen(t, s, "unix:"+path)
	return s, path
}

// listen runs a server, and returns where, and a function that stops it.
func listen(t testing.TB, s *daemon.Server, address string) (at net.Addr, stop func()) {
	t.Helper()
	listener, err := daemon.Listen(testContext(t), address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener, 0) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return listener.Addr(), stop
}

func serveTCP(t testing.TB, o daemon.Options) string {
	t.Helper()
	_, at, _ := serveOn(t, "tcp:127.0.0.1:0", o)
	return at.String()
}

// lockedBuffer is a log that a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// page returns a page of the server's operators.
func page(t testing.TB, s *daemon.Server, path string) (status int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(testContext(t), "GET", path, nil))
	return w.Code, w.Body.String()
}

// pollTime is between two looks at a condition. It leaves the processor to what makes it hold.
const pollTime = time.Millisecond

// awaitReadyz waits until /readyz has a text. A card on a busy machine may take longer than the page waits.
func awaitReadyz(t testing.TB, s *daemon.Server, want string) {
	t.Helper()
	for ctx := testContext(t); ; {
		_, text := page(t, s, "/readyz")
		if text == want+"\n" {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("/readyz is %q, want %q", text, want)
		}
		time.Sleep(pollTime)
	}
}

// metric returns a metric of the server.
func metric(t testing.TB, s *daemon.Server, name string) float64 {
	t.Helper()
	_, text := page(t, s, "/metrics")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	x, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// awaitMetric waits until a metric has a value.
func awaitMetric(t testing.TB, s *daemon.Server, name string, want float64) {
	t.Helper()
	awaitMetricIs(t, s, name, fmt.Sprint(want), func(x float64) bool { return x == want })
}

// awaitMetricIs waits until a metric has one of some values.
func awaitMetricIs(t testing.TB, s *daemon.Server, name, want string, is func(float64) bool) {
	t.Helper()
	for ctx := testContext(t); !is(metric(t, s, name)); {
		if ctx.Err() != nil {
			t.Fatalf("%s is %g, want %s", name, metric(t, s, name), want)
		}
		time.Sleep(pollTime)
	}
}

// hello opens a control stream and returns the daemon's answer to Hello.
func hello(t testing.TB, path string, h *protocol.Hello) *protocol.ToClient {
	t.Helper()
	return helloAt(t, "unix:"+path, h)
}

// helloAt is hello at any address of gRPC's.
func helloAt(t testing.TB, address string, h *protocol.Hello) *protocol.ToClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := rpc.NewTributaryClient(conn).Attach(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Hello{Hello: h}}); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func refusedHello(t testing.TB, path string, h *protocol.Hello) *protocol.Refused {
	t.Helper()
	return hello(t, path, h).GetRefused()
}

// socket returns a path for a socket. A test's own folder may have #, which gRPC takes for a fragment.
func socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "daemon")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// TestLimitOfSessions refuses a session beyond the limit, and takes one when another has ended.
func TestLimitOfSessions(t *testing.T) {
	path := socket(t)
	s, _, _ := serveOn(t, "unix:"+path, daemon.Options{Limits: daemon.Limits{Sessions: 2, Connections: 1_000_000}})
	attach(t, path, &protocol.Hello{Version: 1})
	last := attach(t, path, &protocol.Hello{Version: 1})
	r := refusedHello(t, path, &protocol.Hello{Version: 1})
	if r.GetReason() != protocol.Reason_LIMIT || r.Text != "the daemon has 2 sessions, its limit; end one" {
		t.Errorf("got %v", r)
	}
	if n := metric(t, s, `tributary_limited_total{limit="sessions"}`); n != 1 {
		t.Errorf("%g sessions were refused, want 1", n)
	}
	last.conn.Close()
	awaitMetric(t, s, `tributary_sessions{card="card"}`, 1)
	if m := hello(t, path, &protocol.Hello{Version: 1}); m.GetWelcome() == nil {
		t.Errorf("a session that has ended keeps its place: %v", m)
	}
}

// TestLimitOfSeats refuses a seat beyond the limit.
func TestLimitOfSeats(t *testing.T) {
	path := serve(t, daemon.Options{Limits: daemon.Limits{Seats: 2}})
	c := attach(t, path, &protocol.Hello{Version: 1})
	nonce := c.create(&protocol.Parameters{Workers: pointer(uint32(4))})
	c.join(nonce, 0, nil)
	c.join(nonce, 1, nil)
	const limit = "the session has 2 seats, the daemon's limit"
	if r := c.join(nonce, 2, nil).GetRefused(); r.GetReason() != protocol.Reason_LIMIT || r.Text != limit {
		t.Errorf("got %v", r)
	}
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{Join: &protocol.Join{Nonce: 1, Rank: pointer(uint32(0))}}}})
	if e := c.receive().GetEnded(); e.GetText() != limit {
		t.Errorf("got %v", e)
	}
}

// TestLimitOfQueue refuses jobs that want to wait for room beyond the limit.
func TestLimitOfQueue(t *testing.T) {
	c := attach(t, serve(t, daemon.Options{Limits: daemon.Limits{Queue: 1}}), &protocol.Hello{Version: 1})
	for i := range 4 {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{Queue: true}}})
		m := c.receive()
		if refused := m.GetRefused(); (refused != nil) != (i == 3) || i == 3 && refused.Reason != protocol.Reason_LIMIT {
			t.Errorf("job %d: got %v", i, m)
		}
	}
}

// TestLimitOfWait refuses jobs that wait too long for their members: they would keep a place on the card.
func TestLimitOfWait(t *testing.T) {
	path := socket(t)
	s, _, _ := serveOn(t, "unix:"+path, daemon.Options{Limits: daemon.Limits{Wait: 10 * time.Second}})
	c := attach(t, path, &protocol.Hello{Version: 1})
	for _, x := range []struct {
		wait uint64
		text string
	}{
		{uint64(10 * time.Second), ""},
		{uint64(11 * time.Second), "a job waits at most 10s for its members, the daemon's limit; 11s is longer"},
		{math.MaxUint64, "a job waits at most 10s for its members, the daemon's limit; 2562047h47m16.854775807s is longer"},
	} {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{WaitNs: x.wait}}})
		m := c.receive()
		if r := m.GetRefused(); r.GetText() != x.text || r != nil && r.Reason != protocol.Reason_LIMIT {
			t.Errorf("%d ns: got %v, want %q", x.wait, m, x.text)
		}
	}
	if n := metric(t, s, `tributary_limited_total{limit="wait"}`); n != 2 {
		t.Errorf("%g jobs were refused, want 2", n)
	}
	if most := daemon.DefaultLimits().Wait; most != time.Hour {
		t.Errorf("the default is %s", most)
	}
}

// TestLimitOfCalls ends the session of a member that announces calls without end: the daemon keeps each
// until all members have announced it.
func TestLimitOfCalls(t *testing.T) {
	one, two, b := pair(t, serve(t, daemon.Options{Limits: daemon.Limits{Calls: 3}}), &protocol.Parameters{})
	for i := range uint64(4) {
		two.call(&protocol.Call{Nonce: b.Nonce, Rank: 1, Sequence: i, Elements: 16, Format: uint32(wire.FP32), FirstVid: uint32(i)})
	}
	if e := one.receive().GetEnded(); e.GetCause() != protocol.Cause_MEMBER_LOST {
		t.Errorf("got %v", e)
	}
}

// TestLimitOfArrayCalls ends the session of a member that announces calls without their blocks, on a card
// that takes arrays. The daemon once kept them without limit.
func TestLimitOfArrayCalls(t *testing.T) {
	s, path := serveNamed(t, "cpu:workers=2", daemon.Options{Limits: daemon.Limits{Calls: 3}})
	c := attach(t, path, &protocol.Hello{Version: 1})
	b := c.alone()
	for i := range uint64(4) {
		c.call(&protocol.Call{Nonce: b.Nonce, Elements: 1, Format: uint32(wire.FP32), Sequence: i, FirstVid: uint32(i)})
	}
	c.ended()
	if n := metric(t, s, `tributary_limited_total{limit="calls"}`); n != 1 {
		t.Errorf("%g calls were refused, want 1", n)
	}
}

// TestFlood opens ten thousand connections of all bad kinds beside a job: its sums are right, it
// finishes, and the daemon takes new sessions afterwards.
func TestFlood(t *testing.T) {
	path := socket(t)
	s, _, _ := serveOn(t, "unix:"+path, daemon.Options{})
	one, two, b := pair(t, path, &protocol.Parameters{})
	announce(one, two, b, 1<<20)
	bad := []string{"", "GET / HTTP/1.1\r\n\r\n", "TRIB", "TRIBDAT1", "TRIBDAT1 no key here  ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}
	var flood sync.WaitGroup
	for i := range 10 {
		flood.Go(func() {
			for n := range 1000 {
				conn, err := net.Dial("unix", path)
				for errors.Is(err, syscall.EAGAIN) { // the socket's queue is full
					conn, err = net.Dial("unix", path)
				}
				if err != nil {
					t.Errorf("flood: %v", err)
					return
				}
				if n%10 == 0 {
					defer conn.Close() // at the end
				}
				if what := bad[(i+n)%len(bad)]; what != "" {
					_, _ = conn.Write([]byte(what))
				}
				if n%10 != 0 {
					conn.Close()
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { flood.Wait(); close(over) }()
	vid := uint32(0)
	for flooding := true; flooding; vid++ {
		sum(t, one, two, b, vid)
		select {
		case <-over:
			flooding = false
		default:
		}
	}
	sum(t, one, two, b, vid)
	finishBoth(one, two, b, vid+1)
	if n := metric(t, s, `tributary_sessions{card="card"}`); n != 2 {
		t.Errorf("%g sessions, want 2", n)
	}
	refused := metric(t, s, `tributary_limited_total{limit="connections"}`) + metric(t, s, `tributary_limited_total{limit="open"}`) +
		metric(t, s, `tributary_limited_total{limit="unopened"}`)
	if refused == 0 {
		t.Error("no limit has refused a connection")
	}
	for ctx := testContext(t); ; {
		c, err := tryAttach(ctx, path)
		if err == nil {
			c.Close()
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no session after the flood: %v", err)
		}
	}
}

// tryAttach opens a control stream and is welcomed, or returns why not.
func tryAttach(ctx context.Context, path string) (io.Closer, error) {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	stream, err := rpc.NewTributaryClient(conn).Attach(ctx)
	if err == nil {
		err = stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Hello{Hello: &protocol.Hello{Version: 1}}})
	}
	if err == nil {
		var m *protocol.ToClient
		if m, err = stream.Recv(); err == nil && m.GetWelcome() == nil {
			err = fmt.Errorf("got %v", m)
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// TestNeverReads ends the session of a client that does not read its control stream: its seats are lost,
// and then its connection. The daemon once waited for such a client: its seats stayed, and so did the
// daemon.
func TestNeverReads(t *testing.T) {
	one, two, _ := pair(t, serve(t, daemon.Options{}), &protocol.Parameters{})
	closed := make(chan error, 1)
	go func() {
		refused := &protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{
			Parameters: &protocol.Parameters{Workers: pointer(uint32(100))}}}}
		var err error
		for err == nil {
			err = two.stream.Send(refused)
		}
		closed <- two.stream.Context().Err() // nil: not yet at the test's patience
	}()
	if e := one.receive().GetEnded(); e.GetCause() != protocol.Cause_MEMBER_LOST {
		t.Errorf("got %v", e)
	}
	if err := <-closed; errors.Is(err, context.DeadlineExceeded) {
		t.Error("the connection stays")
	}
}

// TestImpossibleReport ends the session of a member whose report spans a thousand million chunks, or has
// a million. The daemon once stepped through them all, and the card's other jobs waited.
func TestImpossibleReport(t *testing.T) {
	for _, r := range []*protocol.Report{{Low: 1 << 30}, {Low: 1 << 31}, {Held: []uint32{1 << 30}}, {Held: []uint32{0}}, {Held: slices.Repeat([]uint32{1}, 1_000_000)}} {
		card := newFragile(t)
		open, err := driver.Open(testContext(t), card.name)
		if err != nil {
			t.Fatal(err)
		}
		one, two, b := pair(t, serveCard(t, open, daemon.Options{}), &protocol.Parameters{CarryOnNs: pointer(uint64(patience))})
		card.cut()
		if m := two.receive(); m.GetStop() == nil {
			t.Fatalf("got %v", m)
		}
		r.Nonce, r.Rank = b.Nonce, 1
		two.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: r}})
		if m := one.receive(); m.GetStop() == nil {
			t.Fatalf("got %v", m)
		}
		if e := one.receive().GetEnded(); e.GetCause() != protocol.Cause_MEMBER_LOST {
			t.Errorf("%v: got %v", r, e)
		}
	}
}

// TestLongNames refuses a Hello whose names would fill the log.
func TestLongNames(t *testing.T) {
	conn, err := grpc.NewClient("unix:"+serve(t, daemon.Options{}), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := rpc.NewTributaryClient(conn).Attach(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Hello{Hello: &protocol.Hello{Version: 1, Client: strings.Repeat("x", 300)}}})
	if m, err := stream.Recv(); err == nil || !strings.Contains(err.Error(), "more than 256 bytes") {
		t.Errorf("got %v, %v", m, err)
	}
}

// TestAdmin resets a card through a session that asked for it, if the daemon allows that.
func TestAdmin(t *testing.T) {
	for _, x := range []struct {
		daemon, session bool
		addr            uint32
		code            wire.Code
	}{
		{false, true, wire.RegReset, wire.CodeBusy},
		{true, false, wire.RegReset, wire.CodeBusy},
		{true, true, wire.RegOwner, wire.CodeBusy},
		{true, true, wire.RegRelease, wire.CodeBusy},
		{true, true, wire.RegJobAbort, wire.CodeBusy},
		{true, true, wire.RegJobState, wire.CodeBusy},
		{true, true, wire.RegReset, wire.CodeDone},
	} {
		path := socket(t)
		s, _, _ := serveOn(t, "unix:"+path, daemon.Options{Admin: x.daemon})
		c := attach(t, path, &protocol.Hello{Version: 1, Admin: x.session})
		c.write(frame.Append(nil, &frame.Header{Kind: wire.KindRegWrite, VID: x.addr, Mask: 1}, nil))
		if f := c.read(); f.Kind != wire.KindReply || f.Code != x.code {
			t.Errorf("%+v: got %+v", x, f.Header)
		}
		if n := metric(t, s, `tributary_register_writes_refused_total{card="card"}`); (n == 1) != (x.code == wire.CodeBusy) {
			t.Errorf("%+v: %g writes were refused", x, n)
		}
	}
}

// TestMetrics sums with frames that are dropped, and reads what the daemon has counted.
func TestMetrics(t *testing.T) {
	path := socket(t)
	s, _, _ := serveOn(t, "unix:"+path, daemon.Options{})
	one, two, b := pair(t, path, &protocol.Parameters{})
	announce(one, two, b, 3)
	one.write(data(b, 1, 0, 9)) // of the other's rank
	one.write(data(&protocol.Begin{Number: b.Number, Epoch: b.Epoch + 1}, 0, 0, 9))
	sum(t, one, two, b, 0)
	two.write(data(b, 1, 0, 2)) // again: the card replays the sum
	two.read()
	one.write(data(b, 0, 1, 1))
	one.write(data(b, 0, 2, 1))
	one.join(b.Nonce+1, 0, nil)
	awaitMetric(t, s, `tributary_lag_chunks{card="card",job="0",rank="1"}`, 2)
	for name, want := range map[string]float64{
		`tributary_card_up{card="card"}`:                                1,
		`tributary_payload_bytes_total{card="card",direction="in"}`:     5 * 64,
		`tributary_frames_dropped_total{card="card",kind="foreign"}`:    1,
		`tributary_frames_dropped_total{card="card",kind="stale"}`:      1,
		`tributary_frames_dropped_total{card="card",kind="malformed"}`:  0,
		`tributary_frames_dropped_total{card="card",kind="full_queue"}`: 0,
		`tributary_frames_repeated_total{card="card"}`:                  1,
		`tributary_sessions{card="card"}`:                               2,
		`tributary_jobs{card="card",state="running"}`:                   1,
		`tributary_epochs_begun_total{card="card"}`:                     1,
		`tributary_lag_chunks{card="card",job="0",rank="0"}`:            0,
		`tributary_refusals_total{reason="no_job"}`:                     1,
		`tributary_members_lost_total{card="card"}`:                     0,
	} {
		if got := metric(t, s, name); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if out := metric(t, s, `tributary_payload_bytes_total{card="card",direction="out"}`); out < 3*64 {
		t.Errorf("%g bytes of sums were sent", out)
	}
	two.conn.Close()
	awaitMetric(t, s, `tributary_jobs_ended_total{card="card",cause="member_lost"}`, 1)
	if lost := metric(t, s, `tributary_members_lost_total{card="card"}`); lost != 1 {
		t.Errorf("%g members were lost, want 1", lost)
	}
}

// TestPageListsMetrics compares the page for operators with the metrics.
func TestPageListsMetrics(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(tributary_[a-z_]+)").FindAllSubmatch(text, -1) {
		listed[string(row[1])] = true
	}
	g := grow(t, daemon.Options{}) // a tree has all metrics, once a job runs
	j, _ := g.job(t, 1, driver.JobConfig{})
	if err := j.AwaitMembers(testContext(t)); err != nil {
		t.Fatal(err)
	}
	_, metrics := page(t, g.server, "/metrics")
	for _, row := range regexp.MustCompile(`(?m)^# TYPE (tributary_[a-z_]+)`).FindAllStringSubmatch(metrics, -1) {
		if !listed[row[1]] {
			t.Errorf("README.md does not list %s", row[1])
		}
		delete(listed, row[1])
	}
	for name := range listed {
		t.Errorf("README.md lists %s, which is no metric", name)
	}
}

// TestReadiness asks for health and readiness over a daemon's life.
func TestReadiness(t *testing.T) {
	idle := newServer(openModel(t), daemon.Options{})
	if status, text := page(t, idle, "/readyz"); status != 503 || text != "the daemon does not listen yet\n" {
		t.Errorf("before it listens: %d, %s", status, text)
	}
	path := socket(t)
	s, _, stop := serveOn(t, "unix:"+path, daemon.Options{})
	attach(t, path, &protocol.Hello{Version: 1}) // it listens
	awaitReadyz(t, s, "ready")
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := healthpb.NewHealthClient(conn).Watch(testContext(t), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("got %v, %v", r, err)
	}
	stop()
	for {
		r, err := watch.Recv()
		if err != nil {
			break // the end of the stream may come before its last message
		}
		if r.Status != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("got %v", r)
		}
	}
	if status, text := page(t, s, "/readyz"); status != 503 || text != "the daemon is being stopped\n" {
		t.Errorf("after the end: %d, %s", status, text)
	}
	if status, _ := page(t, s, "/healthz"); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
}

// TestWatchers refuses the seventeenth stream that watches the daemon's health.
func TestWatchers(t *testing.T) {
	path := serve(t, daemon.Options{})
	for n := range 17 {
		conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		watch, err := healthpb.NewHealthClient(conn).Watch(testContext(t), &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = watch.Recv()
		}
		if refused := status.Code(err) == codes.ResourceExhausted; refused != (n == 16) {
			t.Errorf("stream %d: %v", n, err)
		}
	}
}

// short is a listener on a machine that is short of descriptors at first.
type short struct {
	net.Listener
	refused atomic.Bool
}

func (s *short) Accept() (net.Conn, error) {
	if !s.refused.Swap(true) {
		return nil, syscall.EMFILE
	}
	return s.Listener.Accept()
}

// TestAcceptFails opens a session although the first attempt to accept failed. Such an error once ended
// the daemon.
func TestAcceptFails(t *testing.T) {
	path := socket(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- newServer(openModel(t), daemon.Options{}).Serve(ctx, &short{Listener: listener}, 0) }()
	attach(t, path, &protocol.Hello{Version: 1})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestStopEndsGathering ends the jobs that wait for members when the daemon is stopped, however long
// running jobs may go on.
func TestStopEndsGathering(t *testing.T) {
	path := socket(t)
	listener, err := daemon.Listen(testContext(t), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- newServer(openModel(t), daemon.Options{}).Serve(ctx, listener, patience) }()
	one, two, b := pair(t, path, &protocol.Parameters{})
	waiting := attach(t, path, &protocol.Hello{Version: 1})
	waiting.join(waiting.create(&protocol.Parameters{}), 0, nil)
	stop()
	if e := waiting.receive().GetEnded(); e.GetCause() != protocol.Cause_ABORTED {
		t.Errorf("got %v", e)
	}
	waiting.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{}}})
	if r := waiting.receive().GetRefused(); r.GetReason() != protocol.Reason_STOPPING {
		t.Errorf("got %v", r)
	}
	announce(one, two, b, 1) // the running job goes on
	sum(t, one, two, b, 0)
	finishBoth(one, two, b, 1)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServeUntil: at the end running jobs go on, and clients keep their sessions, until the program that
// serves ends the grace.
func TestServeUntil(t *testing.T) {
	for _, finishes := range []bool{true, false} {
		path := socket(t)
		listener, err := daemon.Listen(testContext(t), "unix:"+path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		finish, cut := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		s := newServer(openModel(t), daemon.Options{})
		go func() { ended <- s.ServeUntil(ctx, finish, listener) }()
		one, two, b := pair(t, path, &protocol.Parameters{})
		stop()
		awaitReadyz(t, s, "the daemon is being stopped")
		announce(one, two, b, 1)
		sum(t, one, two, b, 0)
		if finishes {
			finishBoth(one, two, b, 1)
		}
		for range 300 { // longer than the daemon takes to notice that no job is left
			one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{}}})
			if r := one.receive().GetRefused(); r.GetReason() != protocol.Reason_STOPPING {
				t.Fatalf("got %v", r)
			}
		}
		cut()
		if !finishes {
			if e := two.receive().GetEnded(); e.GetCause() != protocol.Cause_ABORTED {
				t.Errorf("got %v", e)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestListen checks the socket's mode, and what Listen replaces.
func TestListen(t *testing.T) {
	path := socket(t)
	ctx := testContext(t)
	listener, err := daemon.Listen(ctx, "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if _, err := daemon.Listen(ctx, "unix:"+path); err == nil || !strings.Contains(err.Error(), "another program listens at") {
		t.Errorf("a live socket: got %v", err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // as after a kill
	listener.Close()
	listener, err = daemon.Listen(ctx, "unix:"+path)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	listener.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Listen(ctx, "unix:"+path); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("a file: got %v", err)
	}
	if _, err := daemon.Listen(ctx, "unix:"+filepath.Join(path, "x")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("no folder: got %v", err)
	}
	for _, address := range []string{"card", "unix:", "unix:@card"} {
		if listener, err := daemon.Listen(ctx, address); err == nil {
			listener.Close()
			t.Errorf("listens at %s", address)
		}
	}
}
