package selftest

import "tributary/driver/wire"

// Answers taken from SPEC.md, section 7.

// singles are inputs of each format that pass alone: input and sum, when both have the same
// format. A wider sum has the same number, or its format's NaN.
var singles = map[wire.Format][][2]uint32{
	wire.FP32: {
		{0x00000000, 0x00000000}, {0x80000000, 0x80000000}, // zeros keep their sign
		{0x00000001, 0x00000001}, {0x807fffff, 0x807fffff}, // subnormals
		{0x00800000, 0x00800000}, {0xff7fffff, 0xff7fffff}, // smallest and largest normals
		{0x7f800000, 0x7f800000}, {0xff800000, 0xff800000}, // infinities
		{0x7fc00000, 0x7fc00000}, {0xffc00000, 0x7fc00000}, // all NaNs become the format's only NaN
		{0x7f800001, 0x7fc00000}, {0xffffffff, 0x7fc00000},
	},
	wire.BF16: {
		{0x0000, 0x0000}, {0x8000, 0x8000}, {0x0001, 0x0001}, {0x807f, 0x807f}, {0x0080, 0x0080}, {0xff7f, 0xff7f},
		{0x7f80, 0x7f80}, {0xff80, 0xff80}, {0x7fc0, 0x7fc0}, {0xffc0, 0x7fc0}, {0x7f81, 0x7fc0}, {0xffff, 0x7fc0},
	},
	wire.FP16: {
		{0x0000, 0x0000}, {0x8000, 0x8000}, {0x0001, 0x0001}, {0x83ff, 0x83ff}, {0x0400, 0x0400}, {0xfbff, 0xfbff},
		{0x7c00, 0x7c00}, {0xfc00, 0xfc00}, {0x7e00, 0x7e00}, {0xfe00, 0x7e00}, {0x7c01, 0x7e00}, {0xffff, 0x7e00},
	},
	wire.FP8E4M3: { // no infinity; that encoding is a number
		{0x00, 0x00}, {0x80, 0x80}, {0x01, 0x01}, {0x87, 0x87}, {0x08, 0x08}, {0xfe, 0xfe},
		{0x78, 0x78}, {0xf8, 0xf8}, {0x7e, 0x7e}, {0x79, 0x79}, {0x7f, 0x7f}, {0xff, 0x7f},
	},
	wire.FP8E5M2: {
		{0x00, 0x00}, {0x80, 0x80}, {0x01, 0x01}, {0x83, 0x83}, {0x04, 0x04}, {0xfb, 0xfb},
		{0x7c, 0x7c}, {0xfc, 0xfc}, {0x7e, 0x7e}, {0xfe, 0x7e}, {0x7d, 0x7e}, {0xff, 0x7e},
	},
	wire.Int32: {
		{0, 0}, {1, 1}, {0xffffffff, 0xffffffff}, {0x7fffffff, 0x7fffffff}, {0x80000000, 0x80000000}, {0x55555555, 0x55555555},
		{0x7fc00000, 0x7fc00000}, {0xffc12345, 0xffc12345}, {0x80000001, 0x80000001},
	},
}

// formats are the formats of a card's inputs and sums.
type formats struct{ in, out wire.Format }

