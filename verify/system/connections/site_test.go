package connections_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/virtual/simulator"
	"tributary/driver/wire"
	"tributary/verify/system/connections"
	"tributary/verify/system/frames"
)

// geometry is a card for int32.
type geometry struct {
	ethernet, link int
	lanes          int
	ranks          int // ports of the core
	mtu            int // at most
	window         int // of all jobs, in packets
	jobs           int
}

// The cards of every run: in path and one-armed.
var (
	inPath   = geometry{ethernet: 3, link: 64, lanes: 4, ranks: 3, mtu: 1024, window: 8, jobs: 2}
	oneArmed = geometry{ethernet: 1, link: 64, lanes: 4, ranks: 3, mtu: 1024, window: 8, jobs: 2}
	wide     = geometry{ethernet: 3, link: 512, lanes: 16, ranks: 3, mtu: 1024, window: 8, jobs: 2} // with -long
	narrow   = geometry{ethernet: 1, link: 8, lanes: 4, ranks: 3, mtu: 1024, window: 8, jobs: 2}    // with -long
)

// built keeps cards between runs of a developer who changes none.
var built = flag.String("built", "", "build cards in this `folder`, unless they are there")

// String names a card.
func (g geometry) String() string {
	where := "in path"
	if g.ethernet == 1 {
		where = "one-armed"
	}
	return fmt.Sprintf("%s, %d bits", where, g.link)
}

// site is a card with shell roce, and its owner at Ethernet port 0.
type site struct {
	testing.TB
	geometry
	card   ethernet.Device
	kept   []left // frames that left during an access
	epochs map[int]uint64
	staged map[uint32]uint64
	counts counts   // of watched counters, when they were read last
	data   [][]byte // frames of data packets that left the gateware, since the test looked last

	passesDamage bool // frames of no connection come with wrong ICRCs
}

// left is a frame that left the card at a port.
type left struct {
	port  int
	frame []byte
}

const token = 0xfeed

// newSite makes the test the owner of a card.
func newSite(t testing.TB, g geometry, card ethernet.Device) *site {
	t.Helper()
	s := &site{TB: t, geometry: g, card: card, epochs: map[int]uint64{}, staged: map[uint32]uint64{}, counts: counts{}}
	s.write(wire.RegOwner, token)
	s.write(wire.RegJobToken, token)
	s.write(wire.RegLease, wire.MaxLease)
	return s
}

// software returns a site with the Go model.
func software(t testing.TB, g geometry) *site {
	t.Helper()
	endpoint, err := model.NewEndpoint(model.Config{
		Lanes: g.lanes, Ports: g.ranks, Chunk: g.mtu / 4, Window: g.window, Jobs: g.jobs,
		Format: wire.Int32, Shell: wire.ShellRoCE, Link: g.link, Ethernet: g.ethernet,
	}, frames.CardAddress)
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, g.ethernet)
	require.NoError(t, err)
	return newSite(t, g, card)
}

// build generates and builds a card, and returns its simulator.
func build(t testing.TB, g geometry) (program string) {
	t.Helper()
	folder := *built
	if folder == "" {
		folder = t.TempDir()
	}
	dir := filepath.Join(folder, fmt.Sprintf("p%d-%d", g.ethernet, g.link))
	program = filepath.Join(dir, "sim", "build", "card")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	run := func(name string, args ...string) {
		out, err := exec.Command(name, args...).CombinedOutput()
		require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	}
	run("go", "run", "tributary/hwgen", "-shell", "roce", "-format", "int32", "-lanes", strconv.Itoa(g.lanes), "-workers", strconv.Itoa(g.ranks), "-chunk", strconv.Itoa(g.mtu/4),
		"-window", strconv.Itoa(g.window), "-jobs", strconv.Itoa(g.jobs), "-ethernet", strconv.Itoa(g.ethernet), "-link", strconv.Itoa(g.link), "-o", dir)
	run("make", "-s", "-C", filepath.Join(dir, "sim"), "OPT=-O1")
	return program
}

// gateware returns a site with a Verilated card.
func gateware(t testing.TB, g geometry, program string) *site {
	t.Helper()
	process, err := simulator.Start(t.Context(), program, g.ethernet, os.Stderr)
	require.NoError(t, err)
	t.Cleanup(func() { process.Close() })
	card := connections.Simulate(process, g.ethernet, g.link)
	s := newSite(t, g, card)
	card.Watch = func(frame []byte) {
		p, err := rc.Parse(frame)
		if err == rc.ErrForeign || err != nil && s.passesDamage {
			return
		}
		require.NoError(s, err, "FCS, lengths, IP's checksum and ICRC are right")
		if p.BTH.Opcode != wire.OpAcknowledge {
			s.data = append(s.data, bytes.Clone(frame))
		}
	}
	return s
}

// drain returns all that leaves until the card rests.
func (s *site) drain() (all []left) {
	s.Helper()
	all, s.kept = s.kept, nil
	for {
		for {
			frame, port, ok := s.card.Send(nil)
			if !ok {
				break
			}
			all = append(all, left{port, frame})
		}
		require.NoError(s, s.card.Err())
		if !s.step(1024) {
			return all
		}
	}
}

// step lets the card run. It returns false if the card rests.
func (s *site) step(cycles uint64) bool {
	if g, ok := s.card.(*connections.Simulated); ok {
		return g.Step(cycles)
	}
	return false
}

// took lets a frame come at a port, and returns what leaves.
func (s *site) took(port int, frame []byte) []left {
	s.Helper()
	s.card.Receive(port, frame)
	return s.drain()
}

// operation is a register access.
type operation struct {
	kind  wire.Kind
	addr  uint32
	value uint64
}

