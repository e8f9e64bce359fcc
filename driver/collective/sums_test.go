package collective_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

var hosts = []collective.Algorithm{collective.Ring, collective.Tree, collective.PS}

// lengths are those that a group of a size has trouble with.
func lengths(size int) []int {
	all := []int{1, size, 2*size + 1, 37}
	if size > 1 {
		all = append(all, size-1)
	}
	return all
}

// randomArrays returns an array of a format for each member. Half of the numbers of fp32 have exponents
// so different that the order of additions shows.
func randomArrays(seed uint64, f wire.Format, size, length int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 1))
	arrays := make([][]byte, size)
	for m := range arrays {
		for range length {
			switch f {
			case wire.FP32:
				x := float32(r.NormFloat64() * math.Exp2(float64(r.IntN(30))))
				arrays[m] = binary.LittleEndian.AppendUint32(arrays[m], math.Float32bits(x))
			case wire.Int32:
				arrays[m] = binary.LittleEndian.AppendUint32(arrays[m], r.Uint32())
			default:
				one := make([]byte, 4)
				binary.LittleEndian.PutUint32(one, r.Uint32())
				arrays[m] = append(arrays[m], one[:element.Size(f)]...)
			}
		}
	}
	return arrays
}

// order is a function of the element's index: the written sum of the members' elements at i.
type order func(i int) uint32

// plus adds two elements, written again from SPEC.md, section 3.
func plus(f wire.Format, a, b uint32) uint32 {
	switch f {
	case wire.Int32:
		return a + b
	case wire.FP32:
		s := math.Float32frombits(a) + math.Float32frombits(b)
		if math.IsNaN(float64(s)) {
			return 0x7fc00000
		}
		return math.Float32bits(s)
	}
	return nearest(f, a, b)
}

// pieceOf returns the piece of element i: the definition of a piece, by search.
func pieceOf(i, size, length int) int {
	for p := range size {
		if p*length/size <= i && i < (p+1)*length/size {
			return p
		}
	}
	panic("no piece has the element")
}

// ringSum is the order of SPEC.md, section 4: the sum of piece p begins at rank p, or the next one.
func ringSum(f wire.Format, x [][]byte, length, begin int) order {
	size := len(x)
	return func(i int) uint32 {
		first := pieceOf(i, size, length) + begin
		s := element.At(f, x[first%size], i)
		for k := 1; k < size; k++ {
			s = plus(f, s, element.At(f, x[(first+k)%size], i))
		}
		return s
	}
}

// psSum is the order of section 6.
func psSum(f wire.Format, x [][]byte) order {
	return func(i int) uint32 {
		s := element.At(f, x[0], i)
		for _, y := range x[1:] {
			s = plus(f, s, element.At(f, y, i))
		}
		return s
	}
}

// treeSum is the order of section 5, in rounds: with mask 1, 2, 4, … a rank with that bit sends its sum
// to the rank without it.
func treeSum(f wire.Format, x [][]byte) order {
	return func(i int) uint32 {
		var sums []uint32
		for _, y := range x {
			sums = append(sums, element.At(f, y, i))
		}
		for mask := 1; mask < len(sums); mask *= 2 {
			for r := 0; r+mask < len(sums); r += 2 * mask {
				sums[r] = plus(f, sums[r], sums[r+mask])
			}
		}
		return sums[0]
	}
}

// written returns the sums of an algorithm's all-reduce and of its reduce-scatter, in its order.
func written(a collective.Algorithm, f wire.Format, x [][]byte) (all, scattered []byte) {
	length := len(x[0]) / element.Size(f)
	elements := func(o order) []byte {
		out := make([]byte, len(x[0]))
		for i := range length {
			element.Put(f, out, i, o(i))
		}
		return out
	}
	switch a {
	case collective.Tree:
		all = elements(treeSum(f, x))
	case collective.PS:
		all = elements(psSum(f, x))
	default:
		return elements(ringSum(f, x, length, 0)), elements(ringSum(f, x, length, 1))
	}
	return all, all
}

