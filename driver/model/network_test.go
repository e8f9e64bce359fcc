// Every rule of NETWORK.md, sections 3 to 5: registers, the owner with its lease, members.

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// elsewhere are addresses that differ from an address in one part that counts.
func elsewhere(a wire.Address) map[string]wire.Address {
	return map[string]wire.Address{
		"IPv4 address":  {Station: a.Station ^ 0x0100_0000, MAC: a.MAC},
		"UDP port":      {Station: a.Station ^ 0x8000_0000_0000, MAC: a.MAC},
		"Ethernet port": {Station: a.Station, MAC: a.MAC ^ 1<<48},
	}
}

// behindAnotherRouter returns an address that differs in its MAC address alone.
func behindAnotherRouter(a wire.Address) wire.Address {
	return wire.Address{Station: a.Station, MAC: a.MAC ^ 0xff}
}

func TestDefaultChunkOfADatagram(t *testing.T) {
	// 1,500 bytes less 20 of IP, 8 of UDP, 30 of header and 4 of CRC are 1,438.
	for _, c := range []struct {
		cfg  Config
		want int
	}{
		{Config{Lanes: 1}, 359}, {Config{Lanes: 16}, 352}, {Config{Lanes: 64}, 320}, {Config{Lanes: 16, Format: wire.BF16}, 704},
		{Config{Lanes: 16, Format: wire.BF16, Result: wire.FP32}, 352}, {Config{Lanes: 16, Format: wire.FP8E4M3}, 1424},
		{Config{Lanes: 16, Chunk: 2048}, 2048},
	} {
		c.cfg.Ports, c.cfg.Window, c.cfg.Shell, c.cfg.Link = 1, 1, wire.ShellUDP, 512
		card, err := NewCard(c.cfg)
		require.NoError(t, err)
		assert.Equal(t, c.want, card.Config().Chunk, "%+v", c.cfg)
		assert.Equal(t, 1, card.Config().Ethernet, "one-armed")
	}
}

func TestConfigsOfCardsOnANetwork(t *testing.T) {
	good := Config{Lanes: 16, Ports: 4, Window: 8, Shell: wire.ShellUDP, Link: 64}
	require.NoError(t, good.Validate())
	for what, change := range map[string]func(*Config){
		"link: 32 is not":               func(c *Config) { c.Link = 32 },
		"ethernet: 257":                 func(c *Config) { c.Ethernet = 257 },
		"ethernet: -1":                  func(c *Config) { c.Ethernet = -1 },
		"payload of 8256 bytes":         func(c *Config) { c.Chunk = 2064 },
		"payload of 8224 bytes":         func(c *Config) { c.Format, c.Result, c.Chunk = wire.FP8E4M3, wire.FP32, 2056; c.Lanes = 8 },
		"which has none":                func(c *Config) { c.Shell, c.Ethernet, c.Link, c.Chunk = wire.ShellNone, 1, 0, 16 },
		"not none, stream, udp or roce": func(c *Config) { c.Shell, c.Chunk = 4, 16 },
		"no multiple of 16 lanes":       func(c *Config) { c.Chunk = 8 },
		"lanes: 0 is not a power":       func(c *Config) { c.Lanes = 0 },
		"no format 77":                  func(c *Config) { c.Result = 77 },
	} {
		c := good
		change(&c)
		assert.ErrorContains(t, c.Validate(), what)
	}
}

// TestRegistersOfOtherShells: cards with ports or a byte stream have none of the registers and
// counters of shell udp.
func TestRegistersOfOtherShells(t *testing.T) {
	d := newHarness(t)
	addrs := []uint32{wire.MemberAddr(wire.RegMemberMAC, 3), wire.TableAddr(wire.RegJobMAC, 0, 3)}
	for _, r := range wire.NetworkRegisters {
		addrs = append(addrs, r.Addr)
	}
	for i := range wire.NetworkCounters {
		addrs = append(addrs, wire.CounterAddr(len(wire.Counters)+i))
	}
	for _, addr := range addrs {
		for _, write := range []bool{false, true} {
			code, value := d.card.Register(write, addr, 1)
			assert.Equal(t, wire.CodeBadAddress, code, "%#x", addr)
			assert.Zero(t, value)
		}
	}
}

