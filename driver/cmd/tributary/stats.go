package main

// reduce -stats.

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tributary/driver/element"
	"tributary/driver/reduction"
)

// printStats prints the figures of the card and the link.
func printStats(out io.Writer, r *reduction.Report) error {
	s := r.Stats
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("elements", "%d from each of %d workers", r.Elements, r.Workers)
	row("chunks", "%d of %d elements, %d in flight", s.Chunks, s.Chunk, s.Window)
	if s.Outages > 0 {
		row("outages", "%d; of what the card counted nothing is known", s.Outages)
		row("time", "%.3f s", s.Seconds)
		row("sent again", "%d chunks; %d results asked for", s.Resent, s.Asked)
		row("flipped bits", "caught here in %s", caughtIn(r.Card, s.HeaderCRC, s.PayloadCRC, s.Damaged))
		printCongestion(row, s.Congestion)
		return w.Flush()
	}
	if len(s.Cards) == 0 {
		row("beats", "%d of %d lanes", s.Beats, s.Lanes)
		printRate(row, r)
	}
	row("time", "%.3f s", s.Seconds)
	row("sent again", "%d chunks, %d results; %d results asked for", s.Resent, s.Replays, s.Asked)
	row("flipped bits", "caught in %s", caughtIn(r.Card, s.HeaderCRC, s.PayloadCRC, s.Damaged))
	printCongestion(row, s.Congestion)
	if s.Undecided > 0 {
		row("undecided", "%d beats took more than one pass; complete slots waited %d cycles for them", s.Undecided, s.Stalled)
	}
	if err := w.Flush(); err != nil || len(s.Cards) == 0 {
		return err
	}
	return printTree(out, s.Cards)
}

// printTree prints a row for each card of a tree.
func printTree(out io.Writer, cards []reduction.CardStats) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\n  card\tparent\tbeats\tsent up\tup again\tresults again\tdamaged")
	for _, c := range cards {
		fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%d\t%d\t%d\n", c.Card, cmp.Or(c.Parent, "-"), c.Beats, c.SentUp, c.RepeatedUp, c.Replays, c.Damaged)
	}
	return w.Flush()
}

// printCongestion prints what the congestion windows did, on a network.
func printCongestion(row func(name, format string, args ...any), c *reduction.Congestion) {
	if c == nil {
		return
	}
	row("congestion", "%d results marked, window cut %d times and halved %d times; %.1f chunks on average", c.Marked, c.Cuts, c.Halvings, c.Window)
}

// caughtIn returns where flipped bits were caught on the way to and from the card of that name.
func caughtIn(card string, headers, payloads, datagrams uint64) string {
	if isOnNetwork(card) {
		return fmt.Sprintf("%d datagrams", datagrams)
	}
	return fmt.Sprintf("%d headers and %d payloads", headers, payloads)
}

// isOnNetwork reports whether any host may read the card of that name, whoever drives it.
func isOnNetwork(card string) bool { return strings.HasPrefix(card, "udp:") }

// hasClock reports whether the clock of the card of that name measures its speed. Cards in this
// process follow real time.
func hasClock(card string) bool {
	return !strings.HasPrefix(card, "cpu:") && !strings.HasPrefix(card, "model:")
}

// printRate prints the card's speed, beside the link's limit, if the card has a clock for it.
func printRate(row func(name, format string, args ...any), r *reduction.Report) {
	s := r.Stats
	if !hasClock(r.Card) || s.Cycles == 0 || s.LinkBound == 0 {
		return
	}
	bits := float64(r.Workers) * float64(r.Elements) * float64(8*element.Size(formatNamed(r.Format)))
	rate, limit := bits/float64(s.Cycles), bits/float64(s.LinkBound)
	row("cycles", "%d; the frames alone take %d on the %d-bit link", s.Cycles, s.LinkBound, s.Link)
	row("bits a cycle", "%.2f of gradients; the limit is %.2f (%.1f %%)", rate, limit, 100*rate/limit)
}
