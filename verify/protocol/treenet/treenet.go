// Package treenet has whole trees of cards, with honest workers, on a network that loses, copies, damages,
// delays and reorders datagrams. Everything is drawn from a seed. The tests of each card in software run
// on it; the right results are the model's nested sums (driver/wire/TREES.md, section 6).
package treenet

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
	"tributary/verify/reference/operands"
)

// Card is a card with an up port on a network: model.Endpoint or cpu.Endpoint.
type Card interface {
	Receive(datagram []byte, from wire.Address, mark wire.ECN)
	Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool)
	ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN)
	SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool)
	Advance(cycles uint64)
	Own() wire.Address
}

// Maker makes the card of a number in a tree, with an address of its own. The root has number 0.
type Maker func(number int, cfg model.Config, own wire.Address) (Card, error)

// arithmetic is what the cards of a tree compute.
type arithmetic struct {
	sum      wire.Sum
	format   wire.Format
	saturate bool
}

// arithmetics are all that cards with an up port may have.
var arithmetics = func() (all []arithmetic) {
	for _, sum := range wire.Sums {
		for _, format := range wire.Formats {
			all = append(all, arithmetic{sum.Sum, format.Format, false})
		}
		if sum.Adds {
			all = append(all, arithmetic{sum.Sum, wire.Int32, true})
		}
	}
	return all
}()

// flight is a datagram on its way.
type flight struct {
	datagram []byte
	from, to wire.Address
	mark     wire.ECN
}

// forest is a tree of cards with its workers and their network.
type forest struct {
	*testing.T
	r       *rand.Rand
	makes   Maker
	card    arithmetic
	shape   *model.Shape
	window  uint32
	total   uint32 // chunks
	flying  []flight
	trees   []*treeCard   // the root is the first
	workers []*treeWorker // by global rank
	sums    [][]byte      // the right results
	epoch   uint16
	first   uint32
}

// treeCard is a card of a forest.
type treeCard struct {
	f      *forest
	e      Card
	shape  *model.Shape
	number int
	parent *treeCard
	rank   int // at the parent
}

// treeWorker is a worker that keeps the rules of SPEC, section 8. Its results of earlier epochs let it
// send nothing, and it sends zeros for them.
type treeWorker struct {
	f      *forest
	shape  *model.Shape
	parent *treeCard
	rank   int
	inputs [][]byte
	sums   [][]byte // by chunk from f.first of the first epoch on; nil for one that it lacks

	zeros    map[uint32]bool // chunks that it had when the epoch began
	got      map[uint32]bool // chunks with a result of this epoch
	from     uint32          // the epoch's first chunk
	next     uint32          // the first chunk that it has not sent
	finished bool            // it was answered
}

// Sizes of a forest.
const (
	ports         = 3
	chunkElements = 2
	repeat        = 300
	deadline      = 30_000 // rare: each notice takes a step
	cyclesAStep   = 40
)

// owner owns all cards, from an address of its own.
const owner = 0x1234_5678_9abc_def0

var ownerAddress = wire.Address{Station: 0x5442_0a000001, MAC: 0x020000000001}

// treeAddress is the address of a card, workerAddress that of a worker.
func treeAddress(number int) wire.Address {
	return wire.Address{Station: 0x5442_0a010000 + uint64(number), MAC: 0x020000010000 + uint64(number)}
}

func workerAddress(number int) wire.Address {
	return wire.Address{Station: 0x1000_0a020000 + uint64(number), MAC: 0x020000020000 + uint64(number)}
}

// upwardAddress is the address from which a card sends to its parent: each set-up has its own port.
func (c *treeCard) upwardAddress() wire.Address {
	a := treeAddress(c.number)
	a.Station = a.Station&0xffffffff | uint64(c.upwardPort())<<32
	return a
}

func (c *treeCard) upwardPort() uint16 { return 0x6000 + c.f.epoch }

// newForest draws a tree with so many levels of cards, and at least two workers.
func newForest(t *testing.T, makes Maker, seed uint64, levels int, window uint32) *forest {
	t.Helper()
	f := &forest{
		T: t, makes: makes, window: window, epoch: uint16(65533 + seed%7), first: uint32(seed) * 0x1fffffff,
		r: rand.New(rand.NewPCG(seed, uint64(levels))), card: arithmetics[int(seed)%len(arithmetics)],
	}
	f.total = 3*window + uint32(f.r.IntN(8))
	for next := 0; next < 2; {
		next = 0
		f.shape = model.RandomShape(f.r, levels, ports, &next)
	}
	f.plant(f.shape, nil, 0)
	slices.SortFunc(f.workers, func(a, b *treeWorker) int { return a.shape.Worker - b.shape.Worker })
	f.contribute()
	return f
}

