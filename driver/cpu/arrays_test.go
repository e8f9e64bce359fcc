package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/schedule"
	"tributary/driver/wire"
)

// outcome waits for the end of an exchange.
type outcome struct {
	mu     sync.Mutex
	left   int
	masks  map[int]uint64 // by chunk
	code   wire.Code
	ended  chan struct{}
	closed bool
}

func newOutcome(chunks int) *outcome {
	return &outcome{left: chunks, masks: map[int]uint64{}, ended: make(chan struct{})}
}

func (o *outcome) Summed(first, chunks int, ranks, _ uint64, _ uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := first; i < first+chunks; i++ {
		if _, twice := o.masks[i]; twice {
			panic("a chunk was reported twice")
		}
		o.masks[i] = ranks
	}
	if o.left -= chunks; o.left == 0 {
		o.end()
	}
}

func (o *outcome) Refused(_ int, _ uint32, code wire.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.code = code
	o.end()
}

func (o *outcome) end() {
	if !o.closed {
		o.closed = true
		close(o.ended)
	}
}

// owned returns a card with a job set up on the given ports.
func owned(t testing.TB, cfg Config, ports, chunk, window, deadline uint64, first uint32) *Card {
	card, err := New(cfg)
	require.NoError(t, err)
	for _, w := range []struct {
		addr  uint32
		value uint64
	}{
		{wire.RegOwner, 5}, {wire.RegJobToken, 5}, {wire.RegJobPorts, ports}, {wire.RegJobChunk, chunk},
		{wire.RegJobWindow, window}, {wire.RegJobDeadline, deadline}, {wire.RegJobCommit, 1<<32 | uint64(first)},
	} {
		code, _ := card.Register(true, w.addr, w.value)
		require.Equal(t, wire.CodeDone, code, "register %x", w.addr)
	}
	return card
}

// hostile returns an array for each of n members, with a few NaNs, infinities and large numbers.
func hostile(rng *rand.Rand, n, elements int) [][]byte {
	all := make([][]byte, n)
	for r := range all {
		for range elements {
			x := rng.Uint32()&^0x40000000 | 0x30000000
			switch rng.IntN(3000) {
			case 0:
				x = 0x7f800000 | rng.Uint32()&0x80000001
			case 1, 2:
				x = 0x7f7fffff
			}
			all[r] = binary.LittleEndian.AppendUint32(all[r], x)
		}
	}
	return all
}

// throughFrames sums arrays packet by packet.
func throughFrames(t testing.TB, card *Card, inputs [][]byte, chunk int, first uint32) []byte {
	j := &card.engine.jobs[0]
	var sum []byte
	elements := len(inputs[0]) / 4
	for i := 0; i*chunk < elements; i++ {
		for r, in := range inputs {
			part := append([]byte(nil), in[4*i*chunk:min(4*(i+1)*chunk, len(in))]...)
			part = append(part, make([]byte, 4*chunk-len(part))...)
			card.Handle(int(j.portOf[r]), &Packet{Payload: part, Header: frame.Header{
				Version: wire.Version, Kind: wire.KindData, Flags: uint8(wire.ECT0), Format: wire.FP32, Epoch: 1,
				Rank: uint8(r), VID: first + uint32(i), Length: uint16(chunk),
			}})
		}
		var p Packet
		_, ok := card.Next(AllPorts, &p)
		require.True(t, ok)
		require.Equal(t, wire.KindResult, p.Kind)
		require.Equal(t, first+uint32(i), p.VID)
		sum = append(sum, p.Payload...)
	}
	return sum[:4*elements]
}

