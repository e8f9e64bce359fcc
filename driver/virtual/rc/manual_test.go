package rc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
)

// A couple without its cable: the test decides when each frame arrives.

// leaving returns the packets that leave a host now.
func leaving(t testing.TB, h *rc.Host) (packets []rc.Packet) {
	t.Helper()
	for {
		frame, _, ok := h.Send(nil)
		if !ok {
			return packets
		}
		p, err := rc.Parse(frame)
		require.NoError(t, err)
		packets = append(packets, p)
	}
}

// psns returns the PSNs of packets from host 0, from its first on.
func psns(packets []rc.Packet) (all []int) {
	for _, p := range packets {
		all = append(all, wire.PSNsFrom(firstPSNs[0], p.BTH.PSN))
	}
	return all
}

// answer lets host 0 receive an ACK or NAK of its k-th PSN.
func (c *couple) answer(k int, s wire.Syndrome) {
	p := rc.Packet{
		From: address(1), To: address(0),
		BTH:  wire.BTH{Opcode: wire.OpAcknowledge, PKey: wire.PKey, DestQP: 100, PSN: wire.AddPSN(firstPSNs[0], k)},
		AETH: wire.AETH{Syndrome: s},
	}
	c.hosts[0].Receive(0, p.Append(nil))
}

// timeout lets host 0's timer end.
func (c *couple) timeout() { c.hosts[0].Advance(clock.Cycles(4096 * time.Nanosecond << 8)) }

// post lets host 0 send a message of n packets.
func (c *couple) post(id uint64, n int) {
	c.Helper()
	require.NoError(c, c.pairs[0].PostSend(rc.Request{ID: id, Data: random(id, 256*n)}))
}

// TestALateACK: an ACK that comes when the sender has gone back makes it go on behind it.
func TestALateACK(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	c.post(1, 6)
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, psns(leaving(t, c.hosts[0])))
	c.timeout()
	c.answer(2, wire.SyndromeACK)
	assert.Equal(t, []int{3, 4, 5}, psns(leaving(t, c.hosts[0])))
	c.timeout()
	c.answer(5, wire.SyndromeACK)
	assert.Empty(t, leaving(t, c.hosts[0]))
	_, running := c.hosts[0].Deadline()
	assert.False(t, running, "the timer has nothing to wait for")
}

// TestALateACKOfTheOldest: a sender that repeats its oldest packet alone does not repeat an acknowledged one.
func TestALateACKOfTheOldest(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{}, func(c *rc.Connection) { c.OldestAlone = true })
	c.post(1, 3)
	assert.Len(t, leaving(t, c.hosts[0]), 3)
	c.timeout()
	assert.Equal(t, []int{0}, psns(leaving(t, c.hosts[0])))
	c.timeout()
	c.answer(0, wire.SyndromeACK)
	assert.Empty(t, leaving(t, c.hosts[0]))
	c.timeout()
	assert.Equal(t, []int{1}, psns(leaving(t, c.hosts[0])))
}

// TestNAKsAreRetries: NAKs of the same PSN use the retries up. A NAK acknowledges what precedes it, and
// restores them.
func TestNAKsAreRetries(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	c.post(1, 4)
	leaving(t, c.hosts[0])
	for range 6 {
		c.answer(0, wire.SyndromeSequence)
		assert.Equal(t, []int{0, 1, 2, 3}, psns(leaving(t, c.hosts[0])))
	}
	c.answer(1, wire.SyndromeSequence)
	assert.Equal(t, []int{1, 2, 3}, psns(leaving(t, c.hosts[0])))
	for range 5 {
		c.answer(1, wire.SyndromeSequence)
		leaving(t, c.hosts[0])
	}
	assert.False(t, c.pairs[0].Failed())
	c.answer(1, wire.SyndromeSequence)
	done, _ := c.pairs[0].PollSend()
	assert.Equal(t, rc.Completion{ID: 1, Status: rc.RetryExceeded}, done)
}