func TestWhichNetworkRegistersExist(t *testing.T) {
	s := newSite(t, 2)
	for _, addr := range []uint32{
		wire.RegLease, wire.RegSource, wire.RegSourceMAC, wire.RegCardAddress, wire.RegCardMAC, 0x800, 0x808, 0x838,
		0x40000, 0x40038, 0x40400, 0x40438, wire.CounterAddr(len(wire.Counters)), wire.CounterAddr(len(wire.Counters) + 17),
	} {
		s.read(addr)
	}
	for _, addr := range []uint32{0x150, 0x7f8, 0x840, 0x848, 0x804, 0xbf8, 0xc20, 0xc04, 0xdf8, 0xe00, 0x40040, 0x40004, 0x403f8, 0x40800,
		0x43ff8, 0xc00, 0xc18, 0x44000, 0x44218, 0x44020, 0x44400, 0x46000, 0x158, 0x238, 0x240, 0x248, 0x600, 0x620, 0x1058, 0x1060, 0x1068,
		wire.CounterAddr(len(wire.Counters) + 18)} {
		code, _ := s.access(hostA, false, addr, 0)
		assert.Equal(t, wire.CodeBadAddress, code, "%#x", addr)
		code, _ = s.access(hostA, true, addr, 0)
		assert.Equal(t, wire.CodeBadAddress, code, "%#x, written by nobody's owner", addr)
	}
}

func TestSourceIsTheSenderOfThisAccess(t *testing.T) {
	s := newSite(t, 1)
	s.own()
	for _, host := range []wire.Address{hostA, hostB, hostE, behindAnotherRouter(hostA)} {
		_, station := s.access(host, false, wire.RegSource, 0)
		_, mac := s.access(host, false, wire.RegSourceMAC, 0)
		assert.Equal(t, host, wire.Address{Station: station, MAC: mac})
		s.writes(host, wire.RegSource, 1, wire.CodeReadOnly)
	}
}

func TestTheCardsOwnAddress(t *testing.T) {
	s := newSite(t, 1)
	assert.EqualValues(t, 0x5442_0a0000fe, s.read(wire.RegCardAddress))
	assert.EqualValues(t, 0x02_00000000fe, s.read(wire.RegCardMAC))
	s.own()
	_, value := s.access(hostA, true, wire.RegCardAddress, 0xffff_1234_0a0000fd)
	assert.EqualValues(t, 0x1234_0a0000fd, value, "without the bits that have no meaning")
	_, value = s.access(hostA, true, wire.RegCardMAC, 0xff01_0200000000fd)
	assert.EqualValues(t, 0x01_0200000000fd, value)
	s.writes(hostA, wire.RegReset, owner, wire.CodeDone)
	assert.Equal(t, wire.Address{Station: 0x1234_0a0000fd, MAC: 0x01_0200000000fd}, s.e.Own(), "RESET leaves it")
}

func TestMemberRegistersKeepAllBits(t *testing.T) {
	s := newSite(t, 1)
	s.own()
	all := ^uint64(0)
	for port := range 4 {
		for _, addr := range []uint32{wire.RegMemberAddress, wire.RegMemberMAC} {
			_, value := s.access(hostA, true, wire.MemberAddr(addr, port), all-uint64(port))
			assert.Equal(t, all-uint64(port), value)
		}
	}
	assert.Equal(t, all-2, s.read(wire.MemberAddr(wire.RegMemberMAC, 2)))
	s.writes(hostA, wire.RegRelease, owner, wire.CodeDone)
	assert.Equal(t, all-2, s.read(wire.MemberAddr(wire.RegMemberMAC, 2)), "RELEASE leaves what is staged")
	s.writes(hostB, wire.RegReset, 1, wire.CodeDone)
	for port := range 4 {
		assert.Zero(t, s.read(wire.MemberAddr(wire.RegMemberAddress, port))|s.read(wire.MemberAddr(wire.RegMemberMAC, port)))
	}
}

