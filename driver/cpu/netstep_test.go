// A card on a network beside the model: the same datagrams from the same addresses must be answered
// by the same datagrams to the same addresses, with the same marks.

package cpu

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// hosts are the addresses in scripts. Some differ in one part alone, or are no whole address.
var hosts = []wire.Address{
	{Station: 0x5442_0a000001, MAC: 0x02_0000000001},
	{Station: 0x5442_0a000002, MAC: 0x02_0000000002},
	{Station: 0x5443_0a000002, MAC: 0x02_0000000002},
	{Station: 0x5443_0a000003, MAC: 0x02_0000000002},
	{Station: 0x5442_0a000002, MAC: 0x0001_020000000002}, // another Ethernet port
	{Station: 0x5442_0a000002, MAC: 0x02_0000000099},     // another MAC address
	{Station: 0x5442_0a000004, MAC: 0x0002_020000000004},
	{Station: 0x0000_0a000005, MAC: 0x02_0000000005},
	{Station: 0x5442_00000000, MAC: 0x02_0000000006},
	{},
}

// nets is a card on a network, and the model, in lock step.
type nets struct {
	*steps
	ours  *Endpoint
	other *model.Endpoint
	owner wire.Address // who sets the card up at present
	check *frame.DatagramChecker
	tag   uint16
}

// newNets returns a card on a network and the model, after their hard resets.
func newNets(t testing.TB, cfg Config, s *script, h heard) *nets {
	t.Helper()
	cfg.Shell, cfg.Link, cfg.Ethernet = wire.ShellUDP, 64, 1+s.below(3)
	own := wire.Address{Station: 0x5442_0a0000fe, MAC: 0x02_00000000fe}
	ours, err := NewEndpoint(cfg, own)
	if err != nil {
		t.Fatal(err)
	}
	other, err := model.NewEndpoint(twin(cfg), own)
	if err != nil {
		t.Fatal(err)
	}
	x := &nets{
		steps: &steps{t: t, card: ours.card, script: s, heard: h, tenants: make([]tenant, ours.Config().Jobs)},
		ours:  ours, other: other, owner: hosts[0], check: frame.NewDatagramChecker(frame.FromCard),
	}
	x.addrs = append(addresses(ours.Config()), networkAddresses(ours.Config())...)
	x.bus = func(write bool, addr uint32, value uint64) (wire.Code, uint64) {
		return x.access(x.owner, write, addr, value)
	}
	return x
}

// networkAddresses returns the addresses of the registers and counters of shell udp. Those of the
// address table are job 0's and the last job's.
func networkAddresses(cfg Config) (addrs []uint32) {
	for _, r := range wire.NetworkRegisters {
		switch {
		case r.Addr >= wire.RegJobAddress:
			for port := range cfg.Ports {
				addrs = append(addrs, wire.TableAddr(r.Addr, 0, port), wire.TableAddr(r.Addr, cfg.Jobs-1, port))
			}
		case r.Addr >= wire.RegMemberAddress:
			for port := range cfg.Ports {
				addrs = append(addrs, wire.MemberAddr(r.Addr, port))
			}
		default:
			addrs = append(addrs, r.Addr)
		}
	}
	for i := range wire.NetworkCounters {
		addrs = append(addrs, wire.CounterAddr(len(wire.Counters)+i))
	}
	return addrs
}

// receive gives both the same datagram.
func (x *nets) receive(datagram []byte, from wire.Address) {
	mark := wire.ECN(x.script.below(4))
	x.note("from %x, mark %d: %x", from, mark, datagram)
	x.other.Receive(bytes.Clone(datagram), from, mark)
	x.ours.Receive(datagram, from, mark)
	clear(datagram) // what the card keeps is a copy
}

