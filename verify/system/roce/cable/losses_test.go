package cable_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
	"tributary/verify/system/roce/cable"
)

// made returns a packet from host 1 to host 2, with FCS.
func made(opcode wire.Opcode, psn uint32, syndrome byte) []byte {
	p := rc.Packet{
		From: rc.Address{MAC: [6]byte{2, 0, 0, 0, 0, 1}, IP: netip.MustParseAddr("10.0.0.1")},
		To:   rc.Address{MAC: [6]byte{2, 0, 0, 0, 0, 2}, IP: netip.MustParseAddr("10.0.0.2")},
		BTH:  wire.BTH{Opcode: opcode, PKey: wire.PKey, DestQP: 0x123456, PSN: psn},
		AETH: wire.AETH{Syndrome: wire.Syndrome(syndrome), MSN: 7},
	}
	if opcode != wire.OpAcknowledge {
		p.Payload = make([]byte, 256)
	}
	return p.Append(nil)
}

// Syndromes of acknowledgements: positive, a receiver that is not ready, and a NAK.
const (
	positive = 0x1f
	notReady = 0x20
	nak      = 0x60
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		frame         []byte
		data, ack, no bool
	}{
		"SEND":               {made(wire.OpSendFirst, 5, 0), true, false, false},
		"RDMA WRITE":         {made(wire.OpWriteOnlyImm, 5, 0), true, false, false},
		"READ":               {made(wire.OpReadRequest, 5, 0), false, false, false},
		"ACK":                {made(wire.OpAcknowledge, 5, positive), false, true, false},
		"receiver not ready": {made(wire.OpAcknowledge, 5, notReady), false, false, false},
		"NAK":                {made(wire.OpAcknowledge, 5, nak), false, false, true},
	} {
		p, ok := cable.Parse(c.frame)
		require.True(t, ok, name)
		assert.Equal(t, "10.0.0.1 10.0.0.2", p.From.String()+" "+p.To.String())
		assert.EqualValues(t, 0x123456, p.QPN)
		assert.EqualValues(t, 5, p.PSN)
		assert.Equal(t, []bool{c.data, c.ack, c.no}, []bool{p.IsData(), p.IsACK(), p.IsNAK()}, name)
	}
	packet := made(wire.OpAcknowledge, 5, positive)
	for at, value := range map[int]byte{12: 0x86, 14: 0x46, 23: 6, 37: 0xb8} {
		other := bytes.Clone(packet)
		other[at] = value
		_, ok := cable.Parse(other)
		assert.False(t, ok, "byte %d", at)
	}
	_, ok := cable.Parse(packet[:57])
	assert.False(t, ok)
}

// TestOnce: the next packet is lost that is one, at its place alone.
func TestOnce(t *testing.T) {
	var l cable.Losses
	at, others := l.Pass(1), l.Pass(2)
	l.Once(func(at cable.Place, p cable.Packet) bool {
		return at == cable.Place{Port: 1, Direction: frame.FromCard} && p.PSN == 7
	})
	assert.Equal(t, 1, l.Pending())
	data := made(wire.OpSendMiddle, 7, 0)
	assert.True(t, at(frame.ToCard, data))
	assert.True(t, others(frame.FromCard, data))
	assert.True(t, at(frame.FromCard, made(wire.OpSendMiddle, 8, 0)))
	assert.Equal(t, 1, l.Pending())
	assert.False(t, at(frame.FromCard, data))
	assert.Zero(t, l.Pending())
	assert.True(t, at(frame.FromCard, data))
	assert.True(t, at(frame.ToCard, made(wire.OpAcknowledge, 7, nak)))
	assert.True(t, at(frame.FromCard, made(wire.OpAcknowledge, 7, nak))) // forwarded, not sent
	assert.True(t, at(frame.ToCard, make([]byte, 64)))
	counts := cable.Counts{NAKs: 1}
	counts.Passed[frame.ToCard], counts.Passed[frame.FromCard], counts.Lost[frame.FromCard] = 2, 4, 1
	assert.Equal(t, counts, l.Reset())
	assert.Zero(t, l.Reset())
}

