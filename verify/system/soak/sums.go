package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tributary/driver"
)

// someArrays returns one array for each rank, of numbers of all magnitudes and both signs.
func someArrays(rng *rand.Rand, ranks, n int) [][]float32 {
	all := make([][]float32, ranks)
	for r := range all {
		all[r] = make([]float32, n)
		for i := range all[r] {
			bits := rng.Uint32()
			if bits&0x7f800000 == 0x7f800000 {
				bits &^= 0x40000000 // excludes NaN and infinity
			}
			all[r][i] = math.Float32frombits(bits)
		}
	}
	return all
}

// treeSum implements section 7.3 of the specification with the processor's additions. It sums n
// elements of each port's part, which is nil if the port contributes nothing.
func treeSum(parts [][]float32, n int) []float32 {
	sum := make([]float32, n)
	level := make([]float32, len(parts))
	for i := range sum {
		for p := range parts {
			if level[p] = identity; parts[p] != nil {
				level[p] = parts[p][i]
			}
		}
		left := len(level)
		for ; left > 1; left = (left + 1) / 2 {
			for k := range left / 2 {
				level[k] = level[2*k] + level[2*k+1]
			}
			if left%2 == 1 {
				level[left/2] = level[left-1]
			}
		}
		if sum[i] = level[0]; sum[i] != sum[i] {
			sum[i] = math.Float32frombits(0x7fc00000)
		}
	}
	return sum
}

// identity is the contribution of a port that contributes nothing.
var identity = float32(math.Copysign(0, -1))

// sums holds the members' sums of one reduction, chunk by chunk.
type sums struct {
	cfg    driver.JobConfig
	inputs [][]float32
	vid    uint32 // of the first chunk
	held   []held

	partial     int64
	contributed uint64
}

// held is the sum of a chunk, as the members hold it.
type held struct {
	ranks uint64 // in the sum; 0: no member holds it
	sum   []float32
}

func newSums(cfg driver.JobConfig, inputs [][]float32, vid uint32) *sums {
	return &sums{cfg: cfg, inputs: inputs, vid: vid, held: make([]held, (len(inputs[0])+cfg.Chunk-1)/cfg.Chunk)}
}

func (s *sums) chunks() int { return len(s.held) }

// span returns the elements of a chunk of an array.
func (s *sums) span(array []float32, chunk int) []float32 {
	return array[chunk*s.cfg.Chunk : min((chunk+1)*s.cfg.Chunk, len(array))]
}

// take checks a rank's arrays. Each chunk must be the sum of the ranks that its report names, or
// of all members without a report. All members must agree on these ranks. After a failed call,
// chunks may still hold the input.
func (s *sums) take(rank int, o *outcome) error {
	said, err := s.contributors(o.partials)
	if err != nil {
		return err
	}
	for chunk, ranks := range said {
		got := s.span(o.buffer, chunk)
		if o.err != nil && same(got, s.span(s.inputs[rank], chunk)) < 0 {
			continue
		}
		h := &s.held[chunk]
		if h.ranks == 0 {
			*h = s.sumOf(chunk, ranks)
		}
		if i := same(got, h.sum); h.ranks != ranks || i >= 0 {
			return &wrongSum{chunk, max(i, 0), ranks, h.ranks, got[max(i, 0)], h.sum[max(i, 0)]}
		}
	}
	return nil
}

// contributors returns the ranks in each chunk, from a call's report of partial chunks.
func (s *sums) contributors(partials []driver.Partial) ([]uint64, error) {
	all := uint64(1)<<s.cfg.Workers - 1
	said := slices.Repeat([]uint64{all}, s.chunks())
	for _, p := range partials {
		var ranks uint64
		for _, r := range p.Ranks {
			ranks |= 1 << r
		}
		first, n := p.From/s.cfg.Chunk, len(s.inputs[0])
		if !s.cfg.Partial || ranks == 0 || ranks&^all != 0 || ranks == all || p.From%s.cfg.Chunk != 0 || p.VID != s.vid+uint32(first) ||
			p.From >= p.To || p.To > n || p.To%s.cfg.Chunk != 0 && p.To != n {
			return nil, fmt.Errorf("invalid run of partial sums in %d elements from chunk %d on: %+v", n, s.vid, p)
		}
		for chunk := first; chunk*s.cfg.Chunk < p.To; chunk++ {
			said[chunk] = ranks
		}
	}
	return said, nil
}

// sumOf returns the sum of a chunk over some ranks, and counts it.
func (s *sums) sumOf(chunk int, ranks uint64) held {
	parts := make([][]float32, ports)
	for rank, port := range s.cfg.Ports {
		if ranks>>rank&1 != 0 {
			parts[port] = s.span(s.inputs[rank], chunk)
		}
	}
	if ranks != 1<<s.cfg.Workers-1 {
		s.partial++
	}
	s.contributed |= ranks
	return held{ranks, treeSum(parts, len(s.span(s.inputs[0], chunk)))}
}

// same returns the first element in which any bit of two arrays differs, or -1.
func same(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

// wrongSum is the error of a chunk with a wrong sum.
type wrongSum struct {
	chunk, element int
	ranks, others  uint64 // said to be in it, by this member and by those before it
	got, want      float32
}

func (w *wrongSum) Error() string {
	if w.ranks != w.others {
		return fmt.Sprintf("chunk %d: one rank received a sum of ranks %b, another rank a sum of ranks %b", w.chunk, w.ranks, w.others)
	}
	return fmt.Sprintf("chunk %d: element %d is %08x, the sum of ranks %b is %08x", w.chunk, w.element, math.Float32bits(w.got), w.ranks, math.Float32bits(w.want))
}