// TestOnlyTheOwnersAddressWrites: every register that can be written, from every other address, has
// no effect, while the card has an owner.
func TestOnlyTheOwnersAddressWrites(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.writes(hostA, wire.RegLease, 123456789, wire.CodeDone)
	staged := s.read(wire.MemberAddr(wire.RegMemberAddress, 0))
	for _, r := range append(append([]wire.Register{}, wire.Registers...), wire.NetworkRegisters...) {
		for part, host := range elsewhere(hostA) {
			want := wire.CodeBusy
			if r.Access == wire.ReadOnly {
				want = wire.CodeReadOnly // which is checked first
			}
			value := uint64(owner) // the right token for RELEASE and RESET
			if r.Addr == wire.RegJobAbort {
				value = 1 << 32
			}
			code, after := s.access(host, true, r.Addr, value)
			assert.Equal(t, want, code, "%s from another %s", r.Name, part)
			assert.Zero(t, after)
		}
	}
	code, _ := s.access(hostB, true, 0x4, 0)
	assert.Equal(t, wire.CodeBadAddress, code, "which is checked first")
	assert.EqualValues(t, owner, s.read(wire.RegOwner))
	assert.EqualValues(t, 123456789, s.read(wire.RegLease))
	assert.Equal(t, staged, s.read(wire.MemberAddr(wire.RegMemberAddress, 0)))
	assert.EqualValues(t, 0b11, s.read(wire.RegJobPorts))
	assert.EqualValues(t, 1<<16|0b11, s.read(wire.RegJobState), "the job runs")
	s.writes(behindAnotherRouter(hostA), wire.RegLease, 99_999_999, wire.CodeDone)
}

// TestACardWithoutAnOwner takes writes of OWNER, RELEASE and RESET alone.
func TestACardWithoutAnOwner(t *testing.T) {
	s := newSite(t, 1)
	for _, r := range append(append([]wire.Register{}, wire.Registers...), wire.NetworkRegisters...) {
		if r.Access == wire.ReadOnly || r.Addr == wire.RegOwner {
			continue
		}
		want := wire.CodeBusy
		if r.Addr == wire.RegRelease || r.Addr == wire.RegReset {
			want = wire.CodeDone
		}
		s.writes(hostB, r.Addr, 7, want)
	}
	code, value := s.access(hostB, true, wire.RegOwner, 0)
	assert.Equal(t, wire.CodeDone, code)
	assert.Zero(t, value, "zero is no token, and host b no owner")
	s.own()
	s.writes(hostB, wire.RegOwner, owner, wire.CodeBusy)
	code, value = s.access(hostA, true, wire.RegOwner, 5)
	assert.Equal(t, wire.CodeDone, code)
	assert.EqualValues(t, owner, value, "it has an owner")
}

func TestLeaseRegister(t *testing.T) {
	const fiveSeconds = 500_000_000 // of 100 MHz
	s := newSite(t, 1)
	assert.EqualValues(t, fiveSeconds, s.read(wire.RegLease))
	s.own()
	for value, want := range map[uint64]wire.Code{
		0: wire.CodeBadDeadline, 1<<40 + 1: wire.CodeBadDeadline, 1 << 63: wire.CodeBadDeadline, 1 << 40: wire.CodeDone,
	} {
		s.writes(hostA, wire.RegLease, value, want)
	}
	assert.EqualValues(t, 1<<40, s.read(wire.RegLease), "a refused value changes nothing")
	s.writes(hostA, wire.RegRelease, owner, wire.CodeDone)
	s.writes(hostB, wire.RegOwner, 9, wire.CodeDone)
	assert.EqualValues(t, fiveSeconds, s.read(wire.RegLease), "the next owner begins with the default")
	s.writes(hostB, wire.RegLease, 1000, wire.CodeDone)
	s.writes(hostB, wire.RegReset, 9, wire.CodeDone)
	assert.EqualValues(t, fiveSeconds, s.read(wire.RegLease))
}

