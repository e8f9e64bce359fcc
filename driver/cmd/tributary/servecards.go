package main

// The cards, options and addresses of tributary serve.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tributary/driver"
	"tributary/driver/collective/membership"
	"tributary/driver/daemon"
	"tributary/driver/shell"
)

// serveLimits are the limits of what clients take, as flags.
type serveLimits struct {
	sessions, queue, connections, rate count
	wait                               time.Duration
}

// rateUnit is the unit of -max-rate in bytes.
const rateUnit = 1 << 20

func (l *serveLimits) add(flags *pflag.FlagSet) {
	most := daemon.DefaultLimits()
	l.sessions, l.queue, l.connections, l.rate = count(most.Sessions), count(most.Queue), count(most.Connections), count(most.Rate/rateUnit)
	flags.Var(&l.sessions, "max-sessions", "refuse sessions beyond this `NUMBER` at once")
	flags.Var(&l.queue, "max-queue", "refuse jobs beyond this `NUMBER` that wait for room on a card")
	flags.Var(&l.connections, "max-connections", "close connections beyond this `NUMBER` a second")
	flags.Var(&l.rate, "max-rate", "read at most this many `MIB` a second from a session")
	flags.DurationVar(&l.wait, "max-wait", most.Wait, "refuse jobs whose creator waits longer than this `TIME` for members")
}

// mostOfLimit bounds the numbers, because the daemon multiplies them.
const mostOfLimit = 1_000_000

func (l *serveLimits) check() error {
	for name, n := range map[string]count{"sessions": l.sessions, "queue": l.queue, "connections": l.connections, "rate": l.rate} {
		if n > mostOfLimit {
			return usagef("-max-%s %d: it must not be more than %d", name, n, mostOfLimit)
		}
	}
	return nil
}

func (l *serveLimits) limits() daemon.Limits {
	return daemon.Limits{Sessions: int(l.sessions), Queue: int(l.queue), Connections: int(l.connections), Rate: int(l.rate) * rateUnit, Wait: l.wait}
}

// options returns the daemon's options for the flags.
func (f *serveFlags) options(errs io.Writer) (daemon.Options, error) {
	o := daemon.Options{Admin: f.admin, Relay: f.relay, Wait: f.wait, Limits: f.limits.limits(), Log: slog.New(slog.NewTextHandler(errs, nil))}
	if f.json {
		o.Log = slog.New(slog.NewJSONHandler(errs, nil))
	}
	var err error
	if f.token != "" {
		if o.Token, err = daemon.ReadToken(f.token); err != nil {
			return o, flagPath("-token-file:", err)
		}
	}
	if f.cert != "" {
		if o.TLS, err = daemon.LoadTLS(f.cert, f.key, f.ca); err != nil {
			return o, err // it names the file
		}
	}
	return o, nil
}

// open listens where the flags name an address that the options allow.
func (f *serveFlags) open(ctx context.Context, o daemon.Options) (net.Listener, error) {
	address := f.listen
	if address == "" {
		var err error
		if address, err = defaultAddress(os.Getenv("XDG_RUNTIME_DIR"), os.Getuid() == 0); err != nil {
			return nil, err
		}
	}
	listener, err := daemon.Listen(ctx, address)
	if err != nil {
		return nil, flagPath("-listen "+shell.Quote(address)+":", err)
	}
	var trust *daemon.TrustError
	if errors.As(daemon.CheckTrust(listener.Addr(), o), &trust) {
		listener.Close()
		return nil, usagef("-listen %s: %s", address, trust.Text("-tls-cert and -tls-key", "-token-file or -client-ca"))
	}
	return listener, nil
}

// openCards opens cards and trees by their names for clients: all or none. It returns all cards one by one,
// too. A card that goes is opened again.
func (f *serveFlags) openCards(ctx context.Context, cards []offered, log *slog.Logger) (shared map[string]daemon.Card, all []*driver.Card, err error) {
	defer func() {
		for _, card := range all {
			if err != nil {
				err = errors.Join(err, card.Close())
			}
		}
	}()
	shared = map[string]daemon.Card{}
	for _, c := range cards {
		log := log.With("card", c.Name)
		if c.tree == nil {
			card, err := f.openCard(ctx, c.Card, log)
			if err != nil {
				return nil, all, err
			}
			shared[c.Name], all = card, append(all, card)
			continue
		}
		first := len(all)
		for _, entry := range c.tree.Cards {
			card, err := f.openCard(ctx, entry.Card, log.With("device", entry.Card))
			if err != nil {
				return nil, all, err
			}
			all = append(all, card)
		}
		if shared[c.Name], err = driver.ShareTree(c.Card, c.tree.place(all[first:])); err != nil {
			return nil, all, asFlags(err)
		}
	}
	return shared, all, nil
}

