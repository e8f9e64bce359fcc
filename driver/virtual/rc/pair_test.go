package rc_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
)

// address returns that of host i.
func address(i int) rc.Address {
	return rc.Address{MAC: [6]byte{2, 0, 0, 0, 1, byte(i)}, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}
}

// couple is two hosts on a cable, with a connection.
type couple struct {
	testing.TB
	room  *cable.Room
	hosts [2]*rc.Host
	pairs [2]*rc.Pair
	cable *cable.Faults
}

// The first PSNs of a couple's hosts: both wrap soon.
var firstPSNs = [2]uint32{0xfffffa, 0xfffff0}

// newCouple connects two hosts. Edit may change each one's connection.
func newCouple(t testing.TB, seed uint64, faults cable.Faults, edit ...func(c *rc.Connection)) *couple {
	t.Helper()
	c := &couple{TB: t, room: cable.NewRoom(seed)}
	for i := range c.hosts {
		c.hosts[i] = rc.New(address(i))
		c.pairs[i] = c.hosts[i].CreatePair(uint32(100 + i))
		c.room.Place(c.hosts[i])
	}
	c.connect(0, edit...)
	c.connect(1, edit...)
	c.cable = c.room.Join(cable.Port{Device: 0}, cable.Port{Device: 1}, faults)
	return c
}

// connect connects host i to the other.
func (c *couple) connect(i int, edit ...func(c *rc.Connection)) {
	c.Helper()
	connection := rc.Connection{
		Peer: address(1 - i), PeerQPN: uint32(100 + 1 - i), SourcePort: 50000, MTU: 256,
		SendPSN: firstPSNs[i], ReceivePSN: firstPSNs[1-i], Timeout: 8, Retries: 6,
	}
	for _, e := range edit {
		e(&connection)
	}
	require.NoError(c, c.pairs[i].Connect(connection))
}

// run lets time pass until done.
func (c *couple) run(done func() bool) {
	c.Helper()
	require.True(c, c.room.Run(time.Minute, done), "not done in a minute")
}

// rest lets a second pass.
func (c *couple) rest() { c.room.Run(time.Second, func() bool { return false }) }

// random returns bytes that a seed decides.
func random(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// faulty are the networks that connections survive.
var faulty = map[string]cable.Faults{
	"good":      {},
	"loss":      {Loss: 0.03},
	"twice":     {Twice: 0.2},
	"overtaken": {Jitter: 20 * time.Microsecond},
	"damage":    {Damage: 0.03},
	"all":       {Loss: 0.02, Twice: 0.05, Jitter: 5 * time.Microsecond, Damage: 0.02},
}

// kinds are the four kinds of messages.
var kinds = map[string]rc.Request{
	"send": {}, "send_imm": {HasImm: true, Imm: 0xa1b2c3d4}, "write": {Write: true}, "write_imm": {Write: true, HasImm: true, Imm: 7},
}

// sizes are those of messages, in bytes: of one packet and of several, with and without padding.
var sizes = []int{0, 1, 3, 4, 255, 256, 257, 512, 1023, 5000, 20 * 256}

// TestMessages: every message arrives once, in order, with every byte, in spite of all faults.
func TestMessages(t *testing.T) {
	for network, faults := range faulty {
		for kind, request := range kinds {
			for _, alone := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%t", network, kind, alone), func(t *testing.T) {
					c := newCouple(t, 3, faults, func(c *rc.Connection) { c.OldestAlone, c.AckEvery, c.MaxUnacked = alone, 3, 8 })
					sendAll(c, request)
				})
			}
		}
	}
}

