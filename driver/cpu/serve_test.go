// The card behind a connection.

package cpu

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// served is the geometry of the cards here.
var served = Config{Lanes: 2, Ports: 2, Chunk: 4, Window: 2, Format: wire.Int32, Shell: wire.ShellStream, Link: 32}

// host is the other side of a served card.
type host struct {
	t    *testing.T
	conn io.ReadWriteCloser
	scan *frame.Scanner
	done chan error // what Serve returned
}

// connect serves card to a new host.
func connect(t *testing.T, card *Card) *host {
	near, far := pipe.New(1 << 16)
	h := &host{t, near, frame.NewScanner(frame.FromCard, 0), make(chan error, 1)}
	go func() { h.done <- card.Serve(far) }()
	return h
}

// leave closes the connection, and returns the result of Serve.
func (h *host) leave() error {
	h.conn.Close()
	return <-h.done
}

func (h *host) send(header frame.Header, payload ...byte) {
	h.t.Helper()
	_, err := h.conn.Write(frame.Append(nil, &header, payload))
	require.NoError(h.t, err)
}

// receive returns the next frame.
func (h *host) receive() (f frame.Frame) {
	h.t.Helper()
	for !h.scan.Next(&f) {
		_, err := h.scan.Fill(h.conn)
		require.NoError(h.t, err)
	}
	return f
}

// access accesses a register and returns the reply.
func (h *host) access(kind wire.Kind, addr uint32, value uint64) frame.Header {
	h.t.Helper()
	h.send(frame.Header{Kind: kind, VID: addr, Length: 77, Mask: value})
	f := h.receive()
	require.Equal(h.t, frame.Header{Version: 2, Kind: wire.KindReply, Code: f.Code, VID: addr, Length: 77, Mask: f.Mask}, f.Header)
	return f.Header
}

// setUp owns the card and sets up job 0 with both ports and a window of one.
func (h *host) setUp(epoch uint16, deadline uint64) {
	h.t.Helper()
	for _, w := range []struct {
		addr  uint32
		value uint64
	}{
		{wire.RegOwner, 7}, {wire.RegJobToken, 7}, {wire.RegJobPorts, 3}, {wire.RegJobChunk, 2}, {wire.RegJobWindow, 1},
		{wire.RegJobDeadline, deadline}, {wire.RegJobCommit, uint64(epoch) << 32},
	} {
		require.Equal(h.t, wire.CodeDone, h.access(wire.KindRegWrite, w.addr, w.value).Code)
	}
}

// data sends a contribution of two integers, both x.
func (h *host) data(epoch uint16, rank uint8, vid uint32, x byte) {
	h.t.Helper()
	h.send(frame.Header{Kind: wire.KindData, Format: wire.Int32, Epoch: epoch, Rank: rank, VID: vid, Length: 2}, x, 0, 0, 0, x, 0, 0, 0)
}

func newServed(t *testing.T) *Card {
	t.Helper()
	card, err := New(served)
	require.NoError(t, err)
	return card
}

func TestServeOneHostAfterAnother(t *testing.T) {
	card := newServed(t)
	for epoch := uint16(1); epoch <= 3; epoch++ {
		h := connect(t, card)
		h.setUp(epoch, 0)
		for vid := range uint32(5) {
			h.data(epoch, 0, vid, 3)
			h.data(epoch, 1, vid, byte(vid))
			f := h.receive()
			assert.Equal(t, frame.Header{
				Version: 2, Kind: wire.KindResult, Format: wire.Int32, Epoch: epoch, VID: vid, Length: 2, Mask: 3, Receivers: 3,
			}, f.Header)
			assert.Equal(t, []byte{3 + byte(vid), 0, 0, 0, 3 + byte(vid), 0, 0, 0}, f.Payload)
		}
		half := frame.Append(nil, &frame.Header{Kind: wire.KindData, Format: wire.Int32, Length: 2}, make([]byte, 8))
		_, err := h.conn.Write(half[:len(half)-1])
		require.NoError(t, err)
		require.NoError(t, h.leave())
	}
	h := connect(t, card)
	assert.Zero(t, h.access(wire.KindRegRead, wire.RegOwner, 0).Mask, "OWNER is cleared")
	assert.EqualValues(t, 3<<16|2, h.access(wire.KindRegRead, wire.RegJobState, 0).Mask, "no job is set up, the epoch is kept")
	assert.EqualValues(t, 3, h.access(wire.KindRegRead, wire.CounterAddr(int(countLinkDown)), 0).Mask)
	assert.EqualValues(t, 0, h.access(wire.KindRegRead, wire.CounterAddr(int(countHunted)), 0).Mask, "half frames are dropped")
	require.NoError(t, h.leave())
}

