package bridge_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sigurn/crc16"
	"github.com/stretchr/testify/require"

	"tributary/driver/transport/bridge"
)

var (
	errMute = errors.New("mute")
	errGone = errors.New("gone")
)

// stream is a fake Stream with a card that replies to the last write in pieces.
type stream struct {
	before   []string // results of Read before the reply
	behind   string   // comes with the end of the reply
	piece    int      // bytes of the reply in a read
	mute     bool
	babbles  bool // always sends bytes, but no reply
	readErr  error
	writeErr error
	wrote    []byte
	answer   string
}

func (s *stream) Write(_ context.Context, p []byte) (int, error) {
	s.wrote = append(s.wrote, p...)
	if len(p) >= writeBytes {
		s.answer = string(reply(p[len(p)-writeBytes:])) + s.behind
	}
	return len(p), s.writeErr
}

func (s *stream) Read(ctx context.Context, p []byte) (int, error) {
	switch {
	case len(s.before) > 0:
		next := s.before[0]
		s.before = s.before[1:]
		return copy(p, next), nil
	case s.readErr != nil:
		return 0, s.readErr
	case s.babbles:
		time.Sleep(time.Millisecond)
		return copy(p, "x"), nil
	case s.mute || s.answer == "":
		<-ctx.Done()
		return 0, ctx.Err()
	}
	n := copy(p[:min(s.piece, len(p))], s.answer)
	s.answer = s.answer[n:]
	return n, nil
}

// writeBytes is the length of the frame of a register write.
const writeBytes = 28

// reply returns the card's reply to a register write. By PACKET.md only the kind and the CRC
// differ.
func reply(write []byte) []byte {
	r := append([]byte{}, write...)
	r[4] = r[4]&0x0f | 11<<4
	crc := crc16.Checksum(r[4:26], crc16.MakeTable(crc16.CRC16_CCITT_FALSE))
	binary.BigEndian.PutUint16(r[26:], crc)
	return r
}

// TestBegin checks that the stream begins after the reply, however it is divided and whatever
// came before it.
func TestBegin(t *testing.T) {
	for _, piece := range []int{1, 27, 28, 29, 100} {
		// A burst without bytes, a partial frame, and the reply to another write.
		s := &stream{before: []string{"", "\xa5TRB\x42", string(reply(make([]byte, writeBytes)))}, behind: "new", piece: piece}
		rest, err := bridge.Begin(t.Context(), s, errMute)
		require.NoError(t, err)
		require.Equal(t, "new", string(rest)+s.answer)
	}
}

// TestQuestion checks that Begin writes 8,192 zeros and a register write, which differs each
// time.
func TestQuestion(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		s := &stream{readErr: errGone}
		_, err := bridge.Begin(t.Context(), s, errMute)
		require.ErrorIs(t, err, errGone)
		require.Equal(t, make([]byte, 8192), s.wrote[:8192])
		write := s.wrote[8192:]
		require.Len(t, write, writeBytes)
		require.Equal(t, "\xa5TRB\x52\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00", string(write[:16]))
		mask := string(write[18:26])
		require.False(t, seen[mask])
		seen[mask] = true
	}
}

func TestWriteFails(t *testing.T) {
	_, err := bridge.Begin(t.Context(), &stream{writeErr: errGone}, errMute)
	require.ErrorIs(t, err, errGone)
}

// TestMute checks silence, and a stream of bytes without a reply.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range []*stream{{mute: true}, {babbles: true}, {before: []string{strings.Repeat("\x00", 1<<16)}, mute: true}} {
			start := time.Now()
			_, err := bridge.Begin(t.Context(), s, errMute)
			require.Equal(t, errMute, err)
			require.Equal(t, 10*time.Second, time.Since(start).Truncate(time.Second))
		}
	})
}

// TestStops checks that the context ends Begin and is in the error.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, stop)
		_, err := bridge.Begin(ctx, &stream{mute: true}, errMute)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Second, time.Since(start))
	})
}
