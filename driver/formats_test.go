package driver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/model"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// pair is a format with one of its result formats.
type pair struct{ in, out wire.FormatInfo }

func pairs() []pair {
	var all []pair
	for _, in := range wire.Formats {
		for _, out := range wire.Formats {
			if in.FitsIn(out) {
				all = append(all, pair{in, out})
			}
		}
	}
	return all
}

// smallOf returns the small card with the formats of p.
func smallOf(p pair) model.Config {
	cfg := small
	cfg.Format, cfg.Result = p.in.Format, p.out.Format
	return cfg
}

// wholes returns the workers' arrays of small whole numbers, and their sums. No format rounds
// them.
func wholes(p pair, seed uint64, workers, n int) (inputs [][]byte, sum []byte) {
	rng := rand.New(rand.NewPCG(seed, 7))
	totals := make([]int, n)
	for range workers {
		var in []byte
		for i := range n {
			x := rng.IntN(3) - 1
			totals[i] += x
			in = appendWhole(in, p.in, x)
		}
		inputs = append(inputs, in)
	}
	for _, x := range totals {
		sum = appendWhole(sum, p.out, x)
	}
	return inputs, sum
}

// appendWhole appends the encoding of a whole number.
func appendWhole(b []byte, f wire.FormatInfo, n int) []byte {
	bits := uint32(n)
	if f.Exp != 0 {
		bits = element.Round(f.Format, float64(n))
	}
	return append(b, binary.LittleEndian.AppendUint32(nil, bits)[:f.Bits/8]...)
}

// TestEveryFormat sums arrays of every format into every result format. The lengths are around
// the boundaries of lane, chunk and window. It uses Reduce and AllReduce.
func TestEveryFormat(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.in.Name+" into "+p.out.Name, bubble(func(t *testing.T) {
			card := open(t, reach(t, smallOf(p), 64<<10))
			if i := card.Info(); i.Format != p.in.Format || i.Result != p.out.Format || i.Saturate {
				t.Fatalf("%+v", i)
			}
			job := configure(t, card, driver.JobConfig{Workers: 3})
			for _, n := range []int{1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 129, 1000} {
				in, want := wholes(p, uint64(n), 3, n)
				got := make([]byte, len(want))
				if err := job.ReduceBytes(testContext(t), got, in); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%d elements: another sum", n)
				}
				allReduceBytes(t, job, in, want)
			}
			if err := job.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}))
	}
}

// allReduceBytes has all members reduce at the same time, in place where that is allowed.
func allReduceBytes(t *testing.T, job *driver.Job, in [][]byte, want []byte) {
	t.Helper()
	errs := make(chan error, len(in))
	for r := range in {
		go func() {
			got := make([]byte, len(want))
			if len(in[r]) == len(got) {
				got = bytes.Clone(in[r])
				in[r] = got
			}
			err := job.Member(r).AllReduceBytes(testContext(t), got, in[r])
			if err == nil && !bytes.Equal(got, want) {
				err = fmt.Errorf("rank %d has another sum", r)
			}
			errs <- err
		}()
	}
	for range in {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

// TestTypedArrays checks which Go types match which formats.
func TestTypedArrays(t *testing.T) {
	type half uint16
	t.Run("int32 that saturates", bubble(func(t *testing.T) {
		cfg := smallOf(pair{info(wire.Int32), info(wire.Int32)})
		cfg.Saturate = true
		card := open(t, reach(t, cfg, 64<<10))
		if !card.Info().Saturate {
			t.Error("the card is not said to saturate")
		}
		job := configure(t, card, driver.JobConfig{Workers: 2})
		sum := make([]int32, 3)
		if err := driver.Reduce(testContext(t), job, sum, [][]int32{{1, math.MaxInt32, -5}, {2, 1, math.MinInt32}}); err != nil {
			t.Fatal(err)
		}
		if want := [3]int32{3, math.MaxInt32, math.MinInt32}; [3]int32(sum) != want {
			t.Errorf("%v, want %v", sum, want)
		}
		wantInputError(t, job.Reduce(testContext(t), make([]float32, 1), [][]float32{{1}, {1}}),
			"inputs: the card's format for it is int32, which takes []int32, not []float32")
	}))
	t.Run("bf16 into fp32", bubble(func(t *testing.T) {
		card := open(t, reach(t, smallOf(pair{info(wire.BF16), info(wire.FP32)}), 64<<10))
		job := configure(t, card, driver.JobConfig{Workers: 2})
		sum := make([]float32, 2)
		if err := driver.Reduce(testContext(t), job, sum, [][]half{{0x3f80, 0x4000}, {0x3b80, 0x4040}}); err != nil {
			t.Fatal(err)
		}
		if sum[0] != 1.00390625 || sum[1] != 5 {
			t.Errorf("%v", sum)
		}
		errs := make(chan error)
		for r := range 2 {
			go func() {
				dst := make([]float32, 1)
				err := driver.AllReduce(testContext(t), job.Member(r), dst, []half{0x3f80})
				if err == nil && dst[0] != 2 {
					err = fmt.Errorf("rank %d has %v", r, dst)
				}
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs); err != nil {
			t.Fatal(err)
		}
		wantInputError(t, driver.Reduce(testContext(t), job, make([]half, 2), [][]half{{1, 2}, {3, 4}}),
			"result: the card's format for it is fp32, which takes []float32, not []driver_test.half")
		wantInputError(t, job.Member(0).AllReduce(testContext(t), make([]float32, 2)),
			"buffer of rank 0: the card's format for it is bf16, which takes []uint16, not []float32")
	}))
}

func info(f wire.Format) wire.FormatInfo {
	i, _ := f.Info()
	return i
}

func TestByteArrayErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := open(t, reach(t, smallOf(pair{info(wire.BF16), info(wire.FP32)}), 64<<10))
		job := configure(t, card, driver.JobConfig{Workers: 1})
		b := make([]byte, 100)
		for _, c := range []struct {
			dst, in []byte
			want    string
		}{
			{b[:0], b[:0], "result: it is empty; a reduction has at least one element"},
			{b[:7], b[50:54], "result: it has 7 bytes; an element of fp32 has 4"},
			{b[:8], b[50:53], "array of worker 0: it has 3 bytes; an element of bf16 has 2"},
			{b[:8], b[50:56], "array of worker 0: it has 3 elements, the result 2; all arrays have the same length"},
			{b[:8], b[:4], "array of worker 0: it overlaps the result, whose elements have 4 bytes each and its own 2; results would overwrite elements before they are sent; use separate arrays"},
			{b[:8], b[6:10], "array of worker 0: it overlaps the result, whose elements have 4 bytes each and its own 2; results would overwrite elements before they are sent; use separate arrays"},
		} {
			wantInputError(t, job.ReduceBytes(testContext(t), c.dst, [][]byte{c.in}), c.want)
		}
		if err := job.ReduceBytes(testContext(t), b[:8], [][]byte{b[8:12]}); err != nil {
			t.Errorf("beside one another: %v", err)
		}
	})
}

