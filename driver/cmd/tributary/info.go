package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/wire"
)

func newInfo() *cobra.Command {
	f := &cardFlags{}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "info -card CARD",
		Short: "Show what a card is, its job and its counters",
		Long: `Shows a card's identification block, the state of its job, and its counters:
what it summed, what it refused and why, and how many flipped bits its checks
caught (header_crc and payload_crc).`,
		Example: `  tributary info -card sim:tributary_l16_w4_fp32_tree
  tributary info -card unix:card.sock -json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.withCard(cmd.Context(), 0, func(card *driver.Card) error {
				report, err := readInfo(cmd.Context(), card)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), report)
				}
				return report.print(cmd.OutOrStdout())
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

// infoReport is what tributary info has to say.
type infoReport struct {
	Card       string        `json:"card"`
	Version    int           `json:"version"`     // of the protocol
	ConfigHash string        `json:"config_hash"` // 16 hex digits
	Lanes      int           `json:"lanes"`
	Ports      int           `json:"ports"`
	Format     string        `json:"format"`
	Result     string        `json:"result"`
	Sum        string        `json:"sum"`
	Shell      string        `json:"shell"`
	Chunk      int           `json:"chunk"`   // elements
	Window     int           `json:"window"`  // chunks
	Jobs       int           `json:"jobs"`    // at once
	Link       int           `json:"link"`    // bits a cycle
	Latency    int           `json:"latency"` // cycles
	Cycles     uint64        `json:"cycles"`  // since the hard reset
	Job        jobState      `json:"job"`
	Counters   []counterJSON `json:"counters"`
}

// jobState is what JOB_STATE and JOB_FINISHED say.
type jobState struct {
	SetUp     bool   `json:"set_up"`
	EverSetUp bool   `json:"ever_set_up"`
	LastEpoch uint16 `json:"last_epoch"`
	Number    uint8  `json:"number"`
	Finished  uint64 `json:"finished"` // ranks, a bit each
}

// counterJSON is a counter with its meaning.
type counterJSON struct {
	Name  string `json:"name"`
	Value uint32 `json:"value"`
	Doc   string `json:"doc"`
}

func readInfo(ctx context.Context, card *driver.Card) (*infoReport, error) {
	i := card.Info()
	r := &infoReport{
		Card: i.Name, Version: i.Version, ConfigHash: fmt.Sprintf("%016x", i.ConfigHash),
		Lanes: i.Lanes, Ports: i.Ports, Format: i.Format.String(), Result: i.Result.String(),
		Sum: i.Sum.String(), Shell: i.Shell.String(), Chunk: i.Chunk, Window: i.Window, Jobs: i.Jobs, Link: i.Link, Latency: i.Latency,
	}
	var err error
	read := func(addr uint32) (v uint64) {
		if err == nil {
			v, err = card.ReadRegister(ctx, addr)
		}
		return v
	}
	r.Cycles = read(wire.RegCycles)
	state := read(wire.RegJobState)
	r.Job = jobState{
		SetUp:     state&1 != 0,
		EverSetUp: state&2 != 0,
		LastEpoch: uint16(state >> 16),
		Number:    uint8(state >> 32),
		Finished:  read(wire.RegJobFinished),
	}
	if err != nil {
		return nil, err
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
	fmt.Fprintf(w, "  lanes\t%d, %s into %s, sum %s\n", r.Lanes, r.Format, r.Result, r.Sum)
	fmt.Fprintf(w, "  ports\t%d\n", r.Ports)
	fmt.Fprintf(w, "  chunk\tup to %d elements\n", r.Chunk)
	fmt.Fprintf(w, "  window\tup to %d chunks\n", r.Window)
	fmt.Fprintf(w, "  shell\t%s, %d bits a cycle\n", r.Shell, r.Link)
	fmt.Fprintf(w, "  latency\t%d cycles from a chunk's last beat in to its first beat out\n", r.Latency)
	fmt.Fprintf(w, "  clock\t%d cycles since the hard reset\n", r.Cycles)
	fmt.Fprintf(w, "  job\t%s\n", r.Job)
	fmt.Fprintln(w, "counters")
	for _, c := range r.Counters {
		fmt.Fprintf(w, "  %s\t%10d\t%s\n", c.Name, c.Value, c.Doc)
	}
	return w.Flush()
}

// String says what a card is doing.
func (s jobState) String() string {
	switch {
	case s.SetUp:
		return fmt.Sprintf("job %d is set up, epoch %d, ranks that have finished: %#x", s.Number, s.LastEpoch, s.Finished)
	case s.EverSetUp:
		return fmt.Sprintf("none; the last one had epoch %d", s.LastEpoch)
	}
	return "none yet"
}
