package udp

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/ipv4"

	"tributary/driver/cpu"
	"tributary/driver/model"
	"tributary/driver/virtual/clock"
	"tributary/driver/wire"
)

// memory is a socket in memory, for tests in bubbles.
type memory struct {
	in, out chan ipv4.Message
	closed  chan struct{}
}

func newMemory() *memory {
	return &memory{make(chan ipv4.Message, 64), make(chan ipv4.Message, 64), make(chan struct{})}
}

var errClosed = errors.New("closed")

func (m *memory) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	select {
	case x := <-m.in:
		ms[0].N, ms[0].NN, ms[0].Addr = copy(ms[0].Buffers[0], x.Buffers[0]), 0, x.Addr
		return 1, nil
	case <-m.closed:
		return 0, errClosed
	}
}

func (m *memory) WriteBatch(ms []ipv4.Message, _ int) (int, error) {
	m.out <- ipv4.Message{Buffers: [][]byte{append([]byte(nil), ms[0].Buffers[0]...)}, Addr: ms[0].Addr}
	return 1, nil
}

func (m *memory) Close() error {
	close(m.closed)
	return nil
}

// access is the datagram of a register access.
func access(kind wire.Kind, addr uint32, value uint64) []byte {
	d := make([]byte, wire.BaseHeaderBytes)
	d[0] = wire.Version | byte(kind)<<4
	binary.LittleEndian.PutUint32(d[8:], addr)
	if kind == wire.KindRegWrite {
		d = binary.LittleEndian.AppendUint64(d, value)
	}
	return binary.LittleEndian.AppendUint32(d, crc32.Checksum(d, crc32.MakeTable(crc32.Castagnoli)))
}

// value is the value in a reply.
func value(reply []byte) uint64 { return binary.LittleEndian.Uint64(reply[wire.BaseHeaderBytes:]) }

// asks makes an access from a UDP port of 10.0.0.1, and returns the value in the reply.
func (m *memory) asks(port int, datagram []byte) uint64 {
	m.in <- ipv4.Message{Buffers: [][]byte{datagram}, Addr: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port}}
	return value((<-m.out).Buffers[0])
}

// cards are the cards in software, as the model and as a switch.
var cards = map[string]func(own wire.Address) (Card, error){
	"model": func(own wire.Address) (Card, error) {
		return model.NewEndpoint(model.Config{Lanes: 1, Ports: 2, Window: 1, Shell: wire.ShellUDP, Link: 8}, own)
	},
	"cpu": func(own wire.Address) (Card, error) {
		return cpu.NewEndpoint(cpu.Config{Lanes: 1, Ports: 2, Window: 1, Shell: wire.ShellUDP, Link: 8}, own)
	},
}

// TestRealTimeEndsALease: an owner that is silent for five seconds loses the card, without traffic.
func TestRealTimeEndsALease(t *testing.T) {
	for name, build := range cards {
		synctest.Test(t, func(t *testing.T) {
			card, err := build(wire.Address{Station: 1})
			require.NoError(t, err)
			conn := newMemory()
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- serve(ctx, site{conn, 1}, nil, card) }()

			require.EqualValues(t, 7, conn.asks(1, access(wire.KindRegWrite, wire.RegOwner, 7)))
			time.Sleep(5*time.Second - 2*clock.Tick)
			assert.EqualValues(t, 7, conn.asks(2, access(wire.KindRegRead, wire.RegOwner, 0)), name)
			time.Sleep(4 * clock.Tick)
			assert.Zero(t, conn.asks(2, access(wire.KindRegRead, wire.RegOwner, 0)), name)

			cancel()
			assert.NoError(t, <-ended)
		})
	}
}

// alarm is a card that sends one datagram when its clock has reached a second.
type alarm struct {
	echo
	now  uint64
	sent bool
}

func (a *alarm) Cycles() uint64        { return a.now }
func (a *alarm) Advance(cycles uint64) { a.now += cycles }

func (a *alarm) Send(dst []byte) ([]byte, wire.Address, wire.ECN, bool) {
	if a.now < 100_000_000 || a.sent {
		return dst, wire.Address{}, 0, false
	}
	a.sent = true
	return append(dst, 1), wire.Address{}, 0, true
}

