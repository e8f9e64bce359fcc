package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/reduction"
)

// benchReport is the report of tributary bench.
type benchReport struct {
	Card   string     `json:"card"`
	Lanes  int        `json:"lanes"`
	Ports  int        `json:"ports"`
	Format string     `json:"format"`
	Result string     `json:"result"`
	Sum    string     `json:"sum"`
	Link   int        `json:"link"` // bits a cycle
	Runs   []benchRun `json:"runs"`
}

// benchRun is the measurement of one number of workers and one window. Without a card clock, it
// omits the fields in cycles.
type benchRun struct {
	Workers  int `json:"workers"`
	Window   int `json:"window"`   // chunks
	Chunk    int `json:"chunk"`    // elements
	Elements int `json:"elements"` // per worker

	LinkShare         float64 `json:"link_share,omitempty"`           // the frames' cycles, divided by all cycles
	PayloadOut        float64 `json:"payload_to_card"`                // bytes of elements, divided by all bytes
	PayloadIn         float64 `json:"payload_from_card"`              //
	CyclesPerBeat     float64 `json:"cycles_per_beat,omitempty"`      //
	LinkCyclesPerBeat float64 `json:"link_cycles_per_beat,omitempty"` // of the frames alone
	ResentShare       float64 `json:"resent_share"`                   // data frames sent again, divided by those sent once
	AskedShare        float64 `json:"asked_share"`                    // results asked for, divided by all chunks

	Chunks     uint32 `json:"chunks"`
	Beats      uint32 `json:"beats"`
	Cycles     uint64 `json:"cycles,omitempty"`
	Resent     uint64 `json:"resent"`
	Asked      uint64 `json:"asked"`
	Replays    uint32 `json:"replays"`
	HeaderCRC  uint64 `json:"header_crc"` // flipped bits caught in headers, at both ends
	PayloadCRC uint64 `json:"payload_crc"`
	Damaged    uint64 `json:"datagram_crc,omitempty"` // damaged datagrams caught, at both ends, on a network

	Congestion *reduction.Congestion `json:"congestion,omitempty"` // on a network

	ElementsPerSecond float64 `json:"elements_per_second"` // per worker
	ChunksPerSecond   float64 `json:"chunks_per_second"`
	BytesOutPerSecond float64 `json:"payload_bytes_to_card_per_second"`
	BytesInPerSecond  float64 `json:"payload_bytes_from_card_per_second"`
	AccessSeconds     float64 `json:"register_access_seconds"` // without other traffic
	ChunkSeconds      float64 `json:"chunk_alone_seconds"`     // a reduction of one chunk, without other traffic
	Seconds           float64 `json:"seconds"`
}

func newBenchReport(i driver.Info) benchReport {
	return benchReport{
		Card: i.Name, Lanes: i.Lanes, Ports: i.Ports, Format: i.Format.String(), Result: i.Result.String(), Sum: i.Sum.String(), Link: i.Link,
		Runs: []benchRun{},
	}
}

func newBenchRun(info driver.Info, cfg driver.JobConfig, elements int, m reduction.Measurement, did counts, access, chunk time.Duration) *benchRun {
	r := &benchRun{
		Workers: cfg.Workers, Window: cfg.Window, Chunk: cfg.Chunk, Elements: elements,
		Chunks: m.Rise["chunks"], Beats: m.Rise["beats"], Resent: did.member.Resent, Asked: did.member.Asked, Replays: m.Rise["replays"],
		HeaderCRC: uint64(m.Rise["header_crc"]) + did.link.HeaderCRC, PayloadCRC: uint64(m.Rise["payload_crc"]) + did.link.PayloadCRC,
		Damaged:       uint64(m.Rise["datagram_crc"]) + did.link.DatagramCRC,
		Congestion:    reduction.NewCongestion(did.congestion),
		AccessSeconds: access.Seconds(), ChunkSeconds: chunk.Seconds(), Seconds: m.Elapsed.Seconds(),
	}
	out := float64(cfg.Workers * elements * element.Size(info.Format))
	in := float64(elements * element.Size(info.Result))
	if !info.Arrays {
		r.PayloadOut, r.PayloadIn = out/float64(did.link.BytesOut), in/float64(did.link.BytesIn)
	}
	r.ResentShare, r.AskedShare = float64(r.Resent)/float64(did.member.Sent), float64(r.Asked)/float64(r.Chunks)
	r.ElementsPerSecond, r.ChunksPerSecond = float64(elements)/r.Seconds, float64(r.Chunks)/r.Seconds
	r.BytesOutPerSecond, r.BytesInPerSecond = out/r.Seconds, in/r.Seconds
	bound := reduction.LinkBound(uint64(r.Chunks), cfg.Workers, cfg.Chunk, info)
	if !hasClock(info.Name) || bound == 0 {
		return r
	}
	r.Cycles = m.Cycles
	r.LinkShare = float64(bound) / float64(m.Cycles)
	r.CyclesPerBeat, r.LinkCyclesPerBeat = float64(m.Cycles)/float64(r.Beats), float64(bound)/float64(r.Beats)
	return r
}

func (r benchReport) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "card %s\n%d lanes x %d ports, %s into %s, sum %s; %d bits a cycle\n\n", r.Card, r.Lanes, r.Ports, r.Format, r.Result, r.Sum, r.Link)
	fmt.Fprintln(w, "workers\twindow\tlink\tpayload to card\tfrom card\tcycles a beat\tframes alone\tsent again\tasked")
	for _, n := range r.Runs {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Workers, n.Window, share(n.LinkShare), share(n.PayloadOut), share(n.PayloadIn),
			cycles(n.CyclesPerBeat), cycles(n.LinkCyclesPerBeat), percent(n.ResentShare), percent(n.AskedShare))
	}
	fmt.Fprintln(w, "\nworkers\twindow\telements/s\tchunks/s\tMB/s to card\tfrom card\tregister\tchunk alone")
	for _, n := range r.Runs {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%.2f\t%.2f\t%.3f ms\t%.3f ms\n", n.Workers, n.Window, shortRate(n.ElementsPerSecond), shortRate(n.ChunksPerSecond),
			n.BytesOutPerSecond/1e6, n.BytesInPerSecond/1e6, 1e3*n.AccessSeconds, 1e3*n.ChunkSeconds)
	}
	r.printCongestion(w)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range r.Runs {
		if n.HeaderCRC+n.PayloadCRC+n.Damaged == 0 {
			continue
		}
		if _, err := fmt.Fprintf(out, "\n%d workers, window %d: flipped bits were caught in %s\n", n.Workers, n.Window, caughtIn(r.Card, n.HeaderCRC, n.PayloadCRC, n.Damaged)); err != nil {
			return err
		}
	}
	return nil
}

// printCongestion prints what the congestion windows did, on a network.
func (r benchReport) printCongestion(w io.Writer) {
	if !slices.ContainsFunc(r.Runs, func(n benchRun) bool { return n.Congestion != nil }) {
		return
	}
	fmt.Fprintln(w, "\nworkers\twindow\tmarked\tcuts\thalvings\tmean window")
	for _, n := range r.Runs {
		if c := n.Congestion; c != nil {
			fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%.1f\n", n.Workers, n.Window, c.Marked, c.Cuts, c.Halvings, c.Window)
		}
	}
}

// share formats a share; 0 means unknown.
func share(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

func percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// cycles formats a number of cycles; 0 means unknown.
func cycles(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}
