// What the scripts of lock steps do.

package cpu

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// script decides every step of a lock step. It is zeros at its end.
type script struct{ rest []byte }

func (s *script) byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// below returns a number below n, which is at most 256.
func (s *script) below(n int) int { return int(s.byte()) % n }

func (s *script) uint32() uint32 {
	var b [4]byte
	s.rest = s.rest[copy(b[:], s.rest):]
	return binary.LittleEndian.Uint32(b[:])
}

// one reports true once in n, where n is at most 256.
func (s *script) one(n int) bool { return s.below(n) == n-1 }

// arithmetics are the arithmetics that scripts choose from: all.
var arithmetics = func() (all []Config) {
	for _, sum := range wire.Sums {
		for _, in := range wire.Formats {
			for _, out := range wire.Formats {
				if in.FitsIn(out) {
					all = append(all, Config{Sum: sum.Sum, Format: in.Format, Result: out.Format})
				}
			}
		}
		if sum.Adds {
			all = append(all, Config{Sum: sum.Sum, Format: wire.Int32, Saturate: true})
		}
	}
	return all
}()

// hasParent reports whether cards of an arithmetic may have an up port.
func hasParent(c Config) bool { return c.Result == 0 || c.Result == c.Format }

// configuration lets a script choose a card.
func configuration(s *script) Config {
	c := arithmetics[s.below(len(arithmetics))]
	c.Lanes = 1 << s.below(2)
	c.Ports = []int{3, 4, 2, 1, 5, 8, 64, 4}[s.below(8)]
	c.Chunk = c.Lanes * (1 + s.below(4))
	c.Window = 1 << s.below(4)
	c.Jobs = 1 << s.below(4)
	c.Latency = s.below(256)
	c.Parent = hasParent(c) && s.one(2)
	return c
}

// advance advances both clocks, often to just before or at a moment that matters.
func (x *steps) advance() {
	s, e := x.script, x.card.engine
	n := uint64(s.byte()) << s.below(14)
	switch s.below(4) {
	case 0:
		n = e.due - e.now - uint64(s.below(3))
	case 1:
		n = e.refused + refusalCycles - e.now - uint64(s.below(3))
	case 2:
		if x.card.Config().Parent {
			n = x.waitUp()
		}
	}
	n &= 1<<40 - 1 // what lies in the past, or never comes, is far away
	x.note("advance %d", n)
	x.card.Advance(n)
	x.model.Advance(n)
}

// job lets the script choose a job, mostly one that is set up.
func (x *steps) job() int {
	number := x.script.below(len(x.tenants))
	if x.script.one(16) {
		return number
	}
	for i := range x.tenants {
		if j := (number + i) % len(x.tenants); x.card.engine.jobs[j].running {
			return j
		}
	}
	return number
}

// burst sends the contributions of all members, except of one sometimes, to a chunk.
func (x *steps) burst() {
	s := x.script
	job, absent := x.job(), s.below(256)
	for rank := range bits.OnesCount64(x.tenants[job].ports) {
		if rank != absent {
			p := x.data(job, uint8(rank), x.tenants[job].base)
			port, _ := x.card.PortOf(p.Job, p.Rank)
			x.handle(port, &p)
		}
	}
}

// recall asks for results that were sent, or repeats data, from some members.
func (x *steps) recall() {
	s, number := x.script, x.job()
	t := &x.tenants[number]
	for range 1 + s.below(4) {
		p := x.data(number, uint8(s.below(max(bits.OnesCount64(t.ports), 1))), t.base-1-uint32(s.below(max(int(t.window), 1))))
		if s.one(2) {
			p.Kind, p.Format, p.Length, p.Payload = wire.KindAsk, 0, 0, nil
		}
		port, _ := x.card.PortOf(p.Job, p.Rank)
		x.handle(port, &p)
	}
}

