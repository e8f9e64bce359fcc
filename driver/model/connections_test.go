// Every rule of ROCE.md, sections 2 and 6, about registers: set-up, end and neighbours. The tests of
// driver/virtual/ethernet have those about frames.

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// newRoCESite returns a card with shell roce for two jobs of fp32, owned by host a.
func newRoCESite(t *testing.T, ethernet int) *site {
	t.Helper()
	e, err := NewEndpoint(Config{
		Lanes: 4, Ports: 4, Window: 8, Jobs: 2, Shell: wire.ShellRoCE, Link: 64, Ethernet: ethernet,
	}, wire.Address{Station: 0x5442_0a0000fe, MAC: 0x02_00000000fe})
	require.NoError(t, err)
	s := &site{t, e}
	s.own()
	return s
}

// entry returns the value of MEMBER_CONNECTION.
func entry(qpn, firstPSN, port uint64) uint64 { return qpn | firstPSN<<24 | port<<48 }

// connect stages members b, c and d at the ports 0 to 2, and a ring of their connections.
func (s *site) connect() {
	s.Helper()
	s.members(hostB, hostC, hostD)
	for port := range 3 {
		s.writes(hostA, wire.ConnectionAddr(port), entry(uint64(0x10+port), 0xfffffe, uint64((port+1)%3)), wire.CodeDone)
	}
}

// ringJob is the job of these connections, of 256 bytes.
var ringJob = setup{ports: 0b111, chunk: 64, window: 2}

// table returns JOB_CONNECTION of a number's ports.
func (s *site) table(number int) (entries []uint64) {
	s.Helper()
	for port := range 4 {
		entries = append(entries, s.read(wire.JobConnectionAddr(number, port)))
	}
	return entries
}

// ringEntries is table after the set-up of ringJob.
var ringEntries = []uint64{entry(0x10, 0xfffffe, 1), entry(0x11, 0xfffffe, 2), entry(0x12, 0xfffffe, 0), 0}

func TestConfigsUnderRoCE(t *testing.T) {
	good := Config{Lanes: 16, Ports: 4, Window: 8, Jobs: 16, Shell: wire.ShellRoCE, Link: 512}
	require.NoError(t, good.Validate())
	card, err := NewCard(good)
	require.NoError(t, err)
	assert.Equal(t, 1024, card.Config().Chunk, "4,096 bytes")
	assert.Equal(t, 1, card.Config().Ethernet, "one-armed")
	for what, change := range map[string]func(*Config){
		"more than 64 connections": func(c *Config) { c.Ports = 5 },
		"has one format":           func(c *Config) { c.Format, c.Result = wire.BF16, wire.FP32 },
		"roce has no up port":      func(c *Config) { c.Parent = true },
		"link: 32":                 func(c *Config) { c.Link = 32 },
		"ethernet: 257":            func(c *Config) { c.Ethernet = 257 },
	} {
		c := good
		change(&c)
		assert.ErrorContains(t, c.Validate(), what)
	}
}

func TestWhichConnectionRegistersExist(t *testing.T) {
	oneArmed, inPath, udp := newRoCESite(t, 1), newRoCESite(t, 2), newSite(t, 2)
	udp.own()
	for _, c := range []struct {
		addr             uint32
		oneArmed, inPath bool
	}{
		{0x2000, true, true}, {0x2018, true, true}, {0x2020, false, false}, {0x2004, false, false}, {0x21f8, false, false},
		{0x48000, true, true}, {0x48018, true, true}, {0x48218, true, true}, {0x48020, false, false}, {0x48400, false, false}, {0x48004, false, false},
		{0x2400, true, false}, {0x2408, true, false}, {0x2438, true, false}, {0x2440, false, false}, {0x2404, false, false},
		{0x250, true, true}, {wire.LagAddr(0, 0, 0), true, true},
		{wire.CounterAddr(len(wire.CountersOf(wire.ShellRoCE)) - 1), true, true}, {wire.CounterAddr(len(wire.CountersOf(wire.ShellRoCE))), false, false},
	} {
		for s, exists := range map[*site]bool{oneArmed: c.oneArmed, inPath: c.inPath, udp: c.addr == wire.LagAddr(0, 0, 0)} {
			code, _ := s.access(hostA, false, c.addr, 0)
			want := wire.CodeBadAddress
			if exists {
				want = wire.CodeDone
			}
			assert.Equal(t, want, code, "%#x", c.addr)
		}
	}
	oneArmed.writes(hostA, wire.JobConnectionAddr(0, 0), 1, wire.CodeReadOnly)
}

