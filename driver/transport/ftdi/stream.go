package ftdi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"tributary/driver/frame"
	"tributary/driver/transport/bulk"
	"tributary/driver/wire"
)

// stream is the byte stream behind a claimed chip.
type stream struct {
	bulk.Stream
	packets []byte // that a transfer brought
	left    []byte // bytes of the stream, among packets, that were not read
}

func newStream(claimed bulk.Stream) *stream {
	return &stream{Stream: claimed, packets: make([]byte, bulk.TransferBytes)}
}

// Read returns no bytes when the chip had none: it then sends its status alone.
func (s *stream) Read(ctx context.Context, p []byte) (int, error) {
	if len(s.left) == 0 {
		n, err := s.Stream.Read(ctx, s.packets)
		if err != nil {
			return 0, err
		}
		s.left = strip(s.packets[:n], s.PacketBytes())
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// strip removes the status that heads each packet, in place. All packets are whole but
// the last.
func strip(packets []byte, whole int) []byte {
	kept := packets[:0]
	for len(packets) > 0 {
		packet := packets[:min(len(packets), whole)]
		packets = packets[len(packet):]
		if len(packet) > wire.FTDIStatus {
			kept = append(kept, packet[wire.FTDIStatus:]...)
		}
	}
	return kept
}

// answerTime is how long a card may take to let go of its last host.
const answerTime = 10 * time.Second

var errMute = errors.New("no card answers behind the chip: see that its FPGA is loaded with one")

// begin breaks the link, so that nothing is left of the host before, and passes over
// what the card had sent to that one: all before the answer to a register write that no
// other host has sent.
func (s *stream) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errMute)
	defer cancel()
	write, answer, err := question()
	if err != nil {
		return err
	}
	if _, err := s.Write(ctx, append(make([]byte, wire.SendZeros), write...)); err != nil {
		return why(ctx, err)
	}
	var got []byte
	buf := make([]byte, bulk.TransferBytes)
	for {
		n, err := s.Read(ctx, buf)
		if err != nil {
			return why(ctx, err)
		}
		got = append(got, buf[:n]...)
		if i := bytes.Index(got, answer); i >= 0 {
			s.left = got[i+len(answer):]
			return nil
		}
		got = got[max(0, len(got)-len(answer)+1):]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// why replaces an error by the reason that ctx is done.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// question returns a write of a random number to a staged register, and the one
// reply that it can have.
func question() (write, answer []byte, err error) {
	var random [10]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, nil, err
	}
	h := frame.Header{
		Kind:   wire.KindRegWrite,
		VID:    wire.RegJobToken,
		Length: binary.LittleEndian.Uint16(random[8:]),
		Mask:   binary.LittleEndian.Uint64(random[:]),
	}
	write = frame.Append(nil, &h, nil)
	h.Kind = wire.KindReply
	return write, frame.Append(nil, &h, nil), nil
}
