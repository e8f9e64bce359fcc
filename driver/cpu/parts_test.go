// The parts of the engine, alone.

package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
)

func TestCountersHaveTheTablesNames(t *testing.T) {
	for c, name := range map[counter]string{
		countFrames: "frames", countStored: "stored", countAsks: "asks", countFinishes: "finishes", countChunks: "chunks",
		countBeats: "beats", countResults: "results", countReplays: "replays", countStatuses: "statuses",
		countNonfiniteIn: "nonfinite_in", countNonfiniteOut: "nonfinite_out", countOverflow: "overflow",
		countUndecided: "undecided", countStalled: "stalled", countCE: "ce", countOverdue: "overdue", countPartial: "partial",
		countEvictions: "evictions", countHunted: "hunted", countHeaderCRC: "header_crc", countLinkDown: "link_down",
	} {
		assert.Equal(t, name, wire.Counters[c].Name)
	}
	for _, c := range wire.Counters {
		if c.Refuse != 0 {
			assert.Equal(t, c.Name, wire.Counters[refusals[c.Refuse]].Name)
		}
	}
}

func TestATallyStops(t *testing.T) {
	var y tally
	y.add(0, 7)
	assert.Zero(t, y)
	y.add(math.MaxUint32-1, 8)
	y.add(5, 9)
	assert.Equal(t, tally{math.MaxUint32, 1<<63 | 8}, y)
}

// TestList plays random operations to a list and to a slice.
func TestList(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	slots := make([]slot, 10)
	for i := range slots {
		slots[i].number, slots[i].queue.slot = i, &slots[i]
	}
	var l list
	var want []int
	for range 10_000 {
		i := r.IntN(len(slots))
		e := &slots[i].queue
		at := slices.Index(want, i)
		switch {
		case at >= 0 || r.IntN(8) == 0: // also from no list
			e.leave()
			if at >= 0 {
				want = slices.Delete(want, at, at+1)
			}
		case len(want) == 0 || r.IntN(2) == 0:
			l.push(e)
			want = append(want, i)
		default:
			before := r.IntN(len(want) + 1)
			var after *element
			if before > 0 {
				after = &slots[want[before-1]].queue
			}
			l.insert(after, e)
			want = slices.Insert(want, before, i)
		}
		var forth, back []int
		for e := l.first; e != nil; e = e.next {
			forth = append(forth, e.slot.number)
		}
		for e := l.last; e != nil; e = e.prev {
			back = append(back, e.slot.number)
		}
		slices.Reverse(back)
		require.True(t, slices.Equal(want, forth) && slices.Equal(want, back), "want %v, got %v and %v", want, forth, back)
	}
}

func TestLagBuckets(t *testing.T) {
	assert.Equal(t, 0, lagBucket(true, 0))
	for cycles, bucket := range map[uint64]int{
		0: 1, 1: 1, 3: 1, 4: 2, 15: 2, 16: 3, 63: 3, 64: 4, 1<<28 - 1: 14, 1 << 28: 15, 1 << 40: 15, math.MaxUint64: 15,
	} {
		assert.Equal(t, bucket, lagBucket(false, cycles), "%d cycles", cycles)
	}
}

func TestPortsAndRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		var j job
		j.place(r.Uint64()&r.Uint64() | 1<<r.IntN(64))
		for range 10 {
			ready := r.Uint64()
			ranks := j.ranksOf(ready)
			assert.Equal(t, ready&j.ports, j.portsOf(ranks))
			assert.Zero(t, ranks&^j.all)
		}
		assert.Equal(t, j.all, j.ranksOf(AllPorts))
		assert.Equal(t, j.ports, j.portsOf(j.all))
		for rank := range j.ranks {
			assert.True(t, j.has(uint8(rank), int(j.portOf[rank])))
		}
		assert.False(t, j.has(uint8(j.ranks), 0))
	}
}