// everything makes each call once, and compares every bit with the written order.
func everything(ctx context.Context, c collective.Collective, f wire.Format, x [][]byte, all, scattered []byte) error {
	g, size := c.Group(), element.Size(f)
	own, length := x[g.Rank], len(x[0])/size
	from, to := collective.Piece(g.Rank, g.Size(), length)

	sum := make([]byte, len(own))
	if err := c.AllReduce(ctx, f, sum, own); err != nil {
		return err
	}
	if !bytes.Equal(sum, all) {
		return fmt.Errorf("all-reduce is %x, not %x", sum[:min(64, len(sum))], all[:min(64, len(sum))])
	}
	inPlace := bytes.Clone(own)
	if err := c.AllReduce(ctx, f, inPlace, inPlace); err != nil {
		return err
	}
	if !bytes.Equal(sum, inPlace) {
		return fmt.Errorf("all-reduce in place differs")
	}
	piece := make([]byte, (to-from)*size)
	if err := c.ReduceScatter(ctx, f, piece, own); err != nil {
		return err
	}
	if want := scattered[from*size : to*size]; !bytes.Equal(piece, want) {
		return fmt.Errorf("reduce-scatter is %x, not %x", piece, want)
	}
	gathered, want := make([]byte, len(own)), []byte{}
	for r := range g.Members {
		from, to := collective.Piece(r, g.Size(), length)
		want = append(want, x[r][from*size:to*size]...)
	}
	if err := c.AllGather(ctx, f, gathered, own[from*size:to*size]); err != nil {
		return err
	}
	if !bytes.Equal(gathered, want) {
		return fmt.Errorf("all-gather is %x, not %x", gathered, want)
	}
	clear(gathered)
	copy(gathered[from*size:], own[from*size:to*size])
	if err := c.AllGather(ctx, f, gathered, gathered[from*size:to*size]); err != nil {
		return err
	}
	if !bytes.Equal(gathered, want) {
		return fmt.Errorf("all-gather in place differs")
	}
	for root := range g.Members {
		buf := bytes.Clone(own)
		if err := c.Broadcast(ctx, f, buf, root); err != nil {
			return err
		}
		if !bytes.Equal(buf, x[root]) {
			return fmt.Errorf("broadcast from rank %d differs", root)
		}
	}
	return nil
}

// TestEveryOperation: every operation of every algorithm has the bits of the written order, for every
// size to 9, and for lengths shorter than the group, int32 and fp32.
func TestEveryOperation(t *testing.T) {
	noLeak(t)
	for _, a := range hosts {
		for size := 1; size <= 9; size++ {
			t.Run(fmt.Sprint(a, size), func(t *testing.T) {
				allWell(t, newGroup(t, size), by(a), func(ctx context.Context, c collective.Collective) error {
					for _, f := range []wire.Format{wire.Int32, wire.FP32} {
						for _, length := range lengths(size) {
							x := randomArrays(uint64(length), f, size, length)
							all, scattered := written(a, f, x)
							err := everything(ctx, c, f, x, all, scattered)
							if err != nil {
								return fmt.Errorf("%s, %d elements: %w", f, length, err)
							}
						}
					}
					return nil
				})
			})
		}
	}
}

// plainSum adds arrays of int32.
func plainSum(x [][]byte) []byte {
	want := make([]byte, len(x[0]))
	for at := 0; at < len(want); at += 4 {
		var s uint32
		for _, y := range x {
			s += binary.LittleEndian.Uint32(y[at:])
		}
		binary.LittleEndian.PutUint32(want[at:], s)
	}
	return want
}

// TestInt32IsThePlainSum: int32 does not depend on the order.
func TestInt32IsThePlainSum(t *testing.T) {
	x := randomArrays(3, wire.Int32, 5, 1003)
	want := plainSum(x)
	for _, a := range hosts {
		allWell(t, newGroup(t, 5), by(a), func(ctx context.Context, c collective.Collective) error {
			got := make([]byte, len(want))
			if err := c.AllReduce(ctx, wire.Int32, got, x[c.Group().Rank]); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("%s differs from the plain sum", a)
			}
			return nil
		})
	}
}

// TestManyChunks: pieces of several chunks and a rest, over TCP.
func TestManyChunks(t *testing.T) {
	noLeak(t)
	const size, length = 3, 3*(2*collective.MaxPayload/4) + 1001
	for _, f := range []wire.Format{wire.FP32, wire.Int32} {
		x := randomArrays(9, f, size, length)
		for _, a := range hosts {
			g, network := tcpGroup(t, size)
			all, scattered := written(a, f, x)
			allWell(t, g, by(a, network), func(ctx context.Context, c collective.Collective) error {
				return everything(ctx, c, f, x, all, scattered)
			})
		}
	}
}