// owned reports whether the card has an owner, without an access.
func (s *site) owned() bool { return s.e.card.owner != 0 }

// TestTheLeaseEndsAtItsCycle: LEASE cycles after the owner's last access, and not one before; the
// owner's access in the very cycle comes too late.
func TestTheLeaseEndsAtItsCycle(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.writes(hostA, wire.RegLease, 5000, wire.CodeDone)
	s.e.Advance(4999)
	require.True(t, s.owned())
	s.e.Advance(1)
	require.False(t, s.owned())
	assert.Zero(t, s.read(wire.RegJobState)&1, "all jobs have ended")
	s.counts("lease", 1)
	s.counts("link_down", 0)

	s.own()
	s.writes(hostA, wire.RegLease, 5000, wire.CodeDone)
	s.e.Advance(4998)
	_, value := s.access(hostA, false, wire.RegOwner, 0) // 4,999 cycles after the last
	require.EqualValues(t, owner, value)
	s.e.Advance(4999)
	_, value = s.access(hostA, false, wire.RegOwner, 0)
	require.Zero(t, value)
	s.counts("lease", 2)
}

func TestTheDefaultLeaseEnds(t *testing.T) {
	s := newSite(t, 1)
	s.own()
	s.e.Advance(499_999_999)
	require.True(t, s.owned())
	s.e.Advance(1)
	require.False(t, s.owned())
}

// TestEachAccessOfTheOwnerRestartsTheLease: reads, writes and refused ones, from behind any router;
// nothing else, whoever sends it.
func TestEachAccessOfTheOwnerRestartsTheLease(t *testing.T) {
	for what, access := range map[string]func(s *site){
		"read":            func(s *site) { s.access(hostA, false, wire.RegCycles, 0) },
		"write":           func(s *site) { s.access(hostA, true, wire.RegJobChunk, 0) },
		"read-only":       func(s *site) { s.access(hostA, true, wire.RegCycles, 0) },
		"bad address":     func(s *site) { s.access(hostA, false, 4, 0) },
		"another router":  func(s *site) { s.access(behindAnotherRouter(hostA), false, wire.RegCycles, 0) },
		"refused command": func(s *site) { s.access(hostA, true, wire.RegJobCommit, 0xff<<48) },
		"LEASE itself":    func(s *site) { s.access(hostA, true, wire.RegLease, 5000) },
	} {
		s := newSiteWithJob(t, 1)
		s.writes(hostA, wire.RegLease, 5000, wire.CodeDone)
		s.e.Advance(4000)
		access(s)
		s.e.Advance(4999)
		assert.True(t, s.owned(), what)
		s.e.Advance(1)
		assert.False(t, s.owned(), what)
	}
	for what, packet := range map[string]func(s *site){
		"a stranger's read":  func(s *site) { s.access(hostE, false, wire.RegCycles, 0) },
		"a stranger's write": func(s *site) { s.access(hostE, true, wire.RegOwner, owner) },
		"other port":         func(s *site) { s.access(elsewhere(hostA)["UDP port"], false, wire.RegCycles, 0) },
		"other Ethernet":     func(s *site) { s.access(elsewhere(hostA)["Ethernet port"], false, wire.RegCycles, 0) },
		"member's data":      func(s *site) { s.in(hostA, wire.ECT0, element(0, 10, 1)) },
		"member's ask":       func(s *site) { s.in(hostA, wire.ECT0, packetOf(wire.KindAsk, 0, 10)) },
		"member's finish":    func(s *site) { s.in(hostA, wire.ECT0, packetOf(wire.KindFinish, 0, 10)) },
		"damaged access":     func(s *site) { s.e.Receive(make([]byte, 18), hostA, wire.ECT0) },
	} {
		s := newSite(t, 1)
		s.own()
		s.members(hostA, hostC)
		require.Equal(t, wire.CodeDone, s.setUp(0, 1, pair))
		s.writes(hostA, wire.RegLease, 5000, wire.CodeDone)
		packet(s)
		s.e.Advance(5000)
		assert.False(t, s.owned(), what)
	}
}

