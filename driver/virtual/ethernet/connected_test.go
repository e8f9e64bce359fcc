package ethernet_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
	"tributary/verify/system/connections"
	"tributary/verify/system/frames"
)

// ring is a gateway with a ring of connections, and no hosts: the test makes every frame.
type ring struct {
	*gateway
	links []link
}

// The ring's MTU, and its window in packets.
const (
	ringMTU    = 256
	ringWindow = connections.Window
)

// newRing returns a card with a ring of so many ranks, each at its own Ethernet port, or all at port 0 of a
// one-armed card. Rank r's first PSN is 0xfffff0 + 4r, and the receiver at rank r has QPN 0x50 + r.
func newRing(t testing.TB, ranks int, oneArmed bool) *ring {
	t.Helper()
	cfg := model.Config{Lanes: 4, Ports: 4, Window: ringWindow, Jobs: 2, Ethernet: ranks}
	if oneArmed {
		cfg.Ethernet = 1
	}
	r := &ring{gateway: newGateway(t, cfg)}
	for rank := range ranks {
		host, to := hostAddress(rank), (rank+1)%ranks
		l := link{ipOf(host), macOf(host), uint32(0x50 + to), uint32(0xfffff0 + 4*rank), to}
		if !oneArmed {
			l.mac |= uint64(rank) << 48
		}
		r.links = append(r.links, l)
	}
	r.stage(r.links, ringMTU, ringWindow)
	require.Equal(t, wire.CodeDone, r.commit(1))
	return r
}

// packet returns the data packet of a rank for a VID. Its elements are 100·(rank + 1) + VID, and its other
// fields differ from rank to rank.
func (r *ring) packet(rank int, vid uint32) *rc.Packet {
	to := r.links[rank].receiver
	payload := make([]byte, ringMTU)
	for i := 0; i < len(payload); i += 4 {
		binary.LittleEndian.PutUint32(payload[i:], uint32(100*(rank+1))+vid)
	}
	return &rc.Packet{
		From: hostAddress(rank), To: hostAddress(to), SourcePort: uint16(0xc000 + rank), ECN: wire.ECT0,
		BTH:     wire.BTH{Opcode: wire.OpSendMiddle, MigReq: true, PKey: wire.PKey, DestQP: r.links[rank].qpn, PSN: wire.AddPSN(r.links[rank].firstPSN, int(vid))},
		Payload: payload,
	}
}

// at returns the Ethernet port of a rank.
func (r *ring) at(rank int) int { return int(r.links[rank].mac >> 48) }

// took lets a frame come at a port, and returns what leaves.
func (g *gateway) took(port int, frame []byte) (all []left) {
	g.card.Receive(port, frame)
	for {
		frame, port, ok := g.card.Send(nil)
		if !ok {
			return all
		}
		all = append(all, left{port, frame})
	}
}

// send lets a packet of a rank come.
func (r *ring) send(rank int, p *rc.Packet) []left { return r.took(r.at(rank), p.Append(nil)) }

// contribute lets the packets of ranks for a VID come.
func (r *ring) contribute(vid uint32, ranks ...int) (all []left) {
	for _, rank := range ranks {
		all = append(all, r.send(rank, r.packet(rank, vid))...)
	}
	return all
}

// sums checks that frames are those of sums, as "rank:VID" of the connections' senders in their order, each
// with the sum of all ranks, in the header that its sender gave it.
func (r *ring) sums(want []release, got []left) {
	r.Helper()
	var releases []release
	for _, l := range got {
		p, err := rc.Parse(l.frame)
		require.NoError(r, err, "FCS, checksums, lengths and ICRC are right")
		rank := -1
		for i := range r.links {
			if r.links[i].qpn == p.BTH.DestQP {
				rank = i
			}
		}
		require.NotEqual(r, -1, rank)
		to := r.links[rank].receiver
		assert.Equal(r, r.at(to), l.port)
		vid := uint32(wire.PSNsFrom(r.links[rank].firstPSN, p.BTH.PSN))
		releases = append(releases, release{rank, vid})
		sum := uint32(0)
		for i := range r.links {
			sum += uint32(100*(i+1)) + vid
		}
		assert.Equal(r, bytes.Repeat(binary.LittleEndian.AppendUint32(nil, sum), ringMTU/4), p.Payload, "rank %d, VID %d", rank, vid)
		assert.Equal(r, hostAddress(rank).IP, p.From.IP)
		assert.Equal(r, hostAddress(to), p.To)
		assert.Equal(r, uint16(0xc000+rank), p.SourcePort)
		assert.Zero(r, binary.BigEndian.Uint16(l.frame[40:]), "UDP has no checksum")
	}
	assert.ElementsMatch(r, want, releases)
	for rank := range r.links {
		assert.Equal(r, of(rank, want), of(rank, releases), "in the order of PSNs")
	}
}