// plant makes the cards and workers of a shape.
func (f *forest) plant(s *model.Shape, parent *treeCard, rank int) {
	if s.Ports == nil {
		f.workers = append(f.workers, &treeWorker{f: f, shape: s, parent: parent, rank: rank, sums: make([][]byte, f.total)})
		return
	}
	c := &treeCard{f: f, shape: s, number: len(f.trees), parent: parent, rank: rank}
	f.trees = append(f.trees, c)
	c.reset()
	member := 0
	for _, below := range s.Ports {
		if below != nil {
			f.plant(below, c, member)
			member++
		}
	}
}

// reset makes the card a new one: it has lost everything.
func (c *treeCard) reset() {
	e, err := c.f.makes(c.number, model.Config{
		Lanes: 1, Ports: ports, Chunk: chunkElements, Window: int(c.f.window), Sum: c.f.card.sum, Format: c.f.card.format,
		Saturate: c.f.card.saturate, Shell: wire.ShellUDP, Link: 64, Parent: true,
	}, treeAddress(c.number))
	require.NoError(c.f, err)
	c.e = e
	c.write(wire.RegOwner, owner)
}

// access accesses a register as the owner, and returns its value after that.
func (c *treeCard) access(h frame.Header) uint64 {
	c.f.Helper()
	c.drain() // the reply is the next datagram
	c.e.Receive(frame.AppendDatagram(nil, &h, nil), ownerAddress, wire.ECT0)
	datagram, _, _, ok := c.e.Send(nil)
	require.True(c.f, ok)
	reply := parse(c.f.T, datagram)
	require.Equal(c.f, wire.CodeDone, reply.Code, "%#x", h.VID)
	return reply.Mask
}

func (c *treeCard) write(addr uint32, value uint64) {
	c.f.Helper()
	c.access(frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: value})
}

func (c *treeCard) read(addr uint32) uint64 {
	c.f.Helper()
	return c.access(frame.Header{Kind: wire.KindRegRead, VID: addr})
}

func (c *treeCard) isSetUp() bool { return c.read(wire.RegJobState)&1 != 0 }

// parse returns the packet in a datagram from a card.
func parse(t *testing.T, datagram []byte) (p frame.Frame) {
	t.Helper()
	require.True(t, frame.NewDatagramChecker(frame.FromCard).Check(datagram, &p), "%x", datagram)
	return p
}

// contribute draws the workers' inputs, and computes the right results.
func (f *forest) contribute() {
	a, err := model.NewArithmetic(f.card.sum, f.card.format, f.card.format, f.card.saturate)
	require.NoError(f, err)
	source := operands.New(f.card.format, f.card.format, f.r.Uint64())
	x := make([]uint32, len(f.workers))
	for range f.total {
		columns, sums := make([][]uint32, len(x)), []uint32{}
		for range chunkElements {
			source.Next(x)
			for w := range x {
				columns[w] = append(columns[w], x[w])
			}
			sums = append(sums, a.Nested(f.shape, x))
		}
		for w := range x {
			f.workers[w].inputs = append(f.workers[w].inputs, f.payload(columns[w]))
		}
		f.sums = append(f.sums, f.payload(sums))
	}
}

// payload returns elements as in a packet.
func (f *forest) payload(elements []uint32) (b []byte) {
	info, _ := f.card.format.Info()
	for _, x := range elements {
		b = append(b, binary.LittleEndian.AppendUint32(nil, x)[:info.Bits/8]...)
	}
	return b
}

// setUp sets the job up on all cards, in a random order, and lets the workers begin at chunk from.
func (f *forest) setUp(from uint32) {
	for _, i := range f.r.Perm(len(f.trees)) {
		f.trees[i].setUp(from)
	}
	for _, w := range f.workers {
		w.begin(from)
	}
}

// setUp sets the job up on a card.
func (c *treeCard) setUp(from uint32) {
	var ports uint64
	for port, below := range c.shape.Ports {
		var ranks uint64
		var at wire.Address
		if below != nil {
			ports |= 1 << port
			ranks, at = below.Ranks(), c.f.addressOf(below)
		}
		c.write(wire.RanksAddr(port), ranks)
		c.write(wire.MemberAddr(wire.RegMemberAddress, port), at.Station)
		c.write(wire.MemberAddr(wire.RegMemberMAC, port), at.MAC)
	}
	if c.parent != nil {
		at := treeAddress(c.parent.number)
		c.write(wire.RegJobParent, wire.Upward(uint8(c.rank), c.upwardPort()))
		c.write(wire.RegJobRepeat, repeat)
		c.write(wire.RegTreeRanks, c.f.shape.Ranks())
		c.write(wire.RegParentAddress, at.Station)
		c.write(wire.RegParentMAC, at.MAC)
	}
	for addr, value := range map[uint32]uint64{
		wire.RegJobToken: owner, wire.RegJobPorts: ports, wire.RegJobChunk: chunkElements, wire.RegJobWindow: uint64(c.f.window), wire.RegJobDeadline: deadline,
	} {
		c.write(addr, value)
	}
	c.write(wire.RegJobCommit, uint64(c.f.epoch)<<32|uint64(c.f.first+from))
}

