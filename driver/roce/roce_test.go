package roce_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/wire"
)

// team is a job with a rank at each host.
type team struct {
	*fabric
	job     *driver.Job
	members []*driver.Member
}

// gather lets one process for each host join a job by its ticket.
func gather(f *fabric, cards []*driver.Card, cfg driver.JobConfig) *team {
	f.Helper()
	cfg.Workers, cfg.Here = len(cards), []int{0}
	job, err := cards[0].Configure(f.Context(), cfg)
	require.NoError(f, err)
	t := &team{f, job, []*driver.Member{job.Member(0)}}
	for rank := 1; rank < len(cards); rank++ {
		m, err := cards[rank].Join(f.Context(), job.Ticket(), rank)
		require.NoError(f, err)
		t.members = append(t.members, m)
	}
	for _, m := range t.members {
		require.NoError(f, m.Job().AwaitMembers(f.Context()))
	}
	return t
}

// each calls do for each rank at once, and returns the errors by rank.
func (t *team) each(ranks []int, do func(rank int) error) map[int]error {
	errs := make([]error, len(t.members))
	var all sync.WaitGroup
	for _, rank := range ranks {
		all.Go(func() { errs[rank] = do(rank) })
	}
	all.Wait()
	by := map[int]error{}
	for _, rank := range ranks {
		by[rank] = errs[rank]
	}
	return by
}

// all are the ranks.
func (t *team) all() (ranks []int) {
	for rank := range t.members {
		ranks = append(ranks, rank)
	}
	return ranks
}

// element returns an element of a rank's array as the card gets it, and the sum's, whose float32 are exact.
func element(format wire.Format, rng *rand.Rand) (bits uint32, add func(a, b uint32) uint32) {
	if format == wire.Int32 {
		return rng.Uint32(), func(a, b uint32) uint32 { return a + b }
	}
	value := float32(rng.IntN(1<<20)-1<<19) / 1024
	return math.Float32bits(value), func(a, b uint32) uint32 {
		return math.Float32bits(math.Float32frombits(a) + math.Float32frombits(b))
	}
}

// sum sums arrays in place, and checks every bit on each rank.
func (t *team) sum(format wire.Format, elements int, seed uint64) {
	t.Helper()
	arrays, want := make([][]byte, len(t.members)), make([]byte, 4*elements)
	for rank := range arrays {
		rng := rand.New(rand.NewPCG(seed, uint64(rank)))
		arrays[rank] = make([]byte, 4*elements)
		for i := 0; i < 4*elements; i += 4 {
			bits, add := element(format, rng)
			binary.LittleEndian.PutUint32(arrays[rank][i:], bits)
			binary.LittleEndian.PutUint32(want[i:], add(binary.LittleEndian.Uint32(want[i:]), bits))
		}
	}
	for rank, err := range t.each(t.all(), func(rank int) error {
		return t.members[rank].AllReduceBytes(t.Context(), arrays[rank], arrays[rank])
	}) {
		require.NoError(t, err, "rank %d", rank)
		require.True(t, bytes.Equal(want, arrays[rank]), "rank %d", rank)
	}
}

