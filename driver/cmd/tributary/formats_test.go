package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/npy"
	"tributary/driver/reduction"
)

// formatFiles makes input files of every format.
func formatFiles(t *testing.T) {
	t.Helper()
	one := []int{3}
	for name, a := range map[string]npy.Array{
		"h0.npy": elements(npy.Float16, one, 0x3c00, 0x7bff, 0xc000), // 1, 65504, -2
		"h1.npy": elements(npy.Float16, one, 0x4000, 0x0001, 0xc000), // 2, 2^-24, -2
		"i0.npy": elements(npy.Int32, one, 5, 0x7fffffff, 0xfffffffd),
		"i1.npy": elements(npy.Int32, one, 6, 1, 0xfffffffe),
		"b0.npy": elements(npy.Uint16, one, 0x3f80, 0x3f80, 0x4000), // 1, 1, 2
		"b1.npy": elements(npy.Uint16, one, 0x3f80, 0x3b80, 0x3f80), // 1, 2^-8, 1
		"e0.npy": elements(npy.Uint8, one, 0x38, 0x7e, 0x40),        // in E4M3: 1, 448, 2; in E5M2: .5, NaN, 2
		"e1.npy": elements(npy.Uint8, one, 0x38, 0x01, 0x38),
	} {
		writeArray(t, name, a)
	}
	require.NoError(t, os.WriteFile("v.npy", []byte(strings.Replace(string(must(os.ReadFile("h0.npy"))), "<f2", "|V2", 1)), 0o666))
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestReduceFormats sums a few elements of every format; the expected sums were worked out by hand.
func TestReduceFormats(t *testing.T) {
	workFolder(t)
	formatFiles(t)
	one := []int{3}
	for line, want := range map[string]npy.Array{
		"h0.npy h1.npy":                                              elements(npy.Float16, one, 0x4200, 0x7bff, 0xc400),
		"-op mean h0.npy h1.npy":                                     elements(npy.Float16, one, 0x3e00, 0x77ff, 0xc000),
		"-card model:result=fp32 h0.npy h1.npy":                      float32s(one, 3, 65504, -4),
		"-card model:result=fp32 -op mean h0.npy h1.npy":             float32s(one, 1.5, 32752, -2),
		"-format fp16 h0.npy h1.npy":                                 elements(npy.Float16, one, 0x4200, 0x7bff, 0xc400),
		"i0.npy i1.npy":                                              elements(npy.Int32, one, 11, 0x80000000, 0xfffffffb),
		"-op mean i0.npy i1.npy":                                     elements(npy.Int32, one, 6, 0xc0000000, 0xfffffffe), // 5.5 and -2.5 are ties
		"-card model:saturate=true i0.npy i1.npy":                    elements(npy.Int32, one, 11, 0x7fffffff, 0xfffffffb),
		"-format bf16 b0.npy b1.npy":                                 elements(npy.Uint16, one, 0x4000, 0x3f80, 0x4040),
		"-format bf16 -op mean b0.npy b1.npy":                        elements(npy.Uint16, one, 0x3f80, 0x3f00, 0x3fc0),
		"-format bf16 -card model:result=fp32 b0.npy b1.npy":         float32s(one, 2, 1.00390625, 3),
		"-format fp8e4m3 e0.npy e1.npy":                              elements(npy.Uint8, one, 0x40, 0x7e, 0x44),
		"-format fp8e4m3 -card model:result=fp16 e0.npy e1.npy":      elements(npy.Float16, one, 0x4000, 0x5f00, 0x4200),
		"-format fp8e5m2 e0.npy e1.npy":                              elements(npy.Uint8, one, 0x3c, 0x7e, 0x41),
		"-format fp8e5m2 -card model:sum=exact,result=bf16 e0.npy":   elements(npy.Uint16, one, 0x3f00, 0x7fc0, 0x4000),
		"-card model:sum=exact w2.npy w2.npy":                        float32s([]int{2, 3}, 1, 0, -6, -8, 2e30, 2*float32(1e-40)),
		"-card model:sum=fused -ports 0,2,5 w0.npy w1.npy w1.npy":    float32s([]int{2, 3}, 21, 42, 63, 84, 105, 126),
		"-card model:lanes=4,window=2 -chunk 4 -window 1 i0.npy":     elements(npy.Int32, one, 5, 0x7fffffff, 0xfffffffd),
		"-card model:sum=max h0.npy h1.npy":                          elements(npy.Float16, one, 0x4000, 0x7bff, 0xc000),
		"-card model:workers=5,sum=max i0.npy i1.npy":                elements(npy.Int32, one, 6, 0x7fffffff, 0xfffffffe),
		"-card model:sum=max,result=bf16 -format fp8e4m3 e0.npy":     elements(npy.Uint16, one, 0x3f80, 0x43e0, 0x4000),
		"-card model:workers=9,sum=exact -format bf16 b1.npy b1.npy": elements(npy.Uint16, one, 0x4000, 0x3c00, 0x4000),
	} {
		t.Run(line, func(t *testing.T) {
			s := tributary(context.Background(), append([]string{"reduce", "-verify", "-o", "sum.npy"}, strings.Fields(line)...)...)
			require.Equal(t, 0, s.status, s.errs)
			sameArray(t, want, readArray(t, "sum.npy"))
		})
	}
}

// TestReduceFormatErrors checks the errors for files and cards of different formats.
func TestReduceFormatErrors(t *testing.T) {
	goldenFile, err := filepath.Abs("testdata/errors/format.txt")
	require.NoError(t, err)
	workFolder(t)
	formatFiles(t)
	nan := float32(math.NaN())
	writeArray(t, "nan.npy", float32s([]int{2, 3}, 1, 2, 3, 4, nan, 6))
	mixed := []npy.Named{{Name: "a", Array: elements(npy.Float16, []int{1}, 1)}, {Name: "b", Array: float32s([]int{1}, 1)}}
	writeNamed(t, "mixed.npz", mixed)
	writeNamed(t, "nan.npz", []npy.Named{{Name: "a", Array: float32s([]int{1}, 1)}, {Name: "b", Array: float32s([]int{2}, 1, float32(math.Inf(1)))}})
	before := files(t)
	var all strings.Builder
	for _, line := range []string{
		"reduce -o sum.npy b0.npy b1.npy",
		"reduce -o sum.npy e0.npy e1.npy",
		"reduce -o sum.npy -format fp64 b0.npy",
		"reduce -o sum.npy -format bf16 h0.npy",
		"reduce -o sum.npy -format fp16 b0.npy",
		"reduce -o sum.npy -format fp8e4m3 w0.npy",
		"reduce -o sum.npy v.npy",
		"reduce -o sum.npy h0.npy i0.npy",
		"reduce -o sum.npz mixed.npz",
		"reduce -o sum.npy -card model:format=bf16 h0.npy h1.npy",
		"reduce -o sum.npy -card model:format=fp16 w0.npy w1.npy",
		"reduce -o sum.npy -card model:format=int32 w0.npy w1.npy",
		"reduce -o sum.npy -card model:format=fp32 -quantize w0.npy w1.npy",
		"reduce -o sum.npy -quantize h0.npy h1.npy",
		"reduce -o sum.npy -block 16 w0.npy w1.npy",
		"reduce -o sum.npy -quantize -block 0 w0.npy w1.npy",
		"reduce -o sum.npy -quantize w0.npy nan.npy",
		"reduce -o sum.npz -quantize nan.npz",
		"reduce -o sum.npy -card model:sum=best w0.npy",
		"reduce -o sum.npy -card model:sum=max -op mean w0.npy w1.npy",
		"reduce -o sum.npy -card model:sum=max,format=int32 -quantize w0.npy w1.npy",
		"reduce -o sum.npy -card model:sum=max,format=int32,saturate=true i0.npy",
		"reduce -o sum.npy -card model:result=fp16 w0.npy",
		"reduce -o sum.npy -fail-nonfinite nan.npy w0.npy",
	} {
		args := strings.Fields(line)
		s := tributary(context.Background(), args...)
		require.NotEqual(t, 0, s.status, line)
		require.Empty(t, s.out, line)
		requireNoNewFiles(t, before)
		all.WriteString(transcript(args, s) + "\n")
	}
	golden(t, goldenFile, all.String())
}

// writeNamed writes an archive.
func writeNamed(t *testing.T, path string, arrays []npy.Named) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, npy.WriteArchive(f, arrays))
	require.NoError(t, f.Close())
}