// finish lets all members finish, often, and some once more after the job's end.
func (x *steps) finish(number int) {
	s, t := x.script, &x.tenants[number]
	members := bits.OnesCount64(t.ports)
	for i := range members + s.below(4) {
		if i < members && s.one(16) {
			continue
		}
		p := Packet{Header: frame.Header{
			Version: wire.Version, Kind: wire.KindFinish, Job: uint8(number), Epoch: t.epoch, Rank: uint8(i % max(members, 1)), VID: t.base,
		}}
		if i >= members && s.one(2) {
			p.Epoch++
		}
		port, _ := x.card.PortOf(p.Job, p.Rank)
		x.handle(port, &p)
	}
	x.register(false, wire.JobAddr(wire.RegJobFinished, number), 0)
}

// token owns the card in scripts.
const token = 0x1234_5678_9abc_def0

// setUp stages and commits a job, often a sensible one.
func (x *steps) setUp(number int) {
	x.t.Helper()
	s, cfg := x.script, x.card.Config()
	all := ^uint64(0) >> (64 - cfg.Ports)
	job := setup{
		ports: uint64(s.uint32()) * 0x100000001 & all, chunk: uint64(cfg.Lanes * (1 + s.below(max(cfg.Chunk/cfg.Lanes, 1)))),
		window: 1 << s.below(bits.Len(uint(cfg.Window))), first: -uint32(s.below(8)) * uint32(s.below(2)),
		deadline: []uint64{0, 0, 300, 3000, partialSums | 50, partialSums | 300, partialSums | 3000, 1<<32 - 1}[s.below(8)],
	}
	if s.one(2) {
		job.ports = all
	}
	if s.one(8) {
		switch s.below(6) {
		case 0:
			job.ports = []uint64{0, 1 << 63, 1 << (cfg.Ports & 63)}[s.below(3)]
		case 1:
			job.chunk = []uint64{0, uint64(cfg.Chunk + cfg.Lanes), 1, 1 << 32}[s.below(4)]
		case 2:
			job.window = []uint64{0, 3, uint64(2 * cfg.Window), 1 << 63}[s.below(4)]
		case 3:
			job.deadline = []uint64{1 << 32, 1 << 33, 1<<63 | 1}[s.below(3)]
		case 4:
			number = s.below(256)
		}
	}
	as := s.below(8) // 7: as before
	owner := uint64(token)
	if s.one(16) {
		owner = uint64(s.below(2))
	}
	x.write(wire.RegOwner, token)
	x.write(wire.RegJobToken, owner)
	if as != 7 {
		x.stageTree(number, &job)
		for addr, value := range map[uint32]uint64{wire.RegJobPorts: job.ports, wire.RegJobChunk: job.chunk, wire.RegJobWindow: job.window, wire.RegJobDeadline: job.deadline} {
			x.write(addr, value)
		}
	}
	epoch := uint16(s.uint32())
	if number < len(x.tenants) {
		t := &x.tenants[number]
		epoch = t.epoch + []uint16{1, 1, 1, 1, 0, 2, 0x7fff, 0x8000}[s.below(8)]
	}
	if x.write(wire.RegJobCommit, uint64(s.below(2))<<56|uint64(number)<<48|uint64(epoch)<<32|uint64(job.first)) == wire.CodeDone && number < len(x.tenants) {
		x.tenants[number] = tenant{setup: job, epoch: epoch, base: job.first}
	}
}

// access makes a register access of any kind.
func (x *steps) access() {
	x.t.Helper()
	s := x.script
	addr := x.addrs[s.below(len(x.addrs))]
	value := uint64(s.uint32()) << s.below(40)
	switch s.below(16) {
	case 0:
		addr = s.uint32()
	case 1:
		addr += uint32(s.below(256))
	case 2:
		addr, value = wire.RegRelease, token
	case 3:
		addr, value = wire.RegReset, token
	case 4, 5:
		number := s.below(len(x.tenants))
		addr, value = wire.RegJobAbort, uint64(number)<<48|uint64(x.tenants[number].epoch+uint16(s.below(2)))<<32
	case 6:
		x.compare()
	case 7:
		cfg := x.card.Config()
		addr = wire.LagAddr(s.below(cfg.Jobs+1), s.below(cfg.Ports+1), s.below(wire.LagBuckets))
	}
	write := s.one(2)
	x.note("access %#x, write %v %#x", addr, write, value)
	x.register(write, addr, value)
}

