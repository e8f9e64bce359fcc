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

// MinimumGap is the least number of clock cycles between two frames.
const MinimumGap = 1024

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
}

// Replay passes the capture's frames through a device with as many ports, and writes them, and all that
// leave, to out. It returns the counts by port.
func (c *Capture) Replay(device ethernet.Device, out io.Writer) ([]Counts, error) {
	r := &replay{device: device, hasFCS: slices.Contains(c.withFCS, true), counts: make([]Counts, c.Ports())}
	var err error
	if r.out, err = newWriter(out, c.Ports()); err != nil {
		return nil, err
	}
	var last time.Time
	for n := 1; ; n++ {
		p, err := c.next()
		if errors.Is(err, io.EOF) {
			return r.counts, r.out.Flush()
		}
		if err == nil {
			err = r.pass(p, gap(last, p.at))
		}
		if err != nil {
			return nil, fmt.Errorf("frame %d: %w", n, err)
		}
		last = p.at
	}
}

// gap returns the cycles between two frames, of which the first has no one before it.
func gap(last, now time.Time) uint64 {
	if last.IsZero() || now.Before(last) {
		return MinimumGap
	}
	return max(MinimumGap, clock.Cycles(now.Sub(last)))
}

// pass passes a frame through the device, after some cycles.
func (r *replay) pass(p packet, cycles uint64) error {
	r.device.Advance(cycles)
	if err := r.drain(p.at); err != nil {
		return err
	}
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
	return r.drain(p.at)
}

// drain writes all that leaves the device, with a time stamp.
func (r *replay) drain(at time.Time) error {
	for {
		frame, port, ok := r.device.Send(nil)
		if !ok {
			return r.device.Err()
		}
		if !r.hasFCS {
			frame = frame[:len(frame)-ethernet.FCSBytes]
		}
		r.counts[port].Out++
		if err := r.write(packet{at, port, frame, r.hasFCS}, pcapgo.NgEpbFlagDirectionOutbound); err != nil {
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