// finish closes the job on all ranks.
func (t *team) finish() {
	t.Helper()
	for rank, err := range t.each(t.all(), func(rank int) error { return t.members[rank].Job().Close(t.Context()) }) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// bubble returns a test that runs in a bubble.
func bubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// TestSums: members join by ticket, and every bit of every sum is right, whatever the number of packets.
// After the barrier the connections are removed. Later jobs follow, more than the card holds at once.
func TestSums(t *testing.T) {
	for _, format := range []wire.Format{wire.Int32, wire.FP32} {
		for _, ranks := range []int{2, 3} {
			t.Run(fmt.Sprint(format, " ", ranks), bubble(func(t *testing.T) {
				f := newFabric(t, format, ranks)
				address := f.serve()
				cards := f.openAll(address)
				for round := range 3 {
					team := gather(f, cards, driver.JobConfig{})
					number := team.job.Number()
					for port := range ranks {
						assert.NotZero(t, f.register(address, wire.JobConnectionAddr(number, port)), "port %d", port)
					}
					for i, elements := range []int{1, 64, 65, 1000, 4321} {
						team.sum(format, elements, uint64(10*round+i))
					}
					team.finish()
					await(t, func() bool { return f.register(address, wire.JobConnectionAddr(number, 0)) == 0 })
					assert.Zero(t, f.queuePairs())
				}
			}))
		}
	}
}

// TestQueuedCalls: several calls of a rank are on their way at once.
func TestQueuedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.FP32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{})
		arrays := make([][][]float32, 2)
		for rank, err := range team.each(team.all(), func(rank int) error {
			var calls []*driver.Pending
			for n := range 5 {
				arrays[rank] = append(arrays[rank], []float32{float32(n), float32(100 * rank)})
				p, err := team.members[rank].StartAllReduce(t.Context(), arrays[rank][n], driver.WithMean())
				if err != nil {
					return err
				}
				calls = append(calls, p)
			}
			for _, p := range calls {
				if err := p.Wait(t.Context()); err != nil {
					return err
				}
			}
			return nil
		}) {
			require.NoError(t, err, "rank %d", rank)
			for n, sum := range arrays[rank] {
				assert.Equal(t, []float32{float32(n), 50}, sum, "rank %d", rank)
			}
		}
		team.finish()
	})
}

// TestLostPackets: the queue pairs repeat what cables lose, and every bit is right.
func TestLostPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 3)
		address := f.serve()
		var cards []*driver.Card
		for host := range f.hosts {
			cards = append(cards, f.openOn(address, &stack{fabric: f, host: host, mtu: 256, timeout: 12}))
		}
		f.mu.Lock()
		for _, faults := range f.cables {
			faults.Loss = 0.02
		}
		f.mu.Unlock()
		team := gather(f, cards, driver.JobConfig{})
		team.sum(wire.Int32, 20_000, 1)
		f.mu.Lock()
		lost := f.room.Counters().Lost
		f.mu.Unlock()
		assert.Greater(t, lost, 10)
		team.finish()
	})
}

// failed checks that ranks have got an error of a kind.
func failed[E error](t *team, errs map[int]error) (by map[int]E) {
	t.Helper()
	by = map[int]E{}
	for rank, err := range errs {
		var want E
		require.ErrorAs(t, err, &want, "rank %d", rank)
		by[rank] = want
	}
	return by
}

// TestARankNeverCalls: the deadline ends the job, and all ranks hear which one did not come.
func TestARankNeverCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 3)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{Deadline: 50 * time.Millisecond})
		errs := team.each([]int{0, 1}, func(rank int) error {
			return team.members[rank].AllReduceBytes(t.Context(), make([]byte, 4000), make([]byte, 4000))
		})
		errs[2] = team.members[2].AllReduceBytes(t.Context(), make([]byte, 4000), make([]byte, 4000))
		for _, err := range failed[*driver.MemberFailedError](team, errs) {
			assert.Equal(t, []int{2}, err.Ranks)
			assert.Contains(t, err.Text, "came later than 50ms")
		}
		await(t, func() bool { return f.queuePairs() == 0 })
	})
}

// TestARankNeverFinishes: the barrier has the same deadline.
func TestARankNeverFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{Deadline: 50 * time.Millisecond})
		team.sum(wire.Int32, 100, 1)
		errs := team.each([]int{1}, func(rank int) error { return team.members[rank].Job().Close(t.Context()) })
		assert.Equal(t, []int{0}, failed[*driver.MemberFailedError](team, errs)[1].Ranks)
	})
}

