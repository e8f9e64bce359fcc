package connections_test

// Bad input, frame by frame: the gateware does what the tables of this package and the Go model say.

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/virtual/ring"
	"tributary/driver/wire"
	"tributary/verify/system/connections"
	"tributary/verify/system/frames"
)

// twin is the gateware and the Go model, with the same ring of connections. All that comes to one comes to
// the other: register accesses too, so that all counters agree.
type twin struct {
	*site
	model   *site
	members []member
}

// mtu is the payload of a twin's packets in bytes.
const mtu = 256

// newTwin registers a ring of connections in a card and in a model. Rank r is at Ethernet port r, or at port
// 0 of a one-armed card. Its first PSN is 0xfffff0 + 4r, and the receiver at rank r has QPN 0x50 + r.
func newTwin(s *site) *twin {
	s.Helper()
	w := &twin{site: s, model: software(s, s.geometry)}
	for rank := range s.ranks {
		to := (rank + 1) % s.ranks
		m := member{ring.Address(rank), 0, uint32(0x50 + to), uint32(0xfffff0 + 4*rank), to}
		if s.ethernet > 1 {
			m.at = rank
		}
		w.members = append(w.members, m)
	}
	w.stage(w.members, mtu, connections.Window)
	w.model.stage(w.members, mtu, connections.Window)
	w.again()
	return w
}

// again sets the job up anew: nothing is stored, and VID 0 is next.
func (w *twin) again() {
	w.Helper()
	w.commit(0)
	w.model.commit(0)
}

// took lets a frame come to both, and returns what leaves both.
func (w *twin) took(port int, frame []byte) []left {
	w.Helper()
	got, want := w.site.took(port, frame), w.model.took(port, frame)
	require.ElementsMatch(w, want, got, "byte for byte as the model")
	return got
}

// packet returns the data packet of a rank for a VID, with the elements 100·(rank + 1) + VID.
func (w *twin) packet(rank int, vid uint32) *rc.Packet {
	m := w.members[rank]
	to := w.members[m.receiver].address
	if w.ethernet == 1 {
		to.MAC = [6]byte(frames.CardMAC) // as neighbour entries have it
	}
	return &rc.Packet{
		From: m.address, To: to, SourcePort: uint16(0xc000 + rank), ECN: wire.ECT0,
		BTH:     wire.BTH{Opcode: wire.OpSendMiddle, MigReq: true, PKey: wire.PKey, DestQP: m.qpn, PSN: wire.AddPSN(m.firstPSN, int(vid))},
		Payload: bytes.Repeat(binary.LittleEndian.AppendUint32(nil, uint32(100*(rank+1))+vid), mtu/4),
	}
}

// contribute lets the packets of ranks for a VID come, and checks that their sums leave on the connections of
// all ranks, or nothing if it is not complete.
func (w *twin) contribute(complete bool, vid uint32, ranks ...int) {
	w.Helper()
	var got []left
	for _, rank := range ranks {
		got = append(got, w.took(w.members[rank].at, w.packet(rank, vid).Append(nil))...)
	}
	if !complete {
		require.Empty(w, got)
		return
	}
	w.sums(got, vid, w.members...)
}

// sums checks that frames are the sum of a VID on the connections of members, each once.
func (w *twin) sums(got []left, vid uint32, members ...member) {
	w.Helper()
	require.Len(w, got, len(members))
	sum := uint32(0)
	for rank := range w.members {
		sum += uint32(100*(rank+1)) + vid
	}
	for _, m := range members {
		found := false
		for _, l := range got {
			p, err := rc.Parse(l.frame)
			require.NoError(w, err)
			if p.BTH.DestQP == m.qpn {
				found = true
				assert.Equal(w, w.members[m.receiver].at, l.port)
				assert.Equal(w, wire.AddPSN(m.firstPSN, int(vid)), p.BTH.PSN)
				assert.Equal(w, bytes.Repeat(binary.LittleEndian.AppendUint32(nil, sum), mtu/4), p.Payload)
			}
		}
		require.True(w, found, "%#x", m.qpn)
	}
}

// both reads a counter of the gateware, and of the model to count the access.
func (w *twin) both(counter string) uint64 {
	w.Helper()
	w.model.read(counter)
	return w.site.read(counter)[counter]
}

// agree checks that all counters are the model's. That of frames is read alone: behind it, no other read has come.
// Only results differs: the model releases a sum to one connection after the other, the gateware to several at
// once.
func (w *twin) agree() {
	w.Helper()
	assert.Equal(w, w.model.read("frames"), w.site.read("frames"))
	want, got := w.model.counters(), w.counters()
	assert.Equal(w, want.without("frames", "results"), got.without("frames", "results"))
	assert.GreaterOrEqual(w, got["results"], got["chunks"])
	assert.LessOrEqual(w, got["results"], want["results"])
}

// faults lets each fault of the table come. The port goes on: the packet without the fault is summed.
func (w *twin) faults() {
	w.Helper()
	total := map[string]uint64{}
	for _, f := range connections.Faults {
		if f.Port >= w.ethernet {
			continue
		}
		w.again()
		require.Empty(w, w.took(w.members[0].at+f.Port, connections.Frame(w.packet(0, 0), f)), f.Name)
		total[f.Counter]++
		assert.Equal(w, total[f.Counter], w.both(f.Counter), f.Name)
		w.contribute(true, 0, 0, 1, 2)
	}
	w.agree()
}

