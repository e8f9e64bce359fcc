package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver/frame"
	"tributary/driver/transport/record"
	"tributary/driver/wire"
)

func newDecode() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "decode FILE",
		Short: "Print the frames of a recorded link",
		Long: `Prints the frames of a link log, one a line: the time of its last byte, in seconds
since the start of the log; its direction, -> to the card or <- from it; and its
contents. Damage appears where it was found. The log of a card on a network has
its datagrams, one by one; "congestion" marks those from the card whose IP header
has the mark CE.

-record of tributary reduce, trace, config, info and reset writes the log, also
when they fail or are stopped. The log has every byte, including payloads.`,
		Example: `  tributary reduce -record link.log -o sum.npy w0.npy w1.npy
  tributary decode link.log
  tributary decode link.log | grep -v -e regread -e reply
  tributary decode -json link.log | jq 'select(.kind == "replay")'`,
		Args: exactly("FILE, the link log,"),
		RunE: stoppable(func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			out := bufio.NewWriter(cmd.OutOrStdout())
			show := showText
			if asJSON {
				show = showJSON
			}
			if err = decodeLog(f, func(l logLine) error { return show(out, l) }); err != nil {
				err = fmt.Errorf("%s: %w", args[0], err)
			}
			return cmp.Or(out.Flush(), err) // a failed write ends decodeLog, too
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return cmd
}

// logLine is one event on a link: a frame, or damage.
type logLine struct {
	at        time.Duration
	fromCard  bool
	frame     *frame.Header       // nil for damage
	congested bool                // a datagram whose way from the card marked it
	damage    frame.Stats         // counts since the last line
	dropped   frame.DatagramStats // of a damaged datagram
}

// decodeLog reads a link log and shows it line by line, up to the first damaged place in the file.
func decodeLog(r io.Reader, show func(logLine) error) error {
	log, err := record.NewReader(r)
	if err != nil {
		return err
	}
	if log.Packets() {
		return decodePackets(log, show)
	}
	toCard := &direction{scan: frame.NewScanner(frame.ToCard, 0), show: show}
	fromCard := &direction{scan: frame.NewScanner(frame.FromCard, 0), show: show, fromCard: true}
	for {
		e, err := log.Next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return errors.Join(toCard.end(), fromCard.end(), err)
		}
		d := toCard
		if e.FromCard {
			d = fromCard
		}
		if err := d.take(e); err != nil {
			return err
		}
	}
}

// decodePackets shows a log of packets.
func decodePackets(log *record.Reader, show func(logLine) error) error {
	for {
		e, err := log.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		line := logLine{at: e.At, fromCard: e.FromCard, congested: e.ECN == wire.CE}
		direction := frame.ToCard
		if e.FromCard {
			direction = frame.FromCard
		}
		var f frame.Frame
		check := frame.NewDatagramChecker(direction)
		if check.Check(e.Bytes, &f) {
			line.frame = &f.Header
		} else {
			line.dropped = check.Stats()
		}
		if err := show(line); err != nil {
			return err
		}
	}
}

// direction collects the bytes of one direction.
type direction struct {
	scan     *frame.Scanner
	show     func(logLine) error
	fromCard bool
	at       time.Duration // time of the last bytes
	seen     frame.Stats   // counts at the last line
}

func (d *direction) take(e record.Entry) error {
	d.at = e.At
	for b := e.Bytes; len(b) > 0; {
		b = b[d.scan.Feed(b):]
		if err := d.showFrames(); err != nil {
			return err
		}
	}
	return nil
}

// end shows the bytes after the last whole frame.
func (d *direction) end() error {
	d.scan.End()
	return d.showFrames()
}

func (d *direction) showFrames() error {
	var f frame.Frame
	for {
		more := d.scan.Next(&f)
		if err := d.showDamage(); err != nil || !more {
			return err
		}
		header := f.Header
		if err := d.show(logLine{at: d.at, fromCard: d.fromCard, frame: &header}); err != nil {
			return err
		}
	}
}

// showDamage shows the scanner's new counts since the last call, except frames.
func (d *direction) showDamage() error {
	now := d.scan.Stats()
	now.Frames, now.Headers = 0, 0
	was := d.seen
	if now == was {
		return nil
	}
	d.seen = now
	return d.show(logLine{at: d.at, fromCard: d.fromCard, damage: frame.Stats{
		Hunted:     now.Hunted - was.Hunted,
		HeaderCRC:  now.HeaderCRC - was.HeaderCRC,
		PayloadCRC: now.PayloadCRC - was.PayloadCRC,
		BadVersion: now.BadVersion - was.BadVersion,
		BadKind:    now.BadKind - was.BadKind,
		BadLength:  now.BadLength - was.BadLength,
	}})
}