func TestValidate(t *testing.T) {
	good := Config{Lanes: 2, Ports: 4, Chunk: 1014, Window: 8, Shell: wire.ShellStream, Link: 8}
	assert.NoError(t, good.Validate())
	for name, change := range map[string]func(*Config){
		"lanes: 0 is not a power of two":   func(c *Config) { c.Lanes = 0 },
		"lanes: 3 ":                        func(c *Config) { c.Lanes = 3 },
		"lanes: 128 ":                      func(c *Config) { c.Lanes = 128 },
		"ports: 0 ":                        func(c *Config) { c.Ports = 0 },
		"ports: 65 ":                       func(c *Config) { c.Ports = 65 },
		"chunk: -1 ":                       func(c *Config) { c.Chunk = -1 },
		"CHUNK is 5, not a multiple":       func(c *Config) { c.Chunk = 5 },
		"chunk: 65536 ":                    func(c *Config) { c.Chunk = 1 << 16 },
		"a result frame of 4102 bytes":     func(c *Config) { c.Chunk = 1016 },
		"window: 6 ":                       func(c *Config) { c.Window = 6 },
		"jobs: 3 ":                         func(c *Config) { c.Jobs = 3 },
		"jobs: 32 ":                        func(c *Config) { c.Jobs = 32 },
		"link: 24 ":                        func(c *Config) { c.Link = 24 },
		"LINK is 8, not 0":                 func(c *Config) { c.Shell = wire.ShellNone },
		"shell: there is no shell 9":       func(c *Config) { c.Shell = 9 },
		"sum: there is no sum 99":          func(c *Config) { c.Sum = 99 },
		"format: there is no format 9":     func(c *Config) { c.Format = 9 },
		"fp32 into bf16":                   func(c *Config) { c.Result = wire.BF16 },
		"saturating, but FORMAT is fp32":   func(c *Config) { c.Saturate = true },
		"stream with an up port":           func(c *Config) { c.Parent = true },
		"saturating, but only a sum that ": func(c *Config) { c.Saturate, c.Format, c.Sum = true, wire.Int32, wire.SumMax },
	} {
		c := good
		change(&c)
		assert.ErrorContains(t, c.Validate(), name)
		_, err := New(c)
		assert.ErrorContains(t, err, name)
	}
	err := Config{Lanes: 3, Ports: -1, Chunk: -1, Window: 5, Shell: 9}.Validate()
	for _, want := range []string{"lanes", "ports", "chunk", "window", "shell"} {
		assert.ErrorContains(t, err, want)
	}
}

// TestConfigsAreTheModels checks random configurations: what is valid, and its hash. The model also
// takes windows above the bound of WINDOW, which are left out.
func TestConfigsAreTheModels(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	valid := 0
	for range 2000 {
		c := arithmetics[r.IntN(len(arithmetics))]
		c.Lanes, c.Ports, c.Window, c.Jobs = 1<<r.IntN(9)>>1, r.IntN(66), 1<<r.IntN(12)>>1, 1<<r.IntN(7)>>1
		c.Chunk, c.Latency = c.Lanes*r.IntN(40)+r.IntN(2), r.IntN(1<<16)
		c.Shell, c.Link = wire.Shell(r.IntN(3)), 1<<r.IntN(10)>>1
		err, want := c.Validate(), twin(c).Validate()
		require.Equal(t, want == nil, err == nil, "%+v: %v, the model has %v", c, err, want)
		if err == nil {
			valid++
			require.Equal(t, twin(c).Hash(), c.Hash())
		}
	}
	assert.Greater(t, valid, 50)
}

// TestMemoryIsForSlotsInUse checks that a slot has no memory before it is used, and that its next
// chunk reuses it.
func TestMemoryIsForSlotsInUse(t *testing.T) {
	x := newSteps(t, Config{Lanes: 1, Ports: 2, Chunk: 4, Window: 1}, &script{}, heard{})
	x.commit(0, setup{ports: 3, chunk: 4, window: 1})
	s := &x.card.engine.slots[0]
	for i := range x.card.engine.slots {
		s := &x.card.engine.slots[i]
		require.True(t, s.rows == nil && s.memory == nil && s.cache == nil)
	}
	var memory [3]*byte
	for vid := range uint32(8) {
		for rank := range uint8(2) {
			p := x.data(0, rank, vid)
			x.handle(int(rank), &p)
		}
		require.True(t, x.next(AllPorts))
		now := [3]*byte{&s.memory[0][0], &s.memory[1][0], &s.cache[0]}
		require.True(t, vid == 0 || now == memory)
		require.Equal(t, vid == 0, x.card.engine.slots[1].memory == nil)
		memory = now
	}
}

// commit sets a job up in epoch 1.
func (x *steps) commit(number int, s setup) {
	x.t.Helper()
	for _, w := range [][2]uint64{
		{uint64(wire.RegOwner), token}, {uint64(wire.RegJobToken), token}, {uint64(wire.RegJobPorts), s.ports}, {uint64(wire.RegJobChunk), s.chunk},
		{uint64(wire.RegJobWindow), s.window}, {uint64(wire.RegJobDeadline), s.deadline}, {uint64(wire.RegJobCommit), uint64(number)<<48 | 1<<32 | uint64(s.first)},
	} {
		require.Equal(x.t, wire.CodeDone, x.write(uint32(w[0]), w[1]))
	}
	x.tenants[number] = tenant{setup: s, epoch: 1, base: s.first}
}

// TestManySlotsOverdueAtOnce: the notice that remains is of the last slot by number, not by time.
func TestManySlotsOverdueAtOnce(t *testing.T) {
	const window = wire.MaxWindow
	x := newSteps(t, Config{Lanes: 1, Ports: 2, Chunk: 1, Window: window}, &script{}, heard{})
	x.commit(0, setup{ports: 3, chunk: 1, window: window, deadline: 1 << 20})
	for _, vid := range rand.New(rand.NewPCG(9, 9)).Perm(2 * window) {
		p := x.data(0, 0, uint32(vid))
		x.handle(0, &p)
	}
	for range 3 {
		x.card.Advance(1 << 20)
		x.model.Advance(1 << 20)
		require.True(t, x.next(AllPorts))
		assert.EqualValues(t, 2*window-1, x.out.VID)
		x.compare()
		x.invariants()
	}
}

