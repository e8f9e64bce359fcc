package connections_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/rc"
	"tributary/driver/virtual/ring"
	"tributary/driver/wire"
	"tributary/verify/system/connections"
	"tributary/verify/system/frames"
)

// array returns that of a rank of a job.
func array(number, rank, size int) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(uint64(rank), uint64(number)))
	for i := 0; i < size; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], r.Uint32())
	}
	return b
}

// sum returns the sum of all ranks' arrays.
func sum(number int, job rc.Job) []byte {
	all := make([]byte, job.Bytes)
	for rank := range job.Ranks {
		for i, own := 0, array(number, rank, job.Bytes); i < len(own); i += 4 {
			binary.LittleEndian.PutUint32(all[i:], binary.LittleEndian.Uint32(all[i:])+binary.LittleEndian.Uint32(own[i:]))
		}
	}
	return all
}

// round is a job of workers around a card.
type round struct {
	*site
	*ring.Ring
	job rc.Job
}

// begin registers the connections of a ring of workers, and connects them.
func (s *site) begin(job rc.Job, seed uint64, faults cable.Faults) *round {
	s.Helper()
	s.drain()
	s.data = nil
	r, err := ring.New(s.card, ring.Config{Job: job, Seed: seed, Faults: faults, OneArmed: s.ethernet == 1, CardMAC: [6]byte(frames.CardMAC)})
	require.NoError(s, err)
	var members []member
	offers := r.Offers()
	for rank, o := range offers {
		m := member{o.Address, 0, offers[r.Next(rank)].TakeQPN, o.FirstPSN, r.Next(rank)}
		if s.ethernet > 1 {
			m.at = rank
		}
		members = append(members, m)
	}
	window := 1
	for window < job.Window {
		window *= 2
	}
	s.stage(members, job.MTU, window)
	s.commit(0)
	s.grown() // since a round that failed
	s.drain()
	if g, ok := s.card.(*connections.Simulated); ok {
		g.Restart()
	}
	require.NoError(s, r.Connect())
	return &round{s, r, job}
}

// start lets ranks start.
func (r *round) start(ranks ...int) {
	r.Helper()
	for _, rank := range ranks {
		require.NoError(r, r.Workers[rank].Start(array(0, rank, r.job.Bytes)))
	}
}

// startAll lets all ranks start.
func (r *round) startAll() {
	r.Helper()
	for rank := range r.Workers {
		r.start(rank)
	}
}

// finish runs the job, checks every element at every rank, and returns by how much the counters have grown.
func (r *round) finish() counts {
	r.Helper()
	require.True(r, r.Run(10*time.Minute), "not done in ten minutes")
	require.NoError(r, r.card.Err())
	want := sum(0, r.job)
	for rank, w := range r.Workers {
		got, _, err := w.Outcome()
		require.NoError(r, err, "rank %d", rank)
		r.equal(want, got, rank)
	}
	return r.end()
}

// fail runs the job until every rank has the same error. What they received before is right.
func (r *round) fail() counts {
	r.Helper()
	require.True(r, r.Run(10*time.Minute), "not done in ten minutes")
	require.NoError(r, r.card.Err())
	want := sum(0, r.job)
	for rank, w := range r.Workers {
		_, _, err := w.Outcome()
		var failed *rc.RankError
		require.ErrorAs(r, err, &failed, "rank %d", rank)
		r.equal(want[:len(w.Received())], w.Received(), rank)
	}
	return r.end()
}

// equal checks elements at a rank.
func (r *round) equal(want, got []byte, rank int) {
	r.Helper()
	for i := range want {
		if want[i] != got[i] {
			require.Fail(r, "a wrong element", "rank %d, byte %d", rank, i)
		}
	}
}

// end checks what left, and returns by how much the watched counters have grown.
func (r *round) end() counts {
	r.Helper()
	r.drain()
	r.inOrder()
	grown := r.grown()
	assert.Zero(r, grown["statuses"])
	return grown
}