// addressOf returns the address of a card, as a member, or of a worker.
func (f *forest) addressOf(s *model.Shape) wire.Address {
	if s.Ports == nil {
		return workerAddress(s.Worker)
	}
	i := slices.IndexFunc(f.trees, func(c *treeCard) bool { return c.shape == s })
	return f.trees[i].upwardAddress()
}

// send puts a datagram on its way.
func (f *forest) send(datagram []byte, from, to wire.Address, mark wire.ECN) {
	f.flying = append(f.flying, flight{datagram, from, to, mark})
}

// drain takes what a card sends.
func (c *treeCard) drain() {
	for {
		datagram, to, mark, ok := c.e.Send(nil)
		if ok {
			c.f.send(datagram, c.e.Own(), to, mark)
		}
		datagram, port, to, mark, okUp := c.e.SendUp(nil)
		if okUp {
			from := c.e.Own()
			from.Station = from.Station&0xffffffff | uint64(port)<<32
			c.f.send(datagram, from, to, mark)
		}
		if !ok && !okUp {
			return
		}
	}
}

// step lets something happen. An eighth of the datagrams are lost, copied or damaged.
func (f *forest) step() {
	for _, c := range f.trees {
		c.e.Advance(cyclesAStep)
		c.drain()
	}
	if len(f.flying) == 0 || f.r.IntN(24) == 0 {
		f.workers[f.r.IntN(len(f.workers))].retry()
		return
	}
	i := f.r.IntN(min(len(f.flying), 1+f.r.IntN(12))) // mostly in order
	x := f.flying[i]
	switch f.r.IntN(24) {
	case 0:
	case 1:
		f.deliver(x)
		return // and once more
	case 2:
		damaged := slices.Clone(x.datagram)
		damaged[f.r.IntN(len(damaged))] ^= 1 << f.r.IntN(8)
		x.datagram = damaged
		f.deliver(x)
	default:
		f.deliver(x)
	}
	f.flying = slices.Delete(f.flying, i, i+1)
}

// deliver brings a datagram to its destination.
func (f *forest) deliver(x flight) {
	for _, c := range f.trees {
		own := c.e.Own()
		switch {
		case x.to.Station == own.Station:
			c.e.Receive(x.datagram, x.from, x.mark)
		case uint32(x.to.Station) == uint32(own.Station):
			c.e.ReceiveUp(uint16(x.to.Station>>32), x.datagram, x.from, x.mark)
		}
		c.drain()
	}
	for _, w := range f.workers {
		if x.to == workerAddress(w.shape.Worker) {
			w.receive(x.datagram)
		}
	}
}

// begin begins an epoch.
func (w *treeWorker) begin(from uint32) {
	w.zeros, w.got, w.from, w.next, w.finished = map[uint32]bool{}, map[uint32]bool{}, from, from, false
	for chunk, sum := range w.sums {
		w.zeros[uint32(chunk)] = sum != nil
	}
	w.proceed()
}

// lacks returns the first chunk whose result of this epoch the worker lacks.
func (w *treeWorker) lacks() uint32 {
	chunk := w.from
	for w.got[chunk] {
		chunk++
	}
	return chunk
}

// proceed sends what the window allows.
func (w *treeWorker) proceed() {
	for ; w.next < w.f.total && w.next < w.lacks()+w.f.window; w.next++ {
		w.data(w.next)
	}
}

// packet sends a packet of the worker.
func (w *treeWorker) packet(h frame.Header, payload []byte, chunk uint32) {
	h.Epoch, h.Rank, h.VID = w.f.epoch, uint8(w.rank), w.f.first+chunk
	w.f.send(frame.AppendDatagram(nil, &h, payload), workerAddress(w.shape.Worker), treeAddress(w.parent.number), wire.ECT0)
}

func (w *treeWorker) data(chunk uint32) {
	x := w.inputs[chunk]
	if w.zeros[chunk] {
		x = make([]byte, len(x))
	}
	w.packet(frame.Header{Kind: wire.KindData, Format: w.f.card.format, Length: chunkElements}, x, chunk)
}

