package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/transport"
)

func newReset() *cobra.Command {
	f := &cardFlags{}
	cmd := &cobra.Command{
		Use:   "reset -card CARD",
		Short: "End a card's jobs and clear its counters",
		Long: `Resets a card: ends its jobs and clears its counters. The card keeps the epochs of
its last jobs, so that it refuses their late packets.`,
		Example: `  tributary reset -card unix:card.sock`,
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.withCard(cmd.Context(), transport.Needs{}, func(card *driver.Card) error {
				if err := card.Reset(cmd.Context()); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "card %s is reset\n", f.card)
				return err
			}, driver.WithAdmin())
		},
	}
	f.add(cmd)
	return cmd
}