// TestEveryFormat: random bits, so that NaNs, infinities and subnormals occur.
func TestEveryFormat(t *testing.T) {
	const size, length = 4, 203
	for _, info := range wire.Formats {
		f := info.Format
		x := randomArrays(5, f, size, length)
		if f == wire.FP32 {
			x = randomArrays(5, wire.Int32, size, length)
		}
		for _, a := range hosts {
			all, scattered := written(a, f, x)
			allWell(t, newGroup(t, size), by(a), func(ctx context.Context, c collective.Collective) error {
				return everything(ctx, c, f, x, all, scattered)
			})
		}
	}
}

// TestOfOne: a group of one returns its contribution, with the format's NaN.
func TestOfOne(t *testing.T) {
	for _, a := range hosts {
		g := collective.Group{Members: []collective.Member{{ID: "alone"}}}
		allWell(t, g, by(a), func(ctx context.Context, c collective.Collective) error {
			in := binary.LittleEndian.AppendUint32(nil, 0xffc00001) // a NaN
			in = binary.LittleEndian.AppendUint32(in, 0xff800000)   // -infinity
			in = binary.LittleEndian.AppendUint32(in, 0x7f800001)
			out := make([]byte, len(in))
			for _, reduce := range []func() error{
				func() error { return c.AllReduce(ctx, wire.FP32, out, in) },
				func() error { return c.ReduceScatter(ctx, wire.FP32, out, in) },
			} {
				clear(out)
				if err := reduce(); err != nil {
					return err
				}
				if hex := fmt.Sprintf("%x", out); hex != "0000c07f"+"000080ff"+"0000c07f" {
					return fmt.Errorf("the sum is %s", hex)
				}
			}
			return nil
		})
	}
}

// TestWithinTheBound: an fp32 sum of n numbers, in any order, is within (n-1)·2^-24·Σ|x| of the real
// sum, to first order.
func TestWithinTheBound(t *testing.T) {
	const size, length = 7, 500
	x := randomArrays(11, wire.FP32, size, length)
	for _, a := range hosts {
		allWell(t, newGroup(t, size), by(a), func(ctx context.Context, c collective.Collective) error {
			sum := make([]byte, 4*length)
			if err := c.AllReduce(ctx, wire.FP32, sum, x[c.Group().Rank]); err != nil {
				return err
			}
			for i := range length {
				var real, size1 float64
				for _, y := range x {
					v := element.Value(wire.FP32, element.At(wire.FP32, y, i))
					real, size1 = real+v, size1+math.Abs(v)
				}
				if off := math.Abs(element.Value(wire.FP32, element.At(wire.FP32, sum, i)) - real); off > 1.01*(size-1)*size1*math.Exp2(-24) {
					return fmt.Errorf("element %d is off by %g", i, off)
				}
			}
			return nil
		})
	}
}

// TestSteps: the ring takes 2(G-1) steps, and moves 2(G-1)/G of the array each way.
func TestSteps(t *testing.T) {
	const size, length = 5, 1000
	x := randomArrays(2, wire.FP32, size, length)
	allWell(t, newGroup(t, size), by(collective.Ring), func(ctx context.Context, c collective.Collective) error {
		if err := c.AllReduce(ctx, wire.FP32, make([]byte, 4*length), x[c.Group().Rank]); err != nil {
			return err
		}
		if s := c.Stats(); s.Calls != 1 || s.Steps != 2*(size-1) || s.Sent != 2*(size-1)*4*length/size || s.Received != s.Sent {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// TestPiece: pieces are those of the definition, cover the array, and do not overflow.
func TestPiece(t *testing.T) {
	for pieces := 1; pieces < 20; pieces++ {
		for length := range 50 {
			for p := range pieces {
				from, to := collective.Piece(p, pieces, length)
				require.Equal(t, p*length/pieces, from)
				require.Equal(t, (p+1)*length/pieces, to)
			}
		}
	}
	_, to := collective.Piece(9999, 10000, math.MaxInt)
	require.Equal(t, math.MaxInt, to)
}

// TestFamily: each rank but the root has one parent, which has it as a child.
func TestFamily(t *testing.T) {
	parent, children := collective.Family(4, 7, 0)
	require.Equal(t, 0, parent)
	require.Equal(t, []int{5, 6}, children)
	for size := 1; size < 20; size++ {
		for root := range size {
			found := 0
			for rank := range size {
				_, children := collective.Family(rank, size, root)
				for _, child := range children {
					parent, _ := collective.Family(child, size, root)
					require.Equal(t, rank, parent)
					found++
				}
			}
			require.Equal(t, size-1, found)
		}
	}
}