// release is the release of a VID's sum on the connection from a rank.
type release struct {
	rank int
	vid  uint32
}

// of returns the VIDs released on a rank's connection.
func of(rank int, all []release) (vids []uint32) {
	for _, r := range all {
		if r.rank == rank {
			vids = append(vids, r.vid)
		}
	}
	return vids
}

// everyone returns the release of VIDs on the connections of so many ranks.
func everyone(ranks int, vids ...uint32) (all []release) {
	for _, vid := range vids {
		for rank := range ranks {
			all = append(all, release{rank, vid})
		}
	}
	return all
}

// Offsets in a frame.
const (
	atIP  = 14
	atBTH = 42
)

// faulty returns rank 0's packet of VID 0 with faults, and its port.
func (r *ring) faulty(all ...connections.Fault) (port int, frame []byte) {
	for _, f := range all {
		port += f.Port
	}
	return port, connections.Frame(r.packet(0, 0), all...)
}

// TestEachRoCEFault: a packet with a fault counts, and does nothing else. What was right of it is summed
// when it comes without the fault.
func TestEachRoCEFault(t *testing.T) {
	for _, f := range connections.Faults {
		t.Run(f.Name, func(t *testing.T) {
			r := newRing(t, 3, false)
			port, frame := r.faulty(f)
			assert.Empty(t, r.took(port, frame))
			assert.Equal(t, map[string]uint64{f.Counter: 1}, r.dropped())
			assert.Zero(t, r.count("stored"))
			r.sums(everyone(3, 0), r.contribute(0, 1, 2, 0))
			assert.Equal(t, map[string]uint64{f.Counter: 1}, r.dropped())
		})
	}
}

// TestTheFirstRoCEFaultCounts: of two faults, that of the earlier check counts.
func TestTheFirstRoCEFaultCounts(t *testing.T) {
	for i, first := range connections.Faults {
		for _, second := range connections.Faults[i+1:] {
			sameBytes := first.Frame != nil && (second.Frame != nil || second.Name == "no payload")
			if sameBytes || first.Counter == second.Counter || first.Counter == "late" || first.Counter == "early" {
				continue
			}
			r := newRing(t, 3, false)
			port, frame := r.faulty(first, second)
			assert.Empty(t, r.took(port, frame))
			assert.Equal(t, map[string]uint64{first.Counter: 1}, r.dropped(), "%s, %s", first.Name, second.Name)
		}
	}
}

// TestOpcodes: the twelve opcodes of data are summed, ACKNOWLEDGE and CNP pass, and all others drop.
func TestOpcodes(t *testing.T) {
	for o := range 256 {
		opcode := wire.Opcode(o)
		r := newRing(t, 2, false)
		p := r.packet(0, 0)
		p.BTH.Opcode = opcode
		p.RETH, p.Imm, p.AETH = wire.RETH{VA: 1 << 40, RKey: 7, Length: 1 << 20}, 0xabcd, wire.AETH{Syndrome: wire.SyndromeSequence, MSN: 4}
		sent := p.Append(nil)
		got := r.send(0, p)
		switch {
		case opcode == wire.OpAcknowledge || opcode == wire.OpCNP:
			require.Len(t, got, 1, opcode)
			assert.Equal(t, left{1, sent}, got[0], "byte for byte")
			assert.Equal(t, uint64(1), r.count("passed"))
		case o <= 0x0b:
			assert.Empty(t, got)
			got = r.contribute(0, 1)
			r.sums(everyone(2, 0), got)
			p, _ := rc.Parse(got[0].frame)
			assert.Equal(t, opcode, p.BTH.Opcode)
			info, _ := opcode.Info()
			if info.RETH {
				assert.Equal(t, wire.RETH{VA: 1 << 40, RKey: 7, Length: 1 << 20}, p.RETH)
			}
			if info.Imm {
				assert.EqualValues(t, 0xabcd, p.Imm)
			}
		default:
			assert.Empty(t, got, opcode)
			assert.Equal(t, map[string]uint64{"roce_opcode": 1}, r.dropped(), opcode)
		}
	}
}