// sendAll sends messages of all sizes in both directions, and checks completions and bytes.
func sendAll(c *couple, kind rc.Request) {
	const at = 1 << 40
	var memory [2][]byte
	for i, pair := range c.pairs {
		memory[1-i] = make([]byte, 1<<14)
		key := c.hosts[1-i].Register(at, memory[1-i])
		from := 0
		for id, n := range sizes {
			r := kind
			r.ID, r.Data, r.Imm, r.At, r.Key = uint64(id), random(uint64(100*i+id), n), kind.Imm+uint32(id), at+uint64(from), key
			if !kind.Write || kind.HasImm {
				buffer := memory[1-i][from : from+n]
				if kind.Write {
					buffer = nil
				}
				require.NoError(c, c.pairs[1-i].PostReceive(uint64(id), buffer))
			}
			require.NoError(c, pair.PostSend(r))
			from += n
		}
	}
	var sent, received [2][]rc.Completion
	c.run(func() bool {
		done := true
		for i, pair := range c.pairs {
			sent[i], received[i] = drain(sent[i], pair.PollSend), drain(received[i], pair.PollReceive)
			done = done && len(sent[i]) == len(sizes)
		}
		return done
	})
	c.rest() // nothing more completes
	for i, pair := range c.pairs {
		want := []byte{}
		var completions, receives []rc.Completion
		for id, n := range sizes {
			want = append(want, random(uint64(100*(1-i)+id), n)...)
			completions = append(completions, rc.Completion{ID: uint64(id), Write: kind.Write})
			receive := rc.Completion{ID: uint64(id), Bytes: n, Write: kind.Write, HasImm: kind.HasImm}
			if kind.HasImm {
				receive.Imm = kind.Imm + uint32(id)
			}
			receives = append(receives, receive)
		}
		if kind.Write && !kind.HasImm {
			receives = nil
		}
		assert.Equal(c, completions, drain(sent[i], pair.PollSend))
		assert.Equal(c, receives, drain(received[i], pair.PollReceive))
		assert.True(c, bytes.Equal(want, memory[i][:len(want)]))
		assert.Equal(c, make([]byte, len(memory[i])-len(want)), memory[i][len(want):])
	}
}

// drain appends the completions that a poll returns.
func drain(to []rc.Completion, poll func() (rc.Completion, bool)) []rc.Completion {
	for {
		done, ok := poll()
		if !ok {
			return to
		}
		to = append(to, done)
	}
}

// message lets host 0 send one message of 10 packets to host 1, and returns when it has completed.
func (c *couple) message() (sent rc.Completion) {
	c.Helper()
	buffer := make([]byte, 2560)
	require.NoError(c, c.pairs[1].PostReceive(1, buffer))
	require.NoError(c, c.pairs[0].PostSend(rc.Request{ID: 9, Data: random(1, 2560)}))
	c.run(func() (ok bool) {
		sent, ok = c.pairs[0].PollSend()
		return ok
	})
	if sent.Status == rc.Success {
		assert.Equal(c, random(1, 2560), buffer)
	}
	return sent
}

// dropOnce returns a Drop that loses one packet: the first of host 0's k-th PSN, or the first ACK.
func dropOnce(t testing.TB, device, k int) func(cable.Port, []byte) bool {
	lost := false
	return func(from cable.Port, frame []byte) bool {
		p, err := rc.Parse(frame)
		require.NoError(t, err)
		ack := p.BTH.Opcode == wire.OpAcknowledge
		drop := !lost && from.Device == device && (ack || wire.PSNsFrom(firstPSNs[0], p.BTH.PSN) == k)
		lost = lost || drop
		return drop
	}
}

// TestOneLostPacket: a gap draws one NAK, the sender goes back to it, and all is over long before the
// timer. A lost last packet costs a timeout, and so does a lost ACK. Nothing before was acknowledged, so all
// is repeated, and each duplicate draws an ACK.
func TestOneLostPacket(t *testing.T) {
	for _, lost := range []struct {
		device, k       int
		sender, another rc.Stats
	}{
		{0, 0, rc.Stats{Packets: 20, Repeats: 10, NAKs: 1}, rc.Stats{OutOfOrder: 9, NAKsSent: 1}},
		{0, 4, rc.Stats{Packets: 16, Repeats: 6, NAKs: 1}, rc.Stats{OutOfOrder: 5, NAKsSent: 1}},
		{0, 9, rc.Stats{Packets: 20, Repeats: 10, Timeouts: 1, Ghosts: 8}, rc.Stats{Duplicates: 9}},
		{1, 0, rc.Stats{Packets: 20, Repeats: 10, Timeouts: 1, Ghosts: 9}, rc.Stats{Duplicates: 10}},
	} {
		c := newCouple(t, 1, cable.Faults{})
		c.cable.Drop = dropOnce(t, lost.device, lost.k)
		assert.Equal(t, rc.Completion{ID: 9}, c.message())
		timer := 4096 * time.Nanosecond << 8
		assert.Equal(t, lost.sender.Timeouts == 1, c.room.Now() >= timer, "%v", c.room.Now())
		c.rest()
		assert.Equal(t, lost.sender, c.pairs[0].Stats(), "%d from %d", lost.k, lost.device)
		assert.Equal(t, lost.another, c.pairs[1].Stats(), "%d from %d", lost.k, lost.device)
	}
}