// edges are sums of two inputs at the limits of the arithmetic: a, b, a+b rounded to nearest
// even. fusedEdges replace those that the sum fused cuts off.
var edges = map[formats][][3]uint32{
	{wire.FP32, wire.FP32}: {
		{0x3f800000, 0x3f800000, 0x40000000}, // 1 + 1
		{0x3f800000, 0x33800000, 0x3f800000}, // half a place: a tie, down to even
		{0x3f800001, 0x33800000, 0x3f800002}, // half a place: a tie, up to even
		{0x3f800000, 0x33800001, 0x3f800001}, // a little more than half
		{0x3f800001, 0x337fffff, 0x3f800001}, // a little less than half
		{0x3f800000, 0xb3000000, 0x3f800000}, // a tie below a power of two
		{0x3f800000, 0xb3000001, 0x3f7fffff}, // just past it
		{0x3fffffff, 0x33800000, 0x40000000}, // rounding carries into the exponent
		{0x3f800000, 0xbf7fffff, 0x33800000}, // cancellation down to the last bit
		{0x3f800000, 0xbf800000, 0x00000000}, // exact zero is +0
		{0x00000000, 0x80000000, 0x00000000}, // +0 + -0 is +0
		{0x80000000, 0x80000000, 0x80000000}, // unless both are -0
		{0x80000001, 0x80000000, 0x80000001}, // a subnormal and a zero
		{0x00000001, 0x00000001, 0x00000002}, // subnormals are kept
		{0x007fffff, 0x00000001, 0x00800000}, // subnormal to normal
		{0x00800000, 0x80000001, 0x007fffff}, // normal to subnormal
		{0x00800001, 0x80800000, 0x00000001}, // cancellation into a subnormal
		{0x4b800000, 0x3f800000, 0x4b800000}, // 2^24 + 1
		{0x4b800001, 0x3f800000, 0x4b800002}, // 2^24 + 2 + 1
		{0x7e800000, 0x00000001, 0x7e800000}, // far apart
		{0x3f800000, 0x80000001, 0x3f800000}, // far apart, subtracted
		{0x7f7fffff, 0x7f7fffff, 0x7f800000}, // overflow
		{0x7f7fffff, 0x73000000, 0x7f800000}, // overflow by rounding
		{0x7f7fffff, 0x72ffffff, 0x7f7fffff}, // and just not
		{0xff7fffff, 0xff7fffff, 0xff800000}, // negative overflow
		{0x7f800000, 0xff7fffff, 0x7f800000}, // infinity stays
		{0x7f800000, 0xff800000, 0x7fc00000}, // infinity - infinity
		{0x7fa00001, 0x3f800000, 0x7fc00000}, // a signalling NaN
		{0x7f800000, 0xffc12345, 0x7fc00000}, // a NaN with a payload
	},
	{wire.BF16, wire.BF16}: {
		{0x3f80, 0x3f80, 0x4000}, {0x3f80, 0x3b80, 0x3f80}, {0x3f81, 0x3b80, 0x3f82}, {0x3f80, 0x3b81, 0x3f81},
		{0x3f81, 0x3b7f, 0x3f81}, {0x3f80, 0xbb00, 0x3f80}, {0x3f80, 0xbb01, 0x3f7f}, {0x3fff, 0x3b80, 0x4000},
		{0x3f80, 0xbf7f, 0x3b80}, {0x3f80, 0xbf80, 0x0000}, {0x0000, 0x8000, 0x0000}, {0x8000, 0x8000, 0x8000},
		{0x8001, 0x8000, 0x8001}, {0x0001, 0x0001, 0x0002}, {0x007f, 0x0001, 0x0080}, {0x0080, 0x8001, 0x007f},
		{0x0081, 0x8080, 0x0001}, {0x7e80, 0x0001, 0x7e80}, {0x3f80, 0x8001, 0x3f80}, {0x7f7f, 0x7f7f, 0x7f80},
		{0x7f7f, 0x7b00, 0x7f80}, {0x7f7f, 0x7aff, 0x7f7f}, {0xff7f, 0xff7f, 0xff80}, {0x7f80, 0xff7f, 0x7f80},
		{0x7f80, 0xff80, 0x7fc0}, {0x7fa1, 0x3f80, 0x7fc0}, {0x7f80, 0xffc1, 0x7fc0},
	},
	{wire.FP16, wire.FP16}: {
		{0x3c00, 0x3c00, 0x4000}, {0x3c00, 0x1000, 0x3c00}, {0x3c01, 0x1000, 0x3c02}, {0x3c00, 0x1001, 0x3c01},
		{0x3c01, 0x0fff, 0x3c01}, {0x3c00, 0x8c00, 0x3c00}, {0x3c00, 0x8c01, 0x3bff}, {0x3fff, 0x1000, 0x4000},
		{0x3c00, 0xbbff, 0x1000}, {0x3c00, 0xbc00, 0x0000}, {0x0000, 0x8000, 0x0000}, {0x8000, 0x8000, 0x8000},
		{0x8001, 0x8000, 0x8001}, {0x0001, 0x0001, 0x0002}, {0x03ff, 0x0001, 0x0400}, {0x0400, 0x8001, 0x03ff},
		{0x0401, 0x8400, 0x0001}, {0x3c00, 0x0001, 0x3c00}, {0x7bff, 0x7bff, 0x7c00}, {0x7bff, 0x4c00, 0x7c00},
		{0x7bff, 0x4bff, 0x7bff}, {0xfbff, 0xfbff, 0xfc00}, {0x7c00, 0xfbff, 0x7c00}, {0x7c00, 0xfc00, 0x7e00},
		{0x7d01, 0x3c00, 0x7e00}, {0x7c00, 0xfe01, 0x7e00},
	},
	{wire.FP8E4M3, wire.FP8E4M3}: {
		{0x38, 0x38, 0x40}, {0x38, 0x18, 0x38}, {0x39, 0x18, 0x3a}, {0x38, 0x19, 0x39}, {0x39, 0x17, 0x39},
		{0x38, 0x90, 0x38}, {0x38, 0x91, 0x37}, {0x3f, 0x18, 0x40}, {0x38, 0xb7, 0x18}, {0x38, 0xb8, 0x00},
		{0x00, 0x80, 0x00}, {0x80, 0x80, 0x80}, {0x81, 0x80, 0x81}, {0x01, 0x01, 0x02}, {0x07, 0x01, 0x08},
		{0x08, 0x81, 0x07}, {0x09, 0x88, 0x01}, {0x38, 0x01, 0x38},
		{0x78, 0x70, 0x7c}, // 256 + 128: beyond the infinity of similar formats
		{0x7e, 0x58, 0x7e}, // 448 + 16: a tie with the missing 480; down to even
		{0x7e, 0x59, 0x7f}, // 448 + 18 overflows to NaN
		{0x78, 0x78, 0x7f}, {0xfe, 0xfe, 0x7f}, {0x7f, 0x38, 0x7f}, {0xff, 0xfe, 0x7f},
	},
	{wire.FP8E5M2, wire.FP8E5M2}: {
		{0x3c, 0x3c, 0x40}, {0x3c, 0x30, 0x3c}, {0x3d, 0x30, 0x3e}, {0x3c, 0x31, 0x3d}, {0x3f, 0x2f, 0x3f},
		{0x3c, 0xac, 0x3c}, {0x3c, 0xad, 0x3b}, {0x3f, 0x30, 0x40}, {0x3c, 0xbb, 0x30}, {0x3c, 0xbc, 0x00},
		{0x00, 0x80, 0x00}, {0x80, 0x80, 0x80}, {0x81, 0x80, 0x81}, {0x01, 0x01, 0x02}, {0x03, 0x01, 0x04},
		{0x04, 0x81, 0x03}, {0x05, 0x84, 0x01}, {0x3c, 0x01, 0x3c}, {0x7b, 0x7b, 0x7c}, {0x7b, 0x6c, 0x7c},
		{0x7b, 0x6b, 0x7b}, {0xfb, 0xfb, 0xfc}, {0x7c, 0xfb, 0x7c}, {0x7c, 0xfc, 0x7e}, {0x7d, 0x3c, 0x7e},
		{0x7c, 0xff, 0x7e},
	},
	{wire.BF16, wire.FP32}: {
		{0x3f80, 0x3b80, 0x3f808000}, {0x3f81, 0x3380, 0x3f810000}, {0x3f80, 0x2b80, 0x3f800000}, {0x7f7f, 0x7b00, 0x7f7f8000},
		{0x7f7f, 0x7f7f, 0x7f800000}, {0x0001, 0x0001, 0x00020000}, {0x3f80, 0xbf80, 0x00000000}, {0x8000, 0x8000, 0x80000000},
		{0x7f80, 0xff80, 0x7fc00000}, {0xffc1, 0x3f80, 0x7fc00000}, {0xff80, 0x3f80, 0xff800000},
	},
	{wire.FP16, wire.FP32}: {
		{0x7bff, 0x7bff, 0x47ffe000}, {0x3c00, 0x0001, 0x3f800000}, {0x3c01, 0x0001, 0x3f802000}, {0x3c00, 0x1000, 0x3f801000},
		{0x0001, 0x0001, 0x34000000}, {0x3c00, 0xbc00, 0x00000000}, {0x8000, 0x8000, 0x80000000}, {0x7c00, 0xfc00, 0x7fc00000},
		{0x7d01, 0x3c00, 0x7fc00000}, {0x7c00, 0xfbff, 0x7f800000},
	},
	{wire.FP8E4M3, wire.FP32}: {
		{0x7e, 0x7e, 0x44600000}, {0x38, 0x01, 0x3f804000}, {0x01, 0x01, 0x3b800000}, {0x38, 0xb8, 0x00000000},
		{0x80, 0x80, 0x80000000}, {0x7f, 0x38, 0x7fc00000}, {0xff, 0x80, 0x7fc00000},
	},
	{wire.FP8E4M3, wire.BF16}: {
		{0x7e, 0x7e, 0x4460}, {0x38, 0x01, 0x3f80}, {0x38, 0x02, 0x3f80}, {0x38, 0x03, 0x3f81}, {0x01, 0x01, 0x3b80},
		{0x38, 0xb8, 0x0000}, {0x80, 0x80, 0x8000}, {0x7f, 0x38, 0x7fc0},
	},
	{wire.FP8E4M3, wire.FP16}: {
		{0x7e, 0x7e, 0x6300}, {0x38, 0x01, 0x3c02}, {0x01, 0x01, 0x1c00}, {0x38, 0xb8, 0x0000}, {0x80, 0x80, 0x8000},
		{0x7f, 0x38, 0x7e00},
	},
	{wire.FP8E5M2, wire.FP32}: {
		{0x7b, 0x7b, 0x47e00000}, {0x3c, 0x01, 0x3f800080}, {0x01, 0x01, 0x38000000}, {0x3c, 0xbc, 0x00000000},
		{0x80, 0x80, 0x80000000}, {0x7c, 0xfc, 0x7fc00000}, {0x7d, 0x3c, 0x7fc00000}, {0x7c, 0xfb, 0x7f800000},
	},
	{wire.FP8E5M2, wire.BF16}: {
		{0x7b, 0x7b, 0x47e0}, {0x3c, 0x01, 0x3f80}, {0x3c, 0x30, 0x3f90}, {0x01, 0x01, 0x3800}, {0x80, 0x80, 0x8000},
		{0x7c, 0xfc, 0x7fc0}, {0x7c, 0xfb, 0x7f80},
	},
	{wire.FP8E5M2, wire.FP16}: {
		{0x7b, 0x7b, 0x7c00}, {0x3c, 0x01, 0x3c00}, {0x3c, 0x30, 0x3c80}, {0x01, 0x01, 0x0200}, {0x80, 0x80, 0x8000},
		{0x7c, 0xfc, 0x7e00}, {0x7c, 0xfb, 0x7c00},
	},
	{wire.Int32, wire.Int32}: {
		{1, 1, 2}, {0xffffffff, 1, 0}, {0x7fffffff, 0x80000000, 0xffffffff}, {0x55555555, 0x2aaaaaaa, 0x7fffffff},
		{0x7fffffff, 1, 0x80000000}, {0x80000000, 0xffffffff, 0x7fffffff}, // wrapping
		{0x7fffffff, 0x7fffffff, 0xfffffffe}, {0x80000000, 0x80000000, 0},
	},
}