// TestWhatIsOfNoConnection: frames to another queue pair, address or UDP port go on, with whatever fault.
func TestWhatIsOfNoConnection(t *testing.T) {
	for _, edit := range connections.Others {
		r := newRing(t, 3, false)
		body, _ := ethernet.CutFCS(r.packet(0, 0).Append(nil))
		frame := ethernet.AppendFCS(edit.Make(body))
		assert.Equal(t, []left{{1, frame}, {2, frame}}, r.took(0, frame), edit.Name)
		assert.Empty(t, r.dropped(), edit.Name)
	}
}

// TestMACAddressesPlayNoPart: a packet is summed wherever its MAC address leads, also one to the card.
func TestMACAddressesPlayNoPart(t *testing.T) {
	r := newRing(t, 2, false)
	p := r.packet(0, 0)
	p.To.MAC, p.From.MAC = [6]byte{2, 9, 9, 9, 9, 9}, [6]byte{2, 8, 8, 8, 8, 8}
	assert.Empty(t, r.send(0, p))
	q := r.packet(1, 0)
	q.To.MAC = [6]byte(frames.CardMAC)
	got := r.send(1, q)
	require.Len(t, got, 2)
	for _, l := range got {
		to, from := l.frame[:6], l.frame[6:12]
		if l.port == 1 { // of rank 0, as they came
			assert.Equal(t, []byte{2, 9, 9, 9, 9, 9}, to)
			assert.Equal(t, []byte{2, 8, 8, 8, 8, 8}, from)
			continue
		}
		host := hostAddress(0)
		assert.Equal(t, host.MAC[:], to)
		assert.Equal(t, []byte(frames.CardMAC), from)
	}
}

// TestHidden: a frame whose transport header is elsewhere drops if it goes to a receiver.
func TestHidden(t *testing.T) {
	for _, c := range connections.Hidden {
		r := newRing(t, 2, false)
		body, _ := ethernet.CutFCS(r.packet(0, 0).Append(nil))
		frame := ethernet.AppendFCS(c.Make(body))
		got := r.took(0, frame)
		if c.Drop {
			assert.Empty(t, got, c.Name)
			assert.Equal(t, map[string]uint64{"roce_hidden": 1}, r.dropped(), c.Name)
			continue
		}
		assert.Equal(t, []left{{1, frame}}, got, c.Name)
		assert.Empty(t, r.dropped(), c.Name)
	}
}

// TestReleaseInOrder: sums leave in the order of PSNs on each connection, whatever the order in which they
// were summed.
func TestReleaseInOrder(t *testing.T) {
	r := newRing(t, 3, false)
	assert.Empty(t, r.contribute(0, 0, 1))
	assert.Empty(t, r.contribute(2, 0, 1))
	assert.Empty(t, r.contribute(2, 2), "2 is summed, and rank 2 lacks 0 and 1")
	assert.Empty(t, r.contribute(1, 0, 1))
	// Rank 2 has not contributed 1 and 2 is summed: 2 goes ahead of 1 on its connection alone.
	r.sums(append(everyone(3, 0), release{2, 2}), r.contribute(0, 2))
	assert.EqualValues(t, 1, r.count("released_early"))
	r.sums(everyone(3, 1, 2), r.contribute(1, 2))
	assert.EqualValues(t, 9, r.count("results"))
	assert.EqualValues(t, 1, r.count("released_early"))
}

// TestReleasedEarly: the exception of rule 2 belongs to the rank that lacks the packet, and it is given once.
func TestReleasedEarly(t *testing.T) {
	r := newRing(t, 3, false)
	assert.Empty(t, r.contribute(0, 1, 2), "rank 0's packet 0 is lost")
	r.sums([]release{{0, 1}}, r.contribute(1, 1, 2, 0))
	assert.Empty(t, r.contribute(2, 0, 1, 2), "3 is not the next but one")
	assert.Empty(t, r.contribute(1, 0), "a repeat ahead of its turn")
	r.sums(append([]release{{0, 0}, {0, 1}, {0, 2}}, append(of3(1, 0, 1, 2), of3(2, 0, 1, 2)...)...), r.contribute(0, 0))
	assert.EqualValues(t, 1, r.count("released_early"))
	assert.EqualValues(t, 9, r.count("results"))
	assert.Zero(t, r.count("replays"))
	assert.EqualValues(t, 1, r.count("duplicate"))
}