// TestFormatsOverABadLink has flipped bits and losses, with sums of another size than the data.
func TestFormatsOverABadLink(t *testing.T) {
	for _, p := range pairs() {
		if p.in.Bits == 32 {
			continue
		}
		t.Run(p.in.Name+" into "+p.out.Name, bubble(func(t *testing.T) {
			link := faults.New(serve(t, smallOf(p), 64<<10), faults.Rates{Drop: 0.02, Repeat: 0.05, Reorder: 0.05, Flip: 0.02, Garbage: 0.05, Seed: 3}, new(faults.Counts))
			card := open(t, link)
			job := configure(t, card, driver.JobConfig{})
			link.On.Store(true)
			in, want := wholes(p, 1, 4, 300)
			got := make([]byte, len(want))
			if err := job.ReduceBytes(testContext(t), got, in); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Fatal("another sum")
			}
		}))
	}
}

// TestModelByName checks the options in a model's name, and the caller's needs.
func TestModelByName(t *testing.T) {
	for name, c := range map[string]struct {
		opts []driver.Option
		want driver.Info
	}{
		"model:":  {nil, driver.Info{Lanes: 16, Ports: 4, Format: wire.FP32, Result: wire.FP32, Sum: wire.SumTree, Chunk: 1008, Window: 8}},
		"model: ": {nil, driver.Info{}},
		"model:sum=exact": {[]driver.Option{driver.WithWorkers(3), driver.WithFormat(wire.BF16)},
			driver.Info{Lanes: 16, Ports: 3, Format: wire.BF16, Result: wire.BF16, Sum: wire.SumExact, Chunk: 2016, Window: 8}},
		"model:result=fp32": {[]driver.Option{driver.WithFormat(wire.FP8E4M3)},
			driver.Info{Lanes: 16, Ports: 4, Format: wire.FP8E4M3, Result: wire.FP32, Sum: wire.SumTree, Chunk: 1008, Window: 8}},
		"model:format=int32,saturate=true,sum=fused,lanes=4,workers=7,window=2,chunk=20,jobs=16": {[]driver.Option{driver.WithFormat(wire.BF16), driver.WithWorkers(2)},
			driver.Info{Lanes: 4, Ports: 7, Format: wire.Int32, Result: wire.Int32, Sum: wire.SumFused, Saturate: true, Chunk: 20, Window: 2, Jobs: 2}},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			card, err := driver.Open(testContext(t), name, c.opts...)
			if c.want.Lanes == 0 {
				wantError[*driver.NoCardError](t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer card.Close()
			got := card.Info()
			c.want.Name, c.want.Version, c.want.ConfigHash, c.want.Shell, c.want.Jobs, c.want.Link = name, got.Version, got.ConfigHash, got.Shell, max(1, c.want.Jobs), 32
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		}))
	}
	for name, words := range map[string][]string{
		"model:format=fp64":             {`no format "fp64"`, "fp32, bf16"},
		"model:sum=best":                {`no sum "best"`, "the sums are tree, fused"},
		"model:lanes=many":              {"option lanes", `"many" is not a value`},
		"model:saturate=perhaps":        {"option saturate", `"perhaps" is not a value`},
		"model:colour=red":              {`no option "colour"`, "lanes, workers, format"},
		"model:sum=exact,":              {`no option ""`},
		"model:lanes=3":                 {"option lanes: 3 is not a power of two from 1 to 64"},
		"model:lanes=0":                 {"option lanes: 0 is not a power of two from 1 to 64"},
		"model:workers=65":              {"option workers: 65 is not a number from 1 to 64"},
		"model:chunk=0":                 {"option chunk: 0 is not a number from 1 to 65535"},
		"model:window=16777216":         {"option window: 16777216 is not a power of two from 1 to 1024"},
		"model:jobs=0":                  {"option jobs: 0 is not a power of two from 1 to 16"},
		"model:jobs=3":                  {"option jobs: 3 is not a power of two from 1 to 16"},
		"model:format=fp16,result=bf16": {"fp16"},
		"model:saturate=true":           {"saturate"},
		"model:./sum=exact":             {"not a card's folder"},
		"model:parent=perhaps":          {"option parent", `"perhaps" is not a value`},
		"model:parent=true":             {"option parent", "no up port", "tributary sim model:parent=true"},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			_, err := driver.Open(testContext(t), name)
			wantError[*driver.NoCardError](t, err, words...)
		}))
	}
}