func TestConnectionsAreRegisteredByTheCommit(t *testing.T) {
	s := newRoCESite(t, 2)
	s.connect()
	s.writes(hostA, wire.ConnectionAddr(3), 1<<63|0x77, wire.CodeDone)
	assert.Equal(t, uint64(0x77), s.read(wire.ConnectionAddr(3)), "without the bits that have no meaning")
	s.writes(hostA, wire.ConnectionAddr(1), 0xab<<56|ringEntries[1], wire.CodeDone)
	assert.Equal(t, []uint64{0, 0, 0, 0}, s.table(0))
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, ringJob))
	assert.Equal(t, ringEntries, s.table(0), "of members alone")
	assert.Equal(t, []uint64{0, 0, 0, 0}, s.table(1))
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, ringJob), "the same again")
	s.writes(hostA, wire.ConnectionAddr(1), ringEntries[1]^1<<24, wire.CodeDone)
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, ringJob))
	assert.Equal(t, ringEntries, s.table(0), "a commit of the running epoch changes nothing")
}

// TestBadConnections: each reason of bad_connection, at its place among the checks.
func TestBadConnections(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(s *site, job *setup)
		want wire.Code
	}{
		"a good one":                   {func(*site, *setup) {}, wire.CodeDone},
		"a receiver that is no member": {func(s *site, _ *setup) { s.connectPort(1, entry(0x11, 0, 3)) }, wire.CodeBadConnection},
		"a receiver's port beyond 63":  {func(s *site, _ *setup) { s.connectPort(1, entry(0x11, 0, 0x42)) }, wire.CodeBadConnection},
		"QPN 0":                        {func(s *site, _ *setup) { s.connectPort(1, entry(0, 0, 2)) }, wire.CodeBadConnection},
		"QPN 1":                        {func(s *site, _ *setup) { s.connectPort(1, entry(1, 0, 2)) }, wire.CodeBadConnection},
		"QPN 2":                        {func(s *site, _ *setup) { s.connectPort(1, entry(2, 0, 2)) }, wire.CodeDone},
		"the greatest QPN and PSN":     {func(s *site, _ *setup) { s.connectPort(1, entry(0xffffff, 0xffffff, 2)) }, wire.CodeDone},
		"a connection twice":           {func(s *site, _ *setup) { s.connectPort(2, entry(0x11, 0, 2)) }, wire.CodeBadConnection},
		"one QPN at two receivers":     {func(s *site, _ *setup) { s.connectPort(2, entry(0x11, 0, 0)) }, wire.CodeDone},
		"two QPNs at one receiver":     {func(s *site, _ *setup) { s.connectPort(2, entry(0x12, 0, 2)) }, wire.CodeDone},
		"one address at two ports, one QPN": {func(s *site, _ *setup) {
			s.writes(hostA, wire.MemberAddr(wire.RegMemberAddress, 0), hostD.Station, wire.CodeDone)
			s.connectPort(2, entry(0x11, 0, 0))
		}, wire.CodeBadConnection},
		"a first VID":              {func(_ *site, job *setup) { job.first = 1 }, wire.CodeBadConnection},
		"192 bytes":                {func(_ *site, job *setup) { job.chunk = 48 }, wire.CodeBadConnection},
		"no chunk":                 {func(_ *site, job *setup) { job.chunk = 0 }, wire.CodeBadConnection},
		"8,192 bytes":              {func(_ *site, job *setup) { job.chunk = 2048 }, wire.CodeBadConnection},
		"256 bytes beyond 64 bits": {func(_ *site, job *setup) { job.chunk = 1<<62 + 64 }, wire.CodeBadConnection},
		"512 bytes":                {func(_ *site, job *setup) { job.chunk = 128 }, wire.CodeDone},
		"1,024 bytes":              {func(_ *site, job *setup) { job.chunk = 256 }, wire.CodeDone},
		"2,048 bytes":              {func(_ *site, job *setup) { job.chunk = 512 }, wire.CodeDone},
		"4,096 bytes":              {func(_ *site, job *setup) { job.chunk = 1024 }, wire.CodeDone},
		"also a bad member": {func(s *site, job *setup) {
			job.first = 1
			s.writes(hostA, wire.MemberAddr(wire.RegMemberAddress, 1), 0, wire.CodeDone)
		}, wire.CodeBadConnection},
		"ports beyond the card's":    {func(_ *site, job *setup) { job.ports |= 1 << 63 }, wire.CodeBadPorts},
		"also a bad window":          {func(_ *site, job *setup) { job.first, job.window = 1, 3 }, wire.CodeBadConnection},
		"a deadline":                 {func(_ *site, job *setup) { job.deadline = 1000 }, wire.CodeDone},
		"a deadline, partial sums":   {func(_ *site, job *setup) { job.deadline = 1<<32 | 1000 }, wire.CodeBadConnection},
		"a window beyond the card's": {func(_ *site, job *setup) { job.window = 16 }, wire.CodeBadWindow},
	} {
		s := newRoCESite(t, 2)
		s.connect()
		job := ringJob
		c.edit(s, &job)
		assert.Equal(t, c.want, s.setUp(0, 1, job), what)
		if c.want != wire.CodeDone {
			assert.Equal(t, []uint64{0, 0, 0, 0}, s.table(0), what)
			assert.Zero(t, s.read(wire.RegJobState)&1, what)
		}
	}
}

