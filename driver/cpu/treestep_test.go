// The up port in lock step: what scripts do there.

package cpu

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// treeAddresses returns the addresses of the registers of trees of cards. Those of JOB_RANKS are job 0's
// and the last job's. A card without an up port has none of them: some stand for all.
func treeAddresses(cfg Config) []uint32 {
	addrs := []uint32{wire.RegParentAddress, wire.RegParentMAC, wire.RegJobParent, wire.RegJobRepeat, wire.RegTreeRanks, wire.RegJobUp}
	if !cfg.Parent {
		return append(addrs, wire.RanksAddr(0), wire.JobRanksAddr(0, 0), wire.UpCounterAddr(0))
	}
	for i := range wire.UpCounters {
		addrs = append(addrs, wire.UpCounterAddr(i))
	}
	for port := range cfg.Ports {
		addrs = append(addrs, wire.RanksAddr(port), wire.JobRanksAddr(0, port), wire.JobRanksAddr(cfg.Jobs-1, port))
	}
	for job := range cfg.Jobs {
		for _, addr := range []uint32{wire.RegJobUp, wire.RegJobTree, wire.RegJobUpRefusal} {
			addrs = append(addrs, wire.JobAddr(addr, job))
		}
	}
	return addrs
}

// stageTree stages what a job has of a tree of cards, often something sensible.
func (x *steps) stageTree(number int, job *setup) {
	x.t.Helper()
	s, cfg := x.script, x.card.Config()
	if !cfg.Parent {
		return
	}
	u := upward{repeat: []uint64{1, 40, 400, 4000, wire.MaxRepeat}[s.below(5)], address: hosts[s.below(4)]}
	if !s.one(4) {
		u.parent = wire.ParentTree
	}
	if u.isTree() || s.one(2) {
		u.ranks = x.stand(job.ports)
		u.tree = u.all() | uint64(s.uint32())<<s.below(33)
		if !s.one(8) {
			job.deadline &^= partialSums
		}
	}
	u.parent |= uint64(s.byte()) << wire.ParentRankShift
	if cfg.Shell == wire.ShellUDP {
		u.parent |= uint64(0x6000+number) << wire.ParentPortShift
		if s.one(4) {
			u.address.MAC |= uint64(s.below(3)) << 48
		}
	}
	if s.one(6) {
		x.spoilTree(&u, job.ports)
	}
	x.writeTree(&u)
}

// stand returns global ranks for the members at ports.
func (x *steps) stand(ports uint64) (ranks [wire.MaxPorts]uint64) {
	s, next := x.script, 0
	for ; ports != 0; ports &= ports - 1 {
		several := 64-next > bits.OnesCount64(ports) && s.one(2)
		ranks[bits.TrailingZeros64(ports)] = (1 | uint64(oneAt(1, several))) << next
		next += 1 + int(oneAt(0, several))
	}
	return ranks
}

// spoilTree makes something wrong with what is staged.
func (x *steps) spoilTree(u *upward, ports uint64) {
	s := x.script
	port := bits.TrailingZeros64(ports | 1<<63)
	switch s.below(9) {
	case 0:
		u.ranks[port] = 0
	case 1:
		u.ranks[port] |= u.all() & -u.all() << 1
	case 2:
		u.tree &^= u.ranks[port]
	case 3:
		u.repeat = []uint64{0, wire.MaxRepeat + 1, 1 << 63}[s.below(3)]
	case 4:
		u.parent |= []uint64{2, 1 << 16, 1 << 32, 1 << 63}[s.below(4)]
	case 5:
		u.parent = u.parent&0xffff | []uint64{0x5442, 0, 0x6000, 0x6001}[s.below(4)]<<wire.ParentPortShift
	case 6:
		u.address = hosts[s.below(len(hosts))]
	case 7:
		u.address = wire.Address{Station: 0x5442_0a0000fe, MAC: 2} // the card's
	case 8:
		u.address.Station |= uint64(s.byte()) << 48 // means nothing
		u.ranks[s.below(x.card.Config().Ports)] |= 1
	}
}