// inOrder checks that sums left on each connection in the order of their PSNs, but for those that were released
// early and for repeats.
func (r *round) inOrder() {
	r.Helper()
	next, early := map[uint32]int{}, map[uint32]bool{}
	first := map[uint32]uint32{}
	for rank, w := range r.Workers {
		first[r.Workers[r.Next(rank)].Offer().TakeQPN] = w.Offer().FirstPSN
	}
	for _, frame := range r.data {
		p, _ := rc.Parse(frame)
		psn, ok := first[p.BTH.DestQP]
		if !ok {
			continue // of a lie
		}
		at := p.BTH.DestQP
		switch ahead := wire.PSNsFrom(psn, p.BTH.PSN) - next[at]; {
		case ahead == 0:
			next[at]++
			early[at] = false
		case ahead == 1:
			assert.False(r, early[at], "twice ahead of %d", next[at])
			early[at] = true
		case ahead > 1:
			assert.Fail(r, "out of order", "%d before %d", next[at]+ahead, next[at])
		}
	}
}

// small is a job of messages of 3 packets, 2 in flight. The last message has 2, and its tail is padded. All
// PSNs wrap within it.
func small(ranks int, write bool) rc.Job {
	return rc.Job{Ranks: ranks, Bytes: 40*3*256 - 300, MTU: 256, Packets: 3, Window: 8, Write: write, Timeout: 8, Retries: 6, Deadline: 5 * time.Minute}
}

// smallPackets is the number of packets of a small job on a connection.
const smallPackets = 40*3 - 1

// name names a job.
func name(job rc.Job) string {
	verb := "SEND"
	if job.Write {
		verb = "WRITE"
	}
	return fmt.Sprintf("%d ranks, %s", job.Ranks, verb)
}

// withoutFaults: every packet leaves once, and no queue pair repeats any. Each counter is the Go model's for
// the same job, except two: how many ACKs merge into one depends on the time, so those that pass are counted here;
// and the gateware releases a sum to as many connections at once as can take it, as one result.
func withoutFaults(t *testing.T, s *site, job rc.Job) {
	passing := "passed"
	if s.ethernet == 1 {
		passing = "relayed"
	}
	run := func(s *site) counts {
		r := s.begin(job, 1, cable.Faults{})
		n := uint64(0)
		for _, w := range r.Workers {
			w.Tamper = func(p *rc.Packet) {
				if !connections.IsData(p) {
					n++
				}
			}
		}
		r.startAll()
		grown := r.finish()
		for rank, w := range r.Workers {
			send, take := w.Pairs()
			a, b := send.Stats(), take.Stats()
			assert.Zero(t, a.Repeats+a.NAKs+a.Timeouts+b.Duplicates+b.NAKsSent, "rank %d", rank)
		}
		assert.Positive(t, n)
		assert.Equal(t, n, grown[passing])
		assert.GreaterOrEqual(t, grown["results"], uint64(smallPackets))
		return grown.without(passing, "results")
	}
	assert.Equal(t, run(software(t, s.geometry)), run(s))
	assert.Len(t, s.data, smallPackets*job.Ranks)
}

// Places of a packet that is lost.
const (
	before = iota
	behind
)

// lose loses the first frame on a rank's cable that lost chooses, before the card or behind it.
func (r *round) lose(rank, where int, lost func(p *rc.Packet) bool) (done *bool) {
	done = new(bool)
	r.Cables[rank].Drop = func(from cable.Port, frame []byte) bool {
		p, err := rc.Parse(frame)
		if *done || err != nil || (from.Device == ring.Device(rank)) != (where == before) || where == behind && p.To.IP != ring.Address(rank).IP || !lost(&p) {
			return false
		}
		*done = true
		return true
	}
	return done
}

// othersSawNothing checks that no connection but that of a rank saw a NAK, a repeat or a duplicate.
func (r *round) othersSawNothing(rank int) {
	r.Helper()
	for other, w := range r.Workers {
		send, _ := w.Pairs()
		_, take := r.Workers[r.Next(other)].Pairs()
		a, b := send.Stats(), take.Stats()
		if other == rank {
			assert.Positive(r, a.Repeats)
			continue
		}
		assert.Zero(r, a.Repeats+a.NAKs+a.Timeouts+b.OutOfOrder+b.NAKsSent+b.Duplicates, "the connection of rank %d", other)
	}
}

