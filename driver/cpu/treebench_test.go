package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

const (
	climbMembers  = 4
	climbElements = 256
	climbWindow   = 4
	climbPort     = 0x7000 // upward UDP port
)

// climb is a tree job on a card on a network, and the datagrams of its members and its parent.
type climb struct {
	card *Endpoint
	buf  []byte
	h    frame.Header // of what the parent sends
}

func climber(member int) wire.Address {
	return wire.Address{Station: 0x1000_0a000001 + uint64(member), MAC: 1 + uint64(member)}
}

func newClimb(t testing.TB) *climb {
	card, err := NewEndpoint(Config{
		Lanes: 4, Ports: climbMembers, Chunk: climbElements, Window: climbWindow, Shell: wire.ShellUDP, Link: 64, Parent: true,
	}, climber(100))
	require.NoError(t, err)
	c := &climb{card: card, buf: make([]byte, 0, frame.MaxDatagramBytes)}
	c.write(t, wire.RegOwner, token)
	for member := range climbMembers {
		c.write(t, wire.MemberAddr(wire.RegMemberAddress, member), climber(member).Station)
		c.write(t, wire.MemberAddr(wire.RegMemberMAC, member), climber(member).MAC)
		c.write(t, wire.RanksAddr(member), 1<<member)
	}
	for addr, value := range map[uint32]uint64{
		wire.RegJobToken: token, wire.RegJobPorts: 1<<climbMembers - 1, wire.RegJobChunk: climbElements, wire.RegJobWindow: climbWindow,
		wire.RegJobParent: wire.Upward(2, climbPort), wire.RegJobRepeat: 1000, wire.RegTreeRanks: 0xff,
		wire.RegParentAddress: climber(101).Station, wire.RegParentMAC: climber(101).MAC,
	} {
		c.write(t, addr, value)
	}
	c.write(t, wire.RegJobCommit, 1<<32)
	return c
}

func (c *climb) write(t testing.TB, addr uint32, value uint64) {
	c.card.Receive(frame.AppendDatagram(nil, &frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: value}, nil), climber(102), wire.ECT0)
	reply, _, _, ok := c.card.Send(nil)
	require.True(t, ok && reply[7] == byte(wire.CodeDone), "%#x: %x", addr, reply)
}

// pass brings a chunk up and down. It reports whether all members have its result.
func (c *climb) pass(vid uint32) bool {
	for member := range climbMembers {
		c.h = frame.Header{Kind: wire.KindData, Format: wire.FP32, Epoch: 1, Rank: uint8(member), VID: vid, Length: climbElements}
		c.card.Receive(frame.AppendPaddedDatagram(c.buf, &c.h, nil), climber(member), wire.ECT0)
	}
	own, port, to, _, ok := c.card.SendUp(c.buf)
	if !ok || to != climber(101) || port != c.card.UpwardPorts()[0] || len(own) != wire.BaseHeaderBytes+4*climbElements+wire.DatagramCRCBytes {
		return false
	}
	c.h = frame.Header{Kind: wire.KindResult, Format: wire.FP32, Epoch: 1, VID: vid, Length: climbElements, Mask: 0xff, Receivers: 4}
	c.card.ReceiveUp(port, frame.AppendPaddedDatagram(c.buf, &c.h, nil), to, wire.ECT0)
	sent := 0
	for ok := true; ok; sent++ {
		_, _, _, ok = c.card.Send(c.buf)
	}
	return sent == climbMembers+1
}

func TestTreeJobsAllocateNothing(t *testing.T) {
	c, vid := newClimb(t), uint32(0)
	pass := func() {
		if !c.pass(vid) {
			t.Fatal("no result")
		}
		vid++
	}
	for range 4 * climbWindow {
		pass()
	}
	require.Zero(t, testing.AllocsPerRun(30, pass))
}

// BenchmarkTreeJob measures the members' payload through a tree job of datagrams, on one core.
func BenchmarkTreeJob(b *testing.B) {
	c, vid := newClimb(b), uint32(0)
	b.SetBytes(4 * climbMembers * climbElements)
	b.ReportAllocs()
	for b.Loop() {
		if !c.pass(vid) {
			b.Fatal("no result")
		}
		vid++
	}
}
