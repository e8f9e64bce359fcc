package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/reduction"
	"tributary/driver/transport"
)

// configFlags is the command line of tributary config.
type configFlags struct {
	cardFlags
	jobFlags
	workers count
	json    bool
}

func newConfig() *cobra.Command {
	f := &configFlags{}
	cmd := &cobra.Command{
		Use:   "config -card CARD",
		Short: "Try a job's set-up on a card and print the result",
		Long: `Sets a job up on a card, prints its parameters, defaults and link rates, and ends
the job. This rehearses the first step of reduce. A job ends with its host's
connection, so none remains.`,
		Example: `  tributary config -card sim:tributary_l16_w4_fp32_tree
  tributary config -card unix:card.sock -workers 3 -chunk 256 -window 4 -json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f.cardFlags.add(cmd)
	f.jobFlags.add(cmd)
	cmd.Flags().Var(&f.workers, "workers", "`N` workers (default as many as ports)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *configFlags) check() error {
	if err := f.cardFlags.check(); err != nil {
		return err
	}
	return f.jobFlags.check(int(f.workers))
}

func (f *configFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	return f.withCard(ctx, transport.Needs{Workers: f.portsNeeded(int(f.workers))}, func(card *driver.Card) error {
		job, err := f.configure(ctx, card, driver.JobConfig{Workers: int(f.workers)})
		if err != nil {
			return err
		}
		report := newConfigReport(card.Info(), job)
		if err := job.Abort(ctx); err != nil {
			return err
		}
		if f.json {
			return printJSON(out, report)
		}
		return report.print(out)
	})
}

// configReport is the report of tributary config after a successful set-up.
type configReport struct {
	Card    string `json:"card"`
	Workers int    `json:"workers"`
	Ports   []int  `json:"ports"`
	Format  string `json:"format"`
	Result  string `json:"result"`
	Chunk   int    `json:"chunk"`  // elements
	Beats   int    `json:"beats"`  // per chunk
	Window  int    `json:"window"` // chunks
	Epoch   uint16 `json:"epoch"`
	// LinkCycles is the link time of one chunk's frames; 0 without a link.
	LinkCycles uint64 `json:"link_cycles"`
}

func newConfigReport(info driver.Info, job *driver.Job) configReport {
	cfg := job.Config()
	return configReport{
		Card: info.Name, Workers: cfg.Workers, Ports: cfg.Ports, Format: info.Format.String(), Result: info.Result.String(), Chunk: cfg.Chunk, Beats: cfg.Chunk / info.Lanes,
		Window: cfg.Window, Epoch: job.Epoch(), LinkCycles: reduction.LinkBound(1, cfg.Workers, cfg.Chunk, info),
	}
}

func (r configReport) print(out io.Writer) error {
	ports := strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Ports), " ", ", "), "[]")
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "card %s takes this job\n", r.Card)
	fmt.Fprintf(w, "  workers\t%d, on ports %s\n", r.Workers, ports)
	fmt.Fprintf(w, "  chunk\t%d elements of %s, %d beats\n", r.Chunk, formats(r.Format, r.Result), r.Beats)
	fmt.Fprintf(w, "  window\t%d chunks in flight\n", r.Window)
	fmt.Fprintf(w, "  epoch\t%d\n", r.Epoch)
	if r.LinkCycles > 0 {
		fmt.Fprintf(w, "  link\tthe frames of a chunk take %d cycles\n", r.LinkCycles)
	}
	return w.Flush()
}
