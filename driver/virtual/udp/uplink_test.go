package udp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/cpu"
	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// stand is a card behind a socket.
type stand struct {
	address *net.UDPAddr
	ended   chan error
	stop    context.CancelFunc
}

// small is a card of two ports and an up port.
var small = model.Config{Lanes: 1, Ports: 2, Chunk: 1, Window: 1, Shell: wire.ShellUDP, Link: 64, Parent: true}

// newCard makes a card with an address of its own.
type newCard func(own wire.Address) (udp.Card, error)

// onBoth runs a test with both cards in software.
func onBoth(t *testing.T, test func(*testing.T, newCard)) {
	for name, card := range map[string]newCard{
		"model": func(own wire.Address) (udp.Card, error) { return model.NewEndpoint(small, own) },
		"cpu":   func(own wire.Address) (udp.Card, error) { return cpu.NewEndpoint(cpu.Config(small), own) },
	} {
		t.Run(name, func(t *testing.T) { test(t, card) })
	}
}

// Ports at a card's own loopback address, where no other program opens any.
const (
	cardPort   = 21570
	upwardPort = 21571
)

// serveCard serves a card at a loopback address of its own.
func serveCard(t *testing.T, makes newCard) *stand {
	t.Helper()
	socket, err := udp.Listen(fmt.Sprintf("%s:%d", udp.OwnLoopback(), cardPort))
	require.NoError(t, err)
	card, err := makes(socket.Address())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &stand{ended: make(chan error, 1), stop: cancel}
	s.address, err = net.ResolveUDPAddr("udp4", socket.Name()[len("udp:"):])
	require.NoError(t, err)
	go func() { s.ended <- socket.Serve(ctx, card) }()
	return s
}

// host is a socket of a host, connected to a card.
type host struct {
	*testing.T
	*net.UDPConn
}

func dial(t *testing.T, to *stand) *host {
	t.Helper()
	conn, err := net.DialUDP("udp4", nil, to.address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &host{t, conn}
}

// station returns the address of a socket as in the registers.
func station(a net.Addr) uint64 {
	at := a.(*net.UDPAddr)
	return uint64(at.Port)<<32 | uint64(binary.BigEndian.Uint32(at.IP.To4()))
}

// upward returns the address of a card's upward port.
func (s *stand) upward() *net.UDPAddr { return &net.UDPAddr{IP: s.address.IP, Port: upwardPort} }

func (h *host) send(p model.Packet) {
	h.Helper()
	p.Version = wire.Version
	_, err := h.Write(model.AppendDatagram(nil, &p))
	require.NoError(h, err)
}

// next returns the next packet that arrives.
func (h *host) next() model.Packet {
	h.Helper()
	b := make([]byte, 100)
	n, err := h.Read(b)
	require.NoError(h, err)
	info, known := wire.Kind(b[0] >> 4).Info()
	require.True(h, known)
	size := info.HeaderBytes(true)
	return model.Packet{Header: model.ParseHeader(b[:size]), Payload: b[size : n-4]}
}

// writes writes registers, and checks the answers.
func (h *host) writes(values ...uint64) {
	h.Helper()
	for i := 0; i < len(values); i += 2 {
		h.send(model.Packet{Header: model.Header{Kind: wire.KindRegWrite, VID: uint32(values[i]), Mask: values[i+1]}})
		require.Equal(h, wire.CodeDone, h.next().Code, "%#x", values[i])
	}
}

// element sends a contribution.
func (h *host) element(rank uint8, x float32) {
	h.Helper()
	h.send(model.Packet{
		Header:  model.Header{Kind: wire.KindData, Epoch: 1, Rank: rank, Format: wire.FP32, Length: 1},
		Payload: binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)),
	})
}

// SetUp sets job 0 up for chunks of 1 element, a window of 1 and the members at the first ports.
func (h *host) setUp(members ...uint64) {
	h.Helper()
	for port, at := range members {
		h.writes(uint64(wire.MemberAddr(wire.RegMemberAddress, port)), at, uint64(wire.RanksAddr(port)), 1<<port)
	}
	h.writes(
		uint64(wire.RegJobToken), 5, uint64(wire.RegJobPorts), 1<<len(members)-1, uint64(wire.RegJobChunk), 1, uint64(wire.RegJobWindow), 1,
		uint64(wire.RegJobCommit), 1<<32)
}