// TestARankFinishesEarly: a rank that has finished without a call of the others is named to all ranks.
func TestARankFinishesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 3)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{Deadline: 50 * time.Millisecond})
		errs := team.each(team.all(), func(rank int) error {
			if rank == 2 {
				return team.members[rank].Job().Close(t.Context())
			}
			return team.members[rank].AllReduceBytes(t.Context(), make([]byte, 4000), make([]byte, 4000))
		})
		for _, err := range failed[*driver.MemberFailedError](team, errs) {
			assert.Equal(t, []int{2}, err.Ranks)
		}
		assert.Zero(t, team.members[0].Stats().Sent, "a call that not all have announced")
	})
}

// TestARankNeverJoins: the job does not start, and the ranks that are there hear which one is missing. Their
// queue pairs go.
func TestARankNeverJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 3)
		cards := f.openAll(f.serve())
		job, err := cards[0].Configure(t.Context(), driver.JobConfig{Workers: 3, Here: []int{0}, Wait: 50 * time.Millisecond})
		require.NoError(t, err)
		_, err = cards[1].Join(t.Context(), job.Ticket(), 2)
		require.NoError(t, err)
		var never *driver.NotStartedError
		require.ErrorAs(t, job.AwaitMembers(t.Context()), &never)
		assert.Equal(t, []int{1}, never.Missing)
		await(t, func() bool { return f.queuePairs() == 0 })
	})
}

// stall makes a host send nothing, so that a call stays in the middle, and waits until all others are in it.
func (t *team) stall(host int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cables[host].Loss = 1
}

// resume ends stall.
func (t *team) resume(host int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cables[host].Loss = 0
}

// inTheMiddle waits until all ranks have sent parts of a call.
func (t *team) inTheMiddle() {
	t.Helper()
	for _, m := range t.members {
		await(t, func() bool { return m.Stats().Sent > 0 })
	}
}

// TestARankLeaves: a process that ends in the middle of a call ends it on all ranks, long before their queue
// pairs would notice. The connections stay registered, because its queue pairs may live.
func TestARankLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 3)
		address := f.serve()
		cards := f.openAll(address)
		team := gather(f, cards, driver.JobConfig{})
		team.stall(1)
		go func() {
			team.inTheMiddle()
			cards[1].Close()
		}()
		errs := team.each(team.all(), func(rank int) error {
			return team.members[rank].AllReduceBytes(t.Context(), make([]byte, 40_000), make([]byte, 40_000))
		})
		assert.ErrorIs(t, errs[1], driver.ErrClosed)
		delete(errs, 1)
		for _, err := range failed[*driver.MemberLostError](team, errs) {
			assert.Equal(t, []int{1}, err.Ranks)
		}
		await(t, func() bool { return f.queuePairs() == 0 })
		assert.NotZero(t, f.register(address, wire.JobConnectionAddr(0, 0)))
	})
}

// TestAQueuePairFails: a rank whose retries end is named to all ranks.
func TestAQueuePairFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 3)
		address := f.serve()
		var cards []*driver.Card
		for host := range f.hosts {
			s := &stack{fabric: f, host: host, mtu: 256}
			if host == 1 {
				s.timeout = 8 // 7 ms with all retries; the others' are 30 s
			}
			cards = append(cards, f.openOn(address, s))
		}
		team := gather(f, cards, driver.JobConfig{})
		team.stall(1)
		errs := team.each(team.all(), func(rank int) error {
			return team.members[rank].AllReduceBytes(t.Context(), make([]byte, 40_000), make([]byte, 40_000))
		})
		for _, err := range failed[*driver.MemberFailedError](team, errs) {
			assert.Equal(t, []int{1}, err.Ranks)
			assert.Contains(t, err.Text, "retries exceeded")
		}
		await(t, func() bool { return f.register(address, wire.JobConnectionAddr(0, 0)) == 0 })
		assert.Zero(t, f.queuePairs())
	})
}

// TestACallIsGivenUp: a rank whose context ends in the middle of a call ends it on all.
func TestACallIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{})
		team.stall(0)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			team.inTheMiddle()
			cancel()
		}()
		errs := team.each(team.all(), func(rank int) error {
			of := map[int]context.Context{0: ctx, 1: t.Context()}[rank]
			return team.members[rank].AllReduceBytes(of, make([]byte, 40_000), make([]byte, 40_000))
		})
		assert.ErrorIs(t, errs[0], context.Canceled)
		var ended *driver.EndedError
		require.ErrorAs(t, errs[1], &ended)
		assert.ErrorContains(t, errs[1], "ranks [0] aborted")
	})
}