// TestReduceQuantizes checks that float32 arrays pass through int32 cards of any sum, and that sums
// and means are accurate enough.
func TestReduceQuantizes(t *testing.T) {
	workFolder(t)
	writeArray(t, "x0.npy", float32s([]int{4}, 0.5, -1e-3, 3e20, 0))
	writeArray(t, "x1.npy", float32s([]int{4}, 0.25, 1, -1e20, 0))
	for _, c := range []struct {
		line string
		want []float32
	}{
		{"-block 1", []float32{0.75, 0.999, 2e20, 0}},
		{"-block 1 -op mean", []float32{0.375, 0.4995, 1e20, 0}},
		{"-block 1 -card model:sum=exact,saturate=true", []float32{0.75, 0.999, 2e20, 0}},
		{"-block 2", []float32{0.75, 0.999, 2e20, 0}},
		{"", []float32{0, 0, 2e20, 0}}, // the largest number of a chunk sets the scale
	} {
		args := append(strings.Fields("reduce -quantize -verify -json -o sum.npy "+c.line), "x0.npy", "x1.npy")
		s := tributary(context.Background(), args...)
		require.Equal(t, 0, s.status, s.errs)
		require.Empty(t, s.errs)
		var report reduction.Report
		require.NoError(t, json.Unmarshal([]byte(s.out), &report))
		got := readArray(t, "sum.npy")
		require.Equal(t, npy.Float32, got.Type)
		for i, x := range numbers(got.Data) {
			require.InDelta(t, c.want[i], x, 1e-6*math.Abs(float64(c.want[i])), "%s: element %d", c.line, i)
		}
		require.Equal(t, "fp32", report.Result)
		require.Greater(t, report.Quantized.Bound, 0.0)
	}
	s := tributary(context.Background(), "reduce", "-quantize", "-block", "2", "-o", "sum.npy", "x0.npy", "x1.npy")
	// The second block's exponent is 68: off by at most 2*2^(68+1-31).
	require.Equal(t, "sum.npy: the sum of 2 workers' 4 elements, as int32 with an exponent for each 2 elements, off by at most 5.5e+11\n", s.out)
}

