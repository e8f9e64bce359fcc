package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/daemon"
	_ "tributary/driver/transport/serve" // registers its scheme, for clients
)

// serveFlags is the command line of tributary serve.
type serveFlags struct {
	cards   []string
	trees   []string
	listen  string
	cert    string
	key     string
	ca      string
	token   string
	metrics string
	engine  string
	admin   bool
	relay   bool
	wait    time.Duration
	limits  serveLimits
	grace   time.Duration
	timeout time.Duration
	json    bool
}

func newServe() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve -card [NAME=]CARD | -tree [NAME=]FILE",
		Short: "Share cards among processes",
		Long: `Opens cards and shares them among processes until Ctrl-C. Clients name a card by
NAME; the first card without one is card0, the next card1. With a single card
clients need no name.

-tree shares a tree of cards as one card, by the name NAME, or tree0. A job has all
workers of the tree. FILE is that of tributary reduce -tree, with a number of workers
instead of inputs:

  {"cards": [
    {"card": "udp:192.0.2.1"},
    {"card": "udp:192.0.2.2", "parent": "udp:192.0.2.1", "workers": 4},
    {"card": "udp:192.0.2.3", "parent": "udp:192.0.2.1", "workers": 4}
  ]}

The address is a Unix socket, which this user alone may open, or a TCP port. An
address that other machines can reach needs -tls-cert and -tls-key, and -token-file
or -client-ca.

At the first Ctrl-C or SIGTERM serve refuses new jobs and ends those that wait for
members. Running ones have the time of -grace to finish. The second signal ends
serve at once.

A card that goes is opened again when it is back; jobs wait for it or end.

Clients of a card on a network (udp:) send their data to the card, not to serve;
with -relay they do not. Partial sums need -relay.

The ranks at a card of shell roce have RDMA connections through it. Clients name it
roce:, and serve registers their connections.

-engine keeps who is in groups whose members come and go: processes of this machine
that use the Go package driver/collective/elastic, as engine unix:PATH.

serve prints a line when it is ready, and logs to standard error.`,
		Example: `  tributary serve -card model:lanes=4
  tributary serve -card left=usb:1209:7b7b#A1 -card right=usb:1209:7b7b#A2
  tributary serve -card udp:192.0.2.7
  tributary serve -card model:lanes=4 -listen unix:cards.sock -engine unix:members.sock
  tributary serve -card udp:192.0.2.7 -listen tcp:192.0.2.1:7420 -tls-cert cert.pem -tls-key key.pem -token-file token
  tributary serve -tree tree.json
  tributary serve -card usb: -listen tcp::7420 -tls-cert cert.pem -tls-key key.pem -token-file token`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.cards, "card", nil, "share this `[NAME=]CARD`, see tributary -h; several times for several cards")
	flags.StringArrayVar(&f.trees, "tree", nil, "share the tree of cards in `[NAME=]FILE`; several times for several trees")
	flags.StringVar(&f.listen, "listen", "", "listen at this `ADDRESS`, unix:PATH or tcp:HOST:PORT (default unix:$XDG_RUNTIME_DIR/tributary.sock, or unix:/run/tributary.sock if root lacks that variable)")
	flags.StringVar(&f.cert, "tls-cert", "", "use TLS with the certificate in `FILE`, in PEM")
	flags.StringVar(&f.key, "tls-key", "", "use the certificate's key in `FILE`, in PEM")
	flags.StringVar(&f.ca, "client-ca", "", "let only clients in whose certificate a CA in `FILE` signed, in PEM")
	flags.StringVar(&f.token, "token-file", "", "let only clients in that have the token in `FILE`, of mode 0600")
	flags.StringVar(&f.metrics, "metrics", "", "serve /metrics, /healthz and /readyz over HTTP at `HOST:PORT`")
	flags.StringVar(&f.engine, "engine", "", "keep who is in groups, at this `ADDRESS`, unix:PATH")
	flags.BoolVar(&f.admin, "admin", false, "let clients reset cards")
	flags.BoolVar(&f.relay, "relay", false, "forward the frames of all clients, also those of cards on a network")
	flags.DurationVar(&f.wait, "wait", time.Minute, "wait this `TIME` for the members of a job whose creator sets none")
	f.limits.add(flags)
	flags.DurationVar(&f.grace, "grace", 30*time.Second, "let running jobs finish for this `TIME` at the end")
	flags.DurationVar(&f.timeout, "timeout", driver.DefaultTimeout, "give up when a card does not reply for this `TIME`")
	flags.BoolVar(&f.json, "json", false, "print and log JSON")
	return cmd
}

// sharedCard is a card of -card or a tree of -tree, with its name for clients.
type sharedCard struct {
	Name string `json:"name"`
	Card string `json:"card"` // of a tree, its file
}

// offered is a sharedCard with its tree; nil for one card.
type offered struct {
	sharedCard
	tree *treeFile
}