// TestTimePassesWithoutTraffic: what a card sends of its own accord leaves within a tick.
func TestTimePassesWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newMemory()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		began := time.Now()
		go func() { ended <- serve(ctx, site{conn, 0}, nil, &alarm{}) }()
		<-conn.out
		late := time.Since(began) - time.Second
		assert.True(t, late >= 0 && late <= clock.Tick, "%v late", late)
		cancel()
		assert.NoError(t, <-ended)
	})
}

// TestTheCardMoves: when a host writes CARD_ADDRESS, the reply leaves from the old address, and the
// card is at the new one from then on.
func TestTheCardMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card, err := cards["model"](wire.Address{Station: 1})
		require.NoError(t, err)
		conn, next := newMemory(), newMemory()
		var moved []wire.Address
		move := func(to wire.Address) (packets, error) {
			if moved = append(moved, to); len(moved) > 1 {
				return nil, errors.New("it is not here")
			}
			return next, nil
		}
		ended := make(chan error)
		go func() { ended <- serve(context.Background(), site{conn, 1}, move, card) }()

		conn.asks(1, access(wire.KindRegWrite, wire.RegOwner, 7))
		const other = 0x5442_0a000002
		require.EqualValues(t, other, conn.asks(1, access(wire.KindRegWrite, wire.RegCardAddress, other)))
		<-conn.closed
		require.EqualValues(t, other, next.asks(1, access(wire.KindRegRead, wire.RegCardAddress, 0)))

		next.asks(1, access(wire.KindRegWrite, wire.RegCardAddress, 0))
		assert.ErrorContains(t, <-ended, "the card was given the address 0.0.0.0:0: it is not here")
		assert.Equal(t, []wire.Address{{Station: other}, {}}, moved)
		<-next.closed
	})
}

// TestASocketThatFails ends Serve with its error.
func TestASocketThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card, err := cards["model"](wire.Address{Station: 1})
		require.NoError(t, err)
		broken := broken{newMemory()}
		err = serve(context.Background(), site{broken, 1}, nil, card)
		assert.ErrorIs(t, err, errBroken)
		<-broken.closed
	})
}

// broken is a socket that cannot be read.
type broken struct{ *memory }

var errBroken = errors.New("broken")

func (broken) ReadBatch([]ipv4.Message, int) (int, error) { return 0, errBroken }

// refusing is a socket that takes no datagram of a certain size.
type refusing struct {
	packets
	size int
}

func (r refusing) WriteBatch(ms []ipv4.Message, flags int) (int, error) {
	if len(ms[0].Buffers[0]) == r.size {
		return -1, errBroken
	}
	return r.packets.WriteBatch(ms, flags)
}

// TestADatagramThatTheSystemRefuses is lost, and those behind it are not.
func TestADatagramThatTheSystemRefuses(t *testing.T) {
	conn := newMemory()
	card := &echo{}
	for _, size := range []int{1, 2, 3} {
		card.Receive(make([]byte, size), wire.Address{}, 0)
	}
	out := newOutbox()
	out.collect(card, conn)
	out.flush(refusing{conn, 2})
	assert.Len(t, (<-conn.out).Buffers[0], 1)
	assert.Len(t, (<-conn.out).Buffers[0], 3)
	assert.Empty(t, conn.out)
}

// echo is a card that sends everything back, with the next mark.
type echo struct {
	wait  [][]byte
	to    []wire.Address
	marks []wire.ECN
}

func (e *echo) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	e.wait, e.to, e.marks = append(e.wait, append([]byte(nil), datagram...)), append(e.to, from), append(e.marks, mark)
}

func (e *echo) Send(dst []byte) ([]byte, wire.Address, wire.ECN, bool) {
	if len(e.wait) == 0 {
		return dst, wire.Address{}, 0, false
	}
	dst, to, mark := append(dst, e.wait[0]...), e.to[0], (e.marks[0]+1)%4
	e.wait, e.to, e.marks = e.wait[1:], e.to[1:], e.marks[1:]
	return dst, to, mark, true
}

func (*echo) Cycles() uint64      { return 0 }
func (*echo) Advance(uint64)      {}
func (e *echo) Own() wire.Address { return wire.Address{} }