// send takes the next datagram of both; ok is false if there is none.
func (x *nets) send() (f frame.Frame, ok bool) {
	x.t.Helper()
	got, to, mark, ok := x.ours.Send(nil)
	want, wantTo, wantMark, wantOK := x.other.Send(nil)
	if !bytes.Equal(got, want) || to != wantTo || mark != wantMark || ok != wantOK {
		x.fail("sent %x to %x, mark %d, %v; the model sent\n%x to %x, mark %d, %v", got, to, mark, ok, want, wantTo, wantMark, wantOK)
	}
	if !ok {
		return f, false
	}
	x.note("sent to %x, mark %d: %x", to, mark, got)
	if !x.check.Check(got, &f) {
		x.fail("sent a bad datagram: %+v", x.check.Stats())
	}
	x.heard[f.Kind.String()]++
	x.heard[f.Kind.String()+" "+f.Code.String()]++
	switch f.Kind {
	case wire.KindResult, wire.KindReplay:
		x.holds(f.Receivers != 0, "a result for nobody")
		if t := &x.tenants[f.Job]; int32(f.VID-t.base) >= 0 {
			t.base = f.VID + 1
		}
	case wire.KindReply:
		x.holds(len(got) == wire.MaskHeaderBytes+wire.DatagramCRCBytes, "a reply of %d bytes", len(got))
	}
	return f, true
}

// drain takes all datagrams.
func (x *nets) drain() {
	for ok := true; ok; {
		_, ok = x.send()
	}
}

// access accesses a register of both from an address, and takes the reply.
func (x *nets) access(from wire.Address, write bool, addr uint32, value uint64) (wire.Code, uint64) {
	x.t.Helper()
	for len(x.ours.replies) > 0 {
		x.send()
	}
	x.tag++
	x.request(from, write, addr, value)
	f, ok := x.send()
	if !ok || f.Kind != wire.KindReply || f.Length != x.tag || f.VID != addr {
		x.fail("register %#x: the reply is %+v, %v", addr, f, ok)
	}
	return f.Code, f.Mask
}

// request sends a register access.
func (x *nets) request(from wire.Address, write bool, addr uint32, value uint64) {
	h := frame.Header{Kind: wire.KindRegRead, VID: addr, Length: x.tag}
	if write {
		h.Kind, h.Mask = wire.KindRegWrite, value
	}
	x.receive(frame.AppendDatagram(nil, &h, nil), from)
}

// host lets the script choose an address.
func (x *nets) host() wire.Address { return hosts[x.script.below(len(hosts))] }

// stage writes the members' addresses: mostly one for each, or all the owner's.
func (x *nets) stage() {
	s, cfg := x.script, x.card.Config()
	all := x.owner
	how := s.below(8)
	for port := range cfg.Ports {
		member := wire.Address{Station: 0x1000_0a000100 + uint64(port), MAC: 0x02_0000000100 + uint64(port) | uint64(port%cfg.Ethernet)<<48}
		switch {
		case how == 0:
			member = all
		case how == 1 && s.one(4):
			member = x.host()
		case how == 2:
			member.MAC |= uint64(s.byte()) << 56 // means nothing
		}
		x.write(wire.MemberAddr(wire.RegMemberAddress, port), member.Station)
		x.write(wire.MemberAddr(wire.RegMemberMAC, port), member.MAC)
	}
}

// prepare takes the card and sets a job up.
func (x *nets) prepare(number int) {
	s := x.script
	if s.one(16) { // a new life of the owner, which mostly takes the card
		if !s.one(4) {
			x.write(wire.RegRelease, token)
		}
		x.owner = x.host()
	}
	free := x.card.engine.owner == 0
	x.write(wire.RegOwner, token)
	if s.one(2) {
		x.write(wire.RegLease, []uint64{0, 1, 3000, 20_000, 20_000, 1 << 30, wire.MaxLease, wire.MaxLease + 1}[s.below(8)])
	}
	if s.one(4) || free && !s.one(8) { // a card that is taken has nothing staged
		x.stage()
	}
	x.setUp(number)
}

