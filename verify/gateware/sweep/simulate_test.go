package sweep

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/model"
	"tributary/verify/reference/operands"
)

// summing is a card with its jobs.
type summing struct {
	shape
	jobs []driver.JobConfig
}

// usual are the cards that are simulated always. Lanes of every format and sum have tests of their own.
var usual = []summing{
	{shape{lanes: 1, workers: 1, chunk: 4, window: 1, link: 8}, []driver.JobConfig{{}}},
	{shape{lanes: 2, workers: 5, chunk: 10, window: 4, link: 32}, []driver.JobConfig{
		{},
		{Ports: []int{1, 2, 4}, Window: 1}, // a gap, and fewer members than ports
		{Ports: []int{3}, Chunk: 4},
	}},
	{shape{lanes: 4, workers: 4, chunk: 64, window: 8, link: 32, atOnce: 4}, []driver.JobConfig{
		{FirstVID: math.MaxUint32 - 5, Window: 8}, // VIDs wrap around
		{Workers: 2, Window: 2, Chunk: 12},
	}},
	{shape{lanes: 8, workers: 8, chunk: 64, window: 4, link: 64}, []driver.JobConfig{{}, {Ports: []int{0, 2, 3, 5, 7}}}},
	{shape{lanes: 16, workers: 16, chunk: 64, window: 1, link: 64}, []driver.JobConfig{{}, {Workers: 9}}},
	{shape{lanes: 64, workers: 2, chunk: 192, window: 2, link: 64}, []driver.JobConfig{{}}},

	// Long windows: beside a short one, and the longest.
	{shape{lanes: 2, workers: 3, chunk: 8, window: 128, link: 64, atOnce: 2}, []driver.JobConfig{
		{FirstVID: math.MaxUint32 - 99, Window: 128},
		{Ports: []int{0, 2}, Window: 2},
	}},
	{shape{lanes: 1, workers: 2, chunk: 4, window: 1024, link: 64}, []driver.JobConfig{
		{FirstVID: math.MaxUint32 - 999, Window: 1024},
		{Window: 4},
	}},

	// Formats and sums, with beats of one byte, results four times as wide as the operands, and
	// links of several widths.
	{shape{lanes: 2, workers: 4, chunk: 32, window: 4, link: 64, arithmetic: arithmetic{format: "bf16", result: "fp32", sum: "fused"}}, twoJobs},
	{shape{lanes: 1, workers: 4, chunk: 96, window: 2, link: 8, arithmetic: arithmetic{format: "fp8e4m3", sum: "tree"}}, twoJobs},
	{shape{lanes: 2, workers: 8, chunk: 64, window: 2, link: 32, arithmetic: arithmetic{format: "fp8e5m2", result: "fp32", sum: "tree"}}, twoJobs},
	{shape{lanes: 1, workers: 6, chunk: 32, window: 2, link: 16, arithmetic: arithmetic{format: "int32", sum: "fused", saturate: true}}, twoJobs},
	{shape{lanes: 4, workers: 5, chunk: 32, window: 2, link: 64, arithmetic: arithmetic{format: "fp32", sum: "exact"}}, twoJobs},
	{shape{lanes: 1, workers: 8, chunk: 16, window: 4, link: 32, atOnce: 2, arithmetic: arithmetic{format: "bf16", result: "fp32", sum: "exact"}}, twoJobs},
	{shape{lanes: 1, workers: 3, chunk: 32, window: 2, link: 16, arithmetic: arithmetic{format: "fp8e4m3", result: "fp16", sum: "max"}}, twoJobs},
}

// others are simulated with CARDS=all in the environment.
var others = []summing{
	{shape{lanes: 1, workers: 3, chunk: 7, window: 2, link: 64}, []driver.JobConfig{{}}},
	{shape{lanes: 2, workers: 2, chunk: 6, window: 1, link: 16}, []driver.JobConfig{{}, {Chunk: 2}}},
	{shape{lanes: 4, workers: 7, chunk: 20, window: 2, link: 64}, []driver.JobConfig{{}, {Ports: []int{0, 6}}}},
	{shape{lanes: 8, workers: 3, chunk: 24, window: 2, link: 16}, []driver.JobConfig{{}}},
	{shape{lanes: 16, workers: 2, chunk: 16, window: 4, link: 8}, []driver.JobConfig{{}}},
	{shape{lanes: 32, workers: 5, chunk: 96, window: 2, link: 32}, []driver.JobConfig{{}}},
	{shape{lanes: 4, workers: 5, chunk: 64, window: 2, link: 32, arithmetic: arithmetic{format: "bf16", sum: "tree"}}, twoJobs},
	{shape{lanes: 8, workers: 3, chunk: 64, window: 2, link: 64, arithmetic: arithmetic{format: "fp16", sum: "fused"}}, twoJobs},
	{shape{lanes: 1, workers: 3, chunk: 40, window: 2, link: 32, arithmetic: arithmetic{format: "fp16", result: "fp32", sum: "tree"}}, twoJobs},
	{shape{lanes: 1, workers: 3, chunk: 50, window: 2, link: 64, arithmetic: arithmetic{format: "fp8e5m2", sum: "fused"}}, twoJobs},
	{shape{lanes: 4, workers: 6, chunk: 64, window: 2, link: 32, arithmetic: arithmetic{format: "fp8e4m3", result: "bf16", sum: "fused"}}, twoJobs},
	{shape{lanes: 2, workers: 5, chunk: 32, window: 2, link: 32, arithmetic: arithmetic{format: "int32", sum: "tree"}}, twoJobs},
	{shape{lanes: 4, workers: 8, chunk: 64, window: 2, link: 64, arithmetic: arithmetic{format: "fp32", sum: "fused"}}, twoJobs},
	{shape{lanes: 2, workers: 3, chunk: 32, window: 2, link: 16, arithmetic: arithmetic{format: "fp16", sum: "exact"}}, twoJobs},
	{shape{lanes: 2, workers: 5, chunk: 32, window: 2, link: 32, arithmetic: arithmetic{format: "fp32", sum: "max"}}, twoJobs},
	{shape{lanes: 2, workers: 4, chunk: 32, window: 2, link: 64, arithmetic: arithmetic{format: "int32", sum: "max"}}, twoJobs},
}