// throughArrays sums arrays that groups of members hand over at the same time.
func throughArrays(t testing.TB, card *Card, inputs [][]byte, groups []uint64, chunk int, first uint32) [][]byte {
	elements := len(inputs[0]) / 4
	sums := make([][]byte, len(groups))
	var members sync.WaitGroup
	for g, ranks := range groups {
		x := &Exchange{Epoch: 1, Ranks: ranks, Elements: elements, Chunk: chunk, First: first}
		for left := ranks; left != 0; left &= left - 1 {
			x.Inputs = append(x.Inputs, inputs[bits.TrailingZeros64(left)])
		}
		sums[g] = make([]byte, 4*elements)
		if g%2 == 1 { // in place
			x.Inputs[0] = append([]byte(nil), x.Inputs[0]...)
			sums[g] = x.Inputs[0]
		}
		x.Sum = sums[g]
		o := newOutcome((elements + chunk - 1) / chunk)
		x.Observer = o
		members.Go(func() {
			card.Begin(x)
			<-o.ended
			card.Withdraw(x)
			if o.code != 0 {
				t.Errorf("refused: %v", o.code)
			}
		})
	}
	members.Wait()
	return sums
}

// TestArraysLikeFrames compares the two fronts: sums, registers, and the results that a member may
// ask for afterwards.
func TestArraysLikeFrames(t *testing.T) {
	const all = 0b11111
	for seed, groups := range [][]uint64{{all}, {0b10101, 0b01010}, {1, 2, 4, 8, 16}} {
		for _, elements := range []int{1, 7, 16, 17, 100, 3000, 90_001} {
			t.Run(fmt.Sprintf("%d groups, %d elements", len(groups), elements), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(seed), uint64(elements)))
				cfg := Config{Lanes: 4, Ports: 8, Chunk: 16, Window: 8}
				first, ports := rng.Uint32(), uint64(0b10110011)
				framed := owned(t, cfg, ports, 16, 4, 0, first)
				handed := owned(t, cfg, ports, 16, 4, 0, first)
				for call := range uint32(2) {
					vid := first + call*uint32((elements+15)/16)
					in := hostile(rng, 5, elements)
					want := throughFrames(t, framed, in, 16, vid)
					for g, got := range throughArrays(t, handed, in, groups, 16, vid) {
						require.True(t, bytes.Equal(want, got), "sum of group %d", g)
					}
				}
				sameRegisters(t, framed, handed)
				sameLags(t, framed, handed)
				chunks := 2 * uint32((elements+15)/16)
				sameReplays(t, framed, handed, first+chunks, min(8, chunks))
				takesData(t, handed, first+chunks)
			})
		}
	}
}

// TestArraysOfAView sums some chunks of larger arrays in place. The other chunks stay.
func TestArraysOfAView(t *testing.T) {
	const chunk, workers = 16, 3
	for _, view := range []schedule.View{schedule.List([]int{0, 1, 3, 7, 8, 9, 30}), share(schedule.Schedule{0, 1, 1}, 1, 7), share(schedule.Schedule{0, 1, 0, 0}, 0, 7)} {
		for _, groups := range [][]uint64{{0b111}, {1, 2, 4}} {
			for _, elements := range []int{7 * chunk, 6*chunk + 5} {
				cfg := Config{Lanes: 4, Ports: workers, Chunk: chunk, Window: 2}
				rng := rand.New(rand.NewPCG(1, uint64(elements)))
				dense := hostile(rng, workers, elements)
				want := throughFrames(t, owned(t, cfg, 0b111, chunk, 2, 0, 0), dense, chunk, 0)
				wide := make([][]byte, workers)
				for r := range wide {
					wide[r] = bytes.Repeat([]byte{0xa5}, 4*chunk*31)
					spread(wide[r], dense[r], view, 4*chunk)
				}
				card := owned(t, cfg, 0b111, chunk, 2, 0, 0)
				var members sync.WaitGroup
				for _, ranks := range groups {
					o := newOutcome(7)
					x := &Exchange{Epoch: 1, Ranks: ranks, Elements: elements, View: view, Chunk: chunk, Observer: o}
					for left := ranks; left != 0; left &= left - 1 {
						x.Inputs = append(x.Inputs, wide[bits.TrailingZeros64(left)])
					}
					x.Sum = x.Inputs[0]
					members.Go(func() { card.Begin(x); <-o.ended; card.Withdraw(x) })
				}
				members.Wait()
				sum := bytes.Repeat([]byte{0xa5}, 4*chunk*31)
				spread(sum, want, view, 4*chunk)
				for _, ranks := range groups {
					require.True(t, bytes.Equal(sum, wide[bits.TrailingZeros64(ranks)]), "%v, %d elements, group %b", view, elements, ranks)
				}
				sameReplays(t, throughFramesOf(t, cfg, dense), card, 7, 4)
			}
		}
	}
}