// TestARefusalAcknowledges: a NAK of a later message completes the earlier ones.
func TestARefusalAcknowledges(t *testing.T) {
	for syndrome, status := range map[wire.Syndrome]rc.Status{
		wire.SyndromeInvalid: rc.RemoteInvalid, wire.SyndromeAccess: rc.RemoteAccess, wire.SyndromeOperational: rc.RemoteOperational,
		wire.SyndromeRNR | 7: rc.NotReady,
	} {
		c := newCouple(t, 1, cable.Faults{})
		c.post(1, 2)
		c.post(2, 2)
		c.post(3, 2)
		leaving(t, c.hosts[0])
		c.answer(3, syndrome)
		assert.Equal(t, []rc.Completion{{ID: 1}, {ID: 2, Status: status}, {ID: 3, Status: rc.Flushed}}, drain(nil, c.pairs[0].PollSend))
		_, running := c.hosts[0].Deadline()
		assert.False(t, running)
		assert.Empty(t, leaving(t, c.hosts[0]))
	}
}

// TestACKsOfTheResponder: ACKs that have not left are merged, those of duplicates are not. Each has the
// number of messages completed.
func TestACKsOfTheResponder(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	for range 3 {
		require.NoError(t, c.pairs[1].PostReceive(0, make([]byte, 256)))
	}
	c.post(1, 1)
	c.post(2, 1)
	c.post(3, 1)
	sent := leaving(t, c.hosts[0])
	require.Len(t, sent, 3)
	deliver := func(k ...int) (acks []wire.AETH, at []int) {
		for _, k := range k {
			c.hosts[1].Receive(0, sent[k].Append(nil))
		}
		answers := leaving(t, c.hosts[1])
		for _, p := range answers {
			acks = append(acks, p.AETH)
		}
		return acks, psns(answers)
	}
	acks, at := deliver(0)
	assert.Equal(t, []wire.AETH{{Syndrome: wire.SyndromeACK, MSN: 1}}, acks)
	assert.Equal(t, []int{0}, at)
	_, at = deliver(2, 2, 2)
	assert.Equal(t, []int{1}, at, "one NAK")
	acks, at = deliver(1, 2)
	assert.Equal(t, []wire.AETH{{Syndrome: wire.SyndromeACK, MSN: 3}}, acks)
	assert.Equal(t, []int{2}, at, "one ACK for both")
	_, at = deliver(0, 1, 2)
	assert.Equal(t, []int{2, 2, 2}, at, "an ACK for each duplicate")
}

// TestEachGap: each gap draws one NAK, and a repeat that fills it ends it.
func TestEachGap(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{})
	require.NoError(t, c.pairs[1].PostReceive(0, make([]byte, 6*256)))
	c.post(1, 6)
	sent := leaving(t, c.hosts[0])
	for _, k := range []int{1, 2, 0, 2, 3, 1, 4, 5, 2, 3, 4} {
		c.hosts[1].Receive(0, sent[k].Append(nil))
	}
	assert.Equal(t, []int{0, 1, 2}, psns(leaving(t, c.hosts[1])))
	assert.Equal(t, rc.Stats{OutOfOrder: 6, NAKsSent: 3}, c.pairs[1].Stats())
}

// TestPairsSendInTurn: no queue pair of a host waits for another's messages.
func TestPairsSendInTurn(t *testing.T) {
	h := rc.New(address(0))
	for i := range 3 {
		pair := h.CreatePair(uint32(i + 2))
		require.NoError(t, pair.Connect(rc.Connection{Peer: address(1), PeerQPN: uint32(i), MTU: 256}))
		require.NoError(t, pair.PostSend(rc.Request{Data: make([]byte, 512)}))
	}
	var order []uint32
	for _, p := range leaving(t, h) {
		order = append(order, p.BTH.DestQP)
	}
	assert.Equal(t, []uint32{0, 1, 2, 0, 1, 2}, order)
	assert.Panics(t, func() { h.CreatePair(3) })
}

// TestNoTimer: a Timeout of 0 waits for ever.
func TestNoTimer(t *testing.T) {
	c := newCouple(t, 1, cable.Faults{}, func(c *rc.Connection) { c.Timeout = 0 })
	c.post(1, 1)
	leaving(t, c.hosts[0])
	_, running := c.hosts[0].Deadline()
	assert.False(t, running)
	c.hosts[0].Advance(1 << 50)
	assert.Empty(t, leaving(t, c.hosts[0]))
}