// openCard opens a card. A card that goes is logged, and opened again.
func (f *serveFlags) openCard(ctx context.Context, name string, log *slog.Logger) (*driver.Card, error) {
	return driver.Open(ctx, name, driver.WithTimeout(f.timeout), driver.WithReopen(func(away *driver.DiedError) {
		if away != nil {
			log.Warn("card is away", "why", away.Reason())
		} else {
			log.Info("card is back")
		}
	}))
}

// awaitGone logs each card that has gone for good. It returns when all have gone, or ctx has ended: an
// error of a card, or the cause of ctx.
func awaitGone(ctx context.Context, cards map[string]daemon.Card, log *slog.Logger) error {
	gone := make(chan error)
	for name, c := range cards {
		go func() {
			select {
			case <-c.Done():
			case <-ctx.Done():
			}
			if ctx.Err() != nil { // the daemon closes its cards
				gone <- context.Cause(ctx)
				return
			}
			log.Error("card has gone", "card", name, "why", c.Err())
			gone <- c.Err()
		}()
	}
	var err error
	for range cards {
		err = <-gone
	}
	return err
}

// announce prints where the daemon listens, its cards, and where its metrics are.
func (f *serveFlags) announce(out io.Writer, at net.Addr, cards []offered, metrics *metricsServer) error {
	address := at.Network() + ":" + at.String()
	if f.json {
		return json.NewEncoder(out).Encode(struct {
			Address string    `json:"address"`
			Cards   []offered `json:"cards"`
			Metrics string    `json:"metrics,omitempty"`
			Engine  string    `json:"engine,omitempty"`
		}{address, cards, metrics.url(), f.engine})
	}
	var names []string
	for _, c := range cards {
		names = append(names, fmt.Sprintf("%s (%s)", c.Name, c.Card))
	}
	where := ""
	if url := metrics.url(); url != "" {
		where = "; metrics at " + url
	}
	if f.engine != "" {
		where += "; members at " + f.engine
	}
	_, err := fmt.Fprintf(out, "serving at %s: %s%s\n", address, strings.Join(names, ", "), where)
	return err
}

// serveEngine keeps who is in groups at -engine until stop, and so while jobs have the time of -grace.
func (f *serveFlags) serveEngine(ctx context.Context) (stop func(), err error) {
	if f.engine == "" {
		return func() {}, nil
	}
	listener, err := daemon.Listen(ctx, f.engine)
	if err != nil {
		return nil, flagPath("-engine "+shell.Quote(f.engine)+":", err)
	}
	until, end := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = membership.Serve(until, listener, membership.NewMemory(f.engine)) // until stop
	}()
	return func() {
		end()
		<-over
	}, nil
}

// metricsServer serves what operators watch. Without -metrics it has no listener.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
}

func (f *serveFlags) listenMetrics(ctx context.Context) (*metricsServer, error) {
	if f.metrics == "" {
		return &metricsServer{}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.metrics)
	if err != nil {
		return nil, flagPath("-metrics", err)
	}
	return &metricsServer{listener, &http.Server{ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout}}, nil
}

// url returns where the metrics are, or "" without -metrics.
func (m *metricsServer) url() string {
	if m.listener == nil {
		return ""
	}
	return "http://" + m.listener.Addr().String() + "/metrics"
}

// metricsTimeout bounds a request for metrics.
const metricsTimeout = 10 * time.Second

func (m *metricsServer) serve(handler http.Handler) {
	if m.listener != nil {
		m.server.Handler = handler
		_ = m.server.Serve(m.listener) // until close
	}
}

func (m *metricsServer) close() {
	if m.listener != nil {
		m.server.Close()
		m.listener.Close() // it may not serve yet
	}
}
