package faults

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver/frame"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// some returns the data frames of n chunks from 8 ranks.
func some(n int) [][]byte {
	var all [][]byte
	for i := range n {
		for rank := range uint8(8) {
			h := frame.Header{Kind: wire.KindData, Format: wire.FP32, Rank: rank, VID: uint32(i), Length: 8}
			all = append(all, frame.Append(nil, &h, bytes.Repeat([]byte{byte(i), rank}, 16)))
		}
	}
	return all
}

// through sends frames to a card over a faulty link, and returns the bytes that arrive.
func through(t *testing.T, r Rates, counts *Counts, frames [][]byte, watch func(*frame.Header) bool) ([]byte, error) {
	t.Helper()
	host, card := pipe.New(1 << 20)
	link := New(host, r, counts)
	link.Watch = watch
	link.On.Store(true)
	var err error
	for _, f := range frames {
		if _, err = link.Write(f); err != nil {
			break
		}
	}
	link.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(card); err != nil {
		t.Fatal(err)
	}
	return got.Bytes(), err
}

// TestFaultDependsOnlyOnTheFrame: frames in another order get the same faults.
func TestFaultDependsOnlyOnTheFrame(t *testing.T) {
	rates := Rates{Drop: 0.2, Flip: 0.2, Repeat: 0.2, Seed: 5}
	frames := some(50)
	fates := func(order []int) map[identity]Kind {
		f := newFate(rates, frame.ToCard)
		scan := frame.NewScanner(frame.ToCard, 0)
		got := map[identity]Kind{}
		for _, i := range order {
			scan.Feed(frames[i])
			var x frame.Frame
			scan.Next(&x)
			kind, _ := f.draw(&x.Header)
			got[identity{uint8(x.Kind), x.Job, x.Rank, x.VID}] = kind
		}
		return got
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(frames))
	shuffled := fates(order)
	slices.Sort(order)
	happened := 0
	for who, kind := range fates(order) {
		if shuffled[who] != kind {
			t.Errorf("%+v meets %d, and %d in another order", who, kind, shuffled[who])
		}
		if kind != none {
			happened++
		}
	}
	if happened < 200 || happened > 280 { // 240 of 400 expected, with four standard deviations
		t.Errorf("%d faults in 400 frames at a rate of 0.6", happened)
	}
}

// TestEveryKindHappensAndIsCounted: every kind occurs, and no undetected damage passes that a
// 16-bit CRC must detect.
func TestEveryKindHappensAndIsCounted(t *testing.T) {
	frames := some(100)
	clean := bytes.Join(frames, nil)
	for kind, rates := range map[Kind]Rates{
		Drop: {Drop: 0.1}, Repeat: {Repeat: 0.1}, Reorder: {Reorder: 0.1}, Delay: {Delay: 0.1}, Flip: {Flip: 0.1}, Burst: {Burst: 0.1},
		Stall: {Stall: 0.01}, Garbage: {Garbage: 0.1}, Scramble: {Scramble: 0.1}, Cut: {Cut: 0.1}, Insert: {Insert: 0.1},
	} {
		t.Run(Kinds[kind], func(t *testing.T) {
			counts := new(Counts)
			got, err := through(t, rates, counts, [][]byte{clean}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := counts.Of(kind); n == 0 || n != counts.Total() {
				t.Errorf("%d faults of this kind, %d of all", n, counts.Total())
			}
			if bytes.Equal(got, clean) != (kind == Stall) {
				t.Error("what comes is not what the fault does")
			}
			if n := counts.LetThrough[frame.ToCard].Load(); n != 0 {
				t.Errorf("%d damaged frames are let through", n)
			}
		})
	}
}

// TestStallsRest: a link at the highest rate of stalls still carries many frames in between.
func TestStallsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := new(Counts)
		frames := some(100)
		got, err := through(t, Rates{Stall: 1, Pause: time.Millisecond}, counts, frames, nil)
		if err != nil || !bytes.Equal(got, bytes.Join(frames, nil)) {
			t.Errorf("%d bytes come, and %v", len(got), err)
		}
		if n := counts.Of(Stall); n < int64(len(frames)/20) || n > int64(len(frames)/4) {
			t.Errorf("%d stalls in %d frames", n, len(frames))
		}
	})
}

// TestCutInTheMiddle: half of the frame at a cut arrives, and no byte after it.
func TestCutInTheMiddle(t *testing.T) {
	frames := some(2)
	n := 0
	got, err := through(t, Rates{}, new(Counts), frames, func(*frame.Header) bool { n++; return n == 5 })
	want := slices.Concat(slices.Concat(frames[:4]...), frames[4][:len(frames[4])/2])
	if !errors.Is(err, ErrCut) || !bytes.Equal(got, want) {
		t.Errorf("%v, %d bytes, want %d", err, len(got), len(want))
	}
}

// TestLetThrough: the link counts a frame with right CRCs that neither end sent.
func TestLetThrough(t *testing.T) {
	counts := new(Counts)
	w := newWay(&Link{Happened: counts}, Rates{}, frame.ToCard)
	frames := some(1)
	sent := w.pass(nil, frames[0])
	if n := counts.LetThrough[frame.ToCard].Load(); n != 0 || !bytes.Equal(sent, frames[0]) {
		t.Errorf("%d are let through of one that was sent", n)
	}
	if w.judge(frames[1]); counts.LetThrough[frame.ToCard].Load() != 1 {
		t.Error("a frame is not noticed that nobody sent")
	}
}
