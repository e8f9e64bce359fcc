package driver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// resultOf returns the header of a result for some ranks, of the given chunk of a frame's job.
func resultOf(f *frame.Frame, kind wire.Kind, vid uint32, receivers uint64) frame.Header {
	return frame.Header{Kind: kind, Epoch: f.Epoch, VID: vid, Format: wire.FP32, Length: 16, Mask: 3, Receivers: receivers}
}

// TestAsksForAllOvertakenResults checks that the driver asks together for all results that
// later ones have overtaken. This card replies to none of these asks before it has received
// all.
func TestAsksForAllOvertakenResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.payload = func(int) byte { return 0 }
		p.registers[wire.RegWindow] = 16
		p.hash()
		lost := map[uint32]bool{1: true, 3: true, 5: true}
		data, asked := map[uint32]int{}, map[uint32]bool{}
		p.other = func(f *frame.Frame) (answers []frame.Header) {
			switch f.Kind {
			case wire.KindData:
				if data[f.VID]++; data[f.VID] == 2 && !lost[f.VID] {
					answers = append(answers, resultOf(f, wire.KindResult, f.VID, 3))
				}
			case wire.KindAsk:
				asked[f.VID] = true
				for vid := range asked {
					if len(asked) == len(lost) {
						answers = append(answers, resultOf(f, wire.KindReplay, vid, 3))
					}
				}
			}
			return answers
		}
		card := open(t, p.serve(t), driver.WithTimeout(2*time.Second))
		job := configure(t, card, driver.JobConfig{Window: 16})
		in := make([]float32, 16*16)
		if err := job.Reduce(testContext(t), make([]float32, len(in)), [][]float32{in, in}); err != nil {
			t.Fatal(err)
		}
		if s := job.Stats(); s.Resent != 0 {
			t.Errorf("%+v: nothing was missing", s)
		}
	})
}

// TestAsksOftenEnoughBeforeAnyAnswer uses a lossy link that may lose the first asks, or their
// replies, one after another.
func TestAsksOftenEnoughBeforeAnyAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.payload = func(int) byte { return 0 }
		const lost = 6
		asks := 0
		p.other = func(f *frame.Frame) (answers []frame.Header) {
			if f.Kind != wire.KindAsk {
				return nil
			}
			if asks++; asks > lost {
				answers = append(answers, resultOf(f, wire.KindReplay, f.VID, 3))
			}
			return answers
		}
		card := open(t, p.serve(t), driver.WithTimeout(4*time.Second))
		job := configure(t, card, driver.JobConfig{})
		in := make([]float32, 16)
		if err := job.Reduce(testContext(t), make([]float32, len(in)), [][]float32{in, in}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOneMemberAsksForAll checks that members with calls of their own ask once for a chunk, and
// that the reply serves all. It covers a lost result and lost data. The rank of the lost data
// sends it again, whichever rank asked.
func TestOneMemberAsksForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunks = 64
		p := newPeer()
		p.payload = func(int) byte { return 0 }
		p.registers[wire.RegWindow] = 16
		p.hash()
		held, asks := map[uint32]uint64{}, 0
		lostData := func(f *frame.Frame) bool { return f.VID%16 == 0 && f.Rank == 1 }
		seen := map[uint32]bool{}
		p.other = func(f *frame.Frame) []frame.Header {
			switch f.Kind {
			case wire.KindData:
				if lostData(f) && !seen[f.VID] {
					seen[f.VID] = true
					return nil
				}
				if held[f.VID] |= 1 << f.Rank; held[f.VID] == 3 && f.VID%16 != 8 {
					return []frame.Header{resultOf(f, wire.KindResult, f.VID, 3)}
				}
			case wire.KindAsk:
				asks++
				if held[f.VID] == 3 {
					return []frame.Header{resultOf(f, wire.KindReplay, f.VID, 1<<f.Rank)}
				}
				code := wire.CodeWait
				if held[f.VID]>>f.Rank&1 == 0 {
					code = wire.CodeSend
				}
				return []frame.Header{{Kind: wire.KindStatus, Epoch: f.Epoch, Rank: f.Rank, VID: f.VID, Code: code, Mask: 3 &^ held[f.VID]}}
			}
			return nil
		}
		card := open(t, p.serve(t), driver.WithTimeout(10*time.Second))
		job := configure(t, card, driver.JobConfig{Window: 16})
		var both sync.WaitGroup
		for rank := range 2 {
			both.Go(func() {
				if err := job.Member(rank).AllReduce(testContext(t), make([]float32, chunks*16)); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		s := job.Stats()
		if most := uint64(3 * chunks / 16); s.Asked > most { // a timer may have expired too
			t.Errorf("%d asks for %d chunks", s.Asked, 2*chunks/16)
		}
		if again := job.Member(1).Stats().Resent; again != chunks/16 || s.Resent != again {
			t.Errorf("%+v: want %d chunks sent again, by rank 1", s, chunks/16)
		}
	})
}

// TestAlternatingMissingRanksTimeOut has a card whose replies name rank 1 as missing, then both
// ranks, again and again. Fewer missing ranks counted as progress, so the reduction never timed
// out.
func TestAlternatingMissingRanksTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		p := newPeer()
		asks := 0
		p.other = func(f *frame.Frame) []frame.Header {
			if f.Kind != wire.KindAsk {
				return nil
			}
			asks++
			return []frame.Header{{Kind: wire.KindStatus, Epoch: f.Epoch, Rank: f.Rank, VID: f.VID,
				Code: wire.CodeSend, Mask: 2 | uint64(asks%2)}}
		}
		card := open(t, p.serve(t), driver.WithTimeout(timeout))
		job := configure(t, card, driver.JobConfig{})
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		in := make([]float32, 16)
		e := wantError[*driver.MissingError](t, job.Reduce(ctx, make([]float32, len(in)), [][]float32{in, in}))
		if took := time.Since(begun); took > 3*timeout {
			t.Errorf("%v after %v and %d asks; the timeout is %v", e, took, asks, timeout)
		}
	})
}
