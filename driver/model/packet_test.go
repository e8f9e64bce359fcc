// Headers and frames against the table of fields and the hand-written frames.

package model

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// handFrame is a hand-written frame and its fields.
type handFrame struct {
	name  string
	bytes []byte
	want  Packet
}

// handFrames reads driver/wire/testdata/frames.txt.
func handFrames(t testing.TB) []handFrame {
	t.Helper()
	file, err := os.Open("../../driver/wire/testdata/frames.txt")
	require.NoError(t, err)
	defer file.Close()
	var frames []handFrame
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, digits, ok := strings.Cut(lines.Text(), ":")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		frame, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(digits))
		require.NoError(t, err)
		require.True(t, lines.Scan(), "the fields of %s", name)
		frames = append(frames, handFrame{name, frame, handFields(t, lines.Bytes())})
	}
	require.Len(t, frames, len(wire.Kinds), "one of each kind")
	return frames
}

// handFields reads the JSON object after a frame.
func handFields(t testing.TB, line []byte) Packet {
	t.Helper()
	var fields struct {
		Header
		Kind            string
		Mask, Receivers string
		Payload         []string
	}
	require.NoError(t, json.Unmarshal(line, &fields))
	p := Packet{Header: fields.Header}
	for _, i := range wire.Kinds {
		if i.Name == fields.Kind {
			p.Kind = i.Kind
		}
	}
	var err error
	p.Mask, err = strconv.ParseUint(fields.Mask, 16, 64)
	require.NoError(t, err)
	p.Receivers, err = strconv.ParseUint(fields.Receivers, 16, 64)
	require.NoError(t, err)
	for _, digits := range fields.Payload {
		element, err := strconv.ParseUint(digits, 16, 32)
		require.NoError(t, err)
		p.Payload = append(p.Payload, words(uint32(element))...)
	}
	return p
}

func TestFramesAsWrittenByHand(t *testing.T) {
	for _, f := range handFrames(t) {
		assert.Equal(t, f.bytes, AppendFrame(nil, &f.want), f.name)
		info, _ := f.want.Kind.Info()
		assert.Equal(t, f.name, info.Name)
		assert.Len(t, f.bytes, info.FrameBytes(len(f.want.Payload)))
		head := f.bytes[wire.SyncBytes:][:info.HeaderBytes(true)]
		assert.Equal(t, f.want.Header, ParseHeader(head), f.name)
	}
}

// fieldOf reads a field from a header's bytes, at its place in the table.
func fieldOf(header []byte, field wire.Field) uint64 {
	number := new(big.Int)
	for i := len(header) - 1; i >= 0; i-- {
		number.Lsh(number, 8).Or(number, big.NewInt(int64(header[i])))
	}
	number.Rsh(number, uint(field.Bit))
	mask := new(big.Int).Lsh(big.NewInt(1), uint(field.Bits))
	return number.And(number, mask.Sub(mask, big.NewInt(1))).Uint64()
}

func TestHeadersAsTheTableSays(t *testing.T) {
	header := make([]byte, wire.MaxHeaderBytes)
	for i := range header {
		header[i] = byte(0x9b + 37*i) // a result
	}
	header[0] = 0x8c
	h := ParseHeader(header)
	values := map[string]uint64{
		"version": uint64(h.Version), "kind": uint64(h.Kind), "flags": uint64(h.Flags), "job": uint64(h.Job),
		"format": uint64(h.Format), "epoch": uint64(h.Epoch), "rank": uint64(h.Rank), "code": uint64(h.Code),
		"vid": uint64(h.VID), "length": uint64(h.Length), "mask": h.Mask, "receivers": h.Receivers,
	}
	require.Len(t, values, len(wire.Fields))
	for _, field := range wire.Fields {
		assert.Equal(t, fieldOf(header, field), values[field.Name], field.Name)
	}
	assert.Equal(t, header, AppendHeader(nil, &h, true))
	assert.Equal(t, header[:wire.MaskHeaderBytes], AppendHeader(nil, &h, false), "a port of its own needs no receivers")
}

func TestHeaderSizes(t *testing.T) {
	for kind := range wire.Kind(16) {
		info, _ := kind.Info()
		for _, shared := range []bool{false, true} {
			assert.Len(t, AppendHeader(nil, &Header{Kind: kind}, shared), info.HeaderBytes(shared))
		}
	}
}

func TestAppendFrameAppends(t *testing.T) {
	p := Packet{Header: Header{Version: 2, Kind: wire.KindAsk}}
	one := AppendFrame(nil, &p)
	assert.Equal(t, bytes.Repeat(one, 2), AppendFrame(append([]byte(nil), one...), &p))
}