// TestOldestAlone: a sender of this kind repeats one packet for each retry.
func TestOldestAlone(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{}, func(c *rc.Connection) { c.OldestAlone = true })
	c.cable.Drop = dropOnce(t, 0, 4)
	assert.Equal(t, rc.Completion{ID: 9}, c.message())
	// 4 by the NAK. 5 to 9 came ahead of it: each is dropped there, and repeated by the timer.
	assert.Equal(t, rc.Stats{Packets: 16, Repeats: 6, Timeouts: 5, NAKs: 1}, c.pairs[0].Stats())
}

// TestRetriesEnd: without progress, a connection ends after its retries, each of the timer's length, and all
// requests are flushed.
func TestRetriesEnd(t *testing.T) {
	for _, retries := range []int{0, 1, 6} {
		c := newCouple(t, 1, cable.Faults{Loss: 1}, func(c *rc.Connection) { c.Retries = retries })
		require.NoError(t, c.pairs[0].PostSend(rc.Request{ID: 8, Data: random(2, 300)}))
		assert.Equal(t, rc.Completion{ID: 9, Status: rc.Flushed}, func() rc.Completion {
			done := c.message()
			assert.Equal(t, rc.Completion{ID: 8, Status: rc.RetryExceeded}, done)
			next, _ := c.pairs[0].PollSend()
			return next
		}())
		assert.True(t, c.pairs[0].Failed())
		timer := 4096 * time.Nanosecond << 8
		assert.InDelta(t, float64(time.Duration(retries+1)*timer), float64(c.room.Now()), float64(time.Microsecond))
		assert.ErrorIs(t, c.pairs[0].PostSend(rc.Request{}), rc.ErrNotConnected)
	}
}

// TestProgressRestoresRetries: only retries without progress count.
func TestProgressRestoresRetries(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{}, func(c *rc.Connection) { c.Retries, c.MaxUnacked = 1, 1 })
	tries := map[uint32]int{}
	c.cable.Drop = func(from cable.Port, frame []byte) bool {
		p, _ := rc.Parse(frame)
		tries[p.BTH.PSN]++
		return from.Device == 0 && tries[p.BTH.PSN] == 1
	}
	assert.Equal(t, rc.Completion{ID: 9}, c.message())
	assert.Equal(t, 10, c.pairs[0].Stats().Timeouts)
}

// TestNoReceivePosted: an RNR NAK ends the sender's connection, not the receiver's. A WRITE needs a receive
// for its immediate alone.
func TestNoReceivePosted(t *testing.T) {
	for name, request := range kinds {
		c := newCouple(t, 1, cable.Faults{})
		request.ID, request.Data, request.Key = 5, random(1, 300), c.hosts[1].Register(0, make([]byte, 300))
		require.NoError(t, c.pairs[0].PostSend(request))
		c.rest()
		done, _ := c.pairs[0].PollSend()
		status := rc.NotReady
		if name == "write" {
			status = rc.Success
		}
		assert.Equal(t, rc.Completion{ID: 5, Status: status, Write: request.Write}, done, name)
		assert.False(t, c.pairs[1].Failed(), name)
	}
}