// fusedEdges replace the edges with the same a and b. fused cuts off what is more than four
// bits below the larger input's last place.
var fusedEdges = map[formats][][3]uint32{
	{wire.FP32, wire.FP32}:       {{0x3f800000, 0x33800001, 0x3f800000}, {0x3f800000, 0xb3000001, 0x3f800000}},
	{wire.BF16, wire.BF16}:       {{0x3f80, 0x3b81, 0x3f80}, {0x3f80, 0xbb01, 0x3f80}},
	{wire.FP16, wire.FP16}:       {{0x3c00, 0x1001, 0x3c00}, {0x3c00, 0x8c01, 0x3c00}},
	{wire.FP8E4M3, wire.FP8E4M3}: {{0x38, 0x91, 0x38}},
}

// saturatedEdges replace the edges with the same a and b on a card that saturates.
var saturatedEdges = [][3]uint32{
	{0x7fffffff, 1, 0x7fffffff}, {0x80000000, 0xffffffff, 0x80000000}, {0x7fffffff, 0x7fffffff, 0x7fffffff}, {0x80000000, 0x80000000, 0x80000000},
}

// addedEdges returns the edges of a card that adds.
func addedEdges(a *arithmetic) [][3]uint32 {
	key := formats{a.format.Format, a.result.Format}
	if a.saturate {
		return replaced(edges[key], saturatedEdges)
	}
	return edges[key]
}