// TestADetachedCall: a rank that waits no longer goes on for the others, and with its next calls.
func TestADetachedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.FP32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{})
		team.stall(0)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			team.inTheMiddle()
			cancel()
		}()
		arrays := [][]float32{make([]float32, 10_000), make([]float32, 10_000)}
		errs := team.each(team.all(), func(rank int) error {
			for i := range arrays[rank] {
				arrays[rank][i] = float32(i + rank)
			}
			if rank == 1 {
				return team.members[1].AllReduce(t.Context(), arrays[1])
			}
			defer team.resume(0)
			return team.members[0].AllReduce(ctx, arrays[0], driver.WithDetach())
		})
		assert.ErrorIs(t, errs[0], context.Canceled)
		require.NoError(t, errs[1])
		for i, sum := range arrays[1] {
			require.Equal(t, float32(2*i+1), sum)
			require.Equal(t, float32(i), arrays[0][i], "of a rank that had gone")
		}
		team.sum(wire.FP32, 1000, 1)
		team.finish()
	})
}

// TestALateRank: the others wait for a rank until the deadline, longer than for a card, in a call and at the end.
func TestALateRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{})
		late := func(do func(m *driver.Member) error) {
			t.Helper()
			for rank, err := range team.each(team.all(), func(rank int) error {
				if rank == 1 {
					time.Sleep(55 * time.Second)
				}
				return do(team.members[rank])
			}) {
				require.NoError(t, err, "rank %d", rank)
			}
		}
		late(func(m *driver.Member) error {
			return m.AllReduceBytes(t.Context(), make([]byte, 4000), make([]byte, 4000))
		})
		late(func(m *driver.Member) error { return m.Job().Close(t.Context()) })
	})
}

// TestOtherCalls: ranks that call for arrays of other lengths get an error, and nothing is summed.
func TestOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{})
		errs := team.each(team.all(), func(rank int) error {
			array := make([]byte, 4*(100+rank))
			return team.members[rank].AllReduceBytes(t.Context(), array, array)
		})
		for _, err := range failed[*driver.CallsDifferError](team, errs) {
			assert.ElementsMatch(t, []int{0, 1}, err.Ranks)
		}
		assert.Zero(t, team.members[0].Stats().Sent+team.members[1].Stats().Sent)
	})
}

// TestOtherMTU: a rank with another MTU is refused by name, and its seat is free for another process.
func TestOtherMTU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		address := f.serve()
		cards := f.openAll(address)
		job, err := cards[0].Configure(t.Context(), driver.JobConfig{Workers: 2, Here: []int{0}})
		require.NoError(t, err)
		other := f.openOn(address, &stack{fabric: f, host: 1, mtu: 256, claims: 512})
		_, err = other.Join(t.Context(), job.Ticket(), 1)
		var wrong *driver.InputError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, "MTU", wrong.What)
		assert.ErrorContains(t, err, "rank 1 has packets of 512 bytes, the job of 256")
		m, err := cards[1].Join(t.Context(), job.Ticket(), 1)
		require.NoError(t, err)
		team := &team{f, job, []*driver.Member{job.Member(0), m}}
		team.sum(wire.Int32, 1000, 1)
		team.finish()

		small := f.openOn(address, &stack{fabric: f, host: 1, mtu: 256}) // whose port cannot
		_, err = small.Configure(t.Context(), driver.JobConfig{Workers: 2, Here: []int{1}, Chunk: 1024})
		require.ErrorContains(t, err, "the port has an MTU of 256, the job one of 4096")
		await(t, func() bool { return f.queuePairs() == 0 })
	})
}