// TestExceptions checks the card's counts and positions. The job's chunk numbers pass 2^32, and
// it has reduced before.
func TestExceptions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openSmall(t) // chunks of 16
		job := configure(t, card, driver.JobConfig{Workers: 3, FirstVID: math.MaxUint32 - 2})
		plain := make([]float32, 40) // three chunks
		if err := job.Reduce(testContext(t), make([]float32, 40), [][]float32{plain, plain, plain}); err != nil {
			t.Fatal(err)
		}
		e, err := job.Exceptions(testContext(t))
		if err != nil || e.Any() {
			t.Fatalf("%+v %v before there are any", e, err)
		}
		in := make([][]byte, 3)
		for w := range in {
			in[w] = make([]byte, 4*50)
		}
		set := func(w, i int, bits uint32) { binary.LittleEndian.PutUint32(in[w][4*i:], bits) }
		set(0, 17, 0x7f7fffff) // element 17 overflows, element 18 of the same chunk as well
		set(1, 17, 0x7f7fffff)
		set(0, 18, 0xff7fffff)
		set(2, 18, 0xff7fffff)
		set(2, 33, 0x7fc00000) // a NaN; infinities follow
		set(2, 34, 0x7f800000)
		set(1, 49, 0xff800000)
		sum := make([]byte, 4*50)
		if err := job.ReduceBytes(testContext(t), sum, in); err != nil {
			t.Fatal(err)
		}
		e, err = job.Exceptions(testContext(t))
		want := driver.Exceptions{
			NonfiniteIn:  driver.Exception{Count: 2, VID: 2, Rank: 2}, // in two chunks
			NonfiniteOut: driver.Exception{Count: 5, VID: 1},
			Overflow:     driver.Exception{Count: 2, VID: 1},
		}
		if err != nil || e != want || !e.Any() {
			t.Fatalf("%+v %v, want %+v", e, err, want)
		}
		at := job.Locate(e, 3, sum, in)
		for what, c := range map[string]struct {
			got  *driver.Place
			want driver.Place
		}{
			"nonfinite in":  {at.NonfiniteIn, driver.Place{Chunk: 2, Element: 33}},
			"nonfinite out": {at.NonfiniteOut, driver.Place{Chunk: 1, Element: 17}},
			"overflow":      {at.Overflow, driver.Place{Chunk: 1, Element: 17}},
		} {
			if c.got == nil || *c.got != c.want {
				t.Errorf("%s: %+v, want %+v", what, c.got, c.want)
			}
		}
		if at := job.Locate(e, 0, sum, in); at != (driver.Places{}) { // none in the first reduction
			t.Errorf("found in another reduction: %+v", at)
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if again, err := job.Exceptions(testContext(t)); err != nil || again != want {
			t.Errorf("after the job: %+v %v", again, err)
		}
		next := configure(t, card, driver.JobConfig{})
		if e, err = next.Exceptions(testContext(t)); err != nil || e.Any() {
			t.Errorf("the next job finds %+v %v", e, err)
		}
		_, err = job.Exceptions(testContext(t))
		wantError[*driver.EndedError](t, err, "another job")
	})
}