// connectPort stages the connection of a port.
func (s *site) connectPort(port int, value uint64) {
	s.Helper()
	s.writes(hostA, wire.ConnectionAddr(port), value, wire.CodeDone)
}

// TestConnectionsOfAnotherNumber: a connection belongs to one number, also after its job has ended.
func TestConnectionsOfAnotherNumber(t *testing.T) {
	s := newRoCESite(t, 2)
	s.connect()
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, ringJob))
	assert.Equal(t, wire.CodeBadConnection, s.setUp(1, 1, ringJob))
	s.writes(hostA, wire.RegJobAbort, 1<<32, wire.CodeDone)
	assert.Equal(t, wire.CodeBadConnection, s.setUp(1, 1, ringJob))
	require.Equal(t, wire.CodeDone, s.setUp(0, 2, ringJob), "its own may have it again")
	s.writes(hostA, wire.RegJobAbort, 2<<32, wire.CodeDone)
	s.writes(hostA, wire.RegJobDisconnect, 0, wire.CodeDone)
	assert.Equal(t, wire.CodeDone, s.setUp(1, 1, ringJob))
	assert.Equal(t, ringEntries, s.table(1))
}

// TestDisconnect: connections outlive their job, its owner and its lease; the owner removes them, or RESET.
func TestDisconnect(t *testing.T) {
	s := newRoCESite(t, 2)
	s.connect()
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, ringJob))
	s.writes(hostA, wire.RegJobDisconnect, 0, wire.CodeBusy)
	s.writes(hostA, wire.RegJobDisconnect, 2, wire.CodeBadJob)
	s.writes(hostA, wire.RegJobDisconnect, 1<<32, wire.CodeBadJob)
	s.writes(hostA, wire.RegJobDisconnect, 1, wire.CodeDone)
	s.writes(hostB, wire.RegJobDisconnect, 1, wire.CodeBusy)
	assert.Equal(t, ringEntries, s.table(0))
	s.writes(hostA, wire.RegRelease, owner, wire.CodeDone)
	assert.Equal(t, ringEntries, s.table(0))
	s.writes(hostA, wire.RegJobDisconnect, 0, wire.CodeBusy)
	s.own()
	assert.Zero(t, s.read(wire.ConnectionAddr(0)), "a new owner finds nothing staged")
	assert.Equal(t, ringEntries, s.table(0))
	s.writes(hostA, wire.RegJobDisconnect, 0, wire.CodeDone)
	assert.Equal(t, []uint64{0, 0, 0, 0}, s.table(0))

	s.connect()
	require.Equal(t, wire.CodeDone, s.setUp(0, 2, ringJob))
	s.writes(hostA, wire.RegReset, owner, wire.CodeDone)
	assert.Equal(t, []uint64{0, 0, 0, 0}, s.table(0))
	assert.Zero(t, s.read(wire.ConnectionAddr(0)))
}