// TestTheLeaseEndsInTheMiddleOfEverything: with a slot that collects, a result that is owed, and one
// that has left for one of two. That one leaves whole, and nothing else does.
func TestTheLeaseEndsInTheMiddleOfEverything(t *testing.T) {
	s := newSite(t, 2)
	s.own()
	s.members(hostB, hostC)
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, setup{ports: 0b11, chunk: 1, window: 2, first: 10}))
	s.members(hostD, hostE)
	require.Equal(t, wire.CodeDone, s.setUp(1, 1, pair))
	s.writes(hostA, wire.RegLease, 1<<20, wire.CodeDone)
	for _, vid := range []uint32{10, 11} {
		s.in(hostB, wire.ECT0, element(0, vid, 1))
		s.in(hostC, wire.ECT0, element(1, vid, 2))
	}
	collecting := element(0, 10, 5)
	collecting.Job = 1
	s.in(hostD, wire.ECT0, collecting)
	_, to, _, _ := s.e.Send(nil)
	require.Equal(t, hostB, to)

	s.e.Advance(1 << 20)
	s.sends("c 2: result v10 to 3 = 3")
	for number := range 2 {
		assert.Zero(t, s.read(wire.JobAddr(wire.RegJobState, number))&1)
	}
	s.counts("lease", 1)

	// The members hear that the job has ended, and strangers still hear nothing.
	s.in(hostB, wire.ECT0, packetOf(wire.KindAsk, 0, 11))
	s.sends("b 2: status bad_job v11 to rank 0, missing 0")
	s.in(hostD, wire.ECT0, packetOf(wire.KindAsk, 0, 11))
	s.sends()
	s.e.Advance(1 << 20)
	s.counts("lease", 1)
}

// TestTheNextOwner takes the card from a silent one, whose delayed writes then have no effect.
func TestTheNextOwner(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.writes(hostA, wire.RegLease, 5000, wire.CodeDone)
	s.e.Advance(5000)
	s.writes(hostD, wire.RegOwner, 77, wire.CodeDone)
	for _, addr := range []uint32{wire.RegOwner, wire.RegRelease, wire.RegReset, wire.RegLease, wire.RegJobToken, wire.RegJobCommit} {
		s.writes(hostA, addr, owner, wire.CodeBusy)
	}
	assert.EqualValues(t, 77, s.read(wire.RegOwner))
}

// TestANewOwnerFindsNothingStaged: what others have staged is gone, also if the same host takes the card
// again.
func TestANewOwnerFindsNothingStaged(t *testing.T) {
	s := newSiteWithJob(t, 1)
	staged := []uint32{wire.RegJobToken, wire.RegJobPorts, wire.RegJobChunk, wire.RegJobWindow,
		wire.MemberAddr(wire.RegMemberAddress, 0), wire.MemberAddr(wire.RegMemberMAC, 1)}
	for _, addr := range staged {
		assert.NotZero(t, s.read(addr))
	}
	s.writes(hostA, wire.RegOwner, owner, wire.CodeDone) // it owns the card: nothing changes
	assert.NotZero(t, s.read(wire.RegJobChunk))
	s.writes(hostA, wire.RegRelease, owner, wire.CodeDone)
	assert.NotZero(t, s.read(wire.RegJobChunk))
	s.writes(hostA, wire.RegOwner, owner, wire.CodeDone)
	for _, addr := range staged {
		assert.Zero(t, s.read(addr), "%#x", addr)
	}
}

