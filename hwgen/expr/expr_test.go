package expr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/expr"
)

func TestValue(t *testing.T) {
	names := map[string]int64{"A": 5, "B": 3}
	for text, want := range map[string]int64{
		"8*A-1":                   39,
		"A + B * 2":               11,
		"(A + B) * 2":             16,
		"A - B - 1":               1,
		"A % B":                   2,
		"-A / 2":                  -2,
		"1 << A >> 1":             16,
		"$clog2(A)":               3,
		"$clog2(8)":               3,
		"$clog2(1)":               0,
		"A > B ? A : B":           5,
		"A < B ? 1 : A == 5 && B": 1,
		"!A || B != 3":            0,
		"16'hbe_ef":               0xbeef,
		"4'b1010":                 10,
		"8'o17":                   15,
		"A <= 5 && B >= 4":        0,
	} {
		e, err := expr.Parse(text)
		require.NoError(t, err)
		got, err := e.Value(names)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"A + C":   "C is not a parameter",
		"A / 0":   "a division by 0",
		"1 << 64": "a shift by 64",
		"A & B":   "& has no value here",
		"~A":      "~ has no value here",
		"{A, B}":  "an expression of this kind has no value here",
		"4'bxx01": "4'bxx01 has no value",
	} {
		e, err := expr.Parse(text)
		require.NoError(t, err)
		_, err = e.Value(names)
		assert.EqualError(t, err, want, text)
	}
}

func TestWidth(t *testing.T) {
	nets := map[string]int{"a": 1, "b": 8, "c": 64}
	for text, want := range map[string]int{
		"b":                       8,
		"b[3]":                    1,
		"c[39:8]":                 32,
		"c[8*b+:16]":              16,
		"{a, b, 3'd0}":            12,
		"{4{a, b[1:0]}}":          12,
		"~b & c[7:0]":             8,
		"b + 16'd1":               16,
		"b << c":                  8,
		"a && b":                  1,
		"|(b & ~b)":               1,
		"!b":                      1,
		"a ? b : 8'd0":            8,
		"b == 8'd3":               1,
		"(a | {8{a && b}}) ^ 8'0": 0,
	} {
		e, err := expr.Parse(text)
		if want == 0 {
			assert.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		got, err := e.Width(nets)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"0":           "0 has no size",
		"b + 1":       "1 has no size",
		"{a, 1}":      "1 has no size",
		"{b{a}}":      "b is not a parameter",
		"c[b:0]":      "b is not a parameter",
		"$clog2(b)":   "the width of $clog2() is not known here",
		"a ? b : 'd0": "'d0 has no size",
	} {
		e, err := expr.Parse(text)
		require.NoError(t, err, text)
		_, err = e.Width(nets)
		assert.EqualError(t, err, want, text)
	}
}

func TestNames(t *testing.T) {
	e, err := expr.Parse("{a[3], b[8*c+:4], ~d & 4'hf}")
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c", "d"}, e.Names())
	assert.Equal(t, []expr.Bits{{Net: "a", MSB: 3, LSB: 3}}, e.Selections())
}

func TestDriven(t *testing.T) {
	nets := map[string]int{"a": 4, "b": 8}
	e, err := expr.Parse("{a, b[7:4], b[0]}")
	require.NoError(t, err)
	bits, err := e.Driven(nets)
	require.NoError(t, err)
	assert.Equal(t, []expr.Bits{{"a", 3, 0}, {"b", 7, 4}, {"b", 0, 0}}, bits)
	for _, text := range []string{"a & b", "1'b0", "{a, 1'b0}", "b[a]"} {
		e, err := expr.Parse(text)
		require.NoError(t, err)
		_, err = e.Driven(nets)
		assert.Error(t, err, text)
	}
}

// An error quotes the invalid text.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":        `cannot read "": "" instead of an operand`,
		"a b":     `cannot read "a b": unexpected b`,
		"(a":      `cannot read "(a": "" instead of )`,
		"a[3":     `cannot read "a[3": "" instead of ]`,
		"{a, }":   `cannot read "{a, }": "}" instead of an operand`,
		"a ? b":   `cannot read "a ? b": "" instead of :`,
		"a @ b":   `cannot read "a @ b": unexpected @ b`,
		"8'd1 +":  `cannot read "8'd1 +": "" instead of an operand`,
		"8'd1abc": `cannot read "8'd1abc": strconv.ParseUint: parsing "1abc": invalid syntax`,
	} {
		_, err := expr.Parse(text)
		assert.EqualError(t, err, want)
	}
}

// In a scope, names are constants or have other names; a constant has no size.
func TestIn(t *testing.T) {
	nets := map[string]int{"a": 32, "g[1].b": 8}
	rename := func(name string) string {
		if name == "b" {
			return "g[1].b"
		}
		return name
	}
	e, err := expr.Parse("{a[8*i+:8], b[i+2], i == 1 ? b : 8'd0}")
	require.NoError(t, err)
	e = e.In(map[string]int64{"i": 1}, rename)
	width, err := e.Width(nets)
	require.NoError(t, err)
	assert.Equal(t, 17, width)
	assert.Equal(t, []string{"a", "g[1].b", "g[1].b"}, e.Names())
	assert.Equal(t, []expr.Bits{{Net: "a", MSB: 15, LSB: 8}, {Net: "g[1].b", MSB: 3, LSB: 3}}, e.Selections())
	e, err = expr.Parse("i")
	require.NoError(t, err)
	_, err = e.In(map[string]int64{"i": 1}, rename).Width(nets)
	assert.EqualError(t, err, "i has no size")
}
