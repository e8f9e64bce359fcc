// The card in software as one more judge.

package vectors

import (
	"encoding/binary"
	"fmt"

	"tributary/driver/cpu/arithmetic"
)

const (
	softwareBlock = 4096 // vectors in a sum of the card in software
	portableTurn  = 8    // the path without kernels takes one block in so many
)

// software compares the card in software with vectors whose sums are known. It sums them in
// blocks, and puts vectors of one kind side by side: its kernels stop at every exception, and some
// kinds are full of them.
type software struct {
	lane              Lane
	kernels, portable *arithmetic.Arithmetic
	workspace         arithmetic.Workspace

	x      []uint32 // of all vectors in sequence
	want   []answer
	byKind map[string][]int // vectors
	blocks int

	rows     [][]byte
	order    []int // vectors, as in rows
	sums     []byte
	overflow []bool
}

func newSoftware(l Lane) (*software, error) {
	a, err := arithmetic.New(l.Sum, l.Format, l.Result, l.Saturate)
	if err != nil {
		return nil, err
	}
	return &software{lane: l, kernels: a, portable: a.Portable(), byKind: map[string][]int{}, rows: make([][]byte, l.Ports)}, nil
}

// add takes a vector and its sum.
func (s *software) add(kind string, x []uint32, want answer) error {
	s.byKind[kind] = append(s.byKind[kind], len(s.want))
	s.x, s.want = append(s.x, x...), append(s.want, want)
	if len(s.want) < softwareBlock {
		return nil
	}
	return s.finish()
}

// finish sums the vectors that are left.
func (s *software) finish() error {
	if len(s.want) == 0 {
		return nil
	}
	s.order = s.order[:0]
	for kind, vectors := range s.byKind {
		s.order = append(s.order, vectors...)
		s.byKind[kind] = vectors[:0]
	}
	in, _ := s.lane.Format.Info()
	for p := range s.rows {
		s.rows[p] = s.rows[p][:0]
		for _, v := range s.order {
			s.rows[p] = appendElement(s.rows[p], in.Bits, s.x[v*s.lane.Ports+p])
		}
	}
	err := s.check("software", s.kernels)
	if s.blocks%portableTurn == 0 && err == nil {
		err = s.check("software without kernels", s.portable)
	}
	s.blocks++
	s.x, s.want = s.x[:0], s.want[:0]
	return err
}

// check compares the sums of one path with those that are known.
func (s *software) check(path string, a *arithmetic.Arithmetic) error {
	out, _ := s.lane.Result.Info()
	size := out.Bits / 8
	s.sums = append(s.sums[:0], make([]byte, len(s.order)*size)...)
	s.overflow = append(s.overflow[:0], make([]bool, len(s.order))...)
	a.Sum(s.sums, s.rows, 1, &s.workspace, func(i int, e arithmetic.Exceptions) { s.overflow[i] = e.Overflow > 0 })
	for i, v := range s.order {
		var word [4]byte
		copy(word[:], s.sums[i*size:(i+1)*size])
		if got := (answer{binary.LittleEndian.Uint32(word[:]), s.overflow[i]}); got != s.want[v] {
			return fmt.Errorf("a vector:\n%s:%x\n%s %v, want %v", s.lane, s.x[v*s.lane.Ports:(v+1)*s.lane.Ports], path, got, s.want[v])
		}
	}
	return nil
}

// appendElement appends a little-endian element.
func appendElement(to []byte, bits int, x uint32) []byte {
	switch bits {
	case 8:
		return append(to, byte(x))
	case 16:
		return binary.LittleEndian.AppendUint16(to, uint16(x))
	}
	return binary.LittleEndian.AppendUint32(to, x)
}
