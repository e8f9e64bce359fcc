package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/selftest"
)

func newSelftest() *cobra.Command {
	f := &cardFlags{}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "selftest -card CARD",
		Short: "Check known sums and refusals on a card",
		Long: `Checks known sums through every lane and port of a card, and sends frames that the
card must refuse, count, repeat or recover from. The test takes a second, or
longer on a simulated card. No other host may use the card meanwhile.`,
		Example: `  tributary selftest -card sim:tributary_l16_w4_fp32_tree
  tributary selftest -card unix:card.sock -json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSelftest(cmd.Context(), f, asJSON, cmd.OutOrStdout())
		},
	}
	f.addCard(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// outcome is one line of the self-test.
type outcome struct {
	Name  string `json:"name"`
	What  string `json:"what"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func runSelftest(ctx context.Context, f *cardFlags, asJSON bool, out io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	outcomes := []outcome{}
	failed := 0
	var unprinted error
	options := selftest.Options{Timeout: f.timeout, Open: []driver.Option{driver.WithTimeout(f.timeout)}}
	err := selftest.Run(ctx, f.card, options, func(o selftest.Outcome) {
		line := outcome{Name: o.Name, What: o.What, OK: o.Err == nil}
		if o.Err != nil {
			line.Error = o.Err.Error()
			failed++
		}
		outcomes = append(outcomes, line)
		if !asJSON {
			unprinted = cmp.Or(unprinted, line.print(out))
		}
	})
	if err = cmp.Or(err, unprinted); err != nil {
		return err
	}
	if asJSON {
		err = printJSON(out, outcomes)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("card %s failed %d of %d checks", f.card, failed, len(outcomes))
	}
	return err
}

func (o outcome) print(out io.Writer) (err error) {
	if o.OK {
		_, err = fmt.Fprintf(out, "ok    %-10s %s\n", o.Name, o.What)
		return err
	}
	_, err = fmt.Fprintf(out, "WRONG %-10s %s\n      %s\n", o.Name, o.What, o.Error)
	return err
}
