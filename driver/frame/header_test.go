package frame

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tributary/driver/wire"
)

// fields maps names of wire.Fields to the header's values.
func fields(h *Header) map[string]uint64 {
	return map[string]uint64{
		"version": uint64(h.Version), "kind": uint64(h.Kind), "flags": uint64(h.Flags), "job": uint64(h.Job),
		"format": uint64(h.Format), "epoch": uint64(h.Epoch), "rank": uint64(h.Rank), "code": uint64(h.Code),
		"vid": uint64(h.VID), "length": uint64(h.Length), "mask": h.Mask, "receivers": h.Receivers,
	}
}

// TestHeaderFollowsTable builds headers with random fields and reads every field at its
// position in wire.Fields.
func TestHeaderFollowsTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, kind := range wire.Kinds {
		for range 50 {
			h := Header{
				Version: 2, Kind: kind.Kind, Flags: uint8(rng.Uint32()), Job: uint8(rng.Uint32()),
				Format: wire.Format(rng.Uint32()), Epoch: uint16(rng.Uint32()), Rank: uint8(rng.Uint32()),
				Code: wire.Code(rng.Uint32()), VID: rng.Uint32(), Length: uint16(rng.Uint32()),
			}
			if kind.Mask {
				h.Mask = rng.Uint64()
			}
			if kind.Receivers {
				h.Receivers = rng.Uint64()
			}
			b := h.Append(nil)
			if len(b) != kind.HeaderBytes(true) {
				t.Fatalf("%s: %d bytes, the table says %d", kind.Name, len(b), kind.HeaderBytes(true))
			}
			number := littleEndian(b)
			for _, f := range wire.Fields {
				got := new(big.Int).Rsh(number, uint(f.Bit))
				got.And(got, new(big.Int).SetUint64(math.MaxUint64>>(64-f.Bits)))
				if want := fields(&h)[f.Name]; got.Uint64() != want {
					t.Errorf("%s: field %s reads as %#x, %#x was written", kind.Name, f.Name, got, want)
				}
			}
			var back Header
			back.decode(b)
			if back != h {
				t.Errorf("%s: %+v was written, %+v read", kind.Name, h, back)
			}
		}
	}
}

func littleEndian(b []byte) *big.Int {
	r := bytes.Clone(b)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return new(big.Int).SetBytes(r)
}

// written is a frame of driver/wire/testdata/frames.txt.
type written struct {
	kind   wire.Kind
	bytes  []byte
	fields map[string]any
}

// handWritten reads the frames of that file, which were written by hand.
func handWritten(t testing.TB) []written {
	t.Helper()
	file, err := os.Open("../wire/testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []written
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, text, ok := strings.Cut(lines.Text(), ":")
		if !ok || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "{") {
			continue
		}
		w := written{kind: kindOf(name)}
		if w.bytes, err = hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(text)); err != nil {
			t.Fatal(err)
		}
		lines.Scan()
		if err := json.Unmarshal(lines.Bytes(), &w.fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	if len(all) != len(wire.Kinds) {
		t.Fatalf("%d frames, want one of each of %d kinds", len(all), len(wire.Kinds))
	}
	return all
}

func kindOf(name string) wire.Kind {
	for _, k := range wire.Kinds {
		if k.Name == name {
			return k.Kind
		}
	}
	return 0
}

// direction returns the direction in which a kind travels.
func direction(k wire.Kind) Direction {
	if k >= 8 {
		return FromCard
	}
	return ToCard
}

func TestHandWrittenFrames(t *testing.T) {
	for _, w := range handWritten(t) {
		t.Run(w.kind.String(), func(t *testing.T) {
			s := NewScanner(direction(w.kind), 0)
			s.Feed(w.bytes)
			var f Frame
			if !s.Next(&f) {
				t.Fatalf("not found: %+v", s.Stats())
			}
			if f.Kind.String() != w.fields["kind"] {
				t.Errorf("kind is %s, want %v", f.Kind, w.fields["kind"])
			}
			for name, got := range fields(&f.Header) {
				if name == "kind" {
					continue
				}
				want, err := fieldValue(w.fields[name])
				if err != nil || got != want {
					t.Errorf("%s is %#x, want %v", name, got, w.fields[name])
				}
			}
			payload := []any{}
			for i := 0; i < len(f.Payload); i += 4 {
				payload = append(payload, hex.EncodeToString([]byte{f.Payload[i+3], f.Payload[i+2], f.Payload[i+1], f.Payload[i]}))
			}
			if !reflect.DeepEqual(payload, w.fields["payload"]) {
				t.Errorf("payload %v, want %v", payload, w.fields["payload"])
			}
			if built := Append(nil, &f.Header, f.Payload); !bytes.Equal(built, w.bytes) {
				t.Errorf("built again:\n% x, want\n% x", built, w.bytes)
			}
		})
	}
}

func fieldValue(v any) (uint64, error) {
	switch v := v.(type) {
	case float64:
		return uint64(v), nil
	case string:
		return strconv.ParseUint(v, 16, 64)
	}
	return 0, strconv.ErrSyntax
}

// TestAppendPadded compares it with Append of a padded payload, for every format and number of
// elements, at positions in the buffer that make it grow.
func TestAppendPadded(t *testing.T) {
	const length = 19
	for _, format := range wire.Formats {
		size := format.Bits / 8
		array := make([]byte, size*length)
		for i := range array {
			array[i] = byte(i + 1)
		}
		for n := range length + 1 {
			for _, room := range []int{0, 20, 200} {
				h := Header{Kind: wire.KindData, Format: format.Format, Length: length, VID: uint32(n)}
				payload := append(bytes.Clone(array[:size*n]), make([]byte, size*(length-n))...)
				dirty := bytes.Repeat([]byte{0xee}, 3+room)[:3]
				got := AppendPadded(dirty, &h, array[:size*n])
				want := Append([]byte{0xee, 0xee, 0xee}, &h, payload)
				if !bytes.Equal(got, want) {
					t.Fatalf("%d elements of %s, room %d:\n% x, want\n% x", n, format.Name, room, got, want)
				}
			}
		}
	}
}