// TestReleasedEarlyAgain: each packet that a rank lacks gives it the exception once.
func TestReleasedEarlyAgain(t *testing.T) {
	r := newRing(t, 2, false)
	for vid := uint32(0); vid < 4; vid += 2 {
		assert.Empty(t, r.contribute(vid, 1))
		assert.Empty(t, r.contribute(vid+1, 1))
		r.sums([]release{{0, vid + 1}}, r.contribute(vid+1, 0))
		r.sums(everyone(2, vid, vid+1), r.contribute(vid, 0))
	}
	assert.EqualValues(t, 2, r.count("released_early"))
}

// of3 returns the release of VIDs on a rank's connection.
func of3(rank int, vids ...uint32) (all []release) {
	for _, vid := range vids {
		all = append(all, release{rank, vid})
	}
	return all
}

// TestReplays: a repeat of what was released is answered on its connection alone, in its newest header.
func TestReplays(t *testing.T) {
	r := newRing(t, 3, false)
	r.sums(everyone(3, 0), r.contribute(0, 0, 1, 2))
	p := r.packet(1, 0)
	p.BTH.AckReq, p.BTH.Opcode, p.RETH.RKey, p.ECN = true, wire.OpWriteOnly, 0x1234, wire.CE
	got := r.send(1, p)
	r.sums([]release{{1, 0}}, got)
	q, _ := rc.Parse(got[0].frame)
	assert.True(t, q.BTH.AckReq)
	assert.Equal(t, wire.OpWriteOnly, q.BTH.Opcode)
	assert.EqualValues(t, 0x1234, q.RETH.RKey)
	assert.Equal(t, wire.ECT0, q.ECN, "a repeat's mark is not merged")
	assert.EqualValues(t, 1, r.count("replays"))
	assert.EqualValues(t, 1, r.count("duplicate"))
	r.sums([]release{{1, 0}}, r.contribute(0, 1))
}

// TestALateReplay: a sum whose slot turns over before its replay leaves is not sent again, and neither is what
// the slot holds then.
func TestALateReplay(t *testing.T) {
	r := newRing(t, 2, false)
	for vid := range uint32(2 * ringWindow) {
		r.sums(everyone(2, vid), r.contribute(vid, 0, 1))
	}
	r.card.Receive(1, r.packet(1, 0).Append(nil))
	assert.Empty(t, r.contribute(2*ringWindow, 0))
	assert.EqualValues(t, 1, r.count("duplicate"))
	assert.Zero(t, r.count("replays"))
	r.sums(everyone(2, 2*ringWindow), r.contribute(2*ringWindow, 1))
}

// TestClaimsOfWhatNobodyGot: the slot of VID 1 turns over while VID 0 lacks a rank, so both ranks claimed sums
// that their receivers never got. Nothing more leaves on their connections, not even VID 0.
func TestClaimsOfWhatNobodyGot(t *testing.T) {
	for _, turnovers := range []uint32{1, 2} {
		r := newRing(t, 2, false)
		assert.Empty(t, r.contribute(0, 0))
		r.sums([]release{{1, 1}}, r.contribute(1, 0, 1))
		for n := uint32(2); n <= 2*turnovers+1; n++ {
			vid := 1 + (n-1)*ringWindow
			assert.Empty(t, r.contribute(vid, 0, 1))
		}
		assert.EqualValues(t, 1+2*(2*turnovers+1), r.count("stored"), "every slot turns over")
		assert.Empty(t, r.contribute(0, 1))
		assert.Empty(t, r.contribute(1+2*turnovers*ringWindow, 0, 1))
		assert.EqualValues(t, 2, r.count("duplicate"))
		assert.EqualValues(t, 1, r.count("released_early"))
		assert.Zero(t, r.count("results")+r.count("replays"))
	}
}