// TestGoroutines lets goroutines use a card at once, for the race detector. Every chunk is summed.
func TestGoroutines(t *testing.T) {
	const members, chunks = 4, 200
	x := newSteps(t, Config{Lanes: 1, Ports: members, Chunk: 4, Window: 4, Format: wire.Int32}, &script{}, heard{})
	x.commit(0, setup{ports: 1<<members - 1, chunk: 4, window: 4})
	sums := make([]chan Packet, members)
	var all sync.WaitGroup
	for rank := range sums {
		sums[rank] = make(chan Packet, 2*chunks)
	}
	stop := make(chan struct{})
	all.Go(func() { // delivers
		for {
			var p Packet
			ports, ok := x.card.Next(AllPorts, &p)
			for rank := range sums {
				if ok && ports>>rank&1 != 0 {
					sums[rank] <- p
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	var working sync.WaitGroup
	for rank := range sums {
		working.Go(func() {
			for vid := range uint32(chunks) {
				p := Packet{Header: frame.Header{
					Version: 2, Kind: wire.KindData, Format: wire.Int32, Epoch: 1, Rank: uint8(rank), VID: vid, Length: 4,
				}, Payload: make([]byte, 16)}
				p.Payload[0] = byte(rank + 1)
				x.card.Handle(rank, &p)
				if got := <-sums[rank]; got.VID != vid || got.Payload[0] != 1+2+3+4 {
					t.Errorf("rank %d, chunk %d: %+v", rank, vid, got)
				}
				x.card.Register(false, wire.RegCycles, 0)
				x.card.Pending()
				x.card.PortOf(0, uint8(rank))
				x.card.Advance(1)
			}
		})
	}
	working.Wait()
	close(stop)
	all.Wait()
}

// TestNoticeGoesToARankPerPacket compares a notice's order with the model's, by ports.
func TestNoticeGoesToARankPerPacket(t *testing.T) {
	x := newSteps(t, Config{Lanes: 1, Ports: 4, Chunk: 1, Window: 1}, &script{}, heard{})
	x.commit(0, setup{ports: 0b1011, chunk: 1, window: 1, deadline: 100})
	for _, rank := range []uint8{2, 0} {
		p := x.data(0, rank, 0)
		port, _ := x.card.PortOf(0, rank)
		x.handle(port, &p)
	}
	x.card.Advance(100)
	x.model.Advance(100)
	assert.False(t, x.next(0b0110))
	for _, want := range []struct {
		ready uint64
		rank  uint8
	}{{0b1000, 2}, {AllPorts, 0}} {
		require.True(t, x.next(want.ready))
		assert.Equal(t, model.Header{Version: 2, Kind: wire.KindStatus, Epoch: 1, Rank: want.rank, Code: wire.CodeOverdue, Mask: 0b010}, model.Header(x.out.Header))
	}
	assert.False(t, x.next(AllPorts))
}

// TestQueues compares the order of results with a search through all slots, while receivers are
// blocked at random.
func TestQueues(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	e, err := newEngine(Config{Lanes: 1, Ports: 3, Chunk: 1, Window: 4})
	require.NoError(t, err)
	j := &e.jobs[0]
	j.begin(1, setup{ports: 0b111, chunk: 1, window: 4}, e.slots)
	for i := range e.slots {
		e.slots[i].state, e.slots[i].held = reduced, j.all
	}
	sent := map[bool]int{}
	for range 20_000 {
		if r.IntN(2) == 0 {
			e.slots[r.IntN(len(e.slots))].owe(1 << r.IntN(3))
			continue
		}
		ready := r.Uint64() & j.all
		want, replay := search(e.slots, ready)
		var h frame.Header
		_, ports := e.next(ready, &h)
		if want == nil {
			require.Zero(t, ports)
			continue
		}
		require.Equal(t, want.vid, h.VID)
		require.Equal(t, replay, h.Kind == wire.KindReplay)
		sent[replay]++
		if r.IntN(4) == 0 {
			want.sent = 0 // as after a turnover
			want.enqueue()
		}
	}
	assert.Greater(t, min(sent[true], sent[false]), 1000)
}

// search returns the slot whose result leaves next to the ready ranks, and whether as a replay.
func search(slots []slot, ready uint64) (next *slot, replay bool) {
	for i := range slots {
		s := &slots[i]
		again := s.owed&ready&s.sent != 0
		switch {
		case s.owed&ready == 0 || replay && !again:
		case next == nil || again && !replay || s.turn < next.turn:
			next, replay = s, again
		}
	}
	return next, replay
}
