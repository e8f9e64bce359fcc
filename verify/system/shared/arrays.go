package main

import (
	"fmt"
	"hash/crc32"
	"math"

	"tributary/driver"
	"tributary/driver/wire"
	"tributary/verify/reference/oracle"
)

// The members' arrays. Element r of each chunk, for every rank r, is the stamp of rank r's array, and
// all other ranks contribute 0 to it. A sum therefore names the arrays that are in it. The other
// elements are numbers of all magnitudes and both signs, which the stamp determines.

const (
	chunkElements = 16
	mostWorkers   = 4 // of a job
	mostCalls     = 256
)

// stamp names an array: the life of a member, and the call. Its float32 is exact.
type stamp uint32

func newStamp(life, call int) stamp { return stamp(1 + life*mostCalls + call) }

// array is one member's input of one call.
type array struct {
	seed    uint64
	workers int
}

// element returns element i of the array of a rank.
func (a array) element(s stamp, rank, i int) float32 {
	switch slot := i % chunkElements; {
	case slot == rank:
		return float32(s)
	case slot < a.workers:
		return 0
	}
	bits := uint32(mix(a.seed^uint64(s)<<32, uint64(i)))
	if bits&0x7f800000 == 0x7f800000 {
		bits &^= 0x40000000 // excludes NaN and infinity
	}
	return math.Float32frombits(bits)
}

// fill returns the array of a rank.
func (a array) fill(s stamp, rank, n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = a.element(s, rank, i)
	}
	return all
}

// mix is the finalizer of SplitMix64 over two numbers (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014).
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// summed is what a call has returned.
type summed struct {
	Stamps  []stamp `json:"stamps"`  // of each rank's array in the sum; 0: in no chunk
	Sum     uint32  `json:"sum"`     // a checksum of all bits
	Ranks   uint32  `json:"ranks"`   // a checksum of the contributors of each chunk
	Chunks  int     `json:"chunks"`  // of the call
	Partial int     `json:"partial"` // chunks that lack a rank
}

// check compares a sum with the arrays that it names. partials is the library's own account of the
// contributors.
func (a array) check(sum []float32, partials []driver.Partial) (summed, error) {
	got := summed{Stamps: make([]stamp, a.workers)}
	right := oracle.New(wire.SumTree, wire.FP32, wire.FP32, false)
	said, err := a.contributors(len(sum), partials)
	if err != nil {
		return got, err
	}
	for from := 0; from < len(sum); from += chunkElements {
		to := min(from+chunkElements, len(sum))
		stamps, err := a.stamps(sum[from:to], said[got.Chunks])
		if err != nil {
			return got, fmt.Errorf("chunk %d: %w", got.Chunks, err)
		}
		for rank, s := range stamps {
			if s != 0 && got.Stamps[rank] != 0 && got.Stamps[rank] != s {
				return got, fmt.Errorf("chunk %d has array %d of rank %d, an earlier one array %d", got.Chunks, s, rank, got.Stamps[rank])
			}
			got.Stamps[rank] = max(got.Stamps[rank], s)
		}
		if err := a.checkChunk(right, sum, stamps, from, to); err != nil {
			return got, fmt.Errorf("chunk %d: %w", got.Chunks, err)
		}
		if said[got.Chunks] != 1<<a.workers-1 {
			got.Partial++
		}
		got.Ranks = crc32.Update(got.Ranks, crc32.IEEETable, []byte{byte(said[got.Chunks])})
		got.Chunks++
	}
	for _, x := range sum {
		bits := math.Float32bits(x)
		got.Sum = crc32.Update(got.Sum, crc32.IEEETable, []byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)})
	}
	return got, nil
}

// contributors returns the ranks in each chunk, as the library reports them.
func (a array) contributors(n int, partials []driver.Partial) ([]uint64, error) {
	said := make([]uint64, (n+chunkElements-1)/chunkElements)
	for i := range said {
		said[i] = 1<<a.workers - 1
	}
	for _, p := range partials {
		if p.From%chunkElements != 0 || p.From >= p.To || p.To > n || p.To%chunkElements != 0 && p.To != n {
			return nil, fmt.Errorf("partial sums of elements %d to %d of %d", p.From, p.To, n)
		}
		var ranks uint64
		for _, rank := range p.Ranks {
			ranks |= 1 << rank
		}
		for i := p.From / chunkElements; i*chunkElements < p.To; i++ {
			said[i] = ranks
		}
	}
	return said, nil
}

// stamps reads the stamps in a chunk, which must be those of the reported ranks.
func (a array) stamps(chunk []float32, said uint64) ([]stamp, error) {
	stamps := make([]stamp, a.workers)
	for rank := range stamps {
		x := chunk[rank]
		stamps[rank] = stamp(x)
		if float32(stamps[rank]) != x {
			return nil, fmt.Errorf("stamp %g of rank %d", x, rank)
		}
		if in := said>>rank&1 != 0; in != (x != 0) {
			return nil, fmt.Errorf("ranks %b are reported, and the stamp of rank %d is %g", said, rank, x)
		}
	}
	return stamps, nil
}

// checkChunk compares every bit of a chunk with the sum of the arrays that the stamps name.
func (a array) checkChunk(right *oracle.Oracle, sum []float32, stamps []stamp, from, to int) error {
	parts := make([]uint32, cardPorts)
	for i := from; i < to; i++ {
		for port := range parts {
			parts[port] = identity
			if port < a.workers && stamps[port] != 0 {
				parts[port] = math.Float32bits(a.element(stamps[port], port, i))
			}
		}
		if want, _ := right.Sum(parts); math.Float32bits(sum[i]) != want {
			return fmt.Errorf("element %d is %08x, the sum of arrays %d is %08x", i, math.Float32bits(sum[i]), stamps, want)
		}
	}
	return nil
}

// identity is -0, the contribution of a port that contributes nothing.
const identity = 1 << 31
