package driver_test

// Trees that die in the middle of calls. Every bit must be as without the death.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tributary/driver"
	"tributary/driver/cpu"
	"tributary/driver/model"
	"tributary/driver/schedule"
	"tributary/driver/transport"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// mortalTrees opens cards of a scheme that die on kill, and do not come back. The model's cards die by
// themselves after the given numbers of bytes, if these are not 0.
func mortalTrees(t testing.TB, scheme string, bytes ...int) (trees []driver.ForestTree, kill []func()) {
	for _, n := range bytes {
		var link transport.Conn
		card := openName(t, comes(func(again int) (transport.Conn, error) {
			if again > 0 {
				return nil, errCut
			}
			if scheme == "cpu" {
				var err error
				link, err = driver.ServeCPU(cpu.Config{Lanes: 4, Ports: 3, Chunk: 16, Window: 4, Format: wire.FP32, Sum: wire.SumTree, Shell: wire.ShellStream, Link: 32})
				return link, err
			}
			link = serve(t, model.Config{Lanes: 4, Ports: 3, Chunk: 16, Window: 4, Format: wire.FP32, Sum: wire.SumTree, Shell: wire.ShellStream, Link: 32}, 4000)
			if n > 0 {
				link = faults.CutAfter(link, n)
			}
			return link, nil
		}))
		trees, kill = append(trees, card), append(kill, func() { link.Close() })
	}
	return trees, kill
}

// tellsDeath reports whether err names the death of a card: its link has ended, or the card in this
// process noticed that first and dropped the job.
func tellsDeath(err error) bool {
	var died *driver.DiedError
	var refused *driver.RefusedError
	return errors.As(err, &died) || errors.As(err, &refused) && refused.Code == wire.CodeBadJob
}

// TestForestMoves kills cards while members have queued calls in place.
func TestForestMoves(t *testing.T) {
	const workers, calls = 3, 7
	for _, scheme := range []string{"cpu", "model"} {
		moves, moved := 0, 0
		for seed := range uint64(12) {
			rng := rand.New(rand.NewPCG(seed, 11))
			n := 2 + rng.IntN(3)
			bytes := make([]int, n)
			if scheme == "model" {
				for i := range n - 1 { // one lives
					bytes[i] = 3000 + rng.IntN(60_000)
				}
			}
			trees, kill := mortalTrees(t, scheme, bytes...)
			f := configureForest(t, trees, driver.ForestConfig{Move: true, OnMove: func(m driver.Moved) {
				moves++
				moved += m.Chunks
				if len(m.Trees) == 0 || !tellsDeath(m.Cause) || slices.ContainsFunc(m.Trees, func(dead int) bool { return slices.Contains(m.Schedule, dead) }) {
					t.Errorf("%+v", m)
				}
			}})
			lengths := make([]int, calls)
			for i := range lengths {
				lengths[i] = 1 + rng.IntN(4000)
			}
			at := rng.IntN(2000) // kill when that many elements of a call have their sums
			victim, when := rng.IntN(n), rng.IntN(calls)
			var members sync.WaitGroup
			for r := range workers {
				members.Go(func() {
					var pending []*driver.Pending
					var bufs [][]float32
					for i, length := range lengths {
						bufs = append(bufs, arrays(uint64(i), workers, length)[r])
						var opts []driver.ReduceOption
						if scheme == "cpu" && r == 1 && i == when {
							opts = append(opts, driver.WithProgress(func(done, total int) {
								if done > min(at, total-1) {
									kill[victim]()
								}
							}))
						}
						p, err := f.Member(r).StartAllReduce(testContext(t), bufs[i], opts...)
						if err != nil {
							t.Error(err)
							return
						}
						pending = append(pending, p)
						if r == 2 && i%2 == 0 { // this member lags
							if err := p.Wait(testContext(t)); err != nil {
								t.Error(err)
							}
						}
					}
					for i, p := range pending {
						if err := p.Wait(testContext(t)); err != nil {
							t.Errorf("%s, seed %d, rank %d, call %d: %v", scheme, seed, r, i, err)
							return
						}
						sameBits(t, fmt.Sprintf("%s, seed %d, rank %d, call %d", scheme, seed, r, i), bufs[i], treeSum(arrays(uint64(i), workers, lengths[i]), firstPorts(workers), workers))
					}
				})
			}
			members.Wait()
			in := arrays(77, workers, 1000)
			want := treeSum(in, firstPorts(workers), workers)
			if err := f.Reduce(testContext(t), in[2], in); err != nil {
				t.Errorf("%s, seed %d: %v", scheme, seed, err)
			}
			sameBits(t, "sum of all", in[2], want)
			if err := f.Close(testContext(t)); err != nil {
				t.Errorf("%s, seed %d: %v", scheme, seed, err)
			}
		}
		if moves < 6 || moved == 0 {
			t.Errorf("%s: %d moves of %d chunks show nothing", scheme, moves, moved)
		}
	}
}