// TestRefusals: what a peer must not do ends both connections, and changes no memory.
func TestRefusals(t *testing.T) {
	const at = 4096
	opcode := func(o wire.Opcode) func(p *rc.Packet) {
		return func(p *rc.Packet) { p.BTH.Opcode = o }
	}
	for _, lie := range []struct {
		name   string
		write  bool
		tamper func(p *rc.Packet) // of the second packet of three
		status rc.Status
	}{
		{"a first within a message", false, opcode(wire.OpSendFirst), rc.RemoteInvalid},
		{"an only within a message", false, opcode(wire.OpSendOnly), rc.RemoteInvalid},
		{"a write within a send", false, opcode(wire.OpWriteMiddle), rc.RemoteInvalid},
		{"a send within a write", true, opcode(wire.OpSendMiddle), rc.RemoteInvalid},
		{"a last that is too short", true, opcode(wire.OpWriteLast), rc.RemoteInvalid},
		{"a short middle", false, func(p *rc.Packet) { p.Payload = p.Payload[:252] }, rc.RemoteInvalid},
		{"a long middle", false, func(p *rc.Packet) { p.Payload = append(p.Payload, 1, 2, 3, 4) }, rc.RemoteInvalid},
		{"padding of a full packet", false, func(p *rc.Packet) { p.BTH.Pad = 2 }, rc.RemoteInvalid},
		{"a last longer than the MTU", false, func(p *rc.Packet) { p.BTH.Opcode, p.Payload = wire.OpSendLast, append(p.Payload, 1, 2, 3, 4) }, rc.RemoteInvalid},
		{"an empty last", false, func(p *rc.Packet) { p.BTH.Opcode, p.Payload = wire.OpSendLast, nil }, rc.RemoteInvalid},
	} {
		c := newCouple(t, 1, cable.Faults{})
		memory := make([]byte, 3*256)
		require.NoError(t, c.pairs[1].PostReceive(1, memory))
		key := c.hosts[1].Register(at, memory)
		c.hosts[0].Tamper = func(p *rc.Packet) {
			if wire.PSNsFrom(firstPSNs[0], p.BTH.PSN) == 1 {
				lie.tamper(p)
			}
		}
		require.NoError(t, c.pairs[0].PostSend(rc.Request{ID: 5, Data: random(1, 768), Write: lie.write, At: at, Key: key}))
		c.rest()
		done, _ := c.pairs[0].PollSend()
		assert.Equal(t, rc.Completion{ID: 5, Status: lie.status, Write: lie.write}, done, lie.name)
		assert.True(t, c.pairs[1].Failed(), lie.name)
		assert.Equal(t, append(random(1, 768)[:256], make([]byte, 512)...), memory, lie.name)
		flushed, ok := c.pairs[1].PollReceive()
		assert.True(t, ok)
		assert.Equal(t, rc.Completion{ID: 1, Status: rc.Flushed}, flushed, lie.name)
	}
}

// TestMemoryOfOthers: an RDMA WRITE outside of what its key allows is refused.
func TestMemoryOfOthers(t *testing.T) {
	const at = 4096
	for _, c := range []struct {
		name string
		key  int // from the right one
		at   uint64
		ok   bool
	}{
		{"all", 0, at, true}, {"another key", 1, at, false}, {"before", 0, at - 1, false}, {"behind", 0, at + 1, false}, {"far behind", 0, at + 1000, false},
		{"wrapping", 0, 0xffff_ffff_ffff_ff80, false},
	} {
		k := newCouple(t, 1, cable.Faults{})
		memory := make([]byte, 300)
		key := k.hosts[1].Register(at, memory)
		require.NoError(t, k.pairs[0].PostSend(rc.Request{Data: random(1, 300), Write: true, At: c.at, Key: key + uint32(c.key)}))
		k.rest()
		done, _ := k.pairs[0].PollSend()
		if c.ok {
			assert.Equal(t, rc.Completion{Write: true}, done, c.name)
			continue
		}
		assert.Equal(t, rc.Completion{Status: rc.RemoteAccess, Write: true}, done, c.name)
		assert.Equal(t, make([]byte, 300), memory, c.name)
	}
}

// TestWriteOfNothing: an RDMA WRITE of no bytes needs no memory.
func TestWriteOfNothing(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	require.NoError(t, c.pairs[0].PostSend(rc.Request{Write: true, Key: 77}))
	c.rest()
	done, _ := c.pairs[0].PollSend()
	assert.Equal(t, rc.Completion{Write: true}, done)
}

// TestBufferTooSmall: both sides learn of it.
func TestBufferTooSmall(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	require.NoError(t, c.pairs[1].PostReceive(3, make([]byte, 400)))
	require.NoError(t, c.pairs[0].PostSend(rc.Request{Data: random(1, 401)}))
	c.rest()
	done, _ := c.pairs[0].PollSend()
	assert.Equal(t, rc.Completion{Status: rc.RemoteInvalid}, done)
	got, _ := c.pairs[1].PollReceive()
	assert.Equal(t, rc.Completion{ID: 3, Status: rc.LocalLength}, got)
}

// TestReset: a peer that resets its queue pair hears nothing any more. After both did, they connect anew.
func TestReset(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	assert.Equal(t, rc.Success, c.message().Status)
	c.pairs[1].Reset()
	require.NoError(t, c.pairs[0].PostSend(rc.Request{ID: 5, Data: random(1, 300)}))
	c.rest()
	done, _ := c.pairs[0].PollSend()
	assert.Equal(t, rc.Completion{ID: 5, Status: rc.RetryExceeded}, done)
	assert.Equal(t, 7*2, c.hosts[1].Counters().Pair)
	c.pairs[0].Reset()
	c.connect(0)
	c.connect(1)
	assert.Equal(t, rc.Success, c.message().Status)
}

