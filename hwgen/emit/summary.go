package emit

import (
	"fmt"
	"strings"

	"tributary/driver/wire"
	"tributary/hwgen/plan"
)

// Summary describes the card in a few lines: sizes, memory, latency and throughput.
func Summary(p *plan.Plan) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	width := fmt.Sprintf("%d bits", p.BeatBits)
	if p.Result.Format != p.Format.Format {
		width += fmt.Sprintf(", of sums %d", p.ResultBeatBits)
	}
	line("card", "%s x %s, %s, sum %s, shell %s", count(p.Lanes, "lane"), count(p.Workers, "worker"), formatNames(p), p.Sum.Name, p.Shell.Name)
	line("chunk", "%d elements, %s of %s; window %d, so %d slots", p.Chunk, count(p.Beats, "beat"), width, p.Window, p.Slots)
	if p.Jobs > 1 {
		line("jobs", "%d at once, which share the %d slots", p.Jobs, p.Slots)
	}
	line("memory", "%d bits", p.MemoryBits())
	for _, m := range p.Memories {
		line("", "%d  %s: %d x %d words of %d bits", m.Bits(), m.Name, m.Count, m.Words, m.Width)
	}
	at, latency := "core's", p.Latency
	if p.PortLatency > 0 {
		at, latency = "ports'", p.PortLatency
	}
	line("latency", "%s from the %s last beat in to the first beat out, %d of them in the lanes", count(latency, "cycle"), at, p.SumLatency)
	if p.FullRate() {
		line("throughput", "%d bits a cycle and port: %s a chunk, no bubble between chunks", p.BeatBits, count(p.ChunkCycles(), "cycle"))
	} else {
		line("throughput", "%d cycles a chunk of %s: the card commits a packet every %d cycles, and starts a result every %d;",
			p.ChunkCycles(), count(p.Beats, "beat"), plan.CommitSpacing, plan.ResultSpacing)
		line("", "chunks of %d elements or more would leave no bubble", p.ChunkCycles()*p.Lanes)
	}
	if p.Window < p.RateWindow() {
		line("", "but %d cycles a chunk with a window of %d; that rate needs a window of %d or more", p.WindowCycles(), p.Window, p.RateWindow())
	}
	if p.Jobs > 1 {
		line("end of job", "pauses the other jobs for at most %d cycles", p.ClearCycles())
	}
	switch {
	case p.Shell.Ethernet:
		line("ethernet", "%s of %d bits a cycle; %d cycles a chunk, if one port has all workers", count(p.Ethernet, "port"), p.Link, p.LinkCycles())
		line("address", "%s, %s, UDP port %d", wire.MACText(p.MAC), wire.IPText(p.IP), p.UDPPort)
	case p.Shell.Link:
		line("link", "%d bits a cycle, shared by all workers: %d cycles a chunk", p.Link, p.LinkCycles())
	}
	line("hash", "%016x", p.ConfigHash())
	return b.String()
}

// formatNames returns the name of the card's format, or of its two formats.
func formatNames(p *plan.Plan) string {
	if p.Result.Format == p.Format.Format {
		return p.Format.Name
	}
	return p.Format.Name + " to " + p.Result.Name
}