func throughFramesOf(t testing.TB, cfg Config, inputs [][]byte) *Card {
	card := owned(t, cfg, 0b111, uint64(cfg.Chunk), 2, 0, 0)
	throughFrames(t, card, inputs, cfg.Chunk, 0)
	return card
}

// share returns a tree's chunks of the first so many that it has.
func share(s schedule.Schedule, tree, chunks int) schedule.View {
	v, _ := s.Share(tree, 0, chunks*len(s))
	return v
}

// spread writes the chunks of an array, of size bytes each, to their places.
func spread(to, from []byte, v schedule.View, size int) {
	for k := 0; len(from) > 0; k++ {
		from = from[copy(to[v.Chunk(k)*size:][:min(size, len(from))], from):]
	}
}

// sameRegisters compares the counts of two cards, but for those that arrays cannot have: frames,
// and the clock.
func sameRegisters(t testing.TB, a, b *Card) {
	for _, addr := range addresses(a.Config()) {
		if addr == wire.RegCycles {
			continue
		}
		codeA, valueA := a.Register(false, addr, 0)
		codeB, valueB := b.Register(false, addr, 0)
		require.Equal(t, codeA, codeB)
		require.Equal(t, valueA, valueB, "register %x", addr)
	}
}

// sameLags compares the contributions that JOB_LAG counts for each rank. Their lateness is another.
func sameLags(t testing.TB, a, b *Card) {
	for rank := range a.engine.jobs[0].ranks {
		var counts [2]uint64
		for i, card := range []*Card{a, b} {
			for bucket := range wire.LagBuckets {
				_, count := card.Register(false, wire.LagAddr(0, rank, bucket), 0)
				counts[i] += count
			}
		}
		require.Equal(t, counts[0], counts[1], "rank %d", rank)
	}
}

// sameReplays asks both cards for some results below a VID that are still in slots.
func sameReplays(t testing.TB, a, b *Card, below, results uint32) {
	for back := uint32(1); back <= results; back++ {
		var replies [2]Packet
		for i, card := range []*Card{a, b} {
			port, _ := card.PortOf(0, 2)
			card.Handle(port, &Packet{Header: frame.Header{Version: wire.Version, Kind: wire.KindAsk, Epoch: 1, Rank: 2, VID: below - back}})
			_, ok := card.Next(AllPorts, &replies[i])
			require.True(t, ok)
		}
		require.Equal(t, replies[0], replies[1])
	}
}

// TestArraysAtTheirOwnPace has members that come at random, in many calls one after another.
func TestArraysAtTheirOwnPace(t *testing.T) {
	cfg := Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4}
	card := owned(t, cfg, 0b1111, 16, 4, 0, 0)
	model := owned(t, cfg, 0b1111, 16, 4, 0, 0)
	const calls = 200
	rng := rand.New(rand.NewPCG(9, 9))
	var inputs [calls][][]byte
	var sums [calls][]byte
	var vids [calls]uint32
	vid := uint32(0)
	for i := range calls {
		elements := 1 + rng.IntN(400)
		inputs[i] = hostile(rng, 4, elements)
		vids[i] = vid
		sums[i] = throughFrames(t, model, inputs[i], 16, vid)
		vid += uint32((elements + 15) / 16)
	}
	var members sync.WaitGroup
	for r := range 4 {
		members.Go(func() {
			for i := range calls {
				elements := len(sums[i]) / 4
				o := newOutcome((elements + 15) / 16)
				x := &Exchange{Epoch: 1, Ranks: 1 << r, Elements: elements, Chunk: 16, First: vids[i], Observer: o,
					Inputs: inputs[i][r : r+1], Sum: make([]byte, 4*elements)}
				card.Begin(x)
				<-o.ended
				card.Withdraw(x)
				if !bytes.Equal(x.Sum, sums[i]) {
					t.Errorf("call %d, rank %d", i, r)
				}
			}
		})
	}
	members.Wait()
	sameRegisters(t, model, card)
}

