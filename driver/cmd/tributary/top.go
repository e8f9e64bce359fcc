package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/transport"
)

// topFlags is the command line of tributary top.
type topFlags struct {
	cardFlags
	interval time.Duration
	count    count
	json     bool
}

func newTop() *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top -card CARD",
		Short: "Watch a card at work",
		Long: `Prints a card's properties, jobs and counters with their rates, repeatedly, until
Ctrl-C. Without a terminal the readings follow one another. top changes nothing.

The lateness of a rank is the median and 99th percentile behind the first
contribution to a chunk, in cycles (0: the rank came first). Staged is the last
set-up written to the card: that of the last job, unless the card refused it.

A card has one host at a time, so top reads through the program that drives it:
tributary reduce serves every tributary top of the same user (Go programs:
driver.Card.ServeReads). Jobs are not disturbed. A reading takes some fifty
headers of the link, eight for each further job that the card can hold, and
sixteen for each rank of a job. Registers are read in turn, so later ones may
be ahead of earlier ones.

Every host may read a card on a network (udp:), so top reads it directly.

top reads an idle card once and releases it at once. When tributary reduce drives
the card, the view continues; when reduce ends, the last reading stays. top can
start first. No other program can drive cpu: and model:, which live in this
process, so top reads these once and ends.`,
		Example: `  tributary top -card unix:card.sock
  tributary top -card sim:tributary_l16_w4_fp32_tree -interval 200ms
  tributary top -card unix:card.sock -count 1
  tributary top -card unix:card.sock -json | jq -c '.counters[] | select(.name == "beats")'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.addCard(cmd)
	cmd.Flags().DurationVar(&f.interval, "interval", time.Second, "`TIME` from one reading to the next")
	cmd.Flags().Var(&f.count, "count", "end after `N` readings (default with Ctrl-C)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print each reading as JSON, on a line of its own")
	return cmd
}

func (f *topFlags) check() error {
	if f.interval <= 0 {
		return usagef("-interval %s: it must be more than zero", f.interval)
	}
	return f.cardFlags.check()
}

func (f *topFlags) run(ctx context.Context, out, errs io.Writer) error {
	if !hasClock(f.card) {
		f.count = 1 // a card in this process stays idle
	}
	if err := f.check(); err != nil {
		return err
	}
	err := (&view{topFlags: f}).run(ctx, f.show(out, errs))
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	return err
}

// show returns the display of readings.
func (f *topFlags) show(out, errs io.Writer) display {
	fd, ok := terminal(out)
	switch {
	case f.json:
		return jsonLines{out: json.NewEncoder(out), errs: errs}
	case ok:
		return &screen{out: out, fd: fd}
	}
	return pages{out, errs}
}

// view is a view of a card: through its host or, for a moment, directly.
type view struct {
	*topFlags
	card *driver.Card // nil without an open card
	host *host        // source of the last reading; nil for the card itself
	last *reading

	before *reading // of the same link, for the rates
}

// The view's intervals and limits.
const (
	hostPoll  = 50 * time.Millisecond // between searches for a host
	busyGrace = time.Second           // from a busy card to a visible host
)

// run shows readings until there are enough.
func (v *view) run(ctx context.Context, d display) (err error) {
	defer v.hangUp()
	defer func() { err = errors.Join(err, d.close()) }()
	for n := 0; ; {
		if err := v.look(ctx); err != nil {
			return err
		}
		next := time.Now().Add(v.interval)
		fresh, err := v.read(ctx)
		if err != nil {
			return err
		}
		if v.last == nil {
			continue // the host was ending
		}
		if err := d.show(v.last, v.status(), fresh); err != nil {
			return err
		}
		if fresh {
			n++
		}
		if n > 0 && n == int(v.count) {
			return nil
		}
		if err := v.leaveFree(d); err != nil {
			return err
		}
		if err := sleep(ctx, time.Until(next)); err != nil {
			return err
		}
	}
}

// look waits for a card to read.
func (v *view) look(ctx context.Context) error {
	for began := time.Now(); v.card == nil; {
		err := v.open(ctx)
		var busy *driver.BusyError
		switch {
		case errors.As(err, &busy) && time.Since(began) > busyGrace:
			return fmt.Errorf("%w; top can read a busy card only through the same user's tributary reduce, or through a Go program that calls Card.ServeReads", err)
		case err != nil && busy == nil:
			return err
		case v.card == nil:
			if err := sleep(ctx, hostPoll); err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens the card through its host. Before the first reading, it opens a card without a host
// directly.
func (v *view) open(ctx context.Context) (err error) {
	opts := []driver.Option{driver.WithTimeout(v.timeout), driver.WithReadOnly()}
	if isOnNetwork(v.topFlags.card) {
		v.card, err = driver.Open(ctx, v.topFlags.card, opts...)
		return err
	}
	h, ok, err := hostOf(v.topFlags.card)
	if err != nil {
		return err
	}
	if ok && v.openThrough(ctx, h, opts) == nil {
		return nil // a host that has just ended counts as none
	}
	if v.last != nil {
		return nil
	}
	v.host = nil
	v.card, err = driver.Open(ctx, v.topFlags.card, opts...)
	return err
}

// openThrough opens the card through its host.
func (v *view) openThrough(ctx context.Context, h host, opts []driver.Option) error {
	conn, err := transport.Open(ctx, "unix:"+h.Socket, transport.Needs{})
	if err != nil {
		return err
	}
	if v.card, err = driver.OpenConn(ctx, v.topFlags.card, conn, opts...); err != nil {
		return err
	}
	v.host = &h
	return nil
}

// read takes a reading. fresh is false if the host has left the card instead.
func (v *view) read(ctx context.Context) (fresh bool, err error) {
	r, err := takeReading(ctx, v.card, v.before)
	if err != nil && v.host != nil && ctx.Err() == nil && v.card.Err() != nil {
		v.hangUp()
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.Host = v.host
	v.last, v.before = r, r
	return true, nil
}

// leaveFree closes a card without a host, which must be free for the next one. A card on a network is
// free in any case.
func (v *view) leaveFree(d display) error {
	if v.card == nil || v.last.Owner != "" || isOnNetwork(v.topFlags.card) {
		return nil
	}
	v.hangUp()
	return d.show(v.last, v.status(), false)
}

// hangUp closes the card. It ignores errors of its link.
func (v *view) hangUp() {
	if v.card != nil {
		_ = v.card.Close()
		v.card, v.before = nil, nil
	}
}

// status returns the time of the reading, and the card's host.
func (v *view) status() string {
	at := v.last.Time.Format(time.TimeOnly)
	switch h := v.host; {
	case h != nil && v.card == nil:
		return fmt.Sprintf("%s, before %s (process %d) left the card", at, h.Command, h.Process)
	case h != nil:
		return fmt.Sprintf("%s, through %s (process %d)", at, h.Command, h.Process)
	case v.last.Owner != "" && isOnNetwork(v.topFlags.card):
		return at + ", beside the host that owns the card"
	case v.last.Owner != "":
		return at + ", through the program that drives the card"
	case v.card != nil:
		return at + "; nobody drives the card"
	}
	return at + "; nobody drives the card; waiting for tributary reduce to do so"
}

// sleep waits, or returns ctx's error if it ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
