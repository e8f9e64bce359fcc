// The model card behind a connection: one host at a time, one after another.

package model

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// host is the other side of a served card.
type host struct {
	t    *testing.T
	conn net.Conn
	done chan error // what Serve returned
}

// connect serves card to a new host.
func connect(t *testing.T, card *Card) *host {
	t.Helper()
	near, far := net.Pipe()
	h := &host{t: t, conn: near, done: make(chan error, 1)}
	go func() { h.done <- card.Serve(far) }()
	return h
}

// send writes frames to the card.
func (h *host) send(packets ...Packet) {
	h.t.Helper()
	var b []byte
	for i := range packets {
		b = AppendFrame(b, &packets[i])
	}
	_, err := h.conn.Write(b)
	require.NoError(h.t, err)
}

// receive reads one frame of a kind, whose payload has the given size.
func (h *host) receive(kind wire.Kind, payload int) (Header, []byte) {
	h.t.Helper()
	info, _ := kind.Info()
	frame := make([]byte, info.FrameBytes(payload))
	_, err := io.ReadFull(h.conn, frame)
	require.NoError(h.t, err)
	head := frame[wire.SyncBytes:][:info.HeaderBytes(true)]
	header := ParseHeader(head)
	require.Equal(h.t, kind, header.Kind)
	if !info.Payload {
		return header, nil
	}
	return header, frame[wire.SyncBytes+len(head)+wire.CRCBytes:][:payload]
}

// write writes a register and returns the reply.
func (h *host) write(addr uint32, value uint64) Header {
	h.t.Helper()
	h.send(Packet{Header: Header{Version: wire.Version, Kind: wire.KindRegWrite, VID: addr, Mask: value}})
	reply, _ := h.receive(wire.KindReply, 0)
	return reply
}

// setUp owns the card and sets up a job of two members, 4 elements, window 1.
func (h *host) setUp(epoch uint16) {
	h.t.Helper()
	for _, w := range []struct {
		addr  uint32
		value uint64
	}{
		{wire.RegOwner, 7}, {wire.RegJobToken, 7}, {wire.RegJobPorts, 3}, {wire.RegJobChunk, 4},
		{wire.RegJobWindow, 1}, {wire.RegJobCommit, uint64(epoch) << 32},
	} {
		require.Equal(h.t, wire.CodeDone, h.write(w.addr, w.value).Code)
	}
}

// contribution is a data packet of job 0.
func contribution(epoch uint16, rank uint8, vid uint32, elements ...uint32) Packet {
	return Packet{
		Header: Header{
			Version: wire.Version, Kind: wire.KindData, Format: wire.FP32,
			Epoch: epoch, Rank: rank, VID: vid, Length: uint16(len(elements)),
		},
		Payload: words(elements...),
	}
}

var served = Config{Lanes: 2, Ports: 2, Chunk: 4, Window: 2, Shell: wire.ShellStream, Link: 32}

func TestServeSumsForOneHostAfterAnother(t *testing.T) {
	card, err := NewCard(served)
	require.NoError(t, err)
	for epoch := uint16(1); epoch <= 2; epoch++ {
		h := connect(t, card)
		h.setUp(epoch)
		h.send(
			contribution(epoch, 1, 0, 0x3f800000, 0x40000000, 0, 0x80000000),
			contribution(epoch, 0, 0, 0x3f800000, 0xc0000000, 0, 0x80000000),
		)
		header, payload := h.receive(wire.KindResult, 16)
		assert.Equal(t, uint64(3), header.Receivers)
		assert.Equal(t, words(0x40000000, 0, 0, 0x80000000), payload)
		require.NoError(t, h.conn.Close())
		require.NoError(t, <-h.done)
	}
	_, downs := card.Register(false, counterAddr("link_down"), 0)
	assert.Equal(t, uint64(2), downs)
}

func TestServeRefusesASecondHost(t *testing.T) {
	card, err := NewCard(served)
	require.NoError(t, err)
	first := connect(t, card)
	first.write(wire.RegOwner, 1)

	second := connect(t, card)
	n, err := second.conn.Read(make([]byte, 1))
	assert.Zero(t, n)
	assert.ErrorIs(t, err, io.EOF)
	assert.ErrorIs(t, <-second.done, ErrBusy)

	assert.Equal(t, uint64(1), first.write(wire.RegOwner, 2).Mask, "the first host goes on")
	first.conn.Close()
	assert.NoError(t, <-first.done)
}

func TestServeDropsHalfAFrameOfAHostThatDied(t *testing.T) {
	card, err := NewCard(served)
	require.NoError(t, err)
	h := connect(t, card)
	h.setUp(9)
	half := contribution(9, 0, 0, 1, 2, 3, 4)
	frame := AppendFrame(nil, &half)
	_, err = h.conn.Write(frame[:len(frame)-1])
	require.NoError(t, err)
	h.conn.Close()
	require.NoError(t, <-h.done)

	next := connect(t, card)
	assert.Zero(t, next.write(wire.RegOwner, 0).Mask, "OWNER is cleared")
	next.send(Packet{Header: Header{Version: wire.Version, Kind: wire.KindRegRead, VID: wire.RegJobState}})
	state, _ := next.receive(wire.KindReply, 0)
	assert.Equal(t, uint64(9<<16|2), state.Mask, "no job is set up, the epoch is kept")
	next.conn.Close()
	<-next.done
}

// TestServeReadsWhileNobodyReadsResults checks that ingress never waits for egress: a host that
// only writes can write everything.
func TestServeReadsWhileNobodyReadsResults(t *testing.T) {
	card, err := NewCard(served)
	require.NoError(t, err)
	h := connect(t, card)
	h.setUp(1)
	for range 1000 {
		h.send(contribution(1, 0, 0, 0, 0, 0, 0), contribution(1, 1, 0, 0, 0, 0, 0))
	}
	h.conn.Close()
	require.NoError(t, <-h.done)
}

// brokenLine is a connection whose reads fail.
type brokenLine struct{ err error }

func (b brokenLine) Read([]byte) (int, error)    { return 0, b.err }
func (b brokenLine) Write(p []byte) (int, error) { return len(p), nil }
func (b brokenLine) Close() error                { return nil }

func TestServeReturnsWhyTheLinkEnded(t *testing.T) {
	card, err := NewCard(served)
	require.NoError(t, err)
	unplugged := errors.New("unplugged")
	assert.ErrorIs(t, card.Serve(brokenLine{unplugged}), unplugged)
	assert.NoError(t, card.Serve(brokenLine{io.EOF}))
}

func TestServeNeedsAStreamShell(t *testing.T) {
	cfg := served
	cfg.Shell, cfg.Link = wire.ShellNone, 0
	card, err := NewCard(cfg)
	require.NoError(t, err)
	assert.Error(t, card.Serve(brokenLine{io.EOF}))
}

func TestDeadlinesPassWhileNobodySends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card, err := NewCard(served)
		require.NoError(t, err)
		h := connect(t, card)
		h.write(wire.RegJobDeadline, deadlinePartial|clockRate/100) // 10 ms
		h.setUp(1)
		began := time.Now()
		h.send(contribution(1, 1, 0, 1, 2, 3, 4))
		header, payload := h.receive(wire.KindResult, 16)
		assert.InDelta(t, 10*time.Millisecond, time.Since(began), float64(servedTick))
		assert.EqualValues(t, 0b10, header.Mask)
		assert.Equal(t, words(1, 2, 3, 4), payload)
		require.NoError(t, h.conn.Close())
		require.NoError(t, <-h.done)
	})
}