// TestDuplicatesBeforeTheSum: a repeat of what is stored replaces the header, and not the payload.
func TestDuplicatesBeforeTheSum(t *testing.T) {
	r := newRing(t, 2, false)
	assert.Empty(t, r.contribute(0, 0))
	p := r.packet(0, 0)
	p.BTH.AckReq = true
	clear(p.Payload)
	assert.Empty(t, r.send(0, p))
	got := r.contribute(0, 1)
	r.sums(everyone(2, 0), got)
	for _, l := range got {
		q, _ := rc.Parse(l.frame)
		assert.Equal(t, q.BTH.DestQP == r.links[0].qpn, q.BTH.AckReq)
	}
}

// TestRefusedPacketsLeaveNoHeader: a packet that is late by the slots, or that a check refuses, replaces no
// header of its slot. Its queue pair would take the sum for that of another PSN.
func TestRefusedPacketsLeaveNoHeader(t *testing.T) {
	r := newRing(t, 2, false)
	for vid := range uint32(2 * ringWindow) {
		r.sums(everyone(2, vid), r.contribute(vid, 0, 1))
	}
	assert.Empty(t, r.contribute(2*ringWindow, 0), "slot 0 turns over")
	stale := r.packet(0, 0)
	assert.Empty(t, r.send(0, stale))
	assert.EqualValues(t, 1, r.count("late"))
	damaged, _ := ethernet.CutFCS(r.packet(0, 2*ringWindow).Append(nil))
	damaged[atBTH+8] = 0x80 // AckReq
	assert.Empty(t, r.took(0, ethernet.AppendFCS(damaged)))
	assert.EqualValues(t, 1, r.count("roce_icrc"))
	got := r.contribute(2*ringWindow, 1)
	r.sums(everyone(2, 2*ringWindow), got)
	for _, l := range got {
		p, _ := rc.Parse(l.frame)
		assert.False(t, p.BTH.AckReq)
	}
}

// TestSlotsTurnOver: a slot turns over when every connection's receiver has proved that it has the sum, by the
// sender's packet of a window later. Before, the packet of two windows later is not ready.
func TestSlotsTurnOver(t *testing.T) {
	r := newRing(t, 2, false)
	for vid := range uint32(ringWindow) {
		r.sums(everyone(2, vid), r.contribute(vid, 0, 1))
	}
	for vid := uint32(ringWindow); vid < 2*ringWindow; vid++ {
		assert.Empty(t, r.contribute(vid, 0), "rank 1 has not proved anything")
	}
	assert.Empty(t, r.contribute(2*ringWindow, 0))
	assert.EqualValues(t, 1, r.count("not_ready"))
	r.sums([]release{{1, 0}}, r.contribute(0, 1)) // its receiver may still lack it
	r.sums(everyone(2, ringWindow), r.contribute(ringWindow, 1))
	assert.Empty(t, r.contribute(2*ringWindow, 0))
	assert.EqualValues(t, 3*ringWindow+2, r.count("stored"), "the slot has turned over")
	assert.Empty(t, r.contribute(0, 1), "its sum is no longer there")
	assert.EqualValues(t, 1, r.count("late"))
}

// TestECN: the mark of a sum is the highest of its contributions in the order of the merge, and what else
// TOS has is the header's own.
func TestECN(t *testing.T) {
	for _, c := range []struct{ a, b, want wire.ECN }{
		{wire.ECT0, wire.ECT0, wire.ECT0}, {wire.ECT1, wire.ECT1, wire.ECT1}, {wire.ECT1, wire.ECT0, wire.ECT0}, {wire.ECT0, wire.NotECT, wire.NotECT},
		{wire.NotECT, wire.NotECT, wire.NotECT}, {wire.CE, wire.NotECT, wire.CE}, {wire.ECT1, wire.CE, wire.CE},
	} {
		r := newRing(t, 2, false)
		p, q := r.packet(0, 0), r.packet(1, 0)
		p.ECN, q.ECN = c.a, c.b
		frame, _ := ethernet.CutFCS(p.Append(nil))
		frame = connections.Remade(func(f []byte) { f[15] |= 26 << 2 })(frame)
		assert.Empty(t, r.took(0, ethernet.AppendFCS(frame)))
		got := r.send(1, q)
		require.Len(t, got, 2)
		for _, l := range got {
			leaves, err := rc.Parse(l.frame)
			require.NoError(t, err)
			assert.Equal(t, c.want, leaves.ECN)
			if leaves.BTH.DestQP == r.links[0].qpn {
				assert.EqualValues(t, 26, l.frame[15]>>2, "the DSCP of rank 0's header")
			} else {
				assert.Zero(t, l.frame[15]>>2)
			}
		}
		marked := uint64(0)
		for _, mark := range []wire.ECN{c.a, c.b} {
			if mark == wire.CE {
				marked++
			}
		}
		assert.Equal(t, marked, r.count("ce"))
	}
}

