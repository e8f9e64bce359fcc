package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tributary/driver/shell"
	"tributary/driver/transport/serial"
)

func newList() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cards that can be opened from here",
		Long: `Lists cards written by hwgen below this folder, virtual cards run by tributary sim,
cards on USB, FTDI chips and serial ports that may lead to a card, and the cards
in software. list disturbs no card, so it cannot report whether a chip or a port
leads to one. It skips folders named testdata, and those that begin with a dot.`,
		Example: `  tributary list
  tributary list -json`,
		Args: exactly(),
		RunE: stoppable(func(cmd *cobra.Command, _ []string) error {
			cards, err := listCards()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), cards)
			}
			return printCards(cmd.OutOrStdout(), cards)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listedCard is one line of tributary list.
type listedCard struct {
	Card  string `json:"card"`  // as accepted by -card
	Ready bool   `json:"ready"` // can be opened without preparation
	What  string `json:"what"`
}

func listCards() ([]listedCard, error) {
	cards := []listedCard{
		{"cpu:", true, "a card in software, of the arrays' format, with as many ports"},
		{"model:", true, "the Go model of a card, the reference"},
	}
	running, err := runningCards()
	if err != nil {
		return nil, err
	}
	for _, r := range running {
		cards = append(cards, listedCard{r.Card, true, r.what()})
	}
	folders, err := findFolders(".")
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		cards = append(cards, f.list())
	}
	cards = append(cards, usbCards()...)
	for _, p := range listPorts() {
		cards = append(cards, listedCard{p.Name, false, describePort(p)})
	}
	return cards, nil
}

// listPorts returns the serial ports of this machine.
var listPorts = serial.List

// describePort describes a serial port.
func describePort(p serial.Port) string {
	what := "a serial port"
	if p.Title != "" {
		what += ", " + p.Title
	}
	return what + "; that a card is behind it shows when it is opened"
}

// usbCards lists the cards on USB. A machine without USB has none.
func usbCards() []listedCard {
	plugged, err := listUSB()
	if err != nil {
		return []listedCard{{"usb:", false, err.Error()}}
	}
	var cards []listedCard
	for _, c := range plugged {
		if c.Err != nil {
			cards = append(cards, listedCard{c.Name, false, c.Err.Error()})
			continue
		}
		if c.Ident == nil {
			cards = append(cards, listedCard{c.Name, false, "a bridge; that a card is behind it shows when it is opened"})
			continue
		}
		cards = append(cards, listedCard{c.Name, true, describe(c.Register)})
	}
	return cards
}

// list describes how to use a card's folder.
func (c cardFolder) list() listedCard {
	l := listedCard{Card: "sim:" + c.dir, Ready: c.built("card"), What: c.describe()}
	switch {
	case c.CheckLink() != nil:
		l.Ready = false
		l.What += "; bare ports, which a host cannot reach"
	case !l.Ready:
		l.What += "; not built yet: " + c.buildCommand("")
	}
	return l
}

func printCards(out io.Writer, cards []listedCard) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, c := range cards {
		ready := "ready"
		if !c.Ready {
			ready = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", shell.Quote(c.Card), ready, c.What)
	}
	return w.Flush()
}