// TestRefusedJobs: what cannot be a job of RDMA connections.
func TestRefusedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		address := f.serve()
		cards := f.openAll(address)
		for what, cfg := range map[string]driver.JobConfig{
			"partial sums": {Partial: true, Deadline: time.Second}, "carry on": {CarryOn: time.Second}, "first VID": {FirstVID: 1},
			"chunk": {Chunk: 60}, "workers": {Workers: 1}, "deadline in cycles": {DeadlineCycles: 1000},
		} {
			if cfg.Workers == 0 {
				cfg.Workers = 2
			}
			cfg.Here = []int{0}
			_, err := cards[0].Configure(t.Context(), cfg)
			var wrong *driver.InputError
			require.ErrorAs(t, err, &wrong, what)
			assert.Equal(t, what, wrong.What)
		}
		plain, err := driver.OpenConn(t.Context(), "serve:", address.session(t))
		require.NoError(t, err)
		defer plain.Close()
		_, err = plain.Configure(t.Context(), driver.JobConfig{})
		assert.ErrorContains(t, err, "open it as roce:")

		all, err := cards[0].Configure(t.Context(), driver.JobConfig{Workers: 2}) // both ranks in one process, at one host
		require.NoError(t, err)
		assert.ErrorContains(t, all.ReduceBytes(t.Context(), make([]byte, 16), [][]byte{make([]byte, 16), make([]byte, 16)}), "each rank with RDMA connections calls for itself")
	})
}

// TestOtherShell: a daemon's card of another shell has no jobs of RDMA connections.
func TestOtherShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card, err := driver.Open(t.Context(), "model:workers=2")
		require.NoError(t, err)
		at, _ := serveCard(t, card)
		f := newFabric(t, wire.Int32, 2)
		other := f.openOn(at, &stack{fabric: f, mtu: 256})
		_, err = other.Configure(t.Context(), driver.JobConfig{})
		assert.ErrorContains(t, err, "open it as serve:")
	})
}

// TestALeaveBeforeTheBarrier: a rank that has finished, and goes before the others have, ends the job: they
// may need its queue pairs.
func TestALeaveBeforeTheBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 3)
		cards := f.openAll(f.serve())
		team := gather(f, cards, driver.JobConfig{})
		team.sum(wire.Int32, 100, 1)
		ctx, cancel := context.WithCancel(t.Context())
		closed := make(chan error)
		go func() { closed <- team.members[2].Job().Close(ctx) }()
		synctest.Wait()
		assert.Empty(t, closed)
		cards[2].Close()
		cancel()
		assert.Error(t, <-closed)
		synctest.Wait() // the daemon knows that the rank has gone
		errs := team.each([]int{0, 1}, func(rank int) error { return team.members[rank].Job().Close(t.Context()) })
		for _, err := range failed[*driver.MemberLostError](team, errs) {
			assert.Equal(t, []int{2}, err.Ranks)
		}
	})
}

// TestTheDaemonEnds: the members' calls end with it, and their queue pairs go.
func TestTheDaemonEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{})
		team.stall(0)
		go func() {
			team.inTheMiddle()
			f.stop()
		}()
		errs := team.each(team.all(), func(rank int) error {
			return team.members[rank].AllReduceBytes(t.Context(), make([]byte, 40_000), make([]byte, 40_000))
		})
		for rank, err := range errs { // its word, or the end of the session
			assert.Error(t, err, "rank %d", rank)
		}
		await(t, func() bool { return f.queuePairs() == 0 })
	})
}

// TestTheCardGoes: the card loses its power, and all ranks hear it.
func TestTheCardGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, wire.Int32, 2)
		team := gather(f, f.openAll(f.serve()), driver.JobConfig{})
		team.stall(0)
		go func() {
			team.inTheMiddle()
			f.Close()
		}()
		errs := team.each(team.all(), func(rank int) error {
			return team.members[rank].AllReduceBytes(t.Context(), make([]byte, 40_000), make([]byte, 40_000))
		})
		failed[*driver.DiedError](team, errs)
		await(t, func() bool { return f.queuePairs() == 0 })
	})
}