// TestForestMovesReduce kills one tree after another in a call of all ranks, until none is left.
func TestForestMovesReduce(t *testing.T) {
	const workers = 3
	for _, scheme := range []string{"cpu", "model"} {
		trees, kill := mortalTrees(t, scheme, 0, 0, 0)
		f := configureForest(t, trees, driver.ForestConfig{Move: true, Schedule: schedule.Schedule{0, 0, 1}})
		for dead := range 3 {
			in := arrays(uint64(dead), workers, 20_000)
			want := treeSum(in, firstPorts(workers), workers)
			err := f.Reduce(testContext(t), in[0], in, driver.WithProgress(func(done, _ int) {
				if done > 5000 {
					kill[dead]()
				}
			}))
			if dead == 2 && err != nil {
				if !tellsDeath(err) {
					t.Errorf("%s: %v", scheme, err)
				}
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", scheme, err)
			}
			sameBits(t, fmt.Sprintf("%s: sum %d", scheme, dead), in[0], want)
		}
		kill[2]()
		for range 2 {
			if err := f.Reduce(testContext(t), make([]float32, 90), arrays(1, workers, 90)); !tellsDeath(err) {
				t.Errorf("%s: %v", scheme, err)
			}
		}
	}
}

// TestForestIdleDeath: a tree dies between calls. The next call goes to the others, or fails without
// Move.
func TestForestIdleDeath(t *testing.T) {
	for _, move := range []bool{true, false} {
		trees, kill := mortalTrees(t, "cpu", 0, 0)
		f := configureForest(t, trees, driver.ForestConfig{Move: move})
		in := arrays(1, 3, 500)
		want := treeSum(in, firstPorts(3), 3)
		kill[0]()
		for noticed := false; !noticed; { // else the call begins, and fails then
			_, err := trees[0].(*driver.Card).ReadRegister(testContext(t), wire.RegCycles)
			noticed = err != nil
		}
		err := f.Reduce(testContext(t), in[0], in)
		if !move {
			if !tellsDeath(err) {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		sameBits(t, "sum", in[0], want)
		if alive := f.Alive(); !slices.Equal(alive, []bool{false, true}) {
			t.Error(alive)
		}
	}
}

// TestForestMovesNot: a missing rank is no death, and neither is the end of a call's context.
func TestForestMovesNot(t *testing.T) {
	trees, _ := mortalTrees(t, "cpu", 0, 0)
	f := configureForest(t, trees, driver.ForestConfig{Move: true})
	ctx, cancel := context.WithCancel(testContext(t))
	p, err := f.Member(0).StartAllReduce(ctx, make([]float32, 500))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := p.Wait(testContext(t)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if alive := f.Alive(); !slices.Equal(alive, []bool{true, true}) {
		t.Error(alive)
	}
	var input *driver.InputError
	if err := f.Member(1).AllReduce(testContext(t), make([]float32, 3), driver.WithDetach()); !errors.As(err, &input) {
		t.Error(err)
	}
}

// silenced is a way to a card that loses everything once it is silent.
type silenced struct {
	transport.PacketConn
	silent *atomic.Bool
}

func (s silenced) WritePackets(buf []byte, ends []int) error {
	if s.silent.Load() {
		return nil
	}
	return s.PacketConn.WritePackets(buf, ends)
}

// TestForestSilentCard: a card on a network that says nothing for the timeout is dead, and its chunks
// move.
func TestForestSilentCard(t *testing.T) {
	for _, move := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var silent atomic.Bool
			trees := []driver.ForestTree{open(t, serveInMemory(t, smallUDP)), open(t, silenced{serveInMemory(t, smallUDP), &silent})}
			f := configureForest(t, trees, driver.ForestConfig{Move: move})
			in := arrays(5, 4, 700)
			want := treeSum(in, firstPorts(4), 4)
			silent.Store(true)
			err := f.Reduce(testContext(t), in[0], in)
			if !move {
				if err == nil {
					t.Error("a call succeeds without a card")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, "sum", in[0], want)
			if alive := f.Alive(); !slices.Equal(alive, []bool{true, false}) {
				t.Error(alive)
			}
		})
	}
}

// TestForestMovesTwice: a second card is found dead when the chunks of the first are to move.
func TestForestMovesTwice(t *testing.T) {
	trees, kill := mortalTrees(t, "cpu", 0, 0, 0)
	f := configureForest(t, trees, driver.ForestConfig{Move: true, Schedule: schedule.Schedule{0, 0, 2}})
	kill[0]()
	kill[1]() // it has no chunks before
	in := arrays(5, 3, 700)
	want := treeSum(in, firstPorts(3), 3)
	if err := f.Reduce(testContext(t), in[0], in); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "sum", in[0], want)
	if alive := f.Alive(); !slices.Equal(alive, []bool{false, false, true}) {
		t.Error(alive)
	}
}