// again commits a job as it was set up, perhaps with other bits in addresses or in a register of trees.
func (x *nets) again(number int) {
	s, t, j := x.script, &x.tenants[number], &x.card.engine.jobs[number]
	flip := []uint64{0, 1 << 48, 1 << 56, 1 << 63}[s.below(4)]
	for port, member := range x.card.engine.network.job(uint8(number)) {
		if j.ports>>port&1 != 0 {
			x.write(wire.MemberAddr(wire.RegMemberAddress, port), member.Station^flip)
			x.write(wire.MemberAddr(wire.RegMemberMAC, port), member.MAC^flip)
		}
	}
	for addr, value := range map[uint32]uint64{
		wire.RegJobToken: token, wire.RegJobPorts: t.ports, wire.RegJobChunk: t.chunk, wire.RegJobWindow: t.window, wire.RegJobDeadline: t.deadline,
	} {
		x.write(addr, value)
	}
	if x.card.Config().Parent {
		u := j.branch.upward
		u.address.Station, u.address.MAC = u.address.Station^flip, u.address.MAC^flip
		if flip == 0 {
			x.alterTree(&u)
		}
		x.writeTree(&u)
	}
	x.write(wire.RegJobCommit, uint64(number)<<48|uint64(t.epoch)<<32|uint64(t.first))
}

// member returns the address of a rank, or sometimes another one.
func (x *nets) member(job, rank uint8) wire.Address {
	if x.script.one(16) {
		return x.host()
	}
	j := x.card.engine.jobOf(job)
	if int(rank) >= j.ranks {
		return x.host()
	}
	return x.card.engine.network.job(j.number)[j.portOf[rank]]
}

// packet sends a packet of a member, sometimes damaged.
func (x *nets) packet(p Packet) {
	s := x.script
	from := x.member(p.Job, p.Rank)
	p.Header.Version = cmp.Or(p.Header.Version, 2) // 0 means the right one
	switch s.below(64) {
	case 0:
		p.Format = wire.Format(s.byte())
	case 1:
		p.Epoch--
	}
	x.receive(x.damage(frame.AppendDatagram(nil, &p.Header, p.Payload)), from)
}

// damage damages a datagram, sometimes.
func (x *nets) damage(datagram []byte) []byte {
	s := x.script
	if s.one(16) {
		at := s.below(len(datagram))
		switch s.below(3) {
		case 0:
			datagram[at] ^= 1 << s.below(8)
		case 1:
			datagram = datagram[:at]
		case 2:
			datagram = append(datagram, s.byte())
		}
	}
	return datagram
}

// burst sends the contributions of all members, except of one sometimes, to a chunk.
func (x *nets) burst() {
	job, absent := x.job(), x.script.below(256)
	for rank := range bits.OnesCount64(x.tenants[job].ports) {
		if rank != absent {
			x.packet(x.data(job, uint8(rank), x.tenants[job].base))
		}
	}
}

// finish lets all members of a job finish, some twice.
func (x *nets) finish() {
	number := x.job()
	t := &x.tenants[number]
	for rank := range bits.OnesCount64(t.ports) {
		for range 1 + x.script.below(2) {
			x.packet(Packet{Header: frame.Header{Version: wire.Version, Kind: wire.KindFinish, Job: uint8(number), Epoch: t.epoch, Rank: uint8(rank), VID: t.base}})
		}
	}
}

// advance advances both clocks, often to just before or at a moment that matters.
func (x *nets) advance() {
	s, e := x.script, x.card.engine
	n := uint64(s.byte()) << s.below(8)
	switch s.below(4) {
	case 0:
		n = e.due - e.now - uint64(s.below(3))
	case 1:
		n = e.network.expires - e.now - uint64(s.below(3))
	case 2:
		n = e.refused + refusalCycles - e.now
		if x.card.Config().Parent {
			n = x.waitUp()
		}
	}
	if n > 1<<30 { // it lies in the past, or far away
		n = 1
	}
	x.note("advance %d", n)
	x.ours.Advance(n)
	x.other.Advance(n)
}