// TestWithdrawnArraysStay checks that a contribution that was committed is in the sum, though its
// array was withdrawn and overwritten.
func TestWithdrawnArraysStay(t *testing.T) {
	card := owned(t, Config{Lanes: 1, Ports: 2, Chunk: 4, Window: 2, Format: wire.Int32}, 0b11, 4, 2, 0, 0)
	array := func(x byte, elements int) []byte { return bytes.Repeat([]byte{x, 0, 0, 0}, elements) }
	first := newOutcome(2)
	x := &Exchange{Epoch: 1, Ranks: 1, Elements: 7, Chunk: 4, Inputs: [][]byte{array(1, 7)}, Sum: make([]byte, 28), Observer: first}
	card.Begin(x)
	require.EqualValues(t, 0b10, card.Missing(x))
	card.Withdraw(x)
	clear(x.Inputs[0])
	second := newOutcome(2)
	y := &Exchange{Epoch: 1, Ranks: 2, Elements: 7, Chunk: 4, Inputs: [][]byte{array(2, 7)}, Sum: make([]byte, 28), Observer: second}
	card.Begin(y)
	<-second.ended
	card.Withdraw(y)
	require.Equal(t, array(3, 7), y.Sum)
	require.Empty(t, first.masks)
}

// TestArraysRefused checks what ends an exchange.
func TestArraysRefused(t *testing.T) {
	exchange := func(epoch uint16, job uint8, vid uint32) (*Exchange, *outcome) {
		o := newOutcome(1)
		return &Exchange{Job: job, Epoch: epoch, First: vid, Ranks: 1, Elements: 4, Chunk: 4, Inputs: [][]byte{make([]byte, 16)}, Sum: make([]byte, 16), Observer: o}, o
	}
	card := owned(t, Config{Lanes: 1, Ports: 2, Chunk: 4, Window: 2, Format: wire.Int32}, 0b11, 4, 2, 0, 0)
	for _, c := range []struct {
		epoch uint16
		job   uint8
		vid   uint32
		want  wire.Code
	}{{2, 0, 0, wire.CodeBadEpoch}, {1, 1, 0, wire.CodeBadJob}, {1, 0, 9, wire.CodeEarly}, {1, 0, 1<<32 - 9, wire.CodeLate}} {
		x, o := exchange(c.epoch, c.job, c.vid)
		card.Begin(x)
		<-o.ended
		card.Withdraw(x)
		require.Equal(t, c.want, o.code)
	}
	x, o := exchange(1, 0, 0)
	x.Chunk = 2
	card.Begin(x)
	<-o.ended
	card.Withdraw(x)
	require.Equal(t, wire.CodeBadLength, o.code)
	x, o = exchange(1, 0, 0)
	card.Begin(x)
	card.LinkDown()
	<-o.ended
	require.Equal(t, wire.CodeBadJob, o.code)
	require.Zero(t, card.Missing(x))
	card.Withdraw(x)
}

// TestJobEndsDuringARound aborts jobs while goroutines sum their arrays.
func TestJobEndsDuringARound(t *testing.T) {
	for delay := range 30 {
		card := owned(t, Config{Lanes: 4, Ports: 2, Chunk: 16, Window: 4}, 0b11, 16, 4, 0, 0)
		in := [][]byte{make([]byte, 4<<20), make([]byte, 4<<20)}
		o := newOutcome(1 << 20 / 16)
		x := &Exchange{Epoch: 1, Ranks: 3, Elements: 1 << 20, Chunk: 16, Inputs: in, Sum: in[1], Observer: o}
		card.Begin(x)
		for range delay * 1000 {
			card.Pending()
		}
		card.LinkDown()
		<-o.ended
		card.Withdraw(x)
		clear(in[0])
		clear(in[1])
	}
}

