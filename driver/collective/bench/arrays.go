package bench

// The arrays, and the results that they have.
//
// Contributions are small integers. Every order of additions sums them exactly, so a result with any
// other bits is wrong, in every format and by every algorithm. The sums here are those of 64-bit
// integers. All-gather and broadcast move bits, so their arrays are random bits.

import (
	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// bits returns 64 random bits for element i of a member.
//
// Source: the finalizer of SplitMix64, G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
// generators" (OOPSLA 2014).
func (b *run) bits(rank, i int) uint64 {
	x := b.Seed<<48 ^ uint64(b.Elements)<<24 ^ uint64(rank)
	for range 2 {
		x += uint64(i) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// reduces reports whether the operation adds.
func (b *run) reduces() bool {
	return b.Operation == collective.AllReduceOp || b.Operation == collective.ReduceScatterOp
}

// contribution returns element i of a member as an integer. All int32 are used, because they wrap
// around. In other formats, the magnitudes of all members' elements i add up to 2^(fraction bits + 1)
// at most, and partial sums to no more: all integers to there have an encoding.
func (b *run) contribution(rank, i int) int64 {
	random := b.bits(rank, i)
	info, _ := b.Format.Info()
	if info.Exp == 0 {
		return int64(int32(random))
	}
	members := b.group.Size()
	total := 1 << (info.Frac + 1)
	most := int64(total / members)
	if most > 0 {
		return int64(random%uint64(2*most+1)) - most
	}
	if (rank+i)%members >= total { // too many members: some have 0
		return 0
	}
	return 1 - 2*int64(random&1)
}

// encode returns the encoding of an integer.
func encode(f wire.Format, x int64) uint32 {
	if f == wire.Int32 {
		return uint32(x)
	}
	return element.Round(f, float64(x))
}

// fill writes this member's array.
func (b *run) fill(src []byte) {
	group := &b.group
	first := 0
	if b.Operation == collective.AllGatherOp {
		first, _ = collective.Piece(group.Rank, group.Size(), b.Elements)
	}
	for i := range len(src) / element.Size(b.Format) {
		if b.reduces() {
			element.Put(b.Format, src, i, encode(b.Format, b.contribution(group.Rank, first+i)))
		} else {
			element.Put(b.Format, src, i, uint32(b.bits(0, first+i)))
		}
	}
}

// want returns this member's result.
func (b *run) want() []byte {
	group := &b.group
	first := 0
	if b.Operation == collective.ReduceScatterOp {
		first, _ = collective.Piece(group.Rank, group.Size(), b.Elements)
	}
	want := make([]byte, len(b.dst))
	for i := range len(want) / element.Size(b.Format) {
		bits := uint32(b.bits(0, first+i))
		if b.reduces() {
			var sum int64
			for rank := range group.Size() {
				sum += b.contribution(rank, first+i)
			}
			bits = encode(b.Format, sum)
		}
		element.Put(b.Format, want, i, bits)
	}
	return want
}
