package reduction_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/npy"
	"tributary/driver/reduction"
	"tributary/driver/wire"
)

// float32s returns an array of numbers.
func float32s(shape []int, x ...float32) npy.Array {
	a := npy.Array{Shape: shape, Type: npy.Float32}
	for _, number := range x {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(number))
	}
	return a
}

// workers returns arrays of two numbers, one from each worker.
func workers(x ...[2]float32) []reduction.Arrays {
	var all []reduction.Arrays
	for _, pair := range x {
		all = append(all, reduction.Array(float32s([]int{2}, pair[:]...)))
	}
	return all
}

// TestRun reduces arrays in memory through a card that it opens; the expected sums were worked out
// by hand.
func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		card    string
		options reduction.Options
		want    []float32
	}{
		"sum":       {"model:", reduction.Options{}, []float32{7, 0.5}},
		"mean":      {"model:", reduction.Options{Op: reduction.Mean, Verify: true}, []float32{3.5, 0.25}},
		"ports":     {"model:sum=exact", reduction.Options{Ports: []int{1, 5}, Chunk: 16, Window: 1}, []float32{7, 0.5}},
		"quantized": {"model:", reduction.Options{Quantize: true, Block: 1, Verify: true}, []float32{7, 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			done, err := reduction.Run(t.Context(), c.card, workers([2]float32{3, 1}, [2]float32{4, -0.5}), c.options)
			require.NoError(t, err)
			require.Empty(t, done.Warnings)
			require.Equal(t, reduction.Array(float32s([]int{2}, c.want...)), done.Sum)
			require.Equal(t, c.options.Verify, done.Report.Verified)
			require.Equal(t, 2, done.Report.Elements)
		})
	}
}

// TestReduceLeavesTheCardOpen checks that a program can reduce repeatedly through one card, and
// measure that.
func TestReduceLeavesTheCardOpen(t *testing.T) {
	card, err := driver.Open(t.Context(), "model:lanes=4,workers=3,chunk=8")
	require.NoError(t, err)
	defer card.Close()
	for round := range 3 {
		x := float32(round)
		done := 0
		o := reduction.Options{Stats: true, OnProgress: func(n, total int) { done = n; require.Equal(t, 2, total) }}
		outcome, err := reduction.Reduce(t.Context(), card, workers([2]float32{x, 1}, [2]float32{x, 2}, [2]float32{x, 3}), o)
		require.NoError(t, err)
		require.Equal(t, float32s([]int{2}, 3*x, 6), outcome.Sum.Tensors[0].Array)
		require.Equal(t, 2, done)
		require.EqualValues(t, 1, outcome.Report.Stats.Chunks)
	}
}

// TestArchives checks that several named arrays are one reduction, contiguous in memory or not, and
// that the sum has their names and shapes.
func TestArchives(t *testing.T) {
	whole := float32s([]int{3}, 1, 2, 3).Data
	named := func(a, b []byte) reduction.Arrays {
		return reduction.Arrays{Archive: true, Tensors: []npy.Named{
			{Name: "a", Array: npy.Array{Shape: []int{1}, Type: npy.Float32, Data: a}},
			{Name: "b", Array: npy.Array{Shape: []int{2, 1}, Type: npy.Float32, Data: b}},
		}}
	}
	apart := named(float32s(nil, 10).Data, float32s(nil, 20, 30).Data)
	done, err := reduction.Run(t.Context(), "model:", []reduction.Arrays{named(whole[:4], whole[4:]), apart}, reduction.Options{})
	require.NoError(t, err)
	require.True(t, done.Sum.Archive)
	require.Equal(t, []npy.Named{{Name: "a", Array: float32s([]int{1}, 11)}, {Name: "b", Array: float32s([]int{2, 1}, 22, 33)}}, done.Sum.Tensors)
}

// TestWarnings checks that exceptions are in the report and in the warnings, or cause an error with
// FailNonfinite.
func TestWarnings(t *testing.T) {
	in := workers([2]float32{1, math.MaxFloat32}, [2]float32{1, math.MaxFloat32})
	done, err := reduction.Run(t.Context(), "model:", in, reduction.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"1 element of the sum overflowed; the first in chunk 0: element 1"}, done.Warnings)
	require.EqualValues(t, 1, done.Report.Exceptions.Overflow.Count)

	_, err = reduction.Run(t.Context(), "model:", in, reduction.Options{FailNonfinite: true})
	exceptions := new(reduction.ExceptionsError)
	require.ErrorAs(t, err, &exceptions)
	require.EqualValues(t, 1, exceptions.Exceptions.Overflow.Count)
	require.Contains(t, err.Error(), "because of fail-nonfinite")
}