func TestBadMembers(t *testing.T) {
	twice := wire.Address{Station: hostB.Station, MAC: hostB.MAC ^ 1<<48}
	for what, c := range map[string]struct {
		members []wire.Address // at the ports 0, 1 and 3
		want    wire.Code
	}{
		"three":                   {[]wire.Address{hostB, hostC, hostD}, wire.CodeDone},
		"none":                    {[]wire.Address{{}, hostC, hostD}, wire.CodeBadMember},
		"no IPv4 address":         {[]wire.Address{hostB, {Station: 0x1234_00000000}, hostD}, wire.CodeBadMember},
		"no UDP port":             {[]wire.Address{hostB, hostC, {Station: 0x0a000009}}, wire.CodeBadMember},
		"no UDP port, but bits":   {[]wire.Address{hostB, hostC, {Station: 0xffff_0000_0a000009}}, wire.CodeBadMember},
		"no such Ethernet port":   {[]wire.Address{hostB, hostC, {Station: hostD.Station, MAC: 2 << 48}}, wire.CodeBadMember},
		"Ethernet port 255":       {[]wire.Address{{Station: hostB.Station, MAC: 255 << 48}, hostC, hostD}, wire.CodeBadMember},
		"no MAC address":          {[]wire.Address{{Station: hostB.Station}, hostC, hostD}, wire.CodeDone},
		"the same address twice":  {[]wire.Address{hostB, hostC, hostB}, wire.CodeDone},
		"on two Ethernet ports":   {[]wire.Address{hostB, twice, hostD}, wire.CodeDone},
		"one IPv4 address":        {[]wire.Address{hostB, {Station: hostB.Station ^ 1<<40}, hostD}, wire.CodeDone},
		"the owner's twice":       {[]wire.Address{hostA, hostC, hostA}, wire.CodeDone},
		"unused bits of both":     {[]wire.Address{{Station: hostB.Station | 1<<63, MAC: 1 << 63}, hostC, hostD}, wire.CodeDone},
		"the owner's three times": {[]wire.Address{hostA, hostA, hostA}, wire.CodeDone},
		"behind one MAC address":  {[]wire.Address{{Station: hostB.Station, MAC: 5}, {Station: hostC.Station, MAC: 5}, hostD}, wire.CodeDone},
	} {
		s := newSite(t, 1)
		s.own()
		s.members(c.members[0], c.members[1], wire.Address{Station: 1}, c.members[2])
		assert.Equal(t, c.want, s.setUp(0, 1, setup{ports: 0b1011, chunk: 1, window: 1}), what)
		if c.want != wire.CodeDone {
			assert.Zero(t, s.read(wire.RegJobState), "%s: nothing changes", what)
			assert.Zero(t, s.read(wire.TableAddr(wire.RegJobAddress, 0, 1)), "%s: nothing changes", what)
		}
	}
}

// TestWhereBadMemberIsChecked: after bad_ports, before bad_chunk.
func TestWhereBadMemberIsChecked(t *testing.T) {
	s := newSite(t, 1)
	s.own()
	assert.Equal(t, wire.CodeBadPorts, s.setUp(0, 1, setup{ports: 0b10000}))
	assert.Equal(t, wire.CodeBadMember, s.setUp(0, 1, setup{ports: 0b11}))
	s.members(hostB, hostC)
	assert.Equal(t, wire.CodeBadChunk, s.setUp(0, 1, setup{ports: 0b11}))
}

// entry reads an entry of the address table.
func (s *site) entry(job, port int) wire.Address {
	return wire.Address{Station: s.read(wire.TableAddr(wire.RegJobAddress, job, port)), MAC: s.read(wire.TableAddr(wire.RegJobMAC, job, port))}
}

