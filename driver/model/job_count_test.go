// A job's counts of NaNs, infinities and overflow (section 7.7 of the specification).

package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// counted are the six registers of a job.
type counted struct {
	in, out, overflow                uint64
	firstIn, firstOut, firstOverflow uint64
}

func (d *harness) counted() counted {
	return counted{
		d.read(wire.RegJobNonfiniteIn), d.read(wire.RegJobNonfiniteOut), d.read(wire.RegJobOverflow),
		d.read(wire.RegJobFirstIn), d.read(wire.RegJobFirstOut), d.read(wire.RegJobFirstOverflow),
	}
}

// elements sends data with the given encodings.
func (d *harness) elements(rank uint8, vid uint32, x ...uint32) {
	p := d.chunk(rank, vid, 0)
	p.Payload = words(x...)
	d.in(p)
}

const (
	inf     = 0x7f800000
	maximum = 0x7f7fffff
)

func TestAJobCounts(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b1010, chunk: 4, window: 4, first: math.MaxUint32})
	assert.Zero(t, d.counted())

	// The first committed exception counts as the first, even with the later VID.
	d.elements(1, 1, f(1), inf, maximum, f(1))
	assert.Equal(t, counted{in: 1, firstIn: 1<<63 | 1<<32 | 1}, d.counted(), "at commit, not when the sum is done")
	d.elements(0, math.MaxUint32, quietNaN, 0xff800000, quietNaN, f(1))
	assert.Equal(t, counted{in: 2, firstIn: 1<<63 | 1<<32 | 1}, d.counted(), "contributions, not elements")
	d.elements(0, 1, f(1), f(1), maximum, maximum)
	d.elements(0, 1, quietNaN, quietNaN, quietNaN, quietNaN) // a duplicate
	d.card.Reduce()
	want := counted{in: 2, out: 2, overflow: 1, firstIn: 1<<63 | 1<<32 | 1, firstOut: 1<<63 | 1, firstOverflow: 1<<63 | 1}
	assert.Equal(t, want, d.counted(), "inf + 1 and an overflow; 1 + maximum is none")

	d.elements(1, math.MaxUint32, f(1), inf, maximum, f(1))
	d.card.Reduce()
	want.in, want.out = 3, 5
	assert.Equal(t, want, d.counted(), "NaN + 1, -inf + inf and NaN + maximum are no overflows")
	assert.Equal(t, 3, d.count("nonfinite_in"))
	assert.Equal(t, 5, d.count("nonfinite_out"))
	assert.Equal(t, 1, d.count("overflow"))

	assert.Equal(t, wire.CodeDone, d.commit(1, math.MaxUint32), "the same job again")
	d.abort(1)
	d.card.LinkDown()
	assert.Equal(t, want, d.counted(), "the end clears nothing")
	d.setUp(2, setup{ports: 1, chunk: 4, window: 4})
	assert.Zero(t, d.counted())
	assert.Equal(t, 3, d.count("nonfinite_in"), "the card's counters go on")
}

func TestAnOverflowOnTheWayCounts(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b1111, chunk: 1, window: 1})
	for rank, x := range []uint32{maximum, maximum, maximum | minus0, maximum | minus0} {
		d.elements(uint8(rank), 0, x)
	}
	d.card.Reduce() // inf + -inf
	assert.Equal(t, counted{out: 1, overflow: 1, firstOut: 1 << 63, firstOverflow: 1 << 63}, d.counted())
}

func TestIntegersOverflowButAreNeverNonfinite(t *testing.T) {
	for saturate, sum := range map[bool]uint32{false: 1 << 31, true: math.MaxInt32} {
		card, err := NewCard(Config{Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Format: wire.Int32, Sum: wire.SumExact, Saturate: saturate})
		require.NoError(t, err)
		d := &harness{T: t, card: card}
		d.setUp(1, setup{ports: 0b11, chunk: 2, window: 2})
		for rank := range uint8(2) {
			p := d.chunk(rank, 1, 0)
			p.Format, p.Payload = wire.Int32, words(1<<30, quietNaN>>1)
			d.in(p)
		}
		var out Packet
		_, ok := card.Next(AllPorts, &out)
		require.True(t, ok)
		assert.Equal(t, words(sum, quietNaN&^1), out.Payload, "saturate %v", saturate)
		assert.Equal(t, wire.Int32, out.Format)
		assert.Zero(t, out.Flags&wire.FlagNonfinite)
		assert.Equal(t, counted{overflow: 1, firstOverflow: 1<<63 | 1}, d.counted())
	}
}

func TestResultsOfAWiderFormat(t *testing.T) {
	card, err := NewCard(Config{Lanes: 1, Ports: 2, Chunk: 4, Window: 1, Format: wire.FP8E4M3, Result: wire.FP16})
	require.NoError(t, err)
	d := &harness{T: t, card: card}
	assert.EqualValues(t, 0x0304, d.read(wire.RegFormat), "fp16 of fp8e4m3")
	d.setUp(1, setup{ports: 0b11, chunk: 3, window: 1})
	for rank := range uint8(2) {
		p := d.chunk(rank, 0, 0)
		p.Format, p.Payload = wire.FP8E4M3, []byte{0x7e, 0x01, 0xff} // 448, 2^-9, NaN
		d.in(p)
	}
	var out Packet
	_, ok := card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.Equal(t, []byte{0x00, 0x63, 0x00, 0x1c, 0x00, 0x7e}, out.Payload, "896, 2^-8, NaN")
	assert.Equal(t, wire.FP16, out.Format)
	assert.Equal(t, counted{in: 2, out: 1, firstIn: 1 << 63, firstOut: 1 << 63}, d.counted())
}

func TestATallyStops(t *testing.T) {
	var y tally
	y.add(0, 7)
	assert.Zero(t, y)
	y.add(math.MaxUint32-1, 8)
	y.add(5, 9)
	assert.Equal(t, tally{math.MaxUint32, 1<<63 | 8}, y)
	y.add(1, 10)
	assert.Equal(t, tally{math.MaxUint32, 1<<63 | 8}, y)
}