// opcodes lets every opcode come: the twelve of data are summed, ACKNOWLEDGE and CNP pass, all others drop.
func (w *twin) opcodes() {
	w.again()
	refused := w.both("roce_opcode")
	for o := range 256 {
		p := w.packet(0, 0)
		p.BTH.Opcode = wire.Opcode(o)
		p.RETH, p.Imm, p.AETH = wire.RETH{VA: 1 << 40, RKey: 7, Length: 1 << 20}, 0xabcd, wire.AETH{Syndrome: wire.SyndromeSequence, MSN: 4}
		info, _ := p.BTH.Opcode.Info()
		switch frame := p.Append(nil); {
		case p.BTH.Opcode == wire.OpAcknowledge || p.BTH.Opcode == wire.OpCNP:
			got := w.took(0, frame)
			require.NotEmpty(w, got, info.Name)
			for _, l := range got {
				assert.Equal(w, frame[14:len(frame)-4], l.frame[14:len(l.frame)-4], info.Name)
			}
		case info.Data():
			w.again()
			require.Empty(w, w.took(0, frame), info.Name)
			w.contribute(true, 0, 1, 2)
		default: // without a pause behind them
			w.site.card.Receive(0, frame)
			w.model.card.Receive(0, frame)
			refused++
		}
	}
	assert.Empty(w, w.drain())
	assert.Empty(w, w.model.drain())
	assert.Equal(w, refused, w.both("roce_opcode"))
	w.agree()
}

// edited lets frames of no connection and hidden ones come, and the packets of the ring between them.
func (w *twin) edited() {
	w.again()
	w.passesDamage = true
	defer func() { w.passesDamage = false }()
	vid := uint32(0)
	for _, e := range append(append([]connections.Edit(nil), connections.Others...), connections.Hidden...) {
		body, _ := ethernet.CutFCS(w.packet(0, 0).Append(nil))
		frame := ethernet.AppendFCS(e.Make(body))
		got := w.took(0, frame)
		if e.Drop {
			assert.Empty(w, got, e.Name)
		} else if w.ethernet > 1 {
			assert.NotEmpty(w, got, e.Name)
			for _, l := range got {
				assert.Equal(w, frame, l.frame, e.Name)
			}
		}
		w.contribute(true, vid, 2, 1, 0)
		vid++
	}
	w.agree()
}

// slots has repeats before and after the sum, a sum ahead of its turn, a repeat of a sum that is gone, and what
// comes for a job that has ended.
func (w *twin) slots() {
	w.Helper()
	w.again()
	w.contribute(false, 0, 1, 1)
	w.contribute(false, 1, 0, 1)
	w.sums(w.took(w.members[2].at, w.packet(2, 1).Append(nil)), 1, w.members[0], w.members[2]) // both lack 0
	w.contribute(false, 0, 2)
	var got []left
	for _, l := range w.took(w.members[0].at, w.packet(0, 0).Append(nil)) {
		if p, err := rc.Parse(l.frame); err == nil && p.Payload[0] == byte(600&255) {
			got = append(got, l)
		}
	}
	w.sums(got, 0, w.members...) // and 1 after it
	marked := w.packet(1, 1)
	marked.ECN, marked.BTH.AckReq = wire.CE, true
	w.sums(w.took(w.members[1].at, marked.Append(nil)), 1, w.members[1])
	for vid := uint32(2); vid <= 2*connections.Window; vid++ {
		w.contribute(true, vid, 2, 0, 1)
	}
	w.contribute(false, 0, 1) // late
	w.contribute(false, 4*connections.Window, 1)
	for _, s := range []*site{w.site, w.model} {
		s.write(wire.RegJobAbort, s.epochs[0]<<32)
	}
	w.contribute(false, 2*connections.Window+1, 0)
	w.agree()
	for _, s := range []*site{w.site, w.model} {
		s.write(wire.RegJobDisconnect, 0)
	}
	assert.NotEmpty(w, w.took(0, w.packet(0, 0).Append(nil)), "of no connection any more: it goes on")
	w.agree()
}

// registeredTwice: a job whose connection another one has, or that names one twice, is refused, and the jobs
// that are set up go on.
func (w *twin) registeredTwice() {
	w.again()
	w.contribute(false, 0, 0, 1)
	both := func(edit func(s *site), number int, want wire.Code) {
		for _, s := range []*site{w.site, w.model} {
			edit(s)
			code := s.tryCommit(number)
			if want != wire.CodeDone {
				s.epochs[number]--
			}
			assert.Equal(w, want, code)
		}
	}
	both(func(*site) {}, 1, wire.CodeBadConnection)
	both(func(s *site) {
		m := append([]member(nil), w.members...)
		for i := range m {
			m[i].qpn += 0x10
		}
		m[1].qpn, m[1].receiver = m[0].qpn, m[0].receiver
		s.stage(m, mtu, connections.Window)
	}, 1, wire.CodeBadConnection)
	both(func(s *site) { s.stage(w.members, mtu, connections.Window) }, 1, wire.CodeBadConnection)
	w.contribute(true, 0, 2)
	w.agree()
}

// badInput runs all of it on a card.
func badInput(t *testing.T, s *site) {
	w := newTwin(s)
	w.faults()
	w.opcodes()
	w.edited()
	w.registeredTwice()
	w.slots()
	judge(t, s.data)
}