// parse returns the cards of -card and -tree. It refuses values that are invalid whatever the machine has.
func (f *serveFlags) parse() ([]offered, error) {
	switch {
	case len(f.cards)+len(f.trees) == 0:
		return nil, usagef("-card is missing; name the card to share, or the file of a tree with -tree")
	case f.relay && len(f.cards) == 0:
		return nil, usagef("-relay: clients of a tree of cards pass arrays to serve, which sends the frames; leave it out")
	}
	cards, err := nameShared(nil, "card", f.cards)
	if err == nil {
		cards, err = nameShared(cards, "tree", f.trees)
	}
	for i := range cards {
		if c := &cards[i]; i >= len(f.cards) && err == nil {
			if c.tree, err = readTree("serve", c.Card); err == nil {
				err = c.tree.checkWorkers()
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return cards, f.check()
}

// nameShared appends the cards of a flag, which also begins the names of those without one.
func nameShared(cards []offered, flag string, texts []string) ([]offered, error) {
	unnamed := 0
	for _, text := range texts {
		c := parseShared(text)
		if c.Name == "" {
			c.Name = fmt.Sprintf("%s%d", flag, unnamed)
			unnamed++
		}
		if err := daemon.CheckCard(c.Card); err != nil && flag == "card" {
			return nil, usagef("-card %s", err)
		}
		if slices.ContainsFunc(cards, func(other offered) bool { return other.Name == c.Name }) {
			return nil, usagef("-%s %s: two cards are called %s; name them NAME=%s", flag, text, c.Name, c.Card)
		}
		cards = append(cards, offered{sharedCard: c})
	}
	return cards, nil
}

// parseShared splits [NAME=]CARD. An equals sign after a colon belongs to the card: model:lanes=4.
func parseShared(text string) sharedCard {
	name, card, named := strings.Cut(text, "=")
	if !named || name == "" || strings.ContainsAny(name, ":/") {
		return sharedCard{Card: text}
	}
	return sharedCard{Name: name, Card: card}
}

func (f *serveFlags) check() error {
	scheme, address, _ := strings.Cut(f.listen, ":")
	switch {
	case f.listen != "" && (scheme != "unix" || address == "") && (scheme != "tcp" || !strings.Contains(address, ":")):
		return usagef("-listen %s: it must be unix:PATH or tcp:HOST:PORT", f.listen)
	case f.engine != "" && !strings.HasPrefix(f.engine, "unix:"):
		return usagef("-engine %s: it must be unix:PATH; etcd keeps the members of several machines", f.engine)
	case (f.cert == "") != (f.key == ""):
		return usagef("-tls-cert and -tls-key: a certificate needs its key; give both")
	case f.ca != "" && f.cert == "":
		return usagef("-client-ca: clients show certificates in TLS alone; add -tls-cert and -tls-key")
	case f.cert != "" && scheme != "tcp":
		return usagef("-tls-cert: a Unix socket has no TLS; add -listen tcp:HOST:PORT")
	case f.wait <= 0:
		return usagef("-wait %s: it must be more than zero", f.wait)
	case f.limits.wait < f.wait:
		return usagef("-max-wait %s: it must not be less than -wait, %s", f.limits.wait, f.wait)
	case f.grace < 0:
		return usagef("-grace %s: it must not be negative", f.grace)
	case f.timeout <= 0:
		return usagef("-timeout %s: it must be more than zero", f.timeout)
	}
	if err := f.limits.check(); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(f.metrics); f.metrics != "" && err != nil {
		return usagef("-metrics %s: it must be HOST:PORT", f.metrics)
	}
	return nil
}

// defaultAddress returns where to listen without -listen.
func defaultAddress(runtimeDir string, root bool) (string, error) {
	switch {
	case runtimeDir != "":
		return "unix:" + filepath.Join(runtimeDir, "tributary.sock"), nil
	case root:
		return "unix:/run/tributary.sock", nil
	}
	return "", usagef("-listen is missing, and XDG_RUNTIME_DIR is not set; give -listen unix:PATH")
}

func (f *serveFlags) run(ctx context.Context, out, errs io.Writer) error {
	cards, err := f.parse()
	if err != nil {
		return err
	}
	options, err := f.options(errs)
	if err != nil {
		return err
	}
	listener, err := f.open(ctx, options)
	if err != nil {
		return err
	}
	defer listener.Close()
	metrics, err := f.listenMetrics(ctx)
	if err != nil {
		return err
	}
	defer metrics.close()
	stopEngine, err := f.serveEngine(ctx)
	if err != nil {
		return err
	}
	defer stopEngine()
	opened, all, err := f.openCards(ctx, cards, options.Log)
	if err != nil {
		return err
	}
	for _, card := range all {
		defer showCard(ctx, card, "serve", errs)()
	}
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options.Ready = func() {
		notifyManager(options.Log, "READY=1")
		if err := f.announce(out, listener.Addr(), cards, metrics); err != nil {
			cancel(err)
		}
	}
	server := daemon.New(opened, options)
	go metrics.serve(server.Handler())
	go func() { cancel(awaitGone(until, opened, options.Log)) }()
	if err := serveUntil(until, server, listener, f.grace, options.Log); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	return context.Cause(until)
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, server *daemon.Server, listener net.Listener, grace time.Duration, log *slog.Logger) error {
	stopping := make(chan struct{})
	context.AfterFunc(ctx, func() {
		notifyManager(log, "STOPPING=1")
		log.Info("stopping", "why", context.Cause(ctx), "grace", grace.String())
		close(stopping)
	})
	err := server.Serve(ctx, listener, grace)
	if ctx.Err() == nil {
		return err
	}
	<-stopping
	if err != nil {
		log.Error("not stopped in order", "why", err)
		return err
	}
	log.Info("stopped")
	return nil
}
