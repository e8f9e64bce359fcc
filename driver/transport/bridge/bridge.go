// Package bridge begins links to cards behind bridges (SPEC.md, section 10). A bridge cannot
// tell the card about hosts, so a link begins in the stream itself. The caller provides the
// stream.
package bridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Stream is the byte stream of a bridge. Both methods return when their context ends.
type Stream interface {
	// Read may return no bytes and no error.
	Read(ctx context.Context, p []byte) (int, error)
	// Write returns when all of p is on its way.
	Write(ctx context.Context, p []byte) (int, error)
}

// AnswerTime is how long a card may take to drop its last host.
const AnswerTime = 10 * time.Second

// ErrMute is the error for a bridge that is a USB chip.
var ErrMute = errors.New("no card replies behind the chip; check that its FPGA is configured")

// readBytes is the size of a read.
const readBytes = 64 << 10

// Begin sends a break, which clears the link of the host before, and then a register write with
// a random number. It drops all bytes before the reply, as they were for the host before. The
// stream continues with rest, the bytes read after the reply. Begin returns mute when the card
// does not reply within AnswerTime.
func Begin(ctx context.Context, s Stream, mute error) (rest []byte, err error) {
	return BeginIn(ctx, AnswerTime, s, mute)
}

// BeginIn is Begin with patience instead of AnswerTime.
func BeginIn(ctx context.Context, patience time.Duration, s Stream, mute error) (rest []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, mute)
	defer cancel()
	write, answer := question()
	if _, err := s.Write(ctx, append(make([]byte, wire.SendZeros), write...)); err != nil {
		return nil, why(ctx, err)
	}
	var got []byte
	buf := make([]byte, readBytes)
	for {
		n, err := s.Read(ctx, buf)
		if err != nil {
			return nil, why(ctx, err)
		}
		got = append(got, buf[:n]...)
		if i := bytes.Index(got, answer); i >= 0 {
			return got[i+len(answer):], nil
		}
		got = got[max(0, len(got)-len(answer)+1):]
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// why returns ctx's error if ctx has ended, else err.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// question returns a write of a random number to a staged register, and its only possible
// reply.
func question() (write, answer []byte) {
	var random [10]byte
	rand.Read(random[:]) // never fails
	h := frame.Header{
		Kind:   wire.KindRegWrite,
		VID:    wire.RegJobToken,
		Length: binary.LittleEndian.Uint16(random[8:]),
		Mask:   binary.LittleEndian.Uint64(random[:]),
	}
	write = frame.Append(nil, &h, nil)
	h.Kind = wire.KindReply
	return write, frame.Append(nil, &h, nil)
}
