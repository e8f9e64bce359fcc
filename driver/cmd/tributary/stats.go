package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// measurement is what a card's clock and counters did while some work was done.
type measurement struct {
	began   uint64 // the clock when it began
	cycles  uint64
	rise    map[string]uint32 // of each counter
	elapsed time.Duration
}

// measure carries work out and measures it. The clock is read last before it
// and first after it.
func measure(ctx context.Context, card *driver.Card, work func() error) (measurement, error) {
	before, err := card.Counters(ctx)
	if err != nil {
		return measurement{}, err
	}
	from, err := card.ReadRegister(ctx, wire.RegCycles)
	if err != nil {
		return measurement{}, err
	}
	start := time.Now()
	if err := work(); err != nil {
		return measurement{}, err
	}
	m := measurement{rise: map[string]uint32{}, elapsed: time.Since(start)}
	to, err := card.ReadRegister(ctx, wire.RegCycles)
	if err != nil {
		return measurement{}, err
	}
	m.began, m.cycles = from, to-from
	after, err := card.Counters(ctx)
	for i, c := range after {
		m.rise[c.Name] = c.Value - before[i].Value
	}
	return m, err
}

// reduceStats is what a card and its link did during a reduction.
type reduceStats struct {
	Lanes  int `json:"lanes"`
	Chunk  int `json:"chunk"`  // elements
	Window int `json:"window"` // chunks
	Link   int `json:"link"`   // bits a cycle

	Chunks    uint32 `json:"chunks"`
	Beats     uint32 `json:"beats"`
	Cycles    uint64 `json:"cycles"`     // of the card, the host's idle time among them
	LinkBound uint64 `json:"link_bound"` // cycles that the frames take at the link's width

	Resent     uint64 `json:"resent"`     // chunks sent again
	Asked      uint64 `json:"asked"`      // results asked for
	Replays    uint32 `json:"replays"`    // results sent again
	HeaderCRC  uint64 `json:"header_crc"` // flipped bits caught in headers, at both ends
	PayloadCRC uint64 `json:"payload_crc"`
	Undecided  uint32 `json:"undecided"` // beats that were not decided in one pass
	Stalled    uint32 `json:"stalled"`   // cycles in which a complete slot waited for such beats

	Outages int     `json:"outages"` // how often the card went away and came back; then there are none of its own figures
	Seconds float64 `json:"seconds"`

	contribution int    // bits of an element
	began        uint64 // the card's clock when it began
}

func newReduceStats(card *driver.Card, job *driver.Job, m measurement) *reduceStats {
	info, cfg, member, link := card.Info(), job.Config(), job.Stats(), card.LinkStats()
	if n := job.Outages(); n > 0 { // what the card has counted since says nothing of the whole
		return &reduceStats{
			Lanes: info.Lanes, Chunk: cfg.Chunk, Window: cfg.Window, Link: info.Link,
			Chunks: uint32(member.Results / uint64(cfg.Workers)), Outages: n, Seconds: m.elapsed.Seconds(),
			Resent: member.Resent, Asked: member.Asked, HeaderCRC: link.HeaderCRC, PayloadCRC: link.PayloadCRC,
		}
	}
	return &reduceStats{
		Lanes:        info.Lanes,
		Chunk:        cfg.Chunk,
		Window:       cfg.Window,
		Link:         info.Link,
		Chunks:       m.rise["chunks"],
		Beats:        m.rise["beats"],
		Cycles:       m.cycles,
		LinkBound:    linkBound(uint64(m.rise["chunks"]), cfg.Workers, cfg.Chunk, info),
		contribution: 8 * element.Size(info.Format),
		began:        m.began,
		Resent:       member.Resent,
		Asked:        member.Asked,
		Replays:      m.rise["replays"],
		HeaderCRC:    uint64(m.rise["header_crc"]) + link.HeaderCRC,
		PayloadCRC:   uint64(m.rise["payload_crc"]) + link.PayloadCRC,
		Undecided:    m.rise["undecided"],
		Stalled:      m.rise["stalled"],
		Seconds:      m.elapsed.Seconds(),
	}
}

// linkBound returns the cycles that the frames of a reduction take on a card's
// shared link: one data frame from each worker in, one result frame out, both
// ways at once. It is 0 for a card without a link.
func linkBound(chunks uint64, workers, chunk int, card driver.Info) uint64 {
	if card.Link == 0 {
		return 0
	}
	data, _ := wire.KindData.Info()
	result, _ := wire.KindResult.Info()
	in := uint64(workers * data.FrameBytes(chunk*element.Size(card.Format)))
	out := uint64(result.FrameBytes(chunk * element.Size(card.Result)))
	return (chunks*max(in, out)*8 + uint64(card.Link) - 1) / uint64(card.Link)
}

func (s *reduceStats) print(out io.Writer, card string, workers, elements int) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("elements", "%d from each of %d workers", elements, workers)
	row("chunks", "%d of %d elements, %d in flight", s.Chunks, s.Chunk, s.Window)
	if s.Outages > 0 {
		row("outages", "%d; of what the card counted nothing is known", s.Outages)
		row("time", "%.3f s", s.Seconds)
		row("sent again", "%d chunks; %d results asked for", s.Resent, s.Asked)
		row("flipped bits", "caught here in %d headers and %d payloads", s.HeaderCRC, s.PayloadCRC)
		return w.Flush()
	}
	row("beats", "%d of %d lanes", s.Beats, s.Lanes)
	s.printRate(row, card, workers, elements)
	row("time", "%.3f s", s.Seconds)
	row("sent again", "%d chunks, %d results; %d results asked for", s.Resent, s.Replays, s.Asked)
	row("flipped bits", "caught in %d headers and %d payloads", s.HeaderCRC, s.PayloadCRC)
	if s.Undecided > 0 {
		row("undecided", "%d beats took more than one pass; complete slots waited %d cycles for them", s.Undecided, s.Stalled)
	}
	return w.Flush()
}

// printRate prints how fast the card went, beside the link's limit. The model
// has no clock that would tell.
func (s *reduceStats) printRate(row func(name, format string, args ...any), card string, workers, elements int) {
	if strings.HasPrefix(card, "model:") || s.Cycles == 0 || s.LinkBound == 0 {
		return
	}
	bits := float64(workers) * float64(elements) * float64(s.contribution)
	rate, limit := bits/float64(s.Cycles), bits/float64(s.LinkBound)
	row("cycles", "%d; the frames alone take %d on the %d-bit link", s.Cycles, s.LinkBound, s.Link)
	row("bits a cycle", "%.2f of gradients; the limit is %.2f (%.1f %%)", rate, limit, 100*rate/limit)
}