// TestHeadersStay: TTL, identification and the reserved bits that the ICRC leaves out are as they came.
func TestHeadersStay(t *testing.T) {
	r := newRing(t, 2, false)
	frame, _ := ethernet.CutFCS(r.packet(0, 0).Append(nil))
	frame = connections.Remade(func(f []byte) {
		f[18], f[19], f[22], f[atBTH+4] = 0x12, 0x34, 9, 0xc3
		f[40], f[41] = 0xab, 0xcd // a UDP checksum, which nobody checks
	})(frame)
	assert.Empty(t, r.took(0, ethernet.AppendFCS(frame)))
	for _, l := range r.contribute(0, 1) {
		p, err := rc.Parse(l.frame)
		require.NoError(t, err)
		if p.BTH.DestQP != r.links[0].qpn {
			continue
		}
		want := append([]byte(nil), frame[:atBTH+wire.BTHBytes]...)
		want[24], want[25], want[40], want[41] = l.frame[24], l.frame[25], 0, 0
		assert.Equal(t, want, l.frame[:len(want)])
	}
}

// TestClosedConnections: when a job has ended, the data of its connections drops, and all else passes. Without
// its connections, data passes too.
func TestClosedConnections(t *testing.T) {
	for name, end := range map[string]func(r *ring){
		"abort":   func(r *ring) { r.write(wire.RegJobAbort, 1<<32) },
		"release": func(r *ring) { r.write(wire.RegRelease, token) },
		"lease":   func(r *ring) { r.card.Advance(wire.MaxLease + 1) },
	} {
		r := newRing(t, 2, false)
		r.sums(everyone(2, 0), r.contribute(0, 0, 1))
		assert.Empty(t, r.contribute(1, 0))
		end(r)
		assert.Empty(t, r.contribute(1, 1), name)
		assert.Empty(t, r.contribute(0, 0), name)
		assert.EqualValues(t, 2, r.count("bad_job"), name)
		ack := r.packet(0, 0)
		ack.BTH.Opcode, ack.Payload = wire.OpAcknowledge, nil
		assert.Len(t, r.send(0, ack), 1, name)
		if name == "abort" {
			r.write(wire.RegJobDisconnect, 0)
		} else {
			r.write(wire.RegReset, 0)
		}
		assert.Len(t, r.contribute(0, 0), 1, name)
	}
}

// TestTheNextJob: a number's next job has its own connections, PSNs and slots, and what the last one left in
// headers and sums is gone.
func TestTheNextJob(t *testing.T) {
	r := newRing(t, 2, false)
	r.sums(everyone(2, 0, 1), append(r.contribute(0, 0, 1), r.contribute(1, 0, 1)...))
	assert.Empty(t, r.contribute(2, 0))
	old := r.packet(1, 2)
	for rank := range r.links {
		r.links[rank].firstPSN, r.links[rank].qpn = 0x100, r.links[rank].qpn+0x10
	}
	r.stage(r.links, ringMTU, ringWindow)
	require.Equal(t, wire.CodeDone, r.commit(2))
	assert.Len(t, r.send(1, old), 1, "of no connection any more: it passes")
	r.sums(everyone(2, 0), r.contribute(0, 1, 0))
	r.sums([]release{{1, 0}}, r.contribute(0, 1))
}

// TestJobsSideBySide: two jobs have their own connections and sums.
func TestJobsSideBySide(t *testing.T) {
	r := newRing(t, 2, false)
	r.write(wire.RegJobAbort, 1<<32)
	r.stage(r.links, ringMTU, ringWindow/2)
	require.Equal(t, wire.CodeDone, r.commit(2))
	second := &ring{r.gateway, append([]link(nil), r.links...)}
	for rank := range second.links {
		second.links[rank].qpn += 0x10
	}
	second.stage(second.links, ringMTU, ringWindow/2)
	code, _ := r.access(wire.KindRegWrite, wire.RegJobCommit, 1<<48|1<<32)
	require.Equal(t, wire.CodeDone, code)
	assert.Empty(t, r.contribute(0, 0))
	assert.Empty(t, second.contribute(0, 1))
	r.sums(everyone(2, 0), r.contribute(0, 1))
	second.sums(everyone(2, 0), second.contribute(0, 0))
}