// TestReportIsJSON checks the names that scripts read.
func TestReportIsJSON(t *testing.T) {
	done, err := reduction.Run(t.Context(), "model:", workers([2]float32{1, 2}), reduction.Options{})
	require.NoError(t, err)
	text, err := json.Marshal(done.Report)
	require.NoError(t, err)
	require.JSONEq(t, `{"output": "", "op": "sum", "card": "model:", "workers": 1, "elements": 2, "format": "fp32", "result": "fp32", "sum": "tree",
		"verified": false, "exceptions": {"nonfinite_in": {"count": 0}, "nonfinite_out": {"count": 0}, "overflow": {"count": 0}}}`, string(text))
}

// TestRefused checks the type and the text of the error for each mistake.
func TestRefused(t *testing.T) {
	good := workers([2]float32{1, 2}, [2]float32{3, 4})
	nan := float32(math.NaN())
	halves := []reduction.Arrays{reduction.Array(npy.Array{Shape: []int{1}, Type: npy.Uint16, Data: []byte{0, 0}})}
	short := reduction.Array(float32s([]int{3}, 1, 2))
	for _, c := range []struct {
		name    string
		card    string
		in      []reduction.Arrays
		options reduction.Options
		as      any
		says    string
	}{
		{"no workers", "model:", nil, reduction.Options{}, new(*reduction.OptionError), "no arrays"},
		{"op", "model:", good, reduction.Options{Op: "max"}, new(*reduction.OptionError), "op max: it must be sum or mean"},
		{"block", "model:", good, reduction.Options{Block: 4}, new(*reduction.OptionError), "block: it needs quantize"},
		{"partial", "model:", good, reduction.Options{Partial: true}, new(*reduction.OptionError), "partial: it needs deadline"},
		{"ports", "model:", good, reduction.Options{Ports: []int{2, 1}}, new(*reduction.OptionError), "they must ascend"},
		{"shapes", "model:", append(workers([2]float32{}), short), reduction.Options{}, new(*reduction.ArraysError), "worker 1: it has 8 bytes of data; its shape (3,) and type float32 make 12"},
		{"two of two", "model:", []reduction.Arrays{short, short}, reduction.Options{}, new(*reduction.ArraysError), "2 of the 2 workers' arrays cannot be used:\n  worker 0: "},
		{"several", "model:", []reduction.Arrays{{Tensors: make([]npy.Named, 2)}}, reduction.Options{}, new(*reduction.ArraysError), "it holds 2 arrays"},
		{"format", "model:", halves, reduction.Options{}, new(*reduction.FormatError), "add format bf16"},
		{"card", "model:format=fp16", good, reduction.Options{}, new(*reduction.CardError), "sums fp16, but the arrays hold fp32"},
		{"chunk", "model:", good, reduction.Options{Chunk: 15}, new(*driver.InputError), "15 elements"},
		{"quantize", "model:", workers([2]float32{1, nan}), reduction.Options{Quantize: true}, new(*reduction.NonfiniteError), "worker 0: element 1 is NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := reduction.Run(t.Context(), c.card, c.in, c.options)
			require.ErrorAs(t, err, c.as)
			require.Contains(t, err.Error(), c.says)
		})
	}
}

// TestTextNamesOptions checks that a caller can substitute its own names of options in an error's
// text.
func TestTextNamesOptions(t *testing.T) {
	err := reduction.Options{Partial: true}.Check(0)
	option := new(reduction.OptionError)
	require.ErrorAs(t, err, &option)
	require.Equal(t, "partial", option.Option)
	require.Equal(t, "PARTIAL: it needs DEADLINE", option.Text(strings.ToUpper))
}

// TestTypeOf checks that every format's type has the format's size.
func TestTypeOf(t *testing.T) {
	for _, f := range wire.Formats {
		require.Equal(t, f.Bits, 8*reduction.TypeOf(f.Format).Size(), f.Name)
	}
}

// TestRunIsStopped checks that Run ends when its context is done.
func TestRunIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := reduction.Run(ctx, "model:", workers([2]float32{1, 2}), reduction.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