// fusedEdgesOf returns the edges of a card whose sum is fused.
func fusedEdgesOf(a *arithmetic) [][3]uint32 {
	return replaced(addedEdges(a), fusedEdges[formats{a.format.Format, a.result.Format}])
}

// replaced returns rows. A row of others replaces the row with the same a and b.
func replaced(rows, others [][3]uint32) [][3]uint32 {
	rows = append([][3]uint32(nil), rows...)
	for i, row := range rows {
		for _, other := range others {
			if row[0] == other[0] && row[1] == other[1] {
				rows[i] = other
			}
		}
	}
	return rows
}

// addedTriple is the sum of three inputs for each sum that adds. The tree has two answers: for
// an even first port, where the first two inputs are a pair, and for an odd one.
type addedTriple struct {
	inputs       [3]uint32
	even, odd    uint32 // tree
	fused, exact uint32
}

// addedTriples returns the triples of a card that adds. answer picks the answers of its sum.
func addedTriples(answer func(addedTriple) triple) func(*arithmetic) []triple {
	return func(a *arithmetic) (rows []triple) {
		added := a.floatTriples
		if a.integers() {
			added = a.integerTriples
		}
		for _, t := range added() {
			rows = append(rows, answer(t))
		}
		return rows
	}
}

// floatTriples are the triples of floating-point formats.
func (a *arithmetic) floatTriples() []addedTriple {
	minus, nan := uint32(1)<<(a.format.Bits-1), a.format.NaN
	top := largest(a.format)
	same := func(x, y, z, sum uint32) addedTriple { return addedTriple{[3]uint32{x, y, z}, sum, sum, sum, sum} }
	rows := []addedTriple{
		same(minus, minus, minus, 1<<(a.result.Bits-1)), // zeros
		same(minus, minus, 0, 0),
		same(nan, top, minus, a.result.NaN),
	}
	if inf := infinity(a.format); a.format.Infinity {
		rows = append(rows, same(inf, top, inf|minus, a.result.NaN), same(inf, top|minus, 0, infinity(a.result)))
	}
	// In the tree, (m + m) - m overflows unless the sums have larger numbers; m + (m - m) does
	// not. Sums that add all inputs at once do not overflow.
	overflown := addedTriple{[3]uint32{top, top, top | minus}, a.widen(top), a.widen(top), a.widen(top), a.widen(top)}
	if a.overflows() {
		overflown.even = infinity(a.result)
	}
	return append(append(rows, overflown), a.tieTriples()...)
}

