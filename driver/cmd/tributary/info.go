package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

func newInfo() *cobra.Command {
	f := &cardFlags{}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "info -card CARD",
		Short: "Print a card's properties, jobs and counters",
		Long: `Prints a card's identification block, the state of its jobs, and its counters.

Each job has its ports, its slots, and the ranks that finished or were evicted.
The lateness of a rank is the median and 99th percentile behind the first
contribution to a chunk, in cycles (0: the rank came first). NaNs, infinities
and overflows are counted, with chunk and rank of the first, until the next job
of this number is set up. An element overflows when its sum is beyond the
format and no input was a NaN or an infinity.

The counters are sums, refusals by reason, and flipped bits that the checks caught
(header_crc and payload_crc). For the sum exact, undecided counts beats with
more than one pass, and stalled the cycles in which a complete slot waited for
them. Neither changes a sum.`,
		Example: `  tributary info -card sim:tributary_l16_w4_fp32_tree
  tributary info -card unix:card.sock -json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			var reads []driver.Option
			if isOnNetwork(f.card) { // another host may own it
				reads = append(reads, driver.WithReadOnly())
			}
			return f.withCard(cmd.Context(), transport.Needs{}, func(card *driver.Card) error {
				report, err := readInfo(cmd.Context(), card, func(s driver.JobState) bool { return s.EverSetUp })
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), report)
				}
				return report.print(cmd.OutOrStdout())
			}, reads...)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// infoReport is the report of tributary info.
type infoReport struct {
	Card       string        `json:"card"`
	Version    int           `json:"version"`     // of the protocol
	ConfigHash string        `json:"config_hash"` // 16 hex digits
	Lanes      int           `json:"lanes"`
	Ports      int           `json:"ports"`
	Format     string        `json:"format"`
	Result     string        `json:"result"`
	Sum        string        `json:"sum"`
	Saturate   bool          `json:"saturate"`
	Shell      string        `json:"shell"`
	Parent     bool          `json:"parent,omitempty"` // the card has an up port
	Chunk      int           `json:"chunk"`            // elements
	Window     int           `json:"window"`           // chunks
	Jobs       int           `json:"jobs"`             // at once
	Link       int           `json:"link"`             // bits a cycle
	Latency    int           `json:"latency"`          // cycles
	Cycles     uint64        `json:"cycles"`           // since hard reset
	JobStates  []jobState    `json:"job_states"`       // by number
	Counters   []counterJSON `json:"counters"`
}

// jobState holds the registers of one job number: of its running job, or of its last one.
type jobState struct {
	Number    int    `json:"number"`
	SetUp     bool   `json:"set_up"`
	EverSetUp bool   `json:"ever_set_up"`
	LastEpoch uint16 `json:"last_epoch"`
	Ports     []int  `json:"ports"`
	FirstSlot int    `json:"first_slot"`
	Slots     int    `json:"slots"`    // twice its window; 0 while it is not set up
	Finished  []int  `json:"finished"` // ranks
	Evicted   []int  `json:"evicted"`  // ranks

	// Per rank, the number of contributions by lateness after the first one of their chunk: the first
	// ones themselves, then those less than 4, 16, 64, ... cycles late, and finally all later ones.
	// Omitted if it was not read.
	Lags []driver.Lags `json:"lags,omitempty"`

	NonfiniteIn  jobException `json:"nonfinite_in"`  // contributions that held a NaN or an infinity
	NonfiniteOut jobException `json:"nonfinite_out"` // elements of sums that are a NaN or an infinity
	Overflow     jobException `json:"overflow"`      // elements of sums that overflowed
}

// jobException is a job's count of one kind of exception. Without exceptions, it omits the place of
// the first.
type jobException struct {
	Count uint32  `json:"count"`
	VID   *uint32 `json:"first_vid,omitempty"`
	Rank  *int    `json:"first_rank,omitempty"` // of contributions
}

func newJobState(s driver.JobState) jobState {
	e := s.Exceptions
	j := jobState{
		Number: s.Number, SetUp: s.SetUp, EverSetUp: s.EverSetUp, LastEpoch: s.Epoch,
		Ports: s.Ports, FirstSlot: s.FirstSlot, Slots: s.Slots, Finished: s.Finished, Evicted: s.Evicted,
		NonfiniteIn: newJobException(e.NonfiniteIn), NonfiniteOut: newJobException(e.NonfiniteOut), Overflow: newJobException(e.Overflow),
	}
	if e.NonfiniteIn.Count > 0 {
		j.NonfiniteIn.Rank = &e.NonfiniteIn.Rank
	}
	return j
}

func newJobException(e driver.Exception) jobException {
	x := jobException{Count: e.Count}
	if e.Count > 0 {
		x.VID = &e.VID
	}
	return x
}

// String names the place of the first.
func (x jobException) String() string {
	s := ""
	if x.VID != nil {
		s = fmt.Sprintf("; the first in chunk %d", *x.VID)
	}
	if x.Rank != nil {
		s += fmt.Sprintf(" of rank %d", *x.Rank)
	}
	return s
}

// counterJSON is a counter with its description.
type counterJSON struct {
	Name  string `json:"name"`
	Value uint32 `json:"value"`
	Doc   string `json:"doc"`
}

// readInfo reads a card; it reads the lateness only of the jobs that lags selects.
func readInfo(ctx context.Context, card *driver.Card, lags func(driver.JobState) bool) (*infoReport, error) {
	i := card.Info()
	r := &infoReport{
		Card: i.Name, Version: i.Version, ConfigHash: fmt.Sprintf("%016x", i.ConfigHash),
		Lanes: i.Lanes, Ports: i.Ports, Format: i.Format.String(), Result: i.Result.String(),
		Sum: i.Sum.String(), Saturate: i.Saturate, Shell: i.Shell.String(), Parent: i.Parent, Chunk: i.Chunk, Window: i.Window, Jobs: i.Jobs, Link: i.Link, Latency: i.Latency,
	}
	var err error
	if r.Cycles, err = card.ReadRegister(ctx, wire.RegCycles); err != nil {
		return nil, err
	}
	jobs, err := card.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range jobs {
		j := newJobState(s)
		if lags(s) {
			if j.Lags, err = card.Lags(ctx, s.Number); err != nil {
				return nil, err
			}
		}
		r.JobStates = append(r.JobStates, j)
	}
	counters, err := card.Counters(ctx)
	for _, c := range counters {
		r.Counters = append(r.Counters, counterJSON(c))
	}
	return r, err
}

func (r *infoReport) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "card %s\n", r.Card)
	fmt.Fprintf(w, "  protocol\tversion %d\n", r.Version)
	fmt.Fprintf(w, "  configuration\t%s\n", r.ConfigHash)
	fmt.Fprintf(w, "  lanes\t%d, %s into %s, sum %s%s\n", r.Lanes, r.Format, r.Result, r.Sum, r.atTheEnds())
	fmt.Fprintf(w, "  ports\t%d\n", r.Ports)
	fmt.Fprintf(w, "  chunk\tup to %d elements\n", r.Chunk)
	fmt.Fprintf(w, "  window\tup to %d chunks\n", r.Window)
	if r.Jobs > 1 {
		fmt.Fprintf(w, "  jobs\tup to %d, which share %d slots\n", r.Jobs, 2*r.Window)
	}
	fmt.Fprintf(w, "  shell\t%s, %d bits a cycle\n", r.Shell, r.Link)
	if r.Parent {
		fmt.Fprintf(w, "  up port\tfor a parent, in a tree of cards\n")
	}
	fmt.Fprintf(w, "  latency\t%d cycles from a chunk's last beat in to its first beat out\n", r.Latency)
	fmt.Fprintf(w, "  clock\t%d cycles since the hard reset\n", r.Cycles)
	for _, j := range r.JobStates {
		fmt.Fprintf(w, "  job %d\t%s\n", j.Number, j)
		for rank, l := range j.Lags {
			if n := l.Total(); n > 0 {
				fmt.Fprintf(w, "  rank %d\t%d chunks: %s\n", rank, n, lateWords(l))
			}
		}
		if j.EverSetUp {
			fmt.Fprintf(w, "  its inputs\t%d chunks held a NaN or an infinity%s\n", j.NonfiniteIn.Count, j.NonfiniteIn)
			fmt.Fprintf(w, "  its sums\t%d elements are a NaN or an infinity%s\n", j.NonfiniteOut.Count, j.NonfiniteOut)
			fmt.Fprintf(w, "\t%d elements overflowed%s\n", j.Overflow.Count, j.Overflow)
		}
	}
	fmt.Fprintln(w, "counters")
	for _, c := range r.Counters {
		fmt.Fprintf(w, "  %s\t%10d\t%s\n", c.Name, c.Value, c.Doc)
	}
	return w.Flush()
}

// atTheEnds describes the handling of int32 overflow.
func (r *infoReport) atTheEnds() string {
	switch {
	case r.Format != wire.Int32.String():
		return ""
	case r.Saturate:
		return ", which saturates"
	}
	return ", which wraps around"
}

// String describes the state of the job number.
func (s jobState) String() string {
	switch {
	case s.SetUp:
		finished := "none"
		if len(s.Finished) > 0 {
			finished = runs(s.Finished)
		}
		state := fmt.Sprintf("set up, epoch %d, ports %s, slots %d-%d, finished: %s", s.LastEpoch, runs(s.Ports), s.FirstSlot, s.FirstSlot+s.Slots-1, finished)
		if len(s.Evicted) > 0 {
			state += ", evicted: " + runs(s.Evicted)
		}
		return state
	case s.EverSetUp:
		return fmt.Sprintf("none; the last one had epoch %d", s.LastEpoch)
	}
	return "none yet"
}