// oneLost: the first, a middle and the last packet of rank 0 is lost, before the card or behind it, and then
// its last ACK. Only rank 0's connection sees a NAK or a repeat. A packet that others follow is repeated after
// a NAK, because the card has released the next sum early; no timer ends.
func oneLost(t *testing.T, s *site, job rc.Job) {
	const last = smallPackets - 1
	data := func(vid int) func(p *rc.Packet) bool {
		return func(p *rc.Packet) bool {
			return connections.IsData(p) && p.BTH.PSN == wire.AddPSN(ring.FirstPSN(0), vid)
		}
	}
	for _, vid := range []int{0, 37, last} {
		r := s.begin(job, 1, cable.Faults{})
		lost := r.lose(0, before, data(vid))
		r.startAll()
		grown := r.finish()
		assert.True(t, *lost)
		send, _ := r.Workers[0].Pairs()
		if vid != last { // which no packet follows: the timers of all end
			r.othersSawNothing(0)
			assert.Equal(t, 1, send.Stats().NAKs)
			assert.Zero(t, send.Stats().Timeouts)
			assert.EqualValues(t, 1, grown["released_early"])
		}
		assert.EqualValues(t, smallPackets*job.Ranks, grown["stored"])

		r = s.begin(job, 1, cable.Faults{})
		lost = r.lose(1, behind, data(vid))
		r.startAll()
		grown = r.finish()
		assert.True(t, *lost)
		r.othersSawNothing(0)
		assert.Positive(t, grown["replays"])
		assert.Zero(t, grown["released_early"])
	}
	r := s.begin(job, 1, cable.Faults{})
	lost := r.lose(0, behind, func(p *rc.Packet) bool {
		return !connections.IsData(p) && p.BTH.PSN == wire.AddPSN(ring.FirstPSN(0), last)
	})
	r.startAll()
	grown := r.finish()
	assert.True(t, *lost)
	r.othersSawNothing(0)
	assert.Positive(t, grown["replays"])
}

// faulty runs a job on cables with faults. Whatever they are, each sum leaves once in its turn, and each
// packet of a rank is stored once.
func faulty(t *testing.T, s *site, job rc.Job, seed uint64, faults cable.Faults) {
	r := s.begin(job, seed, faults)
	r.startAll()
	grown := r.finish()
	packets := (job.Bytes + job.MTU - 1) / job.MTU
	assert.EqualValues(t, packets, grown["chunks"])
	assert.EqualValues(t, packets*job.Ranks, grown["stored"])
	assert.Positive(t, grown["replays"]+grown["duplicate"])
	t.Logf("%s, %d packets: %+v, %v", name(job), packets, r.Room.Counters(), grown)
}

// lies has a rank that lies, and what else ends a job: a rank that never starts, a queue pair that is reset,
// and an owner that leaves. No element is wrong, and a job that follows is right.
func lies(t *testing.T, s *site, job rc.Job) {
	job.Retries = 2
	for _, lie := range connections.Lies {
		r := s.begin(job, 1, cable.Faults{})
		r.Workers[0].Tamper = lie.Tamper
		r.startAll()
		if lie.Harmless {
			r.finish()
		} else {
			t.Log(lie.Name, r.fail())
		}
	}
	r := s.begin(job, 1, cable.Faults{})
	r.start(1)
	assert.Zero(t, r.fail()["results"])

	r = s.begin(job, 1, cable.Faults{})
	r.startAll()
	r.Run(20 * time.Microsecond)
	_, take := r.Workers[1].Pairs()
	take.Reset()
	r.fail()

	r = s.begin(job, 1, cable.Faults{})
	r.startAll()
	r.Run(20 * time.Microsecond)
	s.write(wire.RegJobAbort, s.epochs[0]<<32)
	assert.Positive(t, r.fail()["bad_job"])

	r = s.begin(job, 1, cable.Faults{})
	r.startAll()
	r.finish()
}