func TestTheAddressTable(t *testing.T) {
	s := newSite(t, 2)
	s.own()
	s.members(hostB, hostC, hostD, hostE)
	assert.Zero(t, s.entry(1, 2), "empty until the first commit")
	require.Equal(t, wire.CodeDone, s.setUp(1, 1, setup{ports: 0b1101, chunk: 1, window: 1}))
	want := []wire.Address{hostB, {}, hostD, hostE}
	for port := range want {
		assert.Equal(t, want[port], s.entry(1, port), "port %d", port)
		assert.Zero(t, s.entry(0, port), "another job")
	}

	s.members(hostE, hostD, hostC, hostB)
	assert.Equal(t, hostB, s.entry(1, 0), "what is staged is not in force")
	assert.Equal(t, wire.CodeEpochInUse, s.setUp(1, 1, setup{ports: 0b1101, chunk: 1, window: 1}), "other addresses")
	assert.Equal(t, wire.CodeStaleEpoch, s.setUp(1, 0, setup{ports: 0b1101, chunk: 1, window: 1}))
	assert.Equal(t, hostB, s.entry(1, 0), "a refused commit changes nothing")

	s.members(wire.Address{Station: hostE.Station | 0xffff<<48, MAC: hostE.MAC | 0xff<<56}) // bits without a meaning
	require.Equal(t, wire.CodeDone, s.setUp(1, 2, setup{ports: 0b0011, chunk: 1, window: 1}))
	want = []wire.Address{hostE, hostD, {}, {}}
	for port := range want {
		assert.Equal(t, want[port], s.entry(1, port), "port %d of the next epoch", port)
	}
	s.writes(hostA, wire.RegJobAbort, 1<<48|2<<32, wire.CodeDone)
	s.writes(hostA, wire.RegReset, owner, wire.CodeDone)
	assert.Equal(t, hostD, s.entry(1, 1), "it outlives the job, and RESET")
}

func TestTheSameCommitAgain(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	assert.Equal(t, wire.CodeDone, s.setUp(0, 1, pair), "changes nothing")
	s.members(wire.Address{Station: hostB.Station | 1<<60, MAC: hostB.MAC})
	assert.Equal(t, wire.CodeDone, s.setUp(0, 1, pair), "bits without a meaning")
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	s.sends("b 2: result v10 to 3 = 3", "c 2: result v10 to 3 = 3")
	for _, other := range []wire.Address{hostD, behindAnotherRouter(hostB), elsewhere(hostB)["Ethernet port"]} {
		s.members(other)
		assert.Equal(t, wire.CodeEpochInUse, s.setUp(0, 1, pair), "%x", other)
	}
	s.members(hostB, hostC, hostD, hostE) // entries of other ports are not compared
	assert.Equal(t, wire.CodeDone, s.setUp(0, 1, pair))
}

// TestMembersAreKnownByTheirAddress: each part that counts, for each kind of packet.
func TestMembersAreKnownByTheirAddress(t *testing.T) {
	packets := map[string]Packet{
		"data": element(0, 10, 1), "ask": packetOf(wire.KindAsk, 0, 10), "finish": packetOf(wire.KindFinish, 0, 10),
	}
	for kind, p := range packets {
		for part, host := range elsewhere(hostB) {
			s := newSiteWithJob(t, 1)
			s.in(host, wire.ECT0, p)
			s.sends()
			s.counts("stranger", 1)
			for _, name := range []string{"stored", "asks", "finishes", "bad_rank"} {
				s.counts(name, 0)
			}
			assert.Zero(t, s.read(wire.RegJobFinished), "%s from another %s", kind, part)
		}
		s := newSiteWithJob(t, 1)
		s.in(behindAnotherRouter(hostB), wire.ECT0, p)
		s.counts("stranger", 0)
		s.counts("stored", map[string]int{"data": 1}[kind])
	}
}