// TestServeRefusesVersion1 checks that the link counts and drops what a host of version 1 sends, and
// takes packets of version 2 after it.
func TestServeRefusesVersion1(t *testing.T) {
	h := connect(t, newServed(t))
	h.send(frame.Header{Version: 1, Kind: wire.KindAsk, Epoch: 1, Rank: 1, VID: 5})
	h.send(frame.Header{Version: 1, Kind: wire.KindRegWrite, VID: wire.RegOwner, Mask: 7})
	assert.Zero(t, h.access(wire.KindRegRead, wire.RegOwner, 0).Mask)
	badVersion := slices.IndexFunc(wire.Counters, func(c wire.CounterInfo) bool { return c.Name == "bad_version" })
	assert.EqualValues(t, 2, h.access(wire.KindRegRead, wire.CounterAddr(badVersion), 0).Mask)
	assert.NoError(t, h.leave())
}

func TestServeRefusesASecondHost(t *testing.T) {
	card := newServed(t)
	first := connect(t, card)
	first.access(wire.KindRegWrite, wire.RegOwner, 1)
	second := connect(t, card)
	_, err := second.conn.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
	assert.ErrorIs(t, <-second.done, ErrBusy)
	assert.EqualValues(t, 1, first.access(wire.KindRegWrite, wire.RegOwner, 2).Mask, "the first host goes on")
	assert.NoError(t, first.leave())
}

// line is a connection that fails.
type line struct{ read, write error }

func (l line) Read([]byte) (int, error)    { return 0, l.read }
func (l line) Write(p []byte) (int, error) { return 0, l.write }
func (l line) Close() error                { return nil }

func TestServeReturnsTheReadsError(t *testing.T) {
	card := newServed(t)
	unplugged := errors.New("unplugged")
	assert.ErrorIs(t, card.Serve(line{read: unplugged}), unplugged)
	assert.NoError(t, card.Serve(line{read: io.EOF}))
}

// deaf is a connection whose writes fail.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestServeEndsWhenAWriteFails(t *testing.T) {
	card := newServed(t)
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- card.Serve(deaf{far}) }()
	_, err := near.Write(frame.Append(nil, &frame.Header{Kind: wire.KindRegRead}, nil))
	require.NoError(t, err)
	assert.NoError(t, <-done, "the host is gone")
	near.Close()
}

func TestServeNeedsAByteStream(t *testing.T) {
	cfg := served
	cfg.Shell, cfg.Link = wire.ShellNone, 0
	card, err := New(cfg)
	require.NoError(t, err)
	assert.Error(t, card.Serve(line{read: io.EOF}))
}

// TestServeReadsWhileNobodyReads checks that a host which reads nothing can write packets without
// end, and as many register accesses as replies may wait. They go on when it reads.
func TestServeReadsWhileNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := newServed(t)
		near, far := net.Pipe() // without a buffer
		done := make(chan error, 1)
		go func() { done <- card.Serve(far) }()
		write := func(kind wire.Kind, n int) {
			for range n {
				_, err := near.Write(frame.Append(nil, &frame.Header{Kind: kind}, nil))
				assert.NoError(t, err)
			}
		}
		write(wire.KindAsk, 1)
		time.Sleep(time.Second) // its refusal keeps the writer waiting; no timer runs
		write(wire.KindRegRead, mostReplies)
		write(wire.KindAsk, 1000)
		write(wire.KindRegRead, 1) // taken, and waits for room
		written := false
		go func() {
			write(wire.KindAsk, 1)
			written = true
		}()
		synctest.Wait()
		assert.False(t, written, "a reply has no room")
		scan, f := frame.NewScanner(frame.FromCard, 0), frame.Frame{}
		for replies := 0; replies < mostReplies+1; {
			_, err := scan.Fill(near)
			require.NoError(t, err)
			for scan.Next(&f) {
				if f.Kind == wire.KindReply {
					replies++
				}
			}
		}
		synctest.Wait()
		assert.True(t, written)
		near.Close()
		assert.NoError(t, <-done)
	})
}

func TestDeadlinesPassWhileNobodySends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, newServed(t))
		h.setUp(1, partialSums|1_000_000) // at 100 cycles a microsecond
		began := time.Now()
		h.data(1, 1, 0, 5)
		f := h.receive()
		assert.InDelta(t, 10*time.Millisecond, time.Since(began), float64(tick))
		assert.EqualValues(t, 0b10, f.Mask)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.InEpsilon(t, 100*uint64(time.Since(began).Microseconds()), h.access(wire.KindRegRead, wire.RegCycles, 0).Mask, 0.01)
		require.NoError(t, h.leave())
	})
}