// alterTree alters what is staged in one place, sometimes in none.
func (x *steps) alterTree(u *upward) {
	s := x.script
	bit := uint64(1) << s.below(64)
	switch s.below(7) {
	case 0:
		u.parent ^= bit
	case 1:
		u.repeat ^= bit
	case 2:
		u.tree ^= bit
	case 3:
		u.ranks[s.below(x.card.Config().Ports)] ^= bit
	case 4:
		u.address.Station ^= bit
	case 5:
		u.address.MAC ^= bit
	}
}

// writeTree writes the registers of trees of cards.
func (x *steps) writeTree(u *upward) {
	x.t.Helper()
	x.write(wire.RegJobParent, u.parent)
	x.write(wire.RegJobRepeat, u.repeat)
	x.write(wire.RegTreeRanks, u.tree)
	x.write(wire.RegParentAddress, u.address.Station)
	x.write(wire.RegParentMAC, u.address.MAC)
	for port := range x.card.Config().Ports {
		x.write(wire.RanksAddr(port), u.ranks[port])
	}
}

// treeJob lets the script choose a job, mostly a running tree job.
func (x *steps) treeJob() *job {
	jobs := x.card.engine.jobs
	number := x.job()
	for i := range jobs {
		if j := &jobs[(number+i)%len(jobs)]; j.running && j.isTree() {
			return j
		}
	}
	return &jobs[number]
}

// fromParent returns a packet of a job's parent without its kind.
func (j *job) fromParent() Packet {
	return Packet{Header: frame.Header{Version: wire.Version, Job: j.number, Epoch: j.epoch, Rank: j.branch.rank(), VID: j.setup.first}}
}

// finalSum returns a packet that brings a final sum, mostly one that a slot waits for.
func (x *steps) finalSum(j *job) Packet {
	s, cfg := x.script, x.card.Config()
	p := j.fromParent()
	p.Kind, p.Flags, p.Rank, p.Format, p.Length = wire.KindResult, s.byte(), s.byte(), cfg.Format, uint16(j.setup.chunk)
	if s.one(4) {
		p.Kind = wire.KindReplay
	}
	p.Mask, p.Receivers = j.branch.tree, uint64(s.byte())
	if len(j.slots) > 0 {
		p.VID = j.slots[s.below(len(j.slots))].vid
	}
	for i := range j.slots {
		if at := &j.slots[i]; at.state == waiting && !s.one(3) {
			p.VID = at.vid
		}
	}
	size, _ := cfg.sizes()
	p.Payload = x.payload(int(p.Length) * size)
	if s.one(12) {
		p.Mask ^= 1 << s.below(64)
	}
	return p
}

// parentStatus returns a status of a parent.
func (x *steps) parentStatus(j *job) Packet {
	s := x.script
	p := j.fromParent()
	p.Kind, p.Mask = wire.KindStatus, uint64(s.uint32())
	p.VID += uint32(s.below(8))
	p.Code = []wire.Code{wire.CodeDone, wire.CodeOverdue, wire.CodeWait, wire.CodeSend, wire.CodeDuplicate, wire.CodeBadEpoch, wire.CodeBadVersion, wire.Code(s.byte())}[s.below(8)]
	return p
}

// upStep does what the script says at the up port.
func (x *steps) upStep() {
	x.t.Helper()
	s, j := x.script, x.treeJob()
	switch what := s.below(16); {
	case !j.running:
		x.setUp(int(j.number))
	case what < 5:
		for range 1 + s.below(3) {
			x.nextUp()
		}
	case what < 12:
		p := x.finalSum(j)
		if s.one(8) {
			x.spoil(&p)
		}
		x.handle(x.card.Config().Ports, &p)
	case what < 14:
		p := x.parentStatus(j)
		if s.one(8) {
			x.spoil(&p)
		}
		x.handle(x.card.Config().Ports, &p)
	case s.one(4):
		x.finish(int(j.number))
		x.nextUp()
	}
}

// nextUp takes the next packet of both to a parent.
func (x *steps) nextUp() {
	x.t.Helper()
	var out Packet
	var other model.Packet
	got, want := x.card.NextUp(&out), x.model.NextUp(&other)
	if got != want || out.Header != frame.Header(other.Header) || !bytes.Equal(out.Payload, other.Payload) {
		x.fail("sent up %v %+v, the model %v %+v", got, out, want, other)
	}
	if got {
		x.note("sent up: %+v", out)
		x.heard["up "+out.Kind.String()]++
	}
}

