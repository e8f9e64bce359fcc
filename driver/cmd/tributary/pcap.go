package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tributary/driver/reduction"
	"tributary/driver/virtual/capture"
	"tributary/driver/virtual/ethernet"
)

// pcapFlags is the command line of tributary pcap.
type pcapFlags struct {
	out     string
	card    string
	station stationFlags
	json    bool
}

func newPcap() *cobra.Command {
	f := &pcapFlags{}
	cmd := &cobra.Command{
		Use:   "pcap IN",
		Short: "Pass a capture of Ethernet frames through a card",
		Long: `Passes the frames of a capture, pcapng or pcap, through a card with Ethernet ports,
and writes a pcapng with these frames and those that leave the card. Interface N is
Ethernet port N. A frame that leaves follows the frame that caused it, with its time
stamp; Wireshark shows the directions as inbound and outbound.

CARD is a card in software, model: or cpu: with the options that their names take,
or the folder of a card built there. The same capture gives the same file each time.

Frames have an FCS if the capture's interface does (if_fcslen, or epb_flags). To the
others the card's port adds it, and padding to 60 bytes: they are never damaged.
The capture's time is that of the card's clock, of 100 MHz; between two frames pass
8,192 cycles at least.`,
		Example: `  tributary pcap in.pcapng -o out.pcapng
  tributary pcap in.pcapng -o out.pcapng -card cpu:workers=8 -ip 10.0.0.7
  tributary pcap in.pcapng -o out.pcapng -card tributary_l16_w4_fp32_tree
  tributary pcap -json in.pcapng -o out.pcapng | jq .counters
  tshark -r out.pcapng -Y 'frame.packet_flags_direction == 2'`,
		Args: exactly("IN, the capture,"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the capture to `FILE`")
	cmd.Flags().StringVar(&f.card, "card", "model:", "use this `CARD`")
	f.station.add(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the numbers of frames, and the counters of a card in software, as JSON")
	return cmd
}

func (f *pcapFlags) run(cmd *cobra.Command, path string) error {
	if f.out == "" {
		return usagef("-o FILE, the capture to write, is missing")
	}
	if reduction.SameFile(f.out, []string{path}) != "" {
		return usagef("-o %s: it is the input; name another file", f.out)
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	frames, err := capture.Open(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if frames.Ports() > ethernet.MaxPorts {
		return fmt.Errorf("%s: it has %d interfaces; a card has at most %d Ethernet ports", path, frames.Ports(), ethernet.MaxPorts)
	}
	report, err := f.replay(cmd, frames, path)
	if err != nil {
		return err
	}
	return report.print(cmd.OutOrStdout(), f.json)
}

// replay passes the frames through the card.
func (f *pcapFlags) replay(cmd *cobra.Command, frames *capture.Capture, path string) (report pcapReport, err error) {
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	card, err := openDevice(ctx, cmd, f.card, &f.station, frames.Ports())
	if err != nil {
		return report, err
	}
	defer func() { err = card.closeWith(ctx, err) }()
	report.Out = f.out
	err = reduction.Replace(ctx, f.out, func(w io.Writer) (err error) {
		if report.Ports, err = frames.Replay(card, w); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err == nil && card.endpoint != nil {
		report.Counters = capture.Counters(card.endpoint)
	}
	return report, asFlags(err)
}

// pcapReport is the outcome of tributary pcap.
type pcapReport struct {
	Out      string            `json:"out"`
	Ports    []capture.Counts  `json:"ports"`
	Counters map[string]uint64 `json:"counters,omitempty"` // those that are not zero
}

func (r *pcapReport) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(out, r)
	}
	in, left := 0, 0
	for _, c := range r.Ports {
		in, left = in+c.In, left+c.Out
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s of the card, at %s\n", r.Out, several(uint64(in), "frame"), several(uint64(left), "frame"), several(uint64(len(r.Ports)), "port"))
	return err
}