// operands are elements that matter to sums and counts, of 32 bits and narrower.
var operands = []uint32{
	0, 0x3f800000, 0x40400000, 0x80000000, 0x7f800000, 0xff800001, 0x7f7fffff, 0xff7fffff, 1, 0x7fffffff, 0x4b800000,
	0x7bff7c00, 0x7f807f7f, 0xfbff0001, 0x7e7b7c7d, 0xfefbfcfd,
}

// payload returns n bytes of elements.
func (x *steps) payload(n int) []byte {
	s := x.script
	var b []byte
	hostile := s.one(8)
	for len(b) < n {
		e := 0x3f000000 + uint32(s.byte())<<18
		if hostile {
			e = operands[s.below(len(operands))]
		}
		b = binary.LittleEndian.AppendUint32(b, e)
	}
	return b[:n]
}

// data returns a right contribution.
func (x *steps) data(job int, rank uint8, vid uint32) (p Packet) {
	cfg, t := x.card.Config(), &x.tenants[job]
	p.Header = frame.Header{
		Version: wire.Version, Kind: wire.KindData, Flags: x.script.byte(), Job: uint8(job), Format: cfg.Format, Epoch: t.epoch,
		Rank: rank, VID: vid, Length: uint16(t.chunk),
	}
	size, _ := cfg.sizes()
	p.Payload = x.payload(int(p.Length) * size)
	return p
}

// packet returns a packet for a port: mostly data that a job may take, sometimes wrong.
func (x *steps) packet() (port int, p Packet) {
	s, number := x.script, x.job()
	t := &x.tenants[number]
	window := int(max(t.window, 1))
	vid := t.base + uint32(s.below(window))
	switch s.below(8) {
	case 0:
		vid = t.base - uint32(s.below(2*window+2))
	case 1:
		vid = t.base + uint32(s.below(2*window+2))
	}
	p = x.data(number, uint8(s.below(max(bits.OnesCount64(t.ports), 1))), vid)
	switch kind := s.below(128); {
	case kind < 16:
		p.Kind = wire.KindAsk
	case kind < 17:
		p.Kind = wire.KindFinish
	}
	if p.Kind != wire.KindData {
		p.Format, p.Length, p.Payload = 0, 0, nil
	}
	if s.one(8) {
		x.spoil(&p)
	}
	port, _ = x.card.PortOf(p.Job, p.Rank)
	if s.one(32) {
		port = s.below(x.card.Config().Ports)
	}
	return port, p
}

// spoil makes something wrong with a packet, or several things.
func (x *steps) spoil(p *Packet) {
	s := x.script
	for range 1 + s.below(2) {
		switch s.below(11) {
		case 0:
			p.Version = uint8(s.below(16))
		case 1:
			p.Kind = wire.Kind(s.below(16))
		case 2:
			p.Job = s.byte()
		case 3:
			p.Epoch += uint16(s.byte())
		case 4:
			p.Rank = s.byte()
		case 5:
			p.Format = wire.Format(s.below(8))
		case 6:
			p.Length = uint16(s.below(10))
		case 7:
			p.Payload = p.Payload[:s.below(len(p.Payload)+1)]
		case 8:
			p.Bad = true
		case 9:
			p.VID = s.uint32()
		case 10:
			p.Mask, p.Receivers, p.Code = uint64(s.uint32()), 1, wire.Code(s.byte())
		}
	}
}

// random returns the script of a seed.
func random(seed uint64, n int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	r := rand.NewChaCha8(key)
	text := make([]byte, n)
	_, _ = r.Read(text)
	return text
}
