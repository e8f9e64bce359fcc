package cpu

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// stream is a card's byte stream under full load: a job of fp32, whose members send chunk after
// chunk.
type stream struct {
	card   *Card
	link   *Link
	chunks [][]byte // the frames of all members, for each chunk of a group
	out    []byte
}

const (
	streamElements = 1008
	streamGroup    = 64 // chunks
	streamWindow   = 8
)

// newStream returns a stream of so many members.
func newStream(t testing.TB, members int) *stream {
	t.Helper()
	card, err := New(Config{Lanes: 16, Ports: members, Chunk: streamElements, Window: streamWindow, Shell: wire.ShellStream, Link: 32})
	require.NoError(t, err)
	link, err := NewLink(card)
	require.NoError(t, err)
	for _, w := range [][2]uint64{
		{uint64(wire.RegOwner), 7}, {uint64(wire.RegJobToken), 7}, {uint64(wire.RegJobPorts), 1<<members - 1},
		{uint64(wire.RegJobChunk), streamElements}, {uint64(wire.RegJobWindow), streamWindow}, {uint64(wire.RegJobDeadline), 1 << 30}, {uint64(wire.RegJobCommit), 1 << 32},
	} {
		code, _ := card.Register(true, uint32(w[0]), w[1])
		require.Equal(t, wire.CodeDone, code)
	}
	s := &stream{card: card, link: link, chunks: make([][]byte, streamGroup)}
	s.build(members)
	return s
}

// build builds the frames of a group.
func (s *stream) build(members int) {
	payload := make([]byte, 4*streamElements)
	for i := range streamElements {
		binary.LittleEndian.PutUint32(payload[4*i:], math.Float32bits(float32(i)/7))
	}
	for vid := range s.chunks {
		for rank := range members {
			h := frame.Header{Kind: wire.KindData, Format: wire.FP32, Epoch: 1, Rank: uint8(rank), VID: uint32(vid), Length: streamElements}
			s.chunks[vid] = frame.Append(s.chunks[vid], &h, payload)
		}
	}
}

// pass sends a chunk of the group, and reports whether its result came.
func (s *stream) pass(vid int) bool {
	s.out = s.link.Exchange(s.out[:0], s.chunks[vid])
	return len(s.out) > 0
}

// again begins the group again, in the same epoch: frames stay as they are.
func (s *stream) again() {
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	j := &s.card.engine.jobs[0]
	j.begin(1, j.setup, j.slots)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	s := newStream(t, 4)
	for vid := range 32 {
		require.True(t, s.pass(vid))
	}
	vid := 32
	require.Zero(t, testing.AllocsPerRun(30, func() {
		if !s.pass(vid) {
			t.Fatal("no result")
		}
		vid++
	}))
}

// BenchmarkLink measures payload throughput, bytes to bytes, on one core: 4 members.
func BenchmarkLink(b *testing.B) {
	s := newStream(b, 4)
	b.SetBytes(4 * 4 * streamElements)
	b.ReportAllocs()
	vid := 0
	for b.Loop() {
		if vid == streamGroup {
			s.again()
			vid = 0
		}
		if !s.pass(vid) {
			b.Fatal("no result")
		}
		vid++
	}
}

// BenchmarkServe measures the same through Serve, on all cores. The members' window is full.
func BenchmarkServe(b *testing.B) {
	s := newStream(b, 4)
	near, far := pipe.New(1 << 20)
	done := make(chan error, 1)
	go func() { done <- s.card.Serve(far) }()
	credits := make(chan struct{}, streamWindow) // chunks that may be sent
	go func() {
		scan := frame.NewScanner(frame.FromCard, 0)
		for f := (frame.Frame{}); ; {
			for scan.Next(&f) {
				credits <- struct{}{}
			}
			if _, err := scan.Fill(near); err != nil {
				return
			}
		}
	}()
	for range streamWindow {
		credits <- struct{}{}
	}
	b.SetBytes(4 * 4 * streamElements)
	b.ReportAllocs()
	vid := 0
	for b.Loop() {
		<-credits
		if vid == streamGroup {
			for range streamWindow - 1 {
				<-credits
			}
			s.again()
			for range streamWindow - 1 {
				credits <- struct{}{}
			}
			vid = 0
		}
		if _, err := near.Write(s.chunks[vid]); err != nil {
			b.Fatal(err)
		}
		vid++
	}
	near.Close()
	require.NoError(b, <-done)
}