// TestNeighbourRegisters: only the owner writes them, they outlive it, and RESET clears them.
func TestNeighbourRegisters(t *testing.T) {
	s := newRoCESite(t, 1)
	address, mac := wire.NeighbourAddr(wire.RegNeighbourAddress, 2), wire.NeighbourAddr(wire.RegNeighbourMAC, 2)
	s.writes(hostB, address, 1, wire.CodeBusy)
	s.writes(hostA, address, 0x0a000001, wire.CodeDone)
	s.writes(hostA, mac, 0x02_0000_0000_01, wire.CodeDone)
	s.writes(hostA, wire.RegRelease, owner, wire.CodeDone)
	s.writes(hostA, address, 1, wire.CodeBusy)
	s.own()
	got, ok := s.e.Neighbour(0x0a000001)
	assert.True(t, ok)
	assert.EqualValues(t, 0x02_0000_0000_01, got)
	_, ok = s.e.Neighbour(0)
	assert.False(t, ok, "0 is none")
	s.writes(hostA, wire.NeighbourAddr(wire.RegNeighbourAddress, 1), 0x0a000001, wire.CodeDone)
	s.writes(hostA, wire.RegReset, owner, wire.CodeDone)
	assert.Zero(t, s.read(address))
	assert.Zero(t, s.read(mac))
}

// TestVIDs: a PSN's VID is the nearest to the newest stored one that has its 24 low bits.
func TestVIDs(t *testing.T) {
	for _, c := range []struct{ newest, low, want uint32 }{
		{0, 0, 0}, {0, 1, 1}, {0, 0xffffff, 0xffffffff}, {0, 0x7fffff, 0x7fffff}, {0, 0x800000, 0xff800000},
		{0xffffff, 0, 0x1000000}, {0x1000000, 0xffffff, 0xffffff}, {0x12345678, 0x345679, 0x12345679}, {0x12ffffff, 2, 0x13000002},
		{0xffffffff, 3, 3}, {2, 0xfffffe, 0xfffffffe}, {0x800000, 0, 0}, {0x7fffff, 0xffffff, 0xffffffff},
	} {
		j := job{newest: c.newest}
		assert.Equal(t, c.want, j.vidOf(c.low), "%#x after %#x", c.low, c.newest)
	}
}

// TestTheNewestVID: it is the latest of those that were stored, in whatever order they came, and no refused
// packet moves it.
func TestTheNewestVID(t *testing.T) {
	s := newRoCESite(t, 2)
	s.connect()
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, ringJob))
	c, j := s.e.card, &s.e.card.jobs[0]
	for _, step := range []struct {
		rank      uint8
		vid, want uint32
	}{{0, 1, 1}, {1, 3, 3}, {1, 0, 3}, {2, 2, 3}, {0, 9, 3}, {0, 1<<23 - 1, 3}} {
		c.contribute(j, step.rank, wire.AddPSN(0xfffffe, int(step.vid)), make([]byte, 256), wire.ECT0, header{})
		assert.Equal(t, step.want, j.newest, "after %d", step.vid)
	}
	require.Equal(t, wire.CodeDone, s.setUp(0, 2, ringJob))
	assert.Zero(t, j.newest, "of a new job")
}