// tieTriples are sums of 2^e, half and less. Half is half of the last place of 2^e in the sums.
// less is 1/16 of half, which fused cuts off next to 2^e.
func (a *arithmetic) tieTriples() []addedTriple {
	bias := 1<<(a.format.Exp-1) - 1
	e := min(a.result.Frac+1, bias)
	half := e - a.result.Frac - 1
	big, ok := a.power(e, false)
	negative, _ := a.power(e, true)
	less, fine := a.power(half-4, false)
	if !ok || !fine {
		return nil // the format's range is too small
	}
	one, _ := a.power(half, false)
	down, up := a.widen(big), a.widen(big)+1
	// half + less rounds to half if the sums have fewer than four bits of fraction.
	broken := up
	if a.result.Frac < 4 {
		broken = down
	}
	return []addedTriple{
		{[3]uint32{big, one, one}, down, up, up, up},                         // 2^e + half is a tie, 2^e + 2 half is not
		{[3]uint32{big, one, less}, down, broken, down, up},                  // a tie that less breaks
		{[3]uint32{big, negative, less}, a.widen(less), 0, 0, a.widen(less)}, // less is all that is left
	}
}

// integerTriples have one answer each. Wrapping or saturation follows from the integer sum of
// all inputs, so neither order nor sum matters.
func (a *arithmetic) integerTriples() []addedTriple {
	var rows []addedTriple
	for _, r := range []struct{ x, y, z, wrapped, saturated uint32 }{
		{0x7fffffff, 1, 0xffffffff, 0x7fffffff, 0x7fffffff},
		{0x7fffffff, 1, 0x80000000, 0, 0},
		{0x7fffffff, 0x7fffffff, 2, 0, 0x7fffffff},
		{0x80000000, 0x80000000, 0x7fffffff, 0x7fffffff, 0x80000000},
	} {
		sum := r.wrapped
		if a.saturate {
			sum = r.saturated
		}
		rows = append(rows, addedTriple{[3]uint32{r.x, r.y, r.z}, sum, sum, sum, sum})
	}
	return rows
}