// everything runs all rounds on a card: of each kind one, or with -long many.
func everything(t *testing.T, s *site) {
	run := func(name string, round func(t *testing.T, s *site)) {
		t.Run(name, func(t *testing.T) {
			was := s.TB
			s.TB = t
			defer func() { s.TB, s.data = was, nil }()
			round(t, s)
		})
	}
	armed := s.ethernet == 1
	for _, ranks := range []int{2, 3} {
		for _, write := range []bool{false, true} {
			job := small(ranks, write)
			run(name(job), func(t *testing.T, s *site) { withoutFaults(t, s, job) })
			if *long || (ranks == 2) == armed && write != armed {
				run(name(job)+", one packet lost", func(t *testing.T, s *site) { oneLost(t, s, job) })
			}
			if *long || ranks == 3 && write == armed {
				again := job
				if !armed || *long {
					again.Bytes = 330 * 256 // each of 16 slots 20 times
				}
				run(name(job)+", 2 % lost", func(t *testing.T, s *site) { faulty(t, s, again, 1, cable.Faults{Loss: 0.02}) })
			}
			if *long || ranks == 2 && !write && !armed {
				alone := job // each packet behind a lost one waits for its timer, and the other ranks' retries go on
				alone.OldestAlone, alone.Packets, alone.Window = true, 1, 2
				run(name(job)+", oldest alone", func(t *testing.T, s *site) { faulty(t, s, alone, 2, cable.Faults{Loss: 0.02}) })
			}
			if *long || ranks == 3 && write && !armed {
				run(name(job)+", all faults", func(t *testing.T, s *site) {
					faulty(t, s, job, 3, cable.Faults{Loss: 0.02, Twice: 0.05, Jitter: 5 * time.Microsecond, Damage: 0.02})
					judge(t, s.data)
				})
			}
			if *long || ranks == 2 && write && !armed {
				run(name(job)+", lies", func(t *testing.T, s *site) { lies(t, s, job) })
			}
		}
	}
}

// long is for hours in which nobody waits.
var long = flag.Bool("long", false, "run each kind of round with each job, and on cards with other words")

// TestGateware runs bad input and rounds on a card in path and on a one-armed card.
func TestGateware(t *testing.T) {
	for _, g := range cards() {
		t.Run(g.String(), func(t *testing.T) {
			program := build(t, g)
			t.Run("bad input", func(t *testing.T) { badInput(t, gateware(t, g, program)) })
			everything(t, gateware(t, g, program))
			if g.ethernet > 1 {
				t.Run("captures", func(t *testing.T) { captures(t, g, program) })
				t.Run("two jobs", func(t *testing.T) { twoJobs(t, gateware(t, g, program)) })
			}
		})
	}
}

// cards returns those of a run: in path and one-armed, and with -long also with other words.
func cards() []geometry {
	all := []geometry{inPath, oneArmed}
	if *long {
		all = append(all, wide, narrow)
	}
	return all
}

// TestNetReducesFigures: payloads of 1 KiB, 170 packets a message, 2 messages in flight, on a card with words of
// 8 bits: without a loss, and with some.
func TestNetReducesFigures(t *testing.T) {
	if !*long {
		t.Skip("of -long")
	}
	g := geometry{ethernet: 3, link: 8, lanes: 4, ranks: 3, mtu: 1024, window: 512, jobs: 1}
	s := gateware(t, g, build(t, g))
	for _, ranks := range []int{2, 3} {
		job := rc.Job{Ranks: ranks, Bytes: 5*170*1024 + 4, MTU: 1024, Packets: 170, Window: 340, Write: ranks == 3, Timeout: 12, Retries: 6}
		r := s.begin(job, 1, cable.Faults{})
		r.startAll()
		grown := r.finish()
		assert.Zero(t, grown["duplicate"])
		assert.EqualValues(t, (5*170+1)*ranks, grown["stored"])
		assert.Equal(t, 2, r.Workers[0].Ahead())
		faulty(t, s, job, 1, cable.Faults{Loss: 0.005})
	}
}
