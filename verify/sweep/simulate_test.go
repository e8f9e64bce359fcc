package sweep

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/wire"
	"tributary/verify/model"
)

// simulated lists cards, and the jobs that each of them is given.
var simulated = []struct {
	shape
	jobs []driver.JobConfig
}{
	{shape{lanes: 1, workers: 1, chunk: 4, window: 1, link: 8}, []driver.JobConfig{{}}},
	{shape{lanes: 1, workers: 3, chunk: 7, window: 2, link: 64}, []driver.JobConfig{{}}},
	{shape{lanes: 2, workers: 2, chunk: 6, window: 1, link: 16}, []driver.JobConfig{{}, {Chunk: 2}}},
	{shape{lanes: 2, workers: 5, chunk: 10, window: 4, link: 32}, []driver.JobConfig{
		{},
		{Ports: []int{1, 2, 4}, Window: 1}, // a gap, and fewer members than ports
		{Ports: []int{3}, Chunk: 4},
	}},
	{shape{lanes: 4, workers: 4, chunk: 64, window: 8, link: 32}, []driver.JobConfig{
		{FirstVID: math.MaxUint32 - 5}, // VIDs wrap around
		{Workers: 2, Window: 2, Chunk: 12},
	}},
	{shape{lanes: 4, workers: 7, chunk: 20, window: 2, link: 64}, []driver.JobConfig{{}, {Ports: []int{0, 6}}}},
	{shape{lanes: 8, workers: 3, chunk: 24, window: 2, link: 16}, []driver.JobConfig{{}}},
	{shape{lanes: 8, workers: 8, chunk: 64, window: 4, link: 64}, []driver.JobConfig{{}, {Ports: []int{0, 2, 3, 5, 7}}}},
	{shape{lanes: 16, workers: 2, chunk: 16, window: 4, link: 8}, []driver.JobConfig{{}}},
	{shape{lanes: 16, workers: 16, chunk: 64, window: 1, link: 64}, []driver.JobConfig{{}, {Workers: 9}}},
	{shape{lanes: 32, workers: 5, chunk: 96, window: 2, link: 32}, []driver.JobConfig{{}}},
	{shape{lanes: 64, workers: 2, chunk: 192, window: 2, link: 64}, []driver.JobConfig{{}}},
}

// TestCardsSumLikeTheModel streams random data, in which a carry between lanes
// and a swapped port show, through virtual cards of a dozen shapes.
func TestCardsSumLikeTheModel(t *testing.T) {
	for _, c := range simulated {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			card, err := driver.Open(ctx, "sim:"+c.build(t))
			if err != nil {
				t.Fatal(err)
			}
			defer card.Close()
			if info := card.Info(); info.Lanes != c.lanes || info.Ports != c.workers || info.Chunk != c.chunk {
				t.Fatalf("the card says that it is %+v", info)
			}
			for _, cfg := range c.jobs {
				reduceAndCompare(t, ctx, card, cfg)
			}
		})
	}
}

// reduceAndCompare sets a job up, sums random arrays on it twice (the second
// time over slots that are used), and ends it.
func reduceAndCompare(t *testing.T, ctx context.Context, card *driver.Card, cfg driver.JobConfig) {
	t.Helper()
	job, err := card.Configure(ctx, cfg)
	if err != nil {
		t.Fatalf("%+v: %v", cfg, err)
	}
	cfg = job.Config()
	rng := rand.New(rand.NewPCG(uint64(card.Info().ConfigHash), uint64(len(cfg.Ports))))
	for _, elements := range []int{5*cfg.Window*cfg.Chunk + 1, 2*cfg.Chunk - 1, 1} {
		inputs := randomInputs(rng, len(cfg.Ports), elements)
		sum := make([]float32, elements)
		if err := job.Reduce(ctx, sum, inputs); err != nil {
			t.Fatalf("%+v, %d elements: %v", cfg, elements, err)
		}
		compare(t, card.Info().Ports, cfg.Ports, inputs, sum)
	}
	if err := job.Close(ctx); err != nil {
		t.Fatalf("%+v: %v", cfg, err)
	}
}

// compare checks every bit of sum against the model's tree over the card's
// ports, and reports the first few that differ.
func compare(t *testing.T, cardPorts int, members []int, inputs [][]float32, sum []float32) {
	t.Helper()
	tree, err := model.NewArithmetic(wire.SumTree, wire.FP32, wire.FP32, false)
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	operands := make([]uint32, cardPorts)
	for i := range sum {
		for p := range operands {
			operands[p] = 0x80000000 // a port that is not a member
		}
		for rank, port := range members {
			operands[port] = math.Float32bits(inputs[rank][i])
		}
		want, _ := tree.Element(operands)
		if got := math.Float32bits(sum[i]); got != want {
			if wrong++; wrong <= 4 {
				t.Errorf("element %d is %08x, want %08x, the sum of %08x", i, got, want, operands)
			}
		}
	}
	if wrong > 0 {
		t.Fatalf("%d of %d elements are wrong", wrong, len(sum))
	}
}

// randomInputs returns one array a rank. Magnitudes differ by rank and element,
// so that every order of additions rounds differently; one element in 32 is any
// bit pattern at all: NaNs, infinities, subnormals.
func randomInputs(rng *rand.Rand, ranks, elements int) [][]float32 {
	inputs := make([][]float32, ranks)
	for r := range inputs {
		inputs[r] = make([]float32, elements)
		for i := range inputs[r] {
			inputs[r][i] = float32(math.Ldexp(rng.NormFloat64(), rng.IntN(17)-8))
			if rng.IntN(32) == 0 {
				inputs[r][i] = math.Float32frombits(rng.Uint32())
			}
		}
	}
	return inputs
}

// TestEmittedSelfTest runs the self-checking testbench that every emitted folder
// holds, of either shell.
func TestEmittedSelfTest(t *testing.T) {
	for _, s := range []shape{
		{lanes: 2, workers: 5, chunk: 8, window: 2, shell: "none", bundle: true, prefix: "second"},
		{lanes: 4, workers: 3, chunk: 12, window: 1, link: 16},
	} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			run(t, 5*time.Minute, "make", "-C", filepath.Join(s.generate(t), "sim"), "test", "OPT=-O0")
		})
	}
}
