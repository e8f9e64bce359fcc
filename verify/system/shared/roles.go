package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/transport/serve"
	"tributary/driver/wire"
)

// The environment of the processes of a site.
const (
	roleVariable   = "TRIBUTARY_SHARED_ROLE"
	folderVariable = "TRIBUTARY_SHARED_FOLDER" // of the site's sockets
	keepVariable   = "TRIBUTARY_SHARED_KEEP"   // not empty: the daemon outlives every outage of its card
)

const (
	cardPorts  = 8
	cardWindow = 64
	cardJobs   = 8

	timeout = 30 * time.Second // of calls without progress
	limit   = 60 * time.Second // of a call in all
)

// goneStatus is the exit status of a daemon whose card has gone for good.
const goneStatus = 3

// order is what the campaign wants of a process.
type order struct {
	Do    string `json:"do"` // "arm", "ping", "run"
	Phase phase  `json:"phase,omitempty"`
	Count int    `json:"count,omitempty"`
	Life  *life  `json:"life,omitempty"`
}

// event is what a process reports.
type event struct {
	Is    string `json:"is"` // "ready", "dying", "pong", "dead", and those of a member
	Phase phase  `json:"phase,omitempty"`

	Life   int     `json:"life,omitempty"`
	Ticket string  `json:"ticket,omitempty"`
	Call   int     `json:"call,omitempty"`
	Stage  string  `json:"stage,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Ranks  []int   `json:"ranks,omitempty"`
	Text   string  `json:"text,omitempty"`
	Sum    *summed `json:"sum,omitempty"`

	Outages    int `json:"outages,omitempty"`
	Goroutines int `json:"goroutines,omitempty"`
	Open       int `json:"open,omitempty"` // sessions and jobs of a daemon

	status string // of a process that is dead
	killed bool   // by SIGKILL
	usage  time.Duration
}

// role is a process of a site: it takes orders on its standard input and reports on its output.
type role struct {
	folder  string
	trigger trigger
	server  atomic.Pointer[daemon.Server] // of a daemon

	mu  sync.Mutex
	out *json.Encoder
}

func (r *role) report(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(e) // without a campaign, the end of the input ends this process
}

// play is the whole program of a process of a site.
func play(name string) {
	r := &role{folder: os.Getenv(folderVariable), out: json.NewEncoder(os.Stdout)}
	r.trigger.dying = func(p phase) { r.report(event{Is: "dying", Phase: p}) }
	runtime.GOMAXPROCS(2) // a site has ten processes
	var err error
	switch name {
	case "card":
		err = r.card()
	case "daemon":
		err = r.daemon()
	case "member":
		err = r.member()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// obey carries out orders until the campaign closes the input, which ends the process.
func (r *role) obey(run func(*life)) {
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		if orders.Decode(&o) != nil {
			os.Exit(0)
		}
		switch o.Do {
		case "arm":
			r.trigger.arm(o.Phase, o.Count)
		case "ping":
			debug.FreeOSMemory()
			e := event{Is: "pong", Goroutines: runtime.NumGoroutine()}
			if server := r.server.Load(); server != nil {
				e.Open = openIn(server)
			}
			r.report(e)
		case "run":
			go run(o.Life)
		}
	}
}

// card is a model card on a Unix socket, which serves one host after another.
func (r *role) card() error {
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: cardPorts, Chunk: chunkElements, Window: cardWindow, Jobs: cardJobs, Shell: wire.ShellStream, Link: 32})
	if err != nil {
		return err
	}
	path := filepath.Join(r.folder, "card")
	_ = os.Remove(path) // a killed card leaves it behind
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	go r.obey(nil)
	r.report(event{Is: "ready"})
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_ = card.Serve(newMortal(cardEnd(conn), &r.trigger, frame.FromCard)) // the host may leave in any way
	}
}

// cardEnd is the card's end of a link; tests let it lie.
var cardEnd = func(conn transport.Conn) transport.Conn { return conn }

// daemon shares the card. It ends when the card has gone for good, as `tributary serve` does.
func (r *role) daemon() error {
	transport.Register("mortal", func(ctx context.Context, to transport.Request) (transport.Conn, error) {
		conn, err := transport.Open(ctx, "unix:"+to.Address, to.Needs)
		if err != nil {
			return nil, err
		}
		return newMortal(conn, &r.trigger, frame.ToCard), nil
	})
	go r.obey(nil)
	ctx := context.Background()
	card, err := r.openCard(ctx)
	if err != nil {
		return err
	}
	listener, err := daemon.Listen(ctx, "unix:"+filepath.Join(r.folder, "daemon"))
	if err != nil {
		return err
	}
	go func() {
		<-card.Done()
		os.Exit(goneStatus)
	}()
	server := daemon.New(map[string]daemon.Card{"card": card}, daemon.Options{
		Limits: daemon.Limits{Connections: 10_000}, // members come back all at once
		Ready:  func() { r.report(event{Is: "ready"}) },
		Log:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
	})
	r.server.Store(server)
	return server.Serve(ctx, listener, 0)
}

// openIn counts a daemon's sessions and jobs, as its metrics tell.
func openIn(server *daemon.Server) (n int) {
	page := httptest.NewRecorder()
	server.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, found := range openMetric.FindAllStringSubmatch(page.Body.String(), -1) {
		count, err := strconv.Atoi(found[1])
		if err != nil {
			panic(err)
		}
		n += count
	}
	return n
}

var openMetric = regexp.MustCompile(`(?m)^tributary_(?:sessions|jobs)\{.*\} (\d+)$`)

// openCard opens the card, which may be killed meanwhile, and again.
func (r *role) openCard(ctx context.Context) (*driver.Card, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		card, err := driver.Open(ctx, "mortal:"+filepath.Join(r.folder, "card"), driver.WithTimeout(timeout))
		if err == nil && os.Getenv(keepVariable) != "" { // a job that carries on keeps the daemon's card
			_, err = card.Configure(ctx, driver.JobConfig{Workers: 1, Window: 1, CarryOn: time.Hour})
		}
		if err == nil || ctx.Err() != nil {
			return card, err
		}
		if card != nil {
			card.Close()
		}
		time.Sleep(retry)
	}
}

// retry is the time between two attempts to open a card.
const retry = 5 * time.Millisecond

// openSession opens a session with the daemon, which may be killed meanwhile, and again.
func (r *role) openSession(ctx context.Context) (*driver.Card, error) {
	for {
		card, err := driver.Open(ctx, "mortal:unix:"+filepath.Join(r.folder, "daemon"), driver.WithTimeout(timeout))
		if err == nil || ctx.Err() != nil {
			return card, err
		}
		time.Sleep(retry)
	}
}

// registerSession registers the scheme of openSession.
func (r *role) registerSession() {
	transport.Register("mortal", func(ctx context.Context, to transport.Request) (transport.Conn, error) {
		conn, err := transport.Open(ctx, "serve:"+to.Address, to.Needs)
		if err != nil {
			return nil, err
		}
		session := conn.(*serve.Session)
		return &mortalSession{session, newMortal(session, &r.trigger, frame.ToCard)}, nil
	})
}

// withoutTime drops the time of a line in a log, which the journal has.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