// TestStrangers: frames that are not for the connection change nothing and draw no answer.
func TestStrangers(t *testing.T) {
	const first = 1
	for _, s := range []struct {
		name   string
		tamper func(p *rc.Packet)
		damage func(frame []byte) []byte
		want   rc.Counters
	}{
		{name: "another QPN", tamper: func(p *rc.Packet) { p.BTH.DestQP++ }, want: rc.Counters{Pair: first}},
		{name: "another sender", tamper: func(p *rc.Packet) { p.From.IP = p.From.IP.Next().Next() }, want: rc.Counters{Pair: first}},
		{name: "another MAC", tamper: func(p *rc.Packet) { p.To.MAC[5]++ }, want: rc.Counters{Foreign: first}},
		{name: "another IP", tamper: func(p *rc.Packet) { p.To.IP = p.To.IP.Next() }, want: rc.Counters{Foreign: first}},
		{name: "another partition", tamper: func(p *rc.Packet) { p.BTH.PKey = 0x8001 }, want: rc.Counters{Header: first}},
		{name: "another version", tamper: func(p *rc.Packet) { p.BTH.Version = 1 }, want: rc.Counters{Header: first}},
		{name: "READ", tamper: func(p *rc.Packet) { p.BTH.Opcode = wire.OpReadRequest }, want: rc.Counters{Opcode: first}},
		{name: "an unknown opcode", tamper: func(p *rc.Packet) { p.BTH.Opcode = 0xff }, want: rc.Counters{Opcode: first}},
		{name: "FCS", damage: func(f []byte) []byte { return append(f[:len(f)-1:len(f)-1], f[len(f)-1]^1) }, want: rc.Counters{FCS: first}},
		{name: "ICRC", damage: resum(60), want: rc.Counters{ICRC: first}},
		{name: "IP checksum", damage: resum(24), want: rc.Counters{Header: first}},
		{name: "UDP too long", damage: remake(39, 4), want: rc.Counters{Header: first}},
		{name: "UDP too short", damage: remake(39, 0x20), want: rc.Counters{Header: first}},
		{name: "IP too long", damage: remake(17, 8), want: rc.Counters{Header: first}},
		{name: "IP too short", damage: remake(17, 4), want: rc.Counters{Header: first}},
		{name: "a fragment", damage: remake(20, 0x20), want: rc.Counters{Foreign: first}},
		{name: "a later fragment", damage: remake(21, 1), want: rc.Counters{Foreign: first}},
		{name: "no room for a RETH", damage: func(f []byte) []byte { return short(f, wire.OpWriteOnly, wire.RETHBytes-1, 0) }, want: rc.Counters{Header: first}},
		{name: "no room for padding", damage: func(f []byte) []byte { return short(f, wire.OpSendOnly, 2, 3) }, want: rc.Counters{Header: first}},
		{name: "UDP port", damage: resum(37), want: rc.Counters{Foreign: first}},
		{name: "EtherType", damage: resum(12), want: rc.Counters{Foreign: first}},
	} {
		c := newCouple(t, 1, cable.Faults{})
		c.hosts[0].Tamper = s.tamper
		require.NoError(t, c.pairs[1].PostReceive(1, make([]byte, 300)))
		require.NoError(t, c.pairs[0].PostSend(rc.Request{Data: random(1, 200)}))
		frame, _, ok := c.hosts[0].Send(nil)
		require.True(t, ok)
		if s.damage != nil {
			frame = s.damage(frame)
		}
		c.hosts[1].Receive(0, frame)
		_, _, ok = c.hosts[1].Send(nil)
		assert.False(t, ok, s.name)
		assert.Equal(t, s.want, c.hosts[1].Counters(), s.name)
		assert.Equal(t, rc.Stats{}, c.pairs[1].Stats(), s.name)
		_, ok = c.pairs[1].PollReceive()
		assert.False(t, ok, s.name)
	}
}

// resum turns over a bit of a byte, and makes the FCS anew.
func resum(at int) func(frame []byte) []byte {
	return func(frame []byte) []byte {
		body := bytes.Clone(frame[:len(frame)-4])
		body[at] ^= 4
		return closed(body)
	}
}