// twoJobs are two successive jobs: one of all ports, one of some.
var twoJobs = []driver.JobConfig{{}, {Ports: []int{0, 2}, Window: 1}}

// TestCardsSumLikeTheModel sends hostile operands through virtual cards of many shapes. They also
// show a carry between lanes and swapped ports.
func TestCardsSumLikeTheModel(t *testing.T) {
	for _, c := range append(usual, also(others...)...) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			name := "sim:" + c.build(t)
			if c.atOnce > 1 {
				sumSideBySide(t, name)
			}
			card, err := driver.Open(ctx, name)
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

// reduceAndCompare sets a job up, makes three reductions (the later ones reuse slots), and ends
// it.
func reduceAndCompare(t *testing.T, ctx context.Context, card *driver.Card, cfg driver.JobConfig) {
	t.Helper()
	job, err := card.Configure(ctx, cfg)
	if err != nil {
		t.Fatalf("%+v: %v", cfg, err)
	}
	cfg = job.Config()
	info := card.Info()
	seed := info.ConfigHash + uint64(len(cfg.Ports))
	for _, elements := range []int{5*cfg.Window*cfg.Chunk + 1, 2*cfg.Chunk - 1, 1} {
		inputs := someInputs(info, seed, len(cfg.Ports), elements)
		sum := make([]byte, elements*element.Size(info.Result))
		if err := job.ReduceBytes(ctx, sum, inputs); err != nil {
			t.Fatalf("%+v, %d elements: %v", cfg, elements, err)
		}
		if err := compare(info, cfg.Ports, inputs, sum); err != nil {
			t.Fatalf("%+v: %v", cfg, err)
		}
		seed++
	}
	if err := job.Close(ctx); err != nil {
		t.Fatalf("%+v: %v", cfg, err)
	}
}

// compare checks every bit of sum against the model; its error lists the first few differences.
func compare(info driver.Info, members []int, inputs [][]byte, sum []byte) error {
	arithmetic, err := model.NewArithmetic(info.Sum, info.Format, info.Result, info.Saturate)
	if err != nil {
		return err
	}
	wrong, elements := 0, len(sum)/element.Size(info.Result)
	var told []error
	operands := make([]uint32, info.Ports)
	for i := range elements {
		for p := range operands {
			operands[p] = info.Sum.Identity(info.Format) // a port without a member
		}
		for rank, port := range members {
			operands[port] = element.At(info.Format, inputs[rank], i)
		}
		want, _ := arithmetic.Element(operands)
		if got := element.At(info.Result, sum, i); got != want {
			if wrong++; wrong <= 4 {
				told = append(told, fmt.Errorf("element %d is %08x, want %08x, the sum of %08x", i, got, want, operands))
			}
		}
	}
	if wrong == 0 {
		return nil
	}
	return errors.Join(append(told, fmt.Errorf("%d of %d elements are wrong", wrong, elements))...)
}

// someInputs returns one array of hostile operands for each rank.
func someInputs(info driver.Info, seed uint64, ranks, elements int) [][]byte {
	size := element.Size(info.Format)
	inputs := make([][]byte, ranks)
	for r := range inputs {
		inputs[r] = make([]byte, 0, elements*size+3)
	}
	source := operands.New(info.Format, info.Result, seed)
	x := make([]uint32, ranks)
	for range elements {
		source.Next(x)
		for r := range inputs {
			inputs[r] = append(inputs[r], binary.LittleEndian.AppendUint32(nil, x[r])[:size]...)
		}
	}
	return inputs
}

// TestEmittedSelfTest runs the self-checking testbench in emitted folders of both shells and both
// register ports.
func TestEmittedSelfTest(t *testing.T) {
	for _, s := range append([]shape{
		{lanes: 2, workers: 5, chunk: 8, window: 2, shell: "none", bundle: true, prefix: "second"},
		{lanes: 4, workers: 3, chunk: 12, window: 1, link: 16},
		{lanes: 1, workers: 3, chunk: 12, window: 2, shell: "none", registers: "bus", arithmetic: arithmetic{format: "fp8e4m3", result: "fp16"}},
		{lanes: 4, workers: 5, chunk: 32, window: 2, shell: "none", arithmetic: arithmetic{sum: "exact"}},
	}, also(
		shape{lanes: 2, workers: 4, chunk: 16, window: 2, link: 64, arithmetic: arithmetic{format: "bf16", sum: "fused"}},
		shape{lanes: 2, workers: 3, chunk: 12, window: 2, shell: "none", arithmetic: arithmetic{format: "int32", saturate: true}},
		shape{lanes: 2, workers: 5, chunk: 16, window: 2, shell: "none", arithmetic: arithmetic{format: "fp8e5m2", result: "fp16", sum: "max"}},
	)...) {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			compile(t, s.generate(t), "test")
		})
	}
}
