package npy

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// saved is what NumPy 2.4 writes for
//
//	np.save(f, np.array([[1, 2, 3], [4, 5, -0.0]], dtype="<f4", order=ORDER))
func saved(fortran string, data ...byte) string {
	dict := "{'descr': '<f4', 'fortran_order': " + fortran + ", 'shape': (2, 3), }"
	return "\x93NUMPY\x01\x00\x76\x00" + dict + strings.Repeat(" ", 0x75-len(dict)) + "\n" + string(data)
}

var (
	rowMajor = saved("False",
		0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40,
		0, 0, 0x80, 0x40, 0, 0, 0xa0, 0x40, 0, 0, 0, 0x80)
	columnMajor = saved("True",
		0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x40, 0, 0, 0, 0x40,
		0, 0, 0xa0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0, 0x80)
	twoByThree = Array{[]int{2, 3}, []float32{1, 2, 3, 4, 5, float32(math.Copysign(0, -1))}}
)

// file returns a version 1.0 file with the given dictionary and data.
func file(dict, data string) string {
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(dict)), byte(len(dict) >> 8)}) + dict + data
}

// same tells whether two arrays have the same shape and the same bits.
func same(a, b Array) bool {
	return slices.Equal(a.Shape, b.Shape) &&
		slices.EqualFunc(a.Data, b.Data, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestRead(t *testing.T) {
	one := Array{[]int{}, []float32{1}}
	const bits = "\x00\x00\x80\x3f"
	for name, c := range map[string]struct {
		in   string
		want Array
	}{
		"C order":        {rowMajor, twoByThree},
		"Fortran order":  {columnMajor, twoByThree},
		"single number":  {file("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", bits), one},
		"other order":    {file(`{"shape":(),"fortran_order":True,"descr":"<f4",}`, bits), one},
		"long of Python": {file("{'descr': '<f4', 'fortran_order': False, 'shape': (1L,), }\n", bits), Array{[]int{1}, one.Data}},
		"empty":          {file("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 7), }", ""), Array{[]int{0, 7}, nil}},
		"version 2":      {"\x93NUMPY\x02\x00\x35\x00\x00\x00{'descr': '<f4', 'fortran_order': False, 'shape': ()}" + bits, one},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if !same(got, c.want) {
				t.Errorf("read %v %v, want %v %v", got.Shape, got.Data, c.want.Shape, c.want.Data)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	with := func(old, new string) string { return file(strings.Replace(good, old, new, 1), "12345678") }
	for want, in := range map[string]string{
		"the file is empty":                              "",
		"it is not a NumPy array file":                   "\x93NUM",
		"it is of version 9 of NumPy's format":           "\x93NUMPY\x09\x00",
		"it is cut off inside its header":                rowMajor[:40],
		"it is cut off: 23 bytes of data":                rowMajor[:len(rowMajor)-1],
		"it is cut off: 0 bytes of data":                 rowMajor[:128],
		"there is more in it than the 6 elements":        rowMajor + "x",
		"a.astype('<f4')":                                with("<f4", "<f8"),
		"its type is '>f4'":                              with("<f4", ">f4"),
		"it holds records":                               with("'<f4'", "[('x', '<f4')]"),
		"no descr":                                       with("descr", "dascr"),
		"no fortran_order":                               with("False", "1"),
		"no shape":                                       with("(2,)", "2"),
		"the shape is not made of numbers":               with("(2,)", "('2',)"),
		"the shape has 65 dimensions; NumPy allows 64":   with("(2,)", "("+strings.Repeat("1,", 65)+")"),
		"a negative dimension":                           with("(2,)", "(-1, -2)"),
		"more than 2^40 elements":                        with("(2,)", "(1048577, 1048576)"),
		"it is cut off: 8 bytes of data, its header":     with("(2,)", "(1048576, 1048576)"),
		"no '}' where one belongs":                       with(", }", ""),
		"text after the dictionary":                      with("}", "} + {}"),
		"a string does not end":                          with("'shape': (2,), }", "'shape"),
		"brackets nested too deep":                       with("(2,)", strings.Repeat("(", 100)),
		"a value is missing":                             file("{'descr':", ""),
		"a value that is not understood":                 with("(2,)", "None"),
		"its header is damaged: 4278190080 bytes":        "\x93NUMPY\x02\x00\x00\x00\x00\xff",
		"its header is damaged: no '{' where one belong": file("\xff\xff", ""),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := Read(strings.NewReader(in))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want one with %q", err, want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, twoByThree); err != nil {
		t.Fatal(err)
	}
	if b.String() != rowMajor {
		t.Errorf("wrote\n%q\nwant\n%q", b.String(), rowMajor)
	}
}

func TestWriteRefusesShape(t *testing.T) {
	err := Write(&bytes.Buffer{}, Array{[]int{2, 2}, make([]float32, 3)})
	if want := "shape (2, 2) does not fit 3 elements"; err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestArchive(t *testing.T) {
	in := []Named{{"layer.0/w", twoByThree}, {"b", Array{[]int{1}, []float32{7}}}}
	var b bytes.Buffer
	if err := WriteArchive(&b, in); err != nil {
		t.Fatal(err)
	}
	out, err := ReadArchive(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 2 || out[0].Name != "layer.0/w" || out[1].Name != "b" || !same(out[0].Array, in[0].Array) || !same(out[1].Array, in[1].Array) {
		t.Errorf("read %v, want %v", out, in)
	}
}

func TestReadArchiveRefuses(t *testing.T) {
	archive := func(names ...string) []byte {
		var b bytes.Buffer
		var in []Named
		for _, n := range names {
			in = append(in, Named{n, twoByThree})
		}
		if err := WriteArchive(&b, in); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	flipped := archive("w")
	flipped[bytes.Index(flipped, []byte("\x00\x00\xa0\x40"))+2] ^= 1
	for want, in := range map[string][]byte{
		"it is not a NumPy archive, or it is cut off": archive("w")[:200],
		`array "w": zip: checksum error`:              flipped,
		`array "w" is in it twice`:                    archive("w", "w"),
	} {
		if _, err := ReadArchive(bytes.NewReader(in), int64(len(in))); err == nil || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}

// numPy loads what Go wrote, prints every array's shape and bits, and saves
// it again in the ways that NumPy has.
const numPy = `
import sys, numpy as np
a = np.load("go.npy")
print(a.dtype.str, a.shape, a.tobytes().hex())
z = np.load("go.npz")
for name in z.files:
    print(name, z[name].dtype.str, z[name].shape, z[name].tobytes().hex())
np.save("c.npy", a)
np.save("fortran.npy", np.asfortranarray(a))
np.savez("stored.npz", **{name: z[name] for name in z.files})
np.savez_compressed("packed.npz", **{name: z[name] for name in z.files})
with open("version3.npy", "wb") as f:
    np.lib.format.write_array(f, a, version=(3, 0))
`

// TestNumPy has NumPy read what this package writes, and this package what
// NumPy writes: the same shapes, the same bits.
func TestNumPy(t *testing.T) {
	dir := t.TempDir()
	cube := Array{Shape: []int{2, 3, 2}}
	wantHex := ""
	for _, bits := range []uint32{0, 0x80000000, 1, 0x807fffff, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffa00001, 0x3f800000, 0x42, 0xdeadbeef} {
		cube.Data = append(cube.Data, math.Float32frombits(bits))
		wantHex += fmt.Sprintf("%02x%02x%02x%02x", byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	scalar := Array{Shape: []int{}, Data: []float32{1}}
	named := []Named{{"cube", cube}, {"scalar", scalar}}

	var b bytes.Buffer
	write := func(name string, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Reset()
	}
	write("go.npy", Write(&b, cube))
	write("go.npz", WriteArchive(&b, named))

	python := exec.Command("python3", "-c", numPy)
	python.Dir = dir
	out, err := python.CombinedOutput()
	if err != nil {
		t.Fatalf("python3 with NumPy is needed for this test: %v\n%s", err, out)
	}
	want := "<f4 (2, 3, 2) " + wantHex + "\ncube <f4 (2, 3, 2) " + wantHex + "\nscalar <f4 () 0000803f\n"
	if string(out) != want {
		t.Errorf("NumPy reads\n%s\nwant\n%s", out, want)
	}

	for _, name := range []string{"c.npy", "fortran.npy", "version3.npy"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(f)
		f.Close()
		if err != nil || !same(got, cube) {
			t.Errorf("%s: read %v %v, error %v", name, got.Shape, got.Data, err)
		}
	}
	for _, name := range []string{"stored.npz", "packed.npz"} {
		all, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadArchive(bytes.NewReader(all), int64(len(all)))
		if err != nil || len(got) != 2 || !same(got[0].Array, cube) || !same(got[1].Array, scalar) {
			t.Errorf("%s: read %v, error %v", name, got, err)
		}
	}
}

// FuzzRead: whatever is read without an error is written and read again as the
// same array, and nothing makes Read panic or take memory without bound.
func FuzzRead(f *testing.F) {
	f.Add([]byte(rowMajor))
	f.Add([]byte(columnMajor))
	f.Add([]byte(rowMajor[:len(rowMajor)-5]))
	f.Add([]byte(file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2, 2), }", strings.Repeat("abcd", 8))))
	f.Add([]byte(file("{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': (1, ), }", "")))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, a); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := Read(&b)
		if err != nil || !same(a, again) {
			t.Fatalf("read %v %v, wrote it, read %v %v, error %v", a.Shape, a.Data, again.Shape, again.Data, err)
		}
	})
}

// FuzzReadArchive: nothing makes ReadArchive panic.
func FuzzReadArchive(f *testing.F) {
	var b bytes.Buffer
	if err := WriteArchive(&b, []Named{{"w", twoByThree}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Fuzz(func(t *testing.T, in []byte) {
		ReadArchive(bytes.NewReader(in), int64(len(in)))
	})
}