// share returns which of 10,000 packets arrive that are lost by a share.
func share(l *cable.Losses, chance float64, seed uint64) (arrived []bool) {
	l.Share(chance, seed)
	for i := range 10_000 {
		arrived = append(arrived, l.Pass(i%3)(frame.Direction(i%2), made(wire.OpSendMiddle, uint32(i), 0)))
	}
	return arrived
}

// TestShare: a seed decides which packets are lost, both ways, and nothing but packets of RoCEv2 is.
func TestShare(t *testing.T) {
	var l cable.Losses
	first := share(&l, 0.02, 1)
	counts := l.Reset()
	for _, lost := range counts.Lost {
		assert.InDelta(t, 100, lost, 40)
	}
	assert.Equal(t, 10_000, counts.Lost[0]+counts.Lost[1]+counts.Passed[0]+counts.Passed[1])
	assert.Equal(t, first, share(&l, 0.02, 1))
	assert.NotEqual(t, first, share(&l, 0.02, 2))
	l.Share(1, 1)
	assert.False(t, l.Pass(0)(frame.ToCard, made(wire.OpSendMiddle, 0, 0)))
	assert.True(t, l.Pass(0)(frame.ToCard, make([]byte, 64)))
	l.Reset()
	assert.True(t, l.Pass(0)(frame.ToCard, made(wire.OpSendMiddle, 0, 0)))
}

// TestWatch: packets are seen until the reset, those that are lost as well.
func TestWatch(t *testing.T) {
	var l cable.Losses
	var seen []uint32
	l.Watch(func(at cable.Place, p cable.Packet) {
		assert.Equal(t, cable.Place{Port: 3, Direction: frame.FromCard}, at)
		seen = append(seen, p.PSN)
	})
	pass := func(psn uint32) { l.Pass(3)(frame.FromCard, made(wire.OpSendMiddle, psn, 0)) }
	pass(1)
	l.Share(1, 1)
	pass(2)
	l.Reset()
	pass(3)
	assert.Equal(t, []uint32{1, 2}, seen)
}

// TestRecorder: pcapgo reads frames, ports and directions.
func TestRecorder(t *testing.T) {
	var out bytes.Buffer
	r, err := cable.NewRecorder(&out, 3)
	require.NoError(t, err)
	frames := [][]byte{made(wire.OpSendMiddle, 1, 0), made(wire.OpAcknowledge, 2, nak)}
	r.Record(cable.Place{Port: 2, Direction: frame.FromCard}, frames[0])
	r.Record(cable.Place{Port: 0, Direction: frame.ToCard}, frames[1])
	require.NoError(t, r.Flush())
	file, err := pcapgo.NewNgReader(&out, pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	for i, want := range []struct {
		port      int
		direction pcapgo.NgEpbFlag
	}{{2, pcapgo.NgEpbFlagDirectionOutbound}, {0, pcapgo.NgEpbFlagDirectionInbound}} {
		got, info, options, err := file.ReadPacketDataWithOptions()
		require.NoError(t, err)
		assert.Equal(t, frames[i], got)
		assert.Equal(t, want.port, info.InterfaceIndex)
		assert.Equal(t, want.direction, options.Flags.Direction)
		assert.EqualValues(t, pcapgo.NewNgEpbFlagFCSLength(4), options.Flags.FCSLen)
	}
}

// full fails from the second write on.
type full struct{ writes int }

func (f *full) Write(b []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, assert.AnError
	}
	return len(b), nil
}

// TestRecorderFails: the error of a full disk comes from Flush.
func TestRecorderFails(t *testing.T) {
	r, err := cable.NewRecorder(new(full), 1)
	require.NoError(t, err)
	for range 200 {
		r.Record(cable.Place{}, make([]byte, 1000))
	}
	assert.ErrorIs(t, r.Flush(), assert.AnError)
}