// takesData checks that a card takes the next chunk from a link: all members are done with the
// chunks before.
func takesData(t testing.TB, card *Card, vid uint32) {
	j := &card.engine.jobs[0]
	before := card.engine.counters[countStored]
	for i := range uint32(j.setup.window) {
		card.Handle(int(j.portOf[1]), &Packet{Payload: make([]byte, 4*j.setup.chunk), Header: frame.Header{
			Version: wire.Version, Kind: wire.KindData, Format: wire.FP32, Epoch: 1, Rank: 1, VID: vid + i, Length: uint16(j.setup.chunk),
		}})
	}
	require.EqualValues(t, j.setup.window, card.engine.counters[countStored]-before)
}

// TestWithdrawnDuringARound withdraws a member's array while goroutines sum. The sums that were
// begun are whole and counted; the rest of the other member's array is as it was.
func TestWithdrawnDuringARound(t *testing.T) {
	const chunk, elements = 16, 1 << 22
	inTheMiddle := false
	for delay := 0; !inTheMiddle && delay < 500; delay++ {
		card := owned(t, Config{Lanes: 4, Ports: 2, Chunk: chunk, Window: 4, Format: wire.Int32}, 0b11, chunk, 4, 0, 0)
		var in [2][]byte
		var x [2]*Exchange
		for r := range x {
			in[r] = bytes.Repeat([]byte{byte(r + 1), 0, 0, 0}, elements)
			x[r] = &Exchange{Epoch: 1, Ranks: 1 << r, Elements: elements, Chunk: chunk, Inputs: [][]byte{in[r]}, Sum: in[r], Observer: newOutcome(elements / chunk)}
			card.Begin(x[r])
		}
		for range 1000 * delay {
			card.Pending()
		}
		card.Withdraw(x[0])
		card.Withdraw(x[1])
		summed := int(card.engine.counters[countChunks]) * chunk
		if got := bytes.Count(in[1], []byte{3, 0, 0, 0}); got != summed || bytes.LastIndexByte(in[1], 3) >= 4*summed {
			t.Fatalf("%d elements are summed, %d are counted", got, summed)
		}
		inTheMiddle = summed > 4*chunk && summed < elements
	}
	if !inTheMiddle {
		t.Error("no array was withdrawn in the middle of a round")
	}
}

// TestArraysOfOtherLengths has one member whose array ends earlier, within a chunk.
func TestArraysOfOtherLengths(t *testing.T) {
	const chunk = 16
	card := owned(t, Config{Lanes: 4, Ports: 2, Chunk: chunk, Window: 4, Format: wire.Int32}, 0b11, chunk, 4, 0, 0)
	short := bytes.Repeat([]byte{1, 0, 0, 0}, 100*chunk+8)
	long := bytes.Repeat([]byte{2, 0, 0, 0}, 150*chunk)
	o := newOutcome(101)
	x := &Exchange{Epoch: 1, Ranks: 1, Elements: 100*chunk + 8, Chunk: chunk, Inputs: [][]byte{short}, Sum: short, Observer: o}
	y := &Exchange{Epoch: 1, Ranks: 2, Elements: 150 * chunk, Chunk: chunk, Inputs: [][]byte{long}, Sum: long, Observer: newOutcome(150)}
	card.Begin(y)
	card.Begin(x)
	<-o.ended
	require.EqualValues(t, 1, card.Missing(y))
	card.Withdraw(x)
	card.Withdraw(y)
	require.Equal(t, bytes.Repeat([]byte{3, 0, 0, 0}, 100*chunk+8), short)
	require.Equal(t, append(bytes.Clone(short), bytes.Repeat([]byte{2, 0, 0, 0}, 50*chunk-8)...), long)
}

