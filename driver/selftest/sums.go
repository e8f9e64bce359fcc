package selftest

import (
	"context"
	"math"

	"tributary/driver"
)

// reduce sums inputs in a job of its own on the given ports. chunk and window
// are the card's when 0.
func reduce(ctx context.Context, card *driver.Card, ports []int, chunk, window int, inputs [][]float32) ([]float32, error) {
	job, err := card.Configure(ctx, driver.JobConfig{Ports: ports, Chunk: chunk, Window: window})
	if err != nil {
		return nil, err
	}
	sum := make([]float32, len(inputs[0]))
	if err := job.Reduce(ctx, sum, inputs); err != nil {
		return nil, err
	}
	return sum, job.Close(ctx)
}

// compare finds the first element whose bits are not the known ones.
func compare(card *driver.Card, ports []int, have []float32, want func(i int) uint32) error {
	for i, x := range have {
		if got := math.Float32bits(x); got != want(i) {
			return wrong("ports %v, element %d (lane %d): 0x%08x, must be 0x%08x", ports, i, i%card.Info().Lanes, got, want(i))
		}
	}
	return nil
}

// smallChunk is a chunk of two beats, or of one where the card takes no more.
func smallChunk(card *driver.Card) int { return min(2*card.Info().Lanes, card.Info().Chunk) }

// pattern returns finite, normal numbers that differ from one element to the
// next: element i of a port cannot be taken for another.
func pattern(i, port int) uint32 {
	return 0x00800000 + uint32(i*64+port)*2654435761%0x7e800000
}

// askLanes sends a pattern through each port alone, often enough to use every
// slot twice.
func askLanes(ctx context.Context, card *driver.Card) error {
	chunk := smallChunk(card)
	n := (4*card.Info().Window + 1) * chunk
	for port := range card.Info().Ports {
		in := make([]float32, n)
		for i := range in {
			in[i] = math.Float32frombits(pattern(i, port))
		}
		ports := []int{port}
		sum, err := reduce(ctx, card, ports, chunk, 0, [][]float32{in})
		if err != nil {
			return err
		}
		if err := compare(card, ports, sum, func(i int) uint32 { return pattern(i, port) }); err != nil {
			return err
		}
	}
	return nil
}

// allPorts returns 0, 1, ... up to the card's last port.
func allPorts(card *driver.Card) []int {
	ports := make([]int, card.Info().Ports)
	for p := range ports {
		ports[p] = p
	}
	return ports
}

// weight is a whole number below 2^10 that depends on the element.
func weight(i int) int { return 1 + i*37%1021 }

// wholeInputs returns an array for each port: element i of port p is
// (p+1)*weight(i). Sums of 64 ports stay below 2^24, so no order rounds.
func wholeInputs(ports, n int) [][]float32 {
	inputs := make([][]float32, ports)
	for p := range inputs {
		inputs[p] = make([]float32, n)
		for i := range inputs[p] {
			inputs[p][i] = float32((p + 1) * weight(i))
		}
	}
	return inputs
}

// wholeSum is element i of the sum of wholeInputs.
func wholeSum(ports, i int) uint32 {
	return math.Float32bits(float32(ports * (ports + 1) / 2 * weight(i)))
}

// askWhole sums n whole numbers from all ports.
func askWhole(ctx context.Context, card *driver.Card, n, chunk, window int) error {
	ports := allPorts(card)
	sum, err := reduce(ctx, card, ports, chunk, window, wholeInputs(len(ports), n))
	if err != nil {
		return err
	}
	return compare(card, ports, sum, func(i int) uint32 { return wholeSum(len(ports), i) })
}

// askPorts sums whole numbers from all ports, in the card's largest chunks.
func askPorts(ctx context.Context, card *driver.Card) error {
	return askWhole(ctx, card, 2*card.Info().Chunk, 0, 0)
}

// askSizes sums arrays whose lengths lie around the borders.
func askSizes(ctx context.Context, card *driver.Card) error {
	i := card.Info()
	chunk := smallChunk(card)
	for _, n := range []int{1, i.Lanes, i.Lanes + 1, chunk - 1, chunk, chunk + 1, i.Window * chunk, 2*i.Window*chunk + 1} {
		if n < 1 {
			continue
		}
		for _, window := range []int{1, i.Window} {
			if err := askWhole(ctx, card, n, chunk, window); err != nil {
				return wrong("%d elements, window %d: %w", n, window, err)
			}
		}
	}
	return nil
}