// step does what the script says next.
func (x *nets) step() {
	x.t.Helper()
	s := x.script
	switch what := s.below(64); {
	case x.card.Config().Parent && what%3 == 0:
		x.upStep()
	case what < 20:
		_, p := x.steps.packet()
		x.packet(p)
	case what < 34:
		x.burst()
	case what < 44:
		for range 1 + s.below(8) {
			x.send()
		}
	case what < 47:
		x.advance()
	case what < 52:
		if number := s.below(len(x.tenants)); !x.card.engine.jobs[number].running || s.one(8) {
			x.prepare(number)
		} else if s.one(16) {
			x.again(number)
		}
	case what < 53:
		x.finish()
	case what < 60:
		x.anyAccess()
	case what < 61: // more accesses than replies may wait
		for range s.below(24) {
			x.request(x.host(), false, x.addrs[s.below(len(x.addrs))], 0)
		}
	case what < 62:
		x.dropFrame()
	case s.one(8):
		x.compare()
	}
	x.invariants()
}

// dropFrame counts a frame that is no datagram. The endpoints have no Ethernet, which would.
func (x *nets) dropFrame() {
	frames := wire.NetworkCounters[slices.IndexFunc(wire.NetworkCounters, func(c wire.CounterInfo) bool { return c.Name == "passed" }):]
	reason := frames[x.script.below(len(frames))].Name
	x.ours.Count(reason)
	x.other.Count(reason)
}

// anyAccess makes a register access of some host.
func (x *nets) anyAccess() {
	s := x.script
	from, addr, value := x.owner, x.addrs[s.below(len(x.addrs))], uint64(s.uint32())<<s.below(40)
	if s.one(3) {
		from = x.host()
	}
	switch s.below(16) {
	case 0:
		addr = s.uint32()
	case 1:
		addr += uint32(s.below(256))
	case 2:
		addr, value = []uint32{wire.RegRelease, wire.RegReset, wire.RegOwner}[s.below(3)], token*uint64(s.below(2))
	case 3:
		number := s.below(len(x.tenants))
		addr, value = wire.RegJobAbort, uint64(number)<<48|uint64(x.tenants[number].epoch+uint16(s.below(2)))<<32
	case 4:
		cfg := x.card.Config()
		addr = wire.TableAddr(wire.RegJobAddress+8*uint32(s.below(2)), s.below(cfg.Jobs+1), s.below(cfg.Ports+1))
	case 5:
		addr = wire.MemberAddr(wire.RegMemberAddress, x.card.Config().Ports)
	case 6: // the owner leaves, and zero is no token, so LEASE stays
		if s.one(8) {
			x.write(wire.RegRelease, token)
			x.write(wire.RegOwner, 0)
			addr = wire.RegLease
		}
	}
	x.access(from, s.one(2), addr, value)
}

// compare compares all registers.
func (x *nets) compare() {
	for _, addr := range x.addrs {
		x.access(x.owner, false, addr, 0)
	}
}

// exchange plays a script through the datagrams.
func exchange(t testing.TB, text []byte, h heard) {
	s := &script{text}
	exchangeOn(t, configuration(s), s, h)
}

// exchangeOn plays the rest of a script on cards of a configuration.
func exchangeOn(t testing.TB, cfg Config, s *script, h heard) {
	x := newNets(t, cfg, s, h)
	for number := range x.tenants {
		x.prepare(number)
	}
	for len(s.rest) > 0 {
		x.step()
	}
	x.drain()
	x.compare()
	for i, name := range counterNames(wire.ShellUDP) {
		_, n := x.access(x.owner, false, wire.CounterAddr(i), 0)
		h["counter "+name] += int(n)
	}
	x.countUps()
}

func TestNetworkLockStep(t *testing.T) {
	h := heard{}
	for seed := range *seeds {
		exchange(t, random(seed, 8000), h)
	}
	// Datagrams have no sync word, no header CRC and no link; strangers go before ranks.
	h.hasAll(t, wire.ShellUDP, "counter hunted", "counter header_crc", "counter link_down", "counter bad_rank", "counter payload_crc",
		"status bad_version", "status bad_kind")
}

// FuzzNetwork plays scripts through the datagrams.
func FuzzNetwork(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(random(3000+seed, 2000))
	}
	f.Fuzz(func(t *testing.T, text []byte) { exchange(t, text[:min(len(text), 4000)], heard{}) })
}
