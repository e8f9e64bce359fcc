package driver_test

// A scripted card that does what a correct card never does.

import (
	"bytes"
	"testing"
	"time"

	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// peer replies to register accesses from a map. Functions choose its replies to data, asks and
// finishes.
type peer struct {
	registers map[uint32]uint64
	version   uint8 // of its packets; 0 means the right one
	refuse    map[uint32]wire.Code
	deaf      map[uint32]bool // accesses without a reply
	other     func(f *frame.Frame) []frame.Header
	payload   func(n int) byte // the bytes of the n-th result
	results   int
}

// newPeer returns a peer that identifies itself as a card of 2 ports and chunks
// of up to 16.
func newPeer() *peer {
	p := &peer{registers: map[uint32]uint64{
		wire.RegMagic: wire.Magic, wire.RegVersion: wire.Version,
		wire.RegLanes: 4, wire.RegPorts: 2, wire.RegFormat: 0x101, wire.RegSum: 1, wire.RegShell: 1,
		wire.RegChunk: 16, wire.RegWindow: 4, wire.RegJobs: 1, wire.RegLink: 32, wire.RegLatency: 9,
	}, refuse: map[uint32]wire.Code{}, deaf: map[uint32]bool{}}
	p.hash()
	return p
}

// hash sets CONFIG_HASH to match the other registers.
func (p *peer) hash() {
	p.registers[wire.RegConfigHash] = wire.ConfigHash(func(addr uint32) uint64 { return p.registers[addr] })
}

// serve returns the link to the peer.
func (p *peer) serve(t *testing.T) transport.Conn {
	host, end := pipe.New(64 << 10)
	t.Cleanup(func() { host.Close(); end.Close() })
	go func() {
		defer end.Close()
		scan := frame.NewScanner(frame.ToCard, 0)
		for {
			_, err := scan.Fill(end)
			for f := (frame.Frame{}); scan.Next(&f); {
				for _, h := range p.answer(&f) {
					h.Version = p.version
					if _, err := end.Write(p.build(&h)); err != nil {
						return
					}
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return host
}

func (p *peer) build(h *frame.Header) []byte {
	if h.Kind != wire.KindResult && h.Kind != wire.KindReplay {
		return frame.Append(nil, h, nil)
	}
	p.results++
	return frame.Append(nil, h, bytes.Repeat([]byte{p.payload(p.results - 1)}, 4*int(h.Length)))
}

func (p *peer) answer(f *frame.Frame) []frame.Header {
	reply := frame.Header{Kind: wire.KindReply, VID: f.VID, Length: f.Length}
	switch {
	case f.Kind != wire.KindRegRead && f.Kind != wire.KindRegWrite:
		if p.other != nil {
			return p.other(f)
		}
		return nil
	case p.deaf[f.VID]:
		return nil
	case p.refuse[f.VID] != 0:
		reply.Code = p.refuse[f.VID]
		return []frame.Header{reply}
	case f.Kind == wire.KindRegWrite && (f.VID != wire.RegOwner || p.registers[f.VID] == 0):
		p.registers[f.VID] = f.Mask
		if f.VID == wire.RegJobCommit {
			p.registers[wire.JobAddr(wire.RegJobMembers, 0)] = p.registers[wire.RegJobPorts]
			p.registers[wire.JobAddr(wire.RegJobSlots, 0)] = 2 * p.registers[wire.RegJobWindow] << 16
		}
	}
	reply.Mask = p.registers[f.VID]
	return []frame.Header{reply}
}

// babble makes a peer send a status every millisecond besides its replies, until the link is
// closed. It only works in a bubble.
func (p *peer) babble(t *testing.T) transport.Conn {
	host, end := pipe.New(4 << 10)
	over := make(chan struct{})
	t.Cleanup(func() { host.Close(); end.Close(); close(over) })
	status := frame.Append(nil, &frame.Header{Kind: wire.KindStatus, Code: wire.CodeWait}, nil)
	replies := make(chan []byte, 256)
	go func() {
		for {
			next := status
			select {
			case next = <-replies:
			case <-time.After(time.Millisecond):
			case <-over:
				return
			}
			if _, err := end.Write(next); err != nil {
				return
			}
		}
	}()
	go func() {
		scan := frame.NewScanner(frame.ToCard, 0)
		for {
			_, err := scan.Fill(end)
			for f := (frame.Frame{}); scan.Next(&f); {
				for _, h := range p.answer(&f) {
					replies <- p.build(&h)
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return host
}