// TestOverdueIsCounted: nobody gets a notice.
func TestOverdueIsCounted(t *testing.T) {
	r := newRing(t, 2, false)
	r.write(wire.RegJobDeadline, 1000)
	require.Equal(t, wire.CodeDone, r.commit(2))
	assert.Empty(t, r.contribute(0, 0))
	r.card.Advance(1001)
	assert.Empty(t, r.took(0, frames.Strange(frames.HostMAC, frames.CardMAC)))
	assert.EqualValues(t, 1, r.count("overdue"))
	r.sums(everyone(2, 0), r.contribute(0, 1))
}

// TestNoDataOverUDP: data, asks and finishes do not exist there.
func TestNoDataOverUDP(t *testing.T) {
	r := newRing(t, 2, false)
	for _, kind := range []wire.Kind{wire.KindData, wire.KindAsk, wire.KindFinish} {
		h := model.Header{Version: wire.Version, Kind: kind, Format: wire.Int32, Epoch: 1, Length: 64}
		r.endpoint.Receive(model.AppendDatagram(nil, &model.Packet{Header: h, Payload: make([]byte, ringMTU)}), owner, wire.ECT0)
		_, _, _, ok := r.endpoint.Send(nil)
		assert.False(t, ok)
	}
	assert.EqualValues(t, 3, r.count("bad_kind"))
	assert.Zero(t, r.count("stranger"))
}

// TestRelay: a one-armed card relays IPv4 to its neighbours, with their MAC addresses, and nothing else.
func TestRelay(t *testing.T) {
	r := newRing(t, 2, true)
	neighbour := func(i int, ip uint32, mac uint64) {
		r.write(wire.NeighbourAddr(wire.RegNeighbourAddress, i), uint64(ip))
		r.write(wire.NeighbourAddr(wire.RegNeighbourMAC, i), mac)
	}
	neighbour(1, ipOf(hostAddress(1)), macOf(hostAddress(1)))
	neighbour(3, 0xc0a85442, 0x02_9999_0000_01) // the card's own
	ack := r.packet(0, 0)
	ack.BTH.Opcode, ack.Payload, ack.To.MAC = wire.OpAcknowledge, nil, [6]byte(frames.CardMAC)
	relayed := func(frame []byte) []byte {
		host := hostAddress(1)
		body, _ := ethernet.CutFCS(frame)
		return ethernet.AppendFCS(append(append(append([]byte(nil), host.MAC[:]...), frames.CardMAC...), body[12:]...))
	}
	frame := ack.Append(nil)
	assert.Equal(t, []left{{0, relayed(frame)}}, r.took(0, frame))
	assert.EqualValues(t, 1, r.count("relayed"))

	r.write(wire.RegJobAbort, 1<<32)
	r.write(wire.RegJobDisconnect, 0)
	strange := r.packet(0, 0)
	strange.To.MAC = [6]byte(frames.CardMAC)
	body, _ := ethernet.CutFCS(strange.Append(nil))
	body[atIP], body[24] = 0x4f, 1 // with options, and whatever is wrong of it
	frame = ethernet.AppendFCS(body)
	assert.Equal(t, []left{{0, relayed(frame)}}, r.took(0, frame), "byte for byte")
	assert.EqualValues(t, 2, r.count("relayed"))

	for name, edit := range map[string]func(p *rc.Packet){
		"another station": func(p *rc.Packet) { p.To.MAC = hostAddress(1).MAC },
		"to no neighbour": func(p *rc.Packet) { p.To.IP = hostAddress(2).IP },
	} {
		p := r.packet(0, 0)
		p.To.MAC = [6]byte(frames.CardMAC)
		edit(p)
		assert.Empty(t, r.send(0, p), name)
	}
	assert.EqualValues(t, 1, r.count("ip_address"))
	datagram := frames.NewDatagram(frames.Question()).Bytes()
	assert.Len(t, r.took(0, datagram), 1, "the card's own address is nobody else's")
	assert.EqualValues(t, 2, r.count("relayed"))

	r.write(wire.RegRelease, token)
	assert.Len(t, r.took(0, frame), 1, "they outlive their owner")
	r.write(wire.RegReset, 0)
	assert.Empty(t, r.took(0, frame), "RESET clears them")
}
