package reduction

import (
	"cmp"

	"tributary/driver"
	"tributary/driver/wire"
)

// Report describes a successful reduction. tributary reduce -json prints its JSON.
type Report struct {
	Output     string      `json:"output"` // the file, if the caller has written one
	Op         Op          `json:"op"`
	Card       string      `json:"card"`
	Workers    int         `json:"workers"`
	Elements   int         `json:"elements"` // per worker
	Format     string      `json:"format"`   // of the workers' arrays
	Result     string      `json:"result"`   // of the outcome
	Sum        string      `json:"sum"`
	Quantized  *Quantized  `json:"quantized,omitempty"`
	Verified   bool        `json:"verified"` // compared with the model, every bit
	Outages    []Outage    `json:"outages,omitempty"`
	Partial    []PartialIn `json:"partial,omitempty"` // elements whose sums lack workers
	Evicted    []int       `json:"evicted,omitempty"` // workers that were evicted
	Exceptions Exceptions  `json:"exceptions"`        // since the last outage
	Stats      *Stats      `json:"stats,omitempty"`   // with Options.Stats
}

// Outage is one disconnection of the card, until its return.
type Outage struct {
	Chunk   int     `json:"chunk"` // the first chunk after the outage
	Seconds float64 `json:"seconds"`
}

// PartialIn is a run of elements whose sums lack workers.
type PartialIn struct {
	From    int   `json:"from"`    // elements, counted through all arrays of an archive
	To      int   `json:"to"`      // the first element after the run
	Workers []int `json:"workers"` // present in the sums
}

// Quantized describes the effect of Options.Quantize.
type Quantized struct {
	Block int     `json:"block"` // elements that share an exponent
	Bound float64 `json:"bound"` // largest error of an element before its rounding to float32, over all blocks
}

// Exceptions are the NaNs, infinities and overflows of a reduction.
type Exceptions struct {
	NonfiniteIn  Exception `json:"nonfinite_in"`  // chunks of contributions that held a NaN or an infinity
	NonfiniteOut Exception `json:"nonfinite_out"` // elements of the sum that are a NaN or an infinity
	Overflow     Exception `json:"overflow"`      // elements of the sum that overflowed
}

// Exception is one kind of exception. It omits the place of the first if there is none.
type Exception struct {
	Count   uint32 `json:"count"`
	Chunk   *int   `json:"chunk,omitempty"`
	Worker  *int   `json:"worker,omitempty"` // of contributions
	Element *int   `json:"element,omitempty"`
}

// Stats holds a card's and its link's figures for a reduction.
type Stats struct {
	Lanes  int `json:"lanes"`
	Chunk  int `json:"chunk"`  // elements
	Window int `json:"window"` // chunks
	Link   int `json:"link"`   // bits a cycle

	Chunks    uint32 `json:"chunks"`
	Beats     uint32 `json:"beats"`
	Cycles    uint64 `json:"cycles"`     // of the card, including the host's idle time
	LinkBound uint64 `json:"link_bound"` // cycles that the frames take at the link's width

	Resent     uint64 `json:"resent"`     // chunks sent again
	Asked      uint64 `json:"asked"`      // results asked for
	Replays    uint32 `json:"replays"`    // results sent again
	HeaderCRC  uint64 `json:"header_crc"` // flipped bits caught in headers, at both ends
	PayloadCRC uint64 `json:"payload_crc"`
	Damaged    uint64 `json:"datagram_crc,omitempty"` // damaged datagrams caught, at both ends, on a network
	Undecided  uint32 `json:"undecided"`              // beats that one pass did not decide
	Stalled    uint32 `json:"stalled"`                // cycles in which a complete slot waited for such beats

	Outages int     `json:"outages"` // number of outages; with any, the card's own figures are absent
	Seconds float64 `json:"seconds"`

	Began uint64 `json:"-"` // the card's clock when the reduction began
}

func newStats(card *driver.Card, job *driver.Job, m Measurement) *Stats {
	info, cfg, member, link := card.Info(), job.Config(), job.Stats(), card.LinkStats()
	if n := job.Outages(); n > 0 { // the card's counts since the outage do not cover the whole reduction
		return &Stats{
			Lanes: info.Lanes, Chunk: cfg.Chunk, Window: cfg.Window, Link: info.Link,
			Chunks: uint32(member.Results / uint64(cfg.Workers)), Outages: n, Seconds: m.Elapsed.Seconds(),
			Resent: member.Resent, Asked: member.Asked, HeaderCRC: link.HeaderCRC, PayloadCRC: link.PayloadCRC, Damaged: link.DatagramCRC,
		}
	}
	return &Stats{
		Lanes:      info.Lanes,
		Chunk:      cfg.Chunk,
		Window:     cfg.Window,
		Link:       info.Link,
		Chunks:     m.Rise["chunks"],
		Beats:      m.Rise["beats"],
		Cycles:     m.Cycles,
		LinkBound:  LinkBound(uint64(m.Rise["chunks"]), cfg.Workers, cfg.Chunk, info),
		Began:      m.Began,
		Resent:     member.Resent,
		Asked:      member.Asked,
		Replays:    m.Rise["replays"],
		HeaderCRC:  uint64(m.Rise["header_crc"]) + link.HeaderCRC,
		PayloadCRC: uint64(m.Rise["payload_crc"]) + link.PayloadCRC,
		Damaged:    uint64(m.Rise["datagram_crc"]) + link.DatagramCRC,
		Undecided:  m.Rise["undecided"],
		Stalled:    m.Rise["stalled"],
		Seconds:    m.Elapsed.Seconds(),
	}
}

// newReport describes a reduction before anything is sent.
func (r *Reduction) newReport() *Report {
	report := &Report{
		Op: cmp.Or(r.opts.Op, Sum), Card: r.card.Name, Workers: len(r.workers), Elements: r.elements,
		Format: r.format.String(), Result: r.card.Result.String(), Sum: r.card.Sum.String(),
	}
	if r.opts.Quantize {
		report.Quantized = r.scaled.report(r.opts.divisor(len(r.workers)))
		report.Result = wire.FP32.String()
	}
	return report
}