// TestATreeBehindSockets: a card with a parent sums one worker's data with that of the parent's other
// member. Its upward port has a socket while the job runs.
func TestATreeBehindSockets(t *testing.T) { onBoth(t, aTreeBehindSockets) }

func aTreeBehindSockets(t *testing.T, makes newCard) {
	root, child := serveCard(t, makes), serveCard(t, makes)
	owner, ownerBelow := dial(t, root), dial(t, child)
	worker, workerBelow := dial(t, root), dial(t, child)
	owner.writes(uint64(wire.RegOwner), 5)
	owner.setUp(station(child.upward()), station(worker.LocalAddr()))
	ownerBelow.writes(
		uint64(wire.RegOwner), 5, uint64(wire.RegJobParent), wire.Upward(0, upwardPort), uint64(wire.RegJobRepeat), 1,
		uint64(wire.RegTreeRanks), 3, uint64(wire.RegParentAddress), station(root.address))
	ownerBelow.setUp(station(workerBelow.LocalAddr()))
	_, err := net.ListenUDP("udp4", child.upward())
	require.Error(t, err, "the card has the port")

	workerBelow.element(0, 1.5)
	worker.element(1, 2)
	for _, w := range []*host{worker, workerBelow} {
		p := w.next()
		assert.Equal(t, wire.KindResult, p.Kind)
		assert.EqualValues(t, 3, p.Mask)
		assert.Equal(t, binary.LittleEndian.AppendUint32(nil, math.Float32bits(3.5)), p.Payload)
	}
	workerBelow.send(model.Packet{Header: model.Header{Kind: wire.KindFinish, Epoch: 1, VID: 1}})
	done := workerBelow.next()
	assert.Equal(t, []any{wire.KindStatus, wire.CodeDone}, []any{done.Kind, done.Code})
	conn, err := net.ListenUDP("udp4", child.upward())
	require.NoError(t, err, "the job is over, and the port free")
	conn.Close()
	for _, s := range []*stand{root, child} {
		s.stop()
		assert.NoError(t, <-s.ended)
	}
}

// TestAnUpwardPortThatIsTaken: Serve names it, and ends.
func TestAnUpwardPortThatIsTaken(t *testing.T) { onBoth(t, anUpwardPortThatIsTaken) }

func anUpwardPortThatIsTaken(t *testing.T, makes newCard) {
	child := serveCard(t, makes)
	owner := dial(t, child)
	taken, err := net.ListenUDP("udp4", child.upward())
	require.NoError(t, err)
	defer taken.Close()
	owner.writes(
		uint64(wire.RegOwner), 5, uint64(wire.RegJobParent), wire.Upward(0, upwardPort), uint64(wire.RegJobRepeat), 1,
		uint64(wire.RegTreeRanks), 3, uint64(wire.RegParentAddress), 9<<32|0x7f000001,
		uint64(wire.RegMemberAddress), station(owner.LocalAddr()), uint64(wire.RanksAddr(0)), 1,
		uint64(wire.RegJobToken), 5, uint64(wire.RegJobPorts), 1, uint64(wire.RegJobChunk), 1, uint64(wire.RegJobWindow), 1)
	owner.send(model.Packet{Header: model.Header{Kind: wire.KindRegWrite, VID: wire.RegJobCommit, Mask: 1 << 32}})
	assert.ErrorContains(t, <-child.ended, "a job was given the upward port of "+child.upward().String()+"; set it up with another one")
}

// TestServeEndsWithAJob: Ctrl-C closes the sockets of upward ports, too.
func TestServeEndsWithAJob(t *testing.T) { onBoth(t, serveEndsWithAJob) }

func serveEndsWithAJob(t *testing.T, makes newCard) {
	child := serveCard(t, makes)
	owner := dial(t, child)
	owner.writes(
		uint64(wire.RegOwner), 5, uint64(wire.RegJobParent), wire.Upward(0, upwardPort), uint64(wire.RegJobRepeat), 1,
		uint64(wire.RegTreeRanks), 3, uint64(wire.RegParentAddress), 9<<32|0x7f000001)
	owner.setUp(station(owner.LocalAddr()))
	child.stop()
	assert.NoError(t, <-child.ended)
	conn, err := net.ListenUDP("udp4", child.upward())
	require.NoError(t, err)
	conn.Close()
}