// retry asks for the first result that the worker lacks, or confirms that it has all.
func (w *treeWorker) retry() {
	switch chunk := w.lacks(); {
	case chunk < w.f.total:
		w.packet(frame.Header{Kind: wire.KindAsk}, nil, chunk)
	case !w.finished:
		w.packet(frame.Header{Kind: wire.KindFinish}, nil, w.f.total)
	}
}

// receive takes what the card sends.
func (w *treeWorker) receive(datagram []byte) {
	var p frame.Frame
	if !frame.NewDatagramChecker(frame.FromCard).Check(datagram, &p) || p.Epoch != w.f.epoch {
		return
	}
	chunk := p.VID - w.f.first
	switch {
	case p.Kind == wire.KindStatus && p.Code == wire.CodeSend && chunk >= w.from && chunk < w.next:
		w.data(chunk)
	case p.Kind == wire.KindStatus && p.Code == wire.CodeDone && chunk == w.f.total:
		w.finished = true
	case p.Kind == wire.KindResult || p.Kind == wire.KindReplay:
		w.result(&p, chunk)
	}
}

// result takes a sum.
func (w *treeWorker) result(p *frame.Frame, chunk uint32) {
	if chunk < w.from || chunk >= w.next {
		return
	}
	require.Equal(w.f, w.f.shape.Ranks(), p.Mask, "chunk %d of worker %d", chunk, w.shape.Worker)
	if w.zeros[chunk] {
		w.got[chunk] = true
	} else {
		require.Equal(w.f, w.f.sums[chunk], p.Payload, "chunk %d of worker %d, %v in %v", chunk, w.shape.Worker, w.f.card, w.f.shape)
		w.sums[chunk], w.got[chunk] = slices.Clone(p.Payload), true
	}
	w.proceed()
}

// isOver reports whether all workers have finished.
func (f *forest) isOver() bool {
	return !slices.ContainsFunc(f.workers, func(w *treeWorker) bool { return !w.finished })
}

// run lets things happen until all workers have finished, or for so many steps.
func (f *forest) run(steps int) {
	for range steps {
		if f.isOver() {
			return
		}
		f.step()
	}
}

// ends checks that the job has ended everywhere, with all results.
func (f *forest) ends() {
	f.Helper()
	require.True(f, f.isOver(), "the workers of %v have not finished", f.shape)
	for _, c := range f.trees {
		assert.False(f, c.isSetUp(), "the job of card %d in %v goes on", c.number, f.shape)
	}
	for _, w := range f.workers {
		require.Equal(f, f.sums, w.sums)
	}
}

// enough is more steps than any run takes.
const enough = 200_000

// Trees runs trees of the cards: all results have the nested sum's bits, and the job ends on all cards.
// Among the runs, everything has happened at an up port that can.
func Trees(t *testing.T, makes Maker) {
	happened := make([]uint64, len(wire.UpCounters))
	for levels := 1; levels <= 3; levels++ {
		for seed := range uint64(48) {
			window := uint32(1) << (seed % 4)
			t.Run(fmt.Sprintf("%d levels, window %d, seed %d", levels, window, seed), func(t *testing.T) {
				f := newForest(t, makes, seed, levels, window)
				f.setUp(0)
				f.run(enough)
				f.ends()
				for _, c := range f.trees {
					for i := range happened {
						happened[i] += c.read(wire.UpCounterAddr(i))
					}
				}
			})
		}
	}
	for i, n := range happened {
		assert.NotZero(t, n, wire.UpCounters[i].Name)
	}
}

// TreesInANewEpoch runs trees in which a card that is not the root loses everything in the middle of the
// job. The owner sets all cards up in a new epoch, and the rest of the results comes out right.
func TreesInANewEpoch(t *testing.T, makes Maker) {
	for seed := range uint64(48) {
		window := uint32(1) << (seed % 4)
		t.Run(fmt.Sprintf("window %d, seed %d", window, seed), func(t *testing.T) {
			f := newForest(t, makes, seed, 2+int(seed%2), window)
			f.setUp(0)
			for range 1 + seed%3 {
				f.run(f.r.IntN(60 * len(f.workers) * int(window)))
				f.trees[1+f.r.IntN(len(f.trees)-1)].reset()
				f.run(f.r.IntN(100)) // before the owner knows
				f.anew()
			}
			f.run(enough)
			f.ends()
		})
	}
}

// anew sets the job up in a new epoch: the workers share the results that they have, and go on with the
// first that is missing.
func (f *forest) anew() {
	from := f.total
	for chunk := range f.total {
		var sum []byte
		for _, w := range f.workers {
			if w.sums[chunk] != nil {
				sum = w.sums[chunk]
			}
		}
		for _, w := range f.workers {
			w.sums[chunk] = sum
		}
		if sum == nil {
			from = min(from, chunk)
		}
	}
	f.epoch++
	f.setUp(from)
}
