package receiver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/wire"
	"tributary/verify/gateware/vectors"
)

var (
	count  = flag.Int("bytes", 200_000, "bytes for every receiver")
	seed   = flag.Uint64("seed", 1, "of the first stream; the next one has the next")
	leaves = flag.String("rtl", "../../../rtl", "the folder of the leaves")
)

// streamBytes is the length of a stream, short so that a failure is easy to read.
const streamBytes = 20_000

// TestReceivers compares every receiver with the specification.
func TestReceivers(t *testing.T) {
	builder := &vectors.Builder{Folder: filepath.Join("..", "..", "..", "build", "vectors")}
	program, err := Build(t.Context(), builder, []string{*leaves, filepath.Join(*leaves, "link"), filepath.Join(*leaves, "core")})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Shapes {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			var all tally
			for n := uint64(0); int(n)*streamBytes < *count; n++ {
				if err := try(t.Context(), program, s, *seed+n, &all); err != nil {
					t.Fatalf("%v\nThis stream alone, in a shell with the tools (eval \"$(make env)\"): go test ./verify/gateware/receiver -run 'TestReceivers/%s$' -seed %d -bytes 1", err, s, *seed+n)
				}
			}
			if most := all.chance() + 5*math.Sqrt(all.chance()) + 3; float64(all.forged) > most {
				t.Errorf("%d frames came out that nobody sent; by chance they are %.2f at most", all.forged, all.chance())
			}
			t.Log(all)
		})
	}
}

// tally adds up the results of many streams.
type tally struct {
	bytes, whole, swallowed int
	headers, payloads       int // with wrong CRCs
	forged                  int // valid frames that were never sent
}

// chance returns the expected number of undetected frames if all damage were random: one in 2^16.
// A CRC always detects much of the actual damage.
func (c tally) chance() float64 { return float64(c.headers+c.payloads) / (1 << 16) }

func (c tally) String() string {
	return fmt.Sprintf("%d bytes: %d whole frames, of which %d stood behind one that was cut off and took them in; "+
		"wrong CRCs of %d headers and %d payloads; %d frames that nobody sent (by chance %.2f at most)",
		c.bytes, c.whole, c.swallowed, c.headers, c.payloads, c.forged, c.chance())
}

// try sends one stream through a receiver.
func try(ctx context.Context, program string, s Shape, seed uint64, all *tally) error {
	stream := NewStream(s, seed, streamBytes)
	want, spans, err := Expect(s, stream.Bytes)
	if err != nil {
		return err
	}
	if err := stream.judge(spans, all); err != nil {
		return fmt.Errorf("the oracle is wrong: %w", err)
	}
	all.bytes += len(stream.Bytes)
	all.headers += want.Counts.HeaderCRC
	got, err := Receive(ctx, program, s, seed, stream.Bytes)
	if err != nil {
		return err
	}
	return compare(got, want)
}

// judge compares the received frames with the sent ones. Every complete frame must arrive, unless
// an earlier frame contains it. Every received frame must have been sent, except forged ones.
func (s *Stream) judge(spans []span, all *tally) error {
	for _, at := range s.whole {
		i, found := slices.BinarySearchFunc(spans, at, func(f span, at int) int { return f.from - at })
		all.whole++
		switch {
		case found && spans[i].good && spans[i].item != "":
		case found:
			return fmt.Errorf("the whole frame at byte %d is refused", at)
		case i > 0 && spans[i-1].to > at:
			all.swallowed++
		default:
			return fmt.Errorf("the whole frame at byte %d is not received", at)
		}
	}
	for _, f := range spans {
		switch {
		case f.payload && !f.good:
			all.payloads++
		case f.item != "" && !s.built[f.item]:
			all.forged++
		}
	}
	return nil
}

// compare finds the first difference.
func compare(got, want *Received) error {
	for i := range min(len(got.Items), len(want.Items)) {
		if got.Items[i] != want.Items[i] {
			return fmt.Errorf("what came out as number %d is\n  %s, must be\n  %s", i, got.Items[i], want.Items[i])
		}
	}
	if n, m := len(got.Items), len(want.Items); n != m {
		return fmt.Errorf("%d packets and accesses came out, must be %d; the first that is too few or too many: %s", n, m, append(got.Items, want.Items...)[min(n, m)])
	}
	if got.Counts != want.Counts {
		return fmt.Errorf("counts %+v, must be %+v", got.Counts, want.Counts)
	}
	return nil
}

// TestStreamsHoldEverything: the first stream of the tests contains every event.
func TestStreamsHoldEverything(t *testing.T) {
	for _, s := range Shapes {
		stream := NewStream(s, 1, streamBytes)
		want, spans, err := Expect(s, stream.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		c := want.Counts
		if slices.Min([]int{c.Frames, c.Hunted, c.HeaderCRC, c.BadVersion, c.BadKind, c.BadLength}) < 5 {
			t.Errorf("%s: %+v", s, c)
		}
		var all tally
		if err := stream.judge(spans, &all); err != nil {
			t.Error(err)
		}
		if all.whole < 50 || all.swallowed == 0 || all.payloads == 0 {
			t.Errorf("%s: %s", s, all)
		}
		text := strings.Join(want.Items, "\n")
		for _, kind := range []string{" good", " bad", " bare", " read", " write"} {
			if strings.Count(text, kind) < 5 {
				t.Errorf("%s: hardly any%s", s, kind)
			}
		}
	}
}

// TestJudgeFindsWhatIsMissing: judge detects an oracle that disagrees with the sent frames.
func TestJudgeFindsWhatIsMissing(t *testing.T) {
	stream := NewStream(Shapes[0], 1, streamBytes)
	_, spans, err := Expect(Shapes[0], stream.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(spans, func(f span) bool { return slices.Contains(stream.whole, f.from) })
	if stream.judge(slices.Delete(slices.Clone(spans), first, first+1), &tally{}) == nil {
		t.Error("a whole frame that is not received is not missed")
	}
	var all tally
	forged := slices.Clone(spans)
	forged[first].item = "register 00 read"
	if err := errors.Join(stream.judge(spans, &all), stream.judge(forged, &all)); err != nil || all.forged == 0 {
		t.Errorf("%v; %s", err, all)
	}
}

// TestExpectRefusesHalfFrames: a stream must end after a frame.
func TestExpectRefusesHalfFrames(t *testing.T) {
	h := frame.Header{Kind: wire.KindData, Format: wire.FP32, Length: 1}
	b := frame.Append(nil, &h, make([]byte, 4))
	for n := len(syncWord); n < len(b); n++ {
		if _, _, err := Expect(Shapes[0], b[:n]); err == nil {
			t.Errorf("%d of %d bytes of a frame", n, len(b))
		}
	}
}