// remake turns over bits of a byte, and makes IP checksum, ICRC and FCS anew.
func remake(at int, bits byte) func(frame []byte) []byte {
	return func(frame []byte) []byte {
		body := bytes.Clone(frame[:len(frame)-8])
		body[at] ^= bits
		body[24], body[25] = 0, 0
		var sum uint32
		for i := 14; i < 34; i += 2 {
			sum += uint32(body[i])<<8 | uint32(body[i+1])
		}
		sum = ^(sum&0xffff + sum>>16)
		body[24], body[25] = byte(sum>>8), byte(sum)
		return closed(append(body[:14:14], wire.AppendICRC(body[14:])...))
	}
}

// short returns a frame with an opcode, n bytes behind the BTH, and a pad count.
func short(frame []byte, o wire.Opcode, n int, pad uint8) []byte {
	p, err := rc.Parse(frame)
	if err != nil {
		panic(err)
	}
	p.Payload = p.Payload[:n]
	body := p.Append(nil)[:14+20+8+wire.BTHBytes+n]
	body[42], body[43] = byte(o), pad<<4
	return closed(append(body[:14:14], wire.AppendICRC(body[14:])...))
}

// TestGhosts: ACKs and NAKs of what was never sent, or long acknowledged, do nothing.
func TestGhosts(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	assert.Equal(t, rc.Success, c.message().Status)
	c.rest()
	require.NoError(t, c.pairs[0].PostSend(rc.Request{Data: random(1, 600)}))
	_, _, ok := c.hosts[0].Send(nil) // the first of three
	require.True(t, ok)
	for _, syndrome := range []wire.Syndrome{wire.SyndromeACK, wire.SyndromeSequence, wire.SyndromeInvalid, wire.SyndromeRNR} {
		for _, k := range []int{9, 11, 12, 1 << 22} { // 10 is outstanding
			p := rc.Packet{
				From: address(1), To: address(0),
				BTH:  wire.BTH{Opcode: wire.OpAcknowledge, PKey: wire.PKey, DestQP: 100, PSN: wire.AddPSN(firstPSNs[0], k)},
				AETH: wire.AETH{Syndrome: syndrome},
			}
			c.hosts[0].Receive(0, p.Append(nil))
		}
	}
	assert.Equal(t, rc.Stats{Packets: 11, Ghosts: 16}, c.pairs[0].Stats())
	assert.False(t, c.pairs[0].Failed())
}

// TestAckRequests: the last packet of a message requests an ACK, every AckEvery-th one, and the last of a
// full window.
func TestAckRequests(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{}, func(c *rc.Connection) { c.AckEvery, c.MaxUnacked = 4, 7 })
	var requests []int
	c.hosts[0].Tamper = func(p *rc.Packet) {
		if p.BTH.AckReq {
			requests = append(requests, wire.PSNsFrom(firstPSNs[0], p.BTH.PSN))
		}
	}
	assert.Equal(t, rc.Success, c.message().Status)
	assert.Equal(t, []int{3, 6, 7, 9}, requests)
}

// TestBadConnections: Connect refuses what no connection can be.
func TestBadConnections(t *testing.T) {
	good := rc.Connection{Peer: address(1), MTU: 1024, Timeout: 14, Retries: 6}
	for name, edit := range map[string]func(c *rc.Connection){
		"MTU":       func(c *rc.Connection) { c.MTU = 1500 },
		"retries":   func(c *rc.Connection) { c.Retries = 7 },
		"timeout":   func(c *rc.Connection) { c.Timeout = 32 },
		"ACKs":      func(c *rc.Connection) { c.AckEvery, c.MaxUnacked = 9, 8 },
		"window":    func(c *rc.Connection) { c.MaxUnacked = 1 << 23 },
		"PSN":       func(c *rc.Connection) { c.SendPSN = 1 << 24 },
		"its PSN":   func(c *rc.Connection) { c.ReceivePSN = 1 << 24 },
		"QPN":       func(c *rc.Connection) { c.PeerQPN = 1 << 24 },
		"addresses": func(c *rc.Connection) { c.Peer.IP = netip.MustParseAddr("fe80::1") },
	} {
		pair := rc.New(address(0)).CreatePair(2)
		bad := good
		edit(&bad)
		require.Error(t, pair.Connect(bad), name)
		require.NoError(t, pair.Connect(good), name)
		require.Error(t, pair.Connect(good), "twice")
	}
}