// TestArraysAndFramesInOneChunk has a member that sends its first chunk over a link, and hands
// over an array with another one: the first stays.
func TestArraysAndFramesInOneChunk(t *testing.T) {
	card := owned(t, Config{Lanes: 1, Ports: 2, Chunk: 4, Window: 2, Format: wire.Int32}, 0b11, 4, 2, 0, 0)
	array := func(x byte, elements int) []byte { return bytes.Repeat([]byte{x, 0, 0, 0}, elements) }
	card.Handle(0, &Packet{Payload: array(7, 4), Header: frame.Header{Version: wire.Version, Kind: wire.KindData, Format: wire.Int32, Epoch: 1, Length: 4}})
	o := newOutcome(3)
	x := &Exchange{Epoch: 1, Ranks: 3, Elements: 12, Chunk: 4, Inputs: [][]byte{array(1, 12), array(2, 12)}, Sum: make([]byte, 48), Observer: o}
	card.Begin(x)
	<-o.ended
	card.Withdraw(x)
	require.Equal(t, append(array(9, 4), array(3, 8)...), x.Sum)
	require.EqualValues(t, 6, card.engine.counters[countStored])
}

// TestArraysOfAnEvictedMember: an exchange goes on for its other members.
func TestArraysOfAnEvictedMember(t *testing.T) {
	card := owned(t, Config{Lanes: 1, Ports: 3, Chunk: 4, Window: 2, Format: wire.Int32}, 0b111, 4, 2, partialSums|1000, 0)
	array := func(x byte, elements int) []byte { return bytes.Repeat([]byte{x, 0, 0, 0}, elements) }
	j := &card.engine.jobs[0]
	j.members, j.evicted = 0b101, 0b010
	o := newOutcome(5)
	x := &Exchange{Epoch: 1, Ranks: 0b011, Elements: 20, Chunk: 4, Inputs: [][]byte{array(1, 20), array(2, 20)}, Sum: make([]byte, 80), Observer: o}
	card.Begin(x)
	p := newOutcome(5)
	y := &Exchange{Epoch: 1, Ranks: 0b100, Elements: 20, Chunk: 4, Inputs: [][]byte{array(4, 20)}, Sum: make([]byte, 80), Observer: p}
	card.Begin(y)
	<-o.ended
	<-p.ended
	card.Withdraw(x)
	card.Withdraw(y)
	require.Equal(t, array(5, 20), x.Sum)
	require.Equal(t, array(5, 20), y.Sum)
	require.EqualValues(t, 0b101, o.masks[0])
	q := newOutcome(1)
	z := &Exchange{Epoch: 1, Ranks: 0b010, Elements: 4, Chunk: 4, First: 5, Inputs: [][]byte{array(2, 4)}, Sum: make([]byte, 16), Observer: q}
	card.Begin(z)
	<-q.ended
	card.Withdraw(z)
	require.Equal(t, wire.CodeEvicted, q.code)
}

// TestEventsCountInOrder: goroutines note exceptions in any order, and registers name the first.
func TestEventsCountInOrder(t *testing.T) {
	card := owned(t, Config{Lanes: 4, Ports: 2, Chunk: 16, Window: 4}, 0b11, 16, 4, 0, 100)
	j := &card.engine.jobs[0]
	r := &round{card: card, job: j, members: 3, first: 100, chunks: 3, chunk: 16,
		exchanges: []*Exchange{{Chunk: 16, Elements: 48, Sum: make([]byte, 3*64)}}, lows: []int{0}}
	for _, chunk := range []int{2, 0, 1} {
		v := event{chunk: chunk}
		v.In, v.Out, v.Overflow = 0b10, 2, 1
		r.events = append(r.events, v)
	}
	card.engine.pass(r)
	require.Equal(t, tally{3, valid | 1<<32 | 100}, j.in)
	require.Equal(t, tally{6, valid | 100}, j.out)
	require.Equal(t, tally{3, valid | 100}, j.overflow)
	require.True(t, j.slot(101).nonfinite)
}

