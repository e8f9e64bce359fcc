package selftest

import (
	"context"
	"errors"
	"slices"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// host exchanges packets with a card without the driver. It sends any packet, valid or not, and
// sees everything that the card sends.
type host struct {
	name    string
	line    line
	packets bool // the line is one of datagrams
	timeout time.Duration
	frames  chan frame.Frame // received frames; closed when the link ends
	tag     uint16           // of the last register access
}

func openHost(ctx context.Context, name string, o Options) (*host, error) {
	link, err := transport.OpenLink(ctx, name, transport.Needs{})
	if err != nil {
		return nil, err
	}
	line, packets := newLine(link)
	h := &host{name: name, line: line, packets: packets, timeout: o.Timeout, frames: make(chan frame.Frame, 1024)}
	go h.receive()
	return h, nil
}

// receive passes on copies of the frames until the link ends.
func (h *host) receive() {
	defer close(h.frames)
	h.line.receive(func(f *frame.Frame) {
		copied := *f
		copied.Payload, copied.Raw = slices.Clone(f.Payload), nil
		h.frames <- copied
	})
}

// close closes the link and waits until the receiver has noticed.
func (h *host) close() {
	h.line.Close()
	for range h.frames {
	}
}

// next returns the next wanted frame and drops others. The error is a DiedError, a TimeoutError
// or ctx's.
func (h *host) next(ctx context.Context, wanted func(*frame.Frame) bool) (frame.Frame, error) {
	timer := time.NewTimer(h.timeout)
	defer timer.Stop()
	for {
		select {
		case f, ok := <-h.frames:
			if !ok {
				return frame.Frame{}, &driver.DiedError{Card: h.name, Err: errors.New("the link ended")}
			}
			if wanted(&f) {
				return f, nil
			}
		case <-timer.C:
			return frame.Frame{}, &driver.TimeoutError{Card: h.name, What: "a frame made by hand", Waited: h.timeout}
		case <-ctx.Done():
			return frame.Frame{}, ctx.Err()
		}
	}
}

// send sends a frame. payload is nil for kinds without one.
func (h *host) send(hd frame.Header, payload []byte) error {
	return h.line.sendRaw(h.line.whole(&hd, payload))
}

// read reads a register.
func (h *host) read(ctx context.Context, addr uint32) (uint64, wire.Code, error) {
	return h.access(ctx, frame.Header{Kind: wire.KindRegRead, VID: addr})
}

// write writes a register.
func (h *host) write(ctx context.Context, addr uint32, value uint64) (uint64, wire.Code, error) {
	return h.access(ctx, frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: value})
}

func (h *host) access(ctx context.Context, hd frame.Header) (uint64, wire.Code, error) {
	h.tag++
	hd.Length = h.tag
	if err := h.send(hd, nil); err != nil {
		return 0, 0, err
	}
	f, err := h.next(ctx, func(f *frame.Frame) bool {
		return f.Kind == wire.KindReply && f.VID == hd.VID && f.Length == hd.Length
	})
	return f.Mask, f.Code, err
}

// counters reads all counters, by name.
func (h *host) counters(ctx context.Context) (map[string]uint32, error) {
	values := map[string]uint32{}
	for i, c := range wire.CountersOf(h.shell()) {
		v, code, err := h.read(ctx, wire.CounterAddr(i))
		if err := check(err, code == wire.CodeDone, "reading counter %s has the reply %s", c.Name, code); err != nil {
			return nil, err
		}
		values[c.Name] = uint32(v)
	}
	return values, nil
}

// shell returns the shell of a card that this host can reach.
func (h *host) shell() wire.Shell {
	if h.packets {
		return wire.ShellUDP
	}
	return wire.ShellStream
}
