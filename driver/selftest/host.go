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

// host exchanges frames with a card without the driver. It sends any frame, valid or not, and
// sees everything that the card sends.
type host struct {
	name    string
	conn    transport.Conn
	timeout time.Duration
	frames  chan frame.Frame // received frames; closed when the link ends
	tag     uint16           // of the last register access
}

func openHost(ctx context.Context, name string, o Options) (*host, error) {
	conn, err := transport.Open(ctx, name, transport.Needs{})
	if err != nil {
		return nil, err
	}
	h := &host{name: name, conn: conn, timeout: o.Timeout, frames: make(chan frame.Frame, 1024)}
	go h.receive()
	return h, nil
}

// receive passes on copies of the frames until the link ends.
func (h *host) receive() {
	defer close(h.frames)
	scan := frame.NewScanner(frame.FromCard, 0)
	for {
		_, err := scan.Fill(h.conn)
		var f frame.Frame
		for scan.Next(&f) {
			f.Payload, f.Raw = slices.Clone(f.Payload), nil
			h.frames <- f
		}
		if err != nil {
			return
		}
	}
}

// close closes the link and waits until the receiver has noticed.
func (h *host) close() {
	h.conn.Close()
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
	return h.sendRaw(frame.Append(nil, &hd, payload))
}

func (h *host) sendRaw(b []byte) error {
	_, err := h.conn.Write(b)
	return err
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
	for i, c := range wire.Counters {
		v, code, err := h.read(ctx, wire.CounterAddr(i))
		if err := check(err, code == wire.CodeDone, "reading counter %s has the reply %s", c.Name, code); err != nil {
			return nil, err
		}
		values[c.Name] = uint32(v)
	}
	return values, nil
}