// addedQuadruple is the sum of four inputs, the first at an even port. The tree then adds the
// first two and the last two first.
type addedQuadruple struct {
	inputs             [4]uint32
	tree, fused, exact uint32
}

// addedQuadruples returns the quadruples of a card that adds. answer picks the answer of its
// sum.
func addedQuadruples(answer func(addedQuadruple) uint32) func(*arithmetic) []quadruple {
	return func(a *arithmetic) (rows []quadruple) {
		for _, q := range a.quadruples() {
			rows = append(rows, quadruple{q.inputs, answer(q)})
		}
		return rows
	}
}

// quadruples are ties that inputs far below decide, whose sign is known only after all of them
// are added. A sum with a window gets them wrong.
func (a *arithmetic) quadruples() []addedQuadruple {
	if a.integers() {
		const most, least, sum = 0x7fffffff, 0x80000000, 0xfffffffe // within the range, whatever the partial sums are
		return []addedQuadruple{{[4]uint32{most, most, least, least}, sum, sum, sum}}
	}
	minus, zero := uint32(1)<<(a.format.Bits-1), uint32(1)<<(a.result.Bits-1)
	rows := []addedQuadruple{{[4]uint32{minus, minus, minus, minus}, zero, zero, zero}}
	bias := 1<<(a.format.Exp-1) - 1
	e := min(a.result.Frac+1, bias)
	half := e - a.result.Frac - 1
	far := max(half-60, 1-bias-a.format.Frac+1) // the format has half of 2^far
	big, ok := a.power(e, false)
	one, fine := a.power(half, false)
	if !ok || !fine || far > half-4 {
		return rows // the format's range is too small
	}
	more, _ := a.power(far, false)
	less, _ := a.power(far-1, false)
	down, up, rest := a.widen(big), a.widen(big)+1, a.widen(less)
	return append(rows,
		addedQuadruple{[4]uint32{big, one, more, less | minus}, down, down, up},
		addedQuadruple{[4]uint32{big, one, more | minus, less}, down, down, down},
		addedQuadruple{[4]uint32{big, big | minus, more, less | minus}, rest, 0, rest},
		addedQuadruple{[4]uint32{big | minus, one | minus, more | minus, less}, down | zero, down | zero, up | zero},
	)
}