// singles are numbers that pass alone: in, out.
var singles = [][2]uint32{
	{0x00000000, 0x00000000}, {0x80000000, 0x80000000}, // zeros keep their sign
	{0x00000001, 0x00000001}, {0x807fffff, 0x807fffff}, // subnormals
	{0x00800000, 0x00800000}, {0xff7fffff, 0xff7fffff}, // smallest and largest normals
	{0x7f800000, 0x7f800000}, {0xff800000, 0xff800000}, // infinities
	{0x7fc00000, 0x7fc00000}, {0xffc00000, 0x7fc00000}, // NaNs become the one NaN
	{0x7f800001, 0x7fc00000}, {0xffffffff, 0x7fc00000},
}

// askSingle sends the singles through every lane of every port alone.
func askSingle(ctx context.Context, card *driver.Card) error {
	lanes := card.Info().Lanes
	in := make([]float32, len(singles)*lanes)
	for i := range in {
		in[i] = math.Float32frombits(singles[i/lanes][0])
	}
	for _, port := range allPorts(card) {
		ports := []int{port}
		sum, err := reduce(ctx, card, ports, smallChunk(card), 0, [][]float32{in})
		if err != nil {
			return err
		}
		if err := compare(card, ports, sum, func(i int) uint32 { return singles[i/lanes][1] }); err != nil {
			return err
		}
	}
	return nil
}

// edges are sums at the edges of IEEE 754 binary32 addition, rounded to nearest
// even: a, b, a+b.
var edges = [][3]uint32{
	{0x3f800000, 0x3f800000, 0x40000000}, // 1 + 1
	{0x3f800000, 0x33800000, 0x3f800000}, // half an ulp: a tie, down to even
	{0x3f800001, 0x33800000, 0x3f800002}, // half an ulp: a tie, up to even
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
}

// askEdges sums the edges both ways round in every lane, between every two
// neighbouring ports.
func askEdges(ctx context.Context, card *driver.Card) error {
	lanes := card.Info().Lanes
	n := 2 * len(edges) * lanes
	a, b := make([]float32, n), make([]float32, n)
	for i := range a {
		row := edges[i/lanes%len(edges)]
		x, y := math.Float32frombits(row[0]), math.Float32frombits(row[1])
		if i >= n/2 {
			x, y = y, x
		}
		a[i], b[i] = x, y
	}
	for port := 1; port < card.Info().Ports; port++ {
		ports := []int{port - 1, port}
		sum, err := reduce(ctx, card, ports, smallChunk(card), 0, [][]float32{a, b})
		if err != nil {
			return err
		}
		if err := compare(card, ports, sum, func(i int) uint32 { return edges[i/lanes%len(edges)][2] }); err != nil {
			return err
		}
	}
	return nil
}

// askOrder sums 2^24, 1 and 1 from three neighbouring ports. Whichever two are
// neighbours in the tree are added first: (2^24 + 1) + 1 is 2^24, for either one
// is lost, and 2^24 + (1 + 1) is 2^24 + 2.
func askOrder(ctx context.Context, card *driver.Card) error {
	const big, more = 0x4b800000, 0x4b800001 // 2^24, 2^24 + 2
	lanes := card.Info().Lanes
	inputs := [][]float32{make([]float32, lanes), make([]float32, lanes), make([]float32, lanes)}
	for i := range lanes {
		inputs[0][i], inputs[1][i], inputs[2][i] = math.Float32frombits(big), 1, 1
	}
	for port := 0; port+2 < card.Info().Ports; port++ {
		ports := []int{port, port + 1, port + 2}
		want := uint32(big)
		if port%2 == 1 { // the second and the third are a pair
			want = more
		}
		sum, err := reduce(ctx, card, ports, 0, 0, inputs)
		if err != nil {
			return err
		}
		if err := compare(card, ports, sum, func(int) uint32 { return want }); err != nil {
			return err
		}
	}
	return nil
}