// waitUp returns the cycles to a moment when a repeat may go up again.
func (x *steps) waitUp() uint64 {
	s, e := x.script, x.card.engine
	j := x.treeJob()
	at := j.branch.finish.at
	if len(j.slots) > 0 && !j.branch.finish.sent {
		at = j.slots[s.below(len(j.slots))].rose
	}
	return at + j.branch.repeat - e.now - uint64(s.below(3))
}

// Datagrams.

// receiveUp gives both a packet of the parent as a datagram, sometimes damaged, or from or to elsewhere.
func (x *nets) receiveUp(j *job, p Packet) {
	s := x.script
	port, from := j.branch.port(), j.branch.address
	from.MAC ^= uint64(s.below(2)) // of another router
	if s.one(16) {
		from = x.host()
	}
	if s.one(16) {
		port = 0x6000 + uint16(s.below(len(x.tenants)+1))
	}
	if s.one(16) {
		p.Job++
	}
	datagram := x.damage(frame.AppendDatagram(nil, &p.Header, p.Payload))
	mark := wire.ECN(s.below(4))
	x.note("to upward port %x from %x, mark %d: %x", port, from, mark, datagram)
	x.other.ReceiveUp(port, bytes.Clone(datagram), from, mark)
	x.ours.ReceiveUp(port, datagram, from, mark)
	clear(datagram) // what the card keeps is a copy
}

// sendUp takes the next datagram of both to a parent.
func (x *nets) sendUp() {
	x.t.Helper()
	got, port, to, mark, ok := x.ours.SendUp(nil)
	want, wantPort, wantTo, wantMark, wantOK := x.other.SendUp(nil)
	if !bytes.Equal(got, want) || port != wantPort || to != wantTo || mark != wantMark || ok != wantOK {
		x.fail("sent up %x from %x to %x, mark %d, %v; the model sent\n%x from %x to %x, mark %d, %v",
			got, port, to, mark, ok, want, wantPort, wantTo, wantMark, wantOK)
	}
	if ok {
		x.note("sent up from %x to %x, mark %d: %x", port, to, mark, got)
		x.heard["up "+wire.Kind(got[0]>>4).String()]++
	}
}

// upStep does what the script says at the up port.
func (x *nets) upStep() {
	x.t.Helper()
	s, j := x.script, x.treeJob()
	switch what := s.below(16); {
	case !j.running:
		x.prepare(int(j.number))
	case what < 5:
		for range 1 + s.below(3) {
			x.sendUp()
		}
	case what < 12:
		x.receiveUp(j, x.finalSum(j))
	case what < 14:
		x.receiveUp(j, x.parentStatus(j))
	case what < 15:
		p := x.data(int(j.number), s.byte(), j.setup.first) // of another kind
		p.Kind = wire.Kind(s.below(16))
		x.receiveUp(j, p)
	case s.one(4):
		x.finish()
		x.sendUp()
	}
	if got, want := x.ours.UpwardPorts(), x.other.UpwardPorts(); !slices.Equal(got, want) {
		x.fail("upward ports %v, the model has %v", got, want)
	}
}

// TestTreesInLockStep plays scripts on small cards with an up port, of every arithmetic that may have
// one. Each takes final sums, in packets and in datagrams.
func TestTreesInLockStep(t *testing.T) {
	for i, cfg := range arithmetics {
		if !hasParent(cfg) {
			continue
		}
		cfg.Lanes, cfg.Ports, cfg.Chunk, cfg.Window, cfg.Jobs, cfg.Parent = 1, 2+i%3, 2, 1<<(i%3), 1+i%2, true
		packets, datagrams := heard{}, heard{}
		for seed := range max(*seeds/60, 1) {
			playOn(t, cfg, &script{random(uint64(i)<<32|seed, 6000)}, packets)
			exchangeOn(t, cfg, &script{random(uint64(i)<<32|seed, 6000)}, datagrams)
		}
		name := fmt.Sprint(cfg.Sum, " ", cfg.Format, " ", cfg.Saturate)
		t.Log(name, packets["counter up_taken"], datagrams["counter up_taken"])
		if packets["counter up_taken"] < 5 || datagrams["counter up_taken"] < 5 {
			t.Error("final sums are hardly ever taken: ", name)
		}
	}
}