// TestStrangersComeBeforeAllOtherRefusals: neither the job, nor its end, nor the rank matters.
func TestStrangersComeBeforeAllOtherRefusals(t *testing.T) {
	s := newSiteWithJob(t, 2)
	for what, change := range map[string]func(p *Packet){
		"job beyond JOBS":  func(p *Packet) { p.Job = 2 }, // job 0 as a remainder
		"job 255":          func(p *Packet) { p.Job = 255 },
		"no job yet":       func(p *Packet) { p.Job = 1 },
		"rank without one": func(p *Packet) { p.Rank = 2 },
		"rank 255":         func(p *Packet) { p.Rank = 255 },
		"another's rank":   func(p *Packet) { p.Rank, p.Epoch = 1, 9 },
	} {
		before := s.read(networkCounterAddr("stranger"))
		p := element(0, 10, 1)
		change(&p)
		s.in(hostB, wire.ECT0, p)
		s.sends()
		assert.Equal(t, before+1, s.read(networkCounterAddr("stranger")), what)
	}
	for _, name := range []string{"bad_job", "bad_epoch", "bad_rank", "stored"} {
		s.counts(name, 0)
	}
	// A sender without an address is no member of an empty table.
	p := element(0, 10, 1)
	p.Job = 1
	s.in(wire.Address{}, wire.ECT0, p)
	s.sends()
	s.counts("bad_job", 0)

	p = element(0, 10, 1)
	p.Epoch = 9
	s.in(hostB, wire.ECT0, p)
	s.sends("b 2: status bad_epoch v10 to rank 0, missing 0")
}

// TestAStrangerIsNoEvidence: a packet for the next VID of a slot, which would show that its member
// has the last result, shows nothing when a stranger sends it.
func TestAStrangerIsNoEvidence(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	s.sends("b 2: result v10 to 3 = 3", "c 2: result v10 to 3 = 3")
	s.in(hostB, wire.ECT0, element(0, 12, 1)) // so b has the result of 10
	s.sends("b 2: status not_ready v12 to rank 0, missing 0")
	s.in(hostD, wire.ECT0, element(1, 12, 1))
	s.in(hostB, wire.ECT0, element(0, 12, 1))
	s.sends("b 2: status not_ready v12 to rank 0, missing 0")
	s.in(hostC, wire.ECT0, packetOf(wire.KindAsk, 1, 10))
	s.sends("c 2: replay v10 to 2 = 3")
}

// TestMembersOfTheLastEpoch are strangers in the next one.
func TestMembersOfTheLastEpoch(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.members(hostD, hostE)
	require.Equal(t, wire.CodeDone, s.setUp(0, 2, pair))
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.sends()
	s.counts("stranger", 1)
	s.in(hostD, wire.ECT0, element(0, 10, 1)) // of epoch 1
	s.sends("d 2: status bad_epoch v10 to rank 0, missing 0")
}

// TestTheTableStaysWhenTheJobEnds: so that the answers to late finishes reach their members.
func TestTheTableStaysWhenTheJobEnds(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.in(hostB, wire.ECT0, packetOf(wire.KindFinish, 0, 10))
	s.in(hostC, wire.ECT0, packetOf(wire.KindFinish, 1, 10))
	s.sends("b 2: status done v10 to rank 0, missing 0", "c 2: status done v10 to rank 1, missing 0")
	s.in(hostC, wire.ECT0, packetOf(wire.KindFinish, 1, 10))
	s.sends("c 2: status done v10 to rank 1, missing 0")
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.sends("b 2: status bad_job v10 to rank 0, missing 0")
	s.in(hostD, wire.ECT0, packetOf(wire.KindFinish, 1, 10))
	s.sends()
}

// TestNoticesLeaveForTheirRanks: those that nobody asked for, too.
func TestNoticesLeaveForTheirRanks(t *testing.T) {
	s := newSite(t, 1)
	s.own()
	s.members(hostB, hostC, hostD)
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, setup{ports: 0b111, chunk: 1, window: 1, deadline: 3000, first: 10}))
	s.in(hostC, wire.ECT0, element(1, 10, 1))
	s.in(hostD, wire.ECT0, element(2, 10, 1))
	s.e.Advance(3000)
	s.sends("c 2: status overdue v10 to rank 1, missing 1", "d 2: status overdue v10 to rank 2, missing 1")
}