// TestReduceWarns checks the warnings about exceptions: their places, on the error stream and as
// JSON. The exit status is 0, or 1 with -fail-nonfinite.
func TestReduceWarns(t *testing.T) {
	workFolder(t)
	inf, top := float32(math.Inf(1)), float32(math.MaxFloat32)
	const n = 40
	arrays := [2][]float32{make([]float32, n), make([]float32, n)}
	arrays[0][17], arrays[1][17] = top, top
	arrays[0][18], arrays[1][18] = -top, -top
	arrays[1][33] = inf
	writeArray(t, "y0.npy", float32s([]int{4, 10}, arrays[0]...))
	writeArray(t, "y1.npy", float32s([]int{4, 10}, arrays[1]...))
	for w, name := range []string{"y0.npz", "y1.npz"} {
		writeNamed(t, name, []npy.Named{{Name: "a", Array: float32s([]int{17}, arrays[w][:17]...)}, {Name: "b", Array: float32s([]int{23}, arrays[w][17:]...)}})
	}
	s := tributary(context.Background(), strings.Fields("reduce -verify -json -chunk 16 -o sum.npy y0.npy y1.npy")...)
	require.Equal(t, 0, s.status)
	require.Equal(t, `tributary reduce: warning: 1 chunk of the inputs holds a NaN or an infinity; the first in chunk 2: element [3, 3] in y1.npy
tributary reduce: warning: 2 elements of the sum overflowed; the first in chunk 1: element [1, 7]
tributary reduce: warning: 3 elements of the sum are a NaN or an infinity; the first in chunk 1: element [1, 7]
`, s.errs)
	var report struct {
		Exceptions json.RawMessage `json:"exceptions"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.JSONEq(t, `{"nonfinite_in": {"count": 1, "chunk": 2, "worker": 1, "element": 33},
		"nonfinite_out": {"count": 3, "chunk": 1, "element": 17}, "overflow": {"count": 2, "chunk": 1, "element": 17}}`, string(report.Exceptions))

	s = tributary(context.Background(), strings.Fields("reduce -chunk 16 -o sum.npz y0.npz y1.npz")...)
	require.Equal(t, 0, s.status)
	require.Contains(t, s.errs, `in chunk 2: element 16 of array "b" in y1.npz`)
	require.Contains(t, s.errs, `in chunk 1: element 0 of array "b"`)

	before := files(t)
	s = tributary(context.Background(), strings.Fields("reduce -fail-nonfinite -o other.npy y0.npy y1.npy")...)
	require.Equal(t, 1, s.status)
	require.Contains(t, s.errs, "nothing was written")
	requireNoNewFiles(t, before)
}

// TestInfoShowsTheJob checks the registers of the last job after its end.
func TestInfoShowsTheJob(t *testing.T) {
	workFolder(t)
	writeArray(t, "top.npy", float32s([]int{10}, 0, 0, 0, 0, 0, 0, 0, 0, math.MaxFloat32, float32(math.NaN())))
	card := newCard(t, nil, straight) // chunks of 8
	require.Equal(t, 0, tributary(context.Background(), "reduce", "-card", card, "-o", "s.npy", "top.npy", "top.npy").status)
	s := tributary(context.Background(), "info", "-card", card)
	require.Equal(t, 0, s.status, s.errs)
	require.Regexp(t, `its inputs +2 chunks held a NaN or an infinity; the first in chunk 1 of rank 0\n`, s.out)
	require.Regexp(t, `its sums +2 elements are a NaN or an infinity; the first in chunk 1\n`, s.out)
	require.Regexp(t, `\n +1 elements overflowed; the first in chunk 1\n`, s.out)
	s = tributary(context.Background(), "info", "-json", "-card", card)
	require.Regexp(t, `"nonfinite_in": \{\s+"count": 2,\s+"first_vid": 1,\s+"first_rank": 0\s+\}`, s.out)
	require.Regexp(t, `"overflow": \{\s+"count": 1,\s+"first_vid": 1\s+\}`, s.out)
}

// TestReduceStatsOfExact checks that -stats shows undecided beats.
func TestReduceStatsOfExact(t *testing.T) {
	s := &reduction.Stats{Undecided: 3, Stalled: 240}
	var out strings.Builder
	require.NoError(t, printStats(&out, &reduction.Report{Card: "model:", Workers: 2, Elements: 6, Stats: s}))
	require.Contains(t, out.String(), "3 beats took more than one pass; complete slots waited 240 cycles for them")
}