// TestRoundsKeepTheOrderOfVIDs: arrays of all members are not summed from a VID on that the slots
// do not take.
func TestRoundsKeepTheOrderOfVIDs(t *testing.T) {
	cfg := Config{Lanes: 1, Ports: 2, Chunk: 4, Window: 2, Format: wire.Int32}
	exchange := func(ranks uint64, first uint32) (*Exchange, *outcome) {
		o := newOutcome(2)
		x := &Exchange{Epoch: 1, Ranks: ranks, First: first, Elements: 8, Chunk: 4, Sum: make([]byte, 32), Observer: o}
		for range bits.OnesCount64(ranks) {
			x.Inputs = append(x.Inputs, make([]byte, 32))
		}
		return x, o
	}
	card := owned(t, cfg, 0b11, 4, 2, 0, 0)
	x, o := exchange(0b11, 8)
	card.Begin(x)
	<-o.ended
	card.Withdraw(x)
	require.Equal(t, wire.CodeEarly, o.code)

	// The slots still collect the chunks before.
	x, _ = exchange(0b01, 0)
	card.Begin(x)
	card.Withdraw(x)
	x, _ = exchange(0b11, 4)
	card.Begin(x)
	card.Withdraw(x)
	require.Zero(t, card.engine.counters[countChunks])
}

// TestArraysOfATreeJob: members of a tree job hand over arrays; their own sums leave for the parent, and
// the arrays get its final sums.
func TestArraysOfATreeJob(t *testing.T) {
	const elements, chunk, rest = 11, 2, 1000 // rest is what the tree's other workers bring
	card, err := New(Config{Lanes: 1, Ports: 3, Chunk: chunk, Window: 2, Format: wire.Int32, Parent: true})
	require.NoError(t, err)
	for _, w := range [][2]uint64{
		{uint64(wire.RegOwner), 5}, {uint64(wire.RegJobToken), 5}, {uint64(wire.RegJobPorts), 0b101}, {uint64(wire.RegJobChunk), chunk},
		{uint64(wire.RegJobWindow), 2}, {uint64(wire.RegJobParent), wire.Upward(1, 0)}, {uint64(wire.RegJobRepeat), 1},
		{uint64(wire.RegTreeRanks), 0xff}, {uint64(wire.RanksAddr(0)), 0x30}, {uint64(wire.RanksAddr(2)), 2}, {uint64(wire.RegJobCommit), 1 << 32},
	} {
		code, _ := card.Register(true, uint32(w[0]), w[1])
		require.Equal(t, wire.CodeDone, code, "register %x", w[0])
	}
	numbers := func(times uint32) (b []byte) {
		for i := range uint32(elements) {
			b = binary.LittleEndian.AppendUint32(b, times*i)
		}
		return b
	}
	sum, o := make([]byte, 4*elements), newOutcome(6)
	x := &Exchange{Epoch: 1, Ranks: 0b11, Elements: elements, Chunk: chunk, Inputs: [][]byte{numbers(1), numbers(4)}, Sum: sum, Observer: o}
	card.Begin(x)
	defer card.Withdraw(x)
	var p Packet
	for vid := range uint32(6) {
		require.True(t, card.NextUp(&p), vid)
		require.Equal(t, []any{wire.KindData, vid, uint8(1)}, []any{p.Kind, p.VID, p.Rank})
		own := numbers(5)[8*vid:]
		require.Equal(t, append([]byte(nil), own[:min(8, len(own))]...), p.Payload[:min(8, len(own))])
		p.Kind, p.Mask = wire.KindResult, 0xff
		for i := 0; i < len(p.Payload); i += 4 {
			binary.LittleEndian.PutUint32(p.Payload[i:], binary.LittleEndian.Uint32(p.Payload[i:])+rest)
		}
		card.Handle(3, &p)
	}
	<-o.ended
	require.Zero(t, o.code)
	for i := range uint32(elements) {
		require.Equal(t, 5*i+rest, binary.LittleEndian.Uint32(sum[4*i:]), i)
	}
	require.Equal(t, map[int]uint64{0: 3, 1: 3, 2: 3, 3: 3, 4: 3, 5: 3}, o.masks)
}
