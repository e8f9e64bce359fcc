package driver

import (
	"bytes"
	"math"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// TestOvertaken checks that a packet counts as lost after three replies to later packets, in
// any order, and not before. A repeated packet starts anew.
func TestOvertaken(t *testing.T) {
	var f flow
	var sent [8]chunkState
	for i := range sent {
		f.ordered(&sent[i])
	}
	expect := func(when string, want ...int) {
		t.Helper()
		var got []int
		for i := range sent {
			if f.overtaken(&sent[i]) {
				got = append(got, i)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: overtaken are %v, want %v", when, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: overtaken are %v, want %v", when, got, want)
			}
		}
	}
	answer := func(i int) { f.noteOrder(sent[i].order) }
	answer(5)
	answer(3)
	expect("two answers")
	answer(4)
	expect("three", 0, 1, 2)
	answer(0)
	expect("one that came late", 0, 1, 2)
	f.ordered(&sent[1])
	expect("1 sent again", 0, 2)
	answer(6)
	answer(7)
	expect("five", 0, 2, 3, 4)
	f.ordered(&sent[2])
	answer(2)
	expect("the one after 1 was sent again", 0, 3, 4, 5)
}

// TestChunksGoOn checks that a flow that is never idle finds the chunk of a VID when its chunks have
// wrapped around the VIDs many times.
func TestChunksGoOn(t *testing.T) {
	f := flow{first: 77, low: math.MaxInt / 2}
	for _, i := range []int{-300, -1, 0, 1, 127, 300} {
		if got := f.chunkOf(f.vid(f.low + i)); got != f.low+i {
			t.Errorf("the chunk %d from the first missing one is found at %d", i, got-f.low)
		}
	}
}

// TestQueuedCallGetsKeptResults has a member queue a call after an outage, while an earlier one is in
// progress. Another member holds the sum of its first chunk from before: the chunk passes as zeros,
// and its new sum is dropped.
func TestQueuedCallGetsKeptResults(t *testing.T) {
	b := newLiveCard(t)
	j := b.jobs[1]
	f := j.members[0].own
	one, two := newCall(f), newCall(f)
	dst := make([][]byte, 2)
	for i, k := range []*call{one, two} {
		dst[i] = make([]byte, 16)
		if i == 1 {
			j.outage.count = 1
			j.history.results[liveFirst+1] = keptResult{bytes.Repeat([]byte{7}, 16), 6}
		}
		if err := k.start(reduceOptions{}, dst[i], 4, dst[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !f.state(1).kept || f.contribution(0, 1) != nil || f.contribution(0, 0) == nil {
		t.Error("the chunk does not pass as zeros")
	}
	b.gather(b.link, b.out)
	for vid := range uint32(2) {
		b.feed(frame.Append(nil, &frame.Header{Kind: wire.KindResult, Job: 1, Format: wire.FP32, Epoch: liveEpoch, VID: liveFirst + vid,
			Length: 4, Mask: 7, Receivers: 7}, make([]byte, 16)))
	}
	if one.active || two.active || !bytes.Equal(dst[1], bytes.Repeat([]byte{7}, 16)) || len(two.lacking) != 1 {
		t.Errorf("the second call has the sum %x, and its results lack ranks in %d chunks", dst[1], len(two.lacking))
	}
}