// atOnce is how many accesses wait in the card: it queues 16.
const atOnce = 8

// perform performs register accesses, and returns the replies.
func (s *site) perform(all ...operation) (replies []model.Header) {
	s.Helper()
	for some := range slices.Chunk(all, atOnce) {
		for _, o := range some {
			s.card.Receive(0, frames.NewDatagram(frames.Access(o.kind, o.addr, o.value)).Bytes())
		}
		for done := len(replies) + len(some); len(replies) < done; {
			frame, port, ok := s.card.Send(nil)
			switch {
			case ok && port == 0 && binary.BigEndian.Uint16(frame[36:]) == frames.HostPort:
				replies = append(replies, model.ParseHeader(frame[42:]))
			case ok:
				s.kept = append(s.kept, left{port, frame})
			default:
				require.NoError(s, s.card.Err())
				require.True(s, s.step(256), "no reply")
			}
		}
	}
	return replies
}

// access performs a register access.
func (s *site) access(kind wire.Kind, addr uint32, value uint64) (wire.Code, uint64) {
	s.Helper()
	h := s.perform(operation{kind, addr, value})[0]
	return h.Code, h.Mask
}

// write performs a write that must be done.
func (s *site) write(addr uint32, value uint64) {
	s.Helper()
	code, _ := s.access(wire.KindRegWrite, addr, value)
	require.Equal(s, wire.CodeDone, code, "%#x", addr)
}

// counts are counters by name.
type counts map[string]uint64

// counters returns the counters that are not zero.
func (s *site) counters() counts {
	s.Helper()
	var names []string
	for _, c := range wire.CountersOf(wire.ShellRoCE) {
		names = append(names, c.Name)
	}
	return s.read(names...)
}

// read returns those of some counters that are not zero.
func (s *site) read(names ...string) counts {
	s.Helper()
	var reads []operation
	for _, name := range names {
		i := slices.IndexFunc(wire.CountersOf(wire.ShellRoCE), func(c wire.CounterInfo) bool { return c.Name == name })
		require.NotEqual(s, -1, i, name)
		reads = append(reads, operation{wire.KindRegRead, wire.CounterAddr(i), 0})
	}
	all := counts{}
	for i, h := range s.perform(reads...) {
		require.Equal(s, wire.CodeDone, h.Code)
		if h.Mask > 0 {
			all[names[i]] = h.Mask
		}
	}
	return all
}

// watched are the counters that each round reads. All others stay 0 in rounds.
var watched = []string{
	"stored", "chunks", "beats", "results", "replays", "released_early", "overflow", "passed", "relayed", "ce", "duplicate", "late", "early",
	"not_ready", "bad_job", "fcs", "roce_header", "roce_icrc", "roce_source", "roce_opcode", "roce_length", "statuses",
}

// grown returns by how much the watched counters have grown since the last call.
func (s *site) grown() counts {
	s.Helper()
	all, now := counts{}, s.read(watched...)
	for name, n := range now {
		if n != s.counts[name] {
			all[name] = n - s.counts[name]
		}
	}
	s.counts = now
	return all
}

// without returns the counters except some.
func (c counts) without(names ...string) counts {
	all := counts{}
	for name, n := range c {
		all[name] = n
	}
	for _, name := range names {
		delete(all, name)
	}
	return all
}

// member is a member of a job, as its owner registers it: the connection from it.
type member struct {
	address  rc.Address
	at       int    // Ethernet port
	qpn      uint32 // of the receiver
	firstPSN uint32
	receiver int // its port of the core
}

// stage stages members at the ports of the core from 0 on, and the job's parameters. It writes the registers that
// have another value.
func (s *site) stage(members []member, mtu, window int) {
	s.Helper()
	var writes []operation
	set := func(addr uint32, value uint64) {
		if was, ok := s.staged[addr]; !ok || was != value {
			writes = append(writes, operation{wire.KindRegWrite, addr, value})
			s.staged[addr] = value
		}
	}
	for port, m := range members {
		ip := m.address.IP.As4()
		address, mac := uint64(binary.BigEndian.Uint32(ip[:])), binary.BigEndian.Uint64(append([]byte{0, 0}, m.address.MAC[:]...))
		if s.ethernet == 1 {
			set(wire.NeighbourAddr(wire.RegNeighbourAddress, port), address)
			set(wire.NeighbourAddr(wire.RegNeighbourMAC, port), mac)
		}
		set(wire.MemberAddr(wire.RegMemberAddress, port), uint64(wire.RoCEPort)<<32|address)
		set(wire.MemberAddr(wire.RegMemberMAC, port), mac|uint64(m.at)<<48)
		set(wire.ConnectionAddr(port), uint64(m.qpn)|uint64(m.firstPSN)<<wire.ConnectionPSNShift|uint64(m.receiver)<<wire.ConnectionPortShift)
	}
	set(wire.RegJobPorts, 1<<len(members)-1)
	set(wire.RegJobChunk, uint64(mtu/4))
	set(wire.RegJobWindow, uint64(window))
	for i, h := range s.perform(writes...) {
		require.Equal(s, wire.CodeDone, h.Code, "%#x", writes[i].addr)
	}
}

// tryCommit sets a job up in its next epoch, and returns the card's answer.
func (s *site) tryCommit(number int) wire.Code {
	s.Helper()
	s.epochs[number]++
	code, _ := s.access(wire.KindRegWrite, wire.RegJobCommit, uint64(number)<<48|s.epochs[number]<<32)
	return code
}

// commit sets a job up.
func (s *site) commit(number int) {
	s.Helper()
	require.Equal(s, wire.CodeDone, s.tryCommit(number))
}
