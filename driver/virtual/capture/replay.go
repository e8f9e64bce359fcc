package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
)

// MinimumGap is the least number of clock cycles between two frames. A card refuses once in 1,024
// cycles; one in a simulator runs 4,096 more to see that nothing moves any more.
const MinimumGap = 8192

// fcsLength is the length of an Ethernet FCS in epb_flags.
var fcsLength = pcapgo.NewNgEpbFlagFCSLength(ethernet.FCSBytes)

// Counts are the numbers of frames at a port.
type Counts struct {
	In  int `json:"in"`
	Out int `json:"out"`
}

// replay is one run of Replay.
type replay struct {
	device ethernet.Device
	out    *pcapgo.NgWriter
	hasFCS bool // outbound frames are written with it
	counts []Counts
	clock  uint64    // when the next frame comes
	last   time.Time // the time stamp of the frame before, which caused what leaves
}

// Replay passes the capture's frames through a device with as many ports or more, and writes them, and
// all that leave, to out, which has an interface for each port of the device. It returns the counts by
// port.
func (c *Capture) Replay(device ethernet.Device, out io.Writer) ([]Counts, error) {
	r := &replay{device: device, hasFCS: slices.Contains(c.withFCS, true), counts: make([]Counts, max(c.Ports(), device.Ports())), clock: device.Cycles()}
	var err error
	if r.out, err = newWriter(out, len(r.counts)); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		p, err := c.next()
		if errors.Is(err, io.EOF) {
			return r.counts, r.out.Flush()
		}
		if err == nil {
			err = r.pass(p)
		}
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
	}
}

// gap returns the cycles between two frames, of which the first has no one before it.
func gap(last, now time.Time) uint64 {
	if last.IsZero() || now.Before(last) {
		return MinimumGap
	}
	return max(MinimumGap, clock.Cycles(now.Sub(last)))
}

// pass passes a frame through the device when its time has come. What leaves before was caused by the
// frame before.
func (r *replay) pass(p packet) error {
	r.clock += gap(r.last, p.at)
	if now := r.device.Cycles(); now < r.clock {
		r.device.Advance(r.clock - now)
	}
	if err := r.drain(); err != nil {
		return err
	}
	r.last = p.at
	r.hasFCS = r.hasFCS || p.hasFCS
	r.counts[p.port].In++
	if err := r.write(p, pcapgo.NgEpbFlagDirectionInbound); err != nil {
		return err
	}
	frame := p.frame
	if !p.hasFCS {
		frame = ethernet.AppendFCS(ethernet.Pad(append([]byte(nil), frame...)))
	}
	r.device.Receive(p.port, frame)
	return r.drain()
}

// drain writes all that leaves the device.
func (r *replay) drain() error {
	for {
		frame, port, ok := r.device.Send(nil)
		if !ok {
			return r.device.Err()
		}
		if !r.hasFCS {
			frame = frame[:len(frame)-ethernet.FCSBytes]
		}
		r.counts[port].Out++
		if err := r.write(packet{r.last, port, frame, r.hasFCS}, pcapgo.NgEpbFlagDirectionOutbound); err != nil {
			return err
		}
	}
}

// write writes a frame.
func (r *replay) write(p packet, direction pcapgo.NgEpbFlag) error {
	flags := &pcapgo.NgEpbFlags{Direction: direction}
	if p.hasFCS {
		flags.FCSLen = fcsLength
	}
	return r.out.WritePacketWithOptions(gopacket.CaptureInfo{
		Timestamp: p.at, CaptureLength: len(p.frame), Length: len(p.frame), InterfaceIndex: p.port,
	}, p.frame, pcapgo.NgPacketOptions{Flags: flags})
}

// newWriter begins a pcapng with an interface for each port. Nothing in it depends on the machine.
func newWriter(out io.Writer, ports int) (*pcapgo.NgWriter, error) {
	w, err := pcapgo.NewNgWriterInterface(out, portInterface(0), pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "tributary pcap"}})
	for port := 1; port < ports && err == nil; port++ {
		_, err = w.AddInterface(portInterface(port))
	}
	return w, err
}

func portInterface(port int) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: fmt.Sprintf("port%d", port), LinkType: layers.LinkTypeEthernet}
}
