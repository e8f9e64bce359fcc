package reduction

import (
	"cmp"
	"slices"

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
	NonfiniteIn  Exception `json:"nonfinite_in"`  // chunks of contributions that held a NaN or an infinity; on a tree each level counts them
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

// Stats holds a card's and its link's figures for a reduction. On a tree of cards, Lanes, Link, Chunks,
// Beats and Cycles are those of the root, and counts of accidents and waits the sums of all cards.
type Stats struct {
	Lanes  int `json:"lanes"`
	Chunk  int `json:"chunk"`  // elements
	Window int `json:"window"` // chunks
	Link   int `json:"link"`   // bits a cycle

	Chunks    uint32 `json:"chunks"`
	Beats     uint32 `json:"beats"`
	Cycles    uint64 `json:"cycles"`     // of the card, including the host's idle time
	LinkBound uint64 `json:"link_bound"` // cycles that the frames take at the link's width; 0 on a tree, and for a card that takes arrays

	Resent     uint64 `json:"resent"`     // chunks sent again
	Asked      uint64 `json:"asked"`      // results asked for
	Replays    uint32 `json:"replays"`    // results sent again
	HeaderCRC  uint64 `json:"header_crc"` // flipped bits caught in headers, at both ends
	PayloadCRC uint64 `json:"payload_crc"`
	Damaged    uint64 `json:"datagram_crc,omitempty"` // damaged datagrams caught, at both ends, on a network
	Undecided  uint32 `json:"undecided"`              // beats that one pass did not decide
	Stalled    uint32 `json:"stalled"`                // cycles in which a complete slot waited for such beats

	Congestion *Congestion `json:"congestion,omitempty"` // on a network
	Cards      []CardStats `json:"cards,omitempty"`      // of a tree, in its order

	Outages int     `json:"outages"` // number of outages; with any, the card's own figures are absent
	Seconds float64 `json:"seconds"`

	Began uint64 `json:"-"` // the card's clock when the reduction began
}

// CardStats holds the figures of one card of a tree.
type CardStats struct {
	Card       string `json:"card"`
	Parent     string `json:"parent,omitempty"` // none for the root
	Beats      uint32 `json:"beats"`            // below the root, those of the own sum and of the final one
	Cycles     uint64 `json:"cycles"`
	SentUp     uint32 `json:"sent_up"`     // packets to the parent
	RepeatedUp uint32 `json:"repeated_up"` // sums owed to the parent again
	Replays    uint32 `json:"replays"`
	HeaderCRC  uint64 `json:"header_crc"`
	PayloadCRC uint64 `json:"payload_crc"`
	Damaged    uint64 `json:"datagram_crc"`
	Undecided  uint32 `json:"undecided"`
	Stalled    uint32 `json:"stalled"`
}

// Congestion describes the congestion windows of a reduction.
type Congestion struct {
	Marked   uint64  `json:"marked"`      // results with a congestion mark
	Cuts     uint64  `json:"cuts"`        // windows cut for marks
	Halvings uint64  `json:"halvings"`    // windows halved for losses
	Window   float64 `json:"mean_window"` // chunks
}

// NewCongestion returns nil for a card that is not on a network.
func NewCongestion(c driver.CongestionStats) *Congestion {
	if c.Results == 0 {
		return nil
	}
	return &Congestion{Marked: c.Marked, Cuts: c.Cuts, Halvings: c.Halvings, Window: c.MeanWindow}
}

// newStats returns the figures of a job on cards, which are those of its tree, or its only one.
func newStats(job *driver.Job, cards []driver.TreeCard, all []Measurement) *Stats {
	root := slices.IndexFunc(cards, func(c driver.TreeCard) bool { return c.Parent < 0 })
	info, cfg, member := cards[root].Card.Info(), job.Config(), job.Stats()
	s := &Stats{
		Lanes: info.Lanes, Chunk: cfg.Chunk, Window: cfg.Window, Link: info.Link,
		Chunks: all[root].Rise["chunks"], Resent: member.Resent, Asked: member.Asked,
		Congestion: NewCongestion(job.Congestion()), Outages: job.Outages(), Seconds: all[root].Elapsed.Seconds(),
	}
	if s.Outages > 0 { // the cards' counts since the outage do not cover the whole reduction
		s.Chunks = uint32(member.Results / uint64(cfg.Workers))
		all = make([]Measurement, len(cards))
	}
	for i, c := range cards {
		one := newCardStats(c.Card, all[i])
		if c.Parent >= 0 {
			one.Parent = cards[c.Parent].Card.Info().Name
		}
		s.Replays += one.Replays
		s.HeaderCRC += one.HeaderCRC
		s.PayloadCRC += one.PayloadCRC
		s.Damaged += one.Damaged
		s.Undecided += one.Undecided
		s.Stalled += one.Stalled
		if len(cards) > 1 && s.Outages == 0 {
			s.Cards = append(s.Cards, one)
		}
	}
	s.Beats, s.Cycles, s.Began = all[root].Rise["beats"], all[root].Cycles, all[root].Began
	if len(cards) == 1 {
		s.LinkBound = LinkBound(uint64(all[root].Rise["chunks"]), cfg.Workers, cfg.Chunk, info)
	}
	return s
}

func newCardStats(card *driver.Card, m Measurement) CardStats {
	link := card.LinkStats()
	return CardStats{
		Card: card.Info().Name, Beats: m.Rise["beats"], Cycles: m.Cycles, SentUp: m.Rise["up_sent"], RepeatedUp: m.Rise["up_repeats"],
		Replays:    m.Rise["replays"],
		HeaderCRC:  uint64(m.Rise["header_crc"]) + link.HeaderCRC,
		PayloadCRC: uint64(m.Rise["payload_crc"]) + link.PayloadCRC,
		Damaged:    uint64(m.Rise["datagram_crc"]) + link.DatagramCRC,
		Undecided:  m.Rise["undecided"],
		Stalled:    m.Rise["stalled"],
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
