package npy

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// saved returns the file that NumPy 2.4 writes for
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
	twoByThree = float32s([]int{2, 3}, 1, 2, 3, 4, 5, float32(math.Copysign(0, -1)))
)

// float32s returns an array of numbers.
func float32s(shape []int, numbers ...float32) Array {
	a := Array{Shape: shape, Type: Float32}
	for _, x := range numbers {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(x))
	}
	return a
}

// file returns a version 1.0 file with the given dictionary and data.
func file(dict, data string) string {
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(dict)), byte(len(dict) >> 8)}) + dict + data
}

// same reports whether two arrays have the same shape and the same bits.
func same(a, b Array) bool {
	return slices.Equal(a.Shape, b.Shape) && a.Type == b.Type && bytes.Equal(a.Data, b.Data)
}

func TestRead(t *testing.T) {
	one := float32s([]int{}, 1)
	const bits = "\x00\x00\x80\x3f"
	for name, c := range map[string]struct {
		in   string
		want Array
	}{
		"C order":        {rowMajor, twoByThree},
		"Fortran order":  {columnMajor, twoByThree},
		"single number":  {file("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", bits), one},
		"other order":    {file(`{"shape":(),"fortran_order":True,"descr":"<f4",}`, bits), one},
		"long of Python": {file("{'descr': '<f4', 'fortran_order': False, 'shape': (1L,), }\n", bits), float32s([]int{1}, 1)},
		"empty":          {file("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 7), }", ""), Array{[]int{0, 7}, Float32, nil}},
		"halves":         {file("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 2)}", "aAbBcCdD"), Array{[]int{2, 2}, Float16, []byte("aAcCbBdD")}},
		"16 bits":        {file("{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}", "aAbB"), Array{[]int{2}, Uint16, []byte("aAbB")}},
		"integers":       {file("{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", "abcd"), Array{[]int{1}, Int32, []byte("abcd")}},
		"bytes":          {file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "abcdef"), Array{[]int{2, 3}, Uint8, []byte("acebdf")}},
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
		"the file is empty":                            "",
		"it is not a NumPy array file":                 "\x93NUM",
		"it has version 9 of NumPy's format":           "\x93NUMPY\x09\x00",
		"it is cut off inside its header":              rowMajor[:40],
		"it is cut off: 23 bytes of data":              rowMajor[:len(rowMajor)-1],
		"it is cut off: 0 bytes of data":               rowMajor[:128],
		"it holds more than the 6 elements":            rowMajor + "x",
		"a.astype('<f4')":                              with("<f4", "<f8"),
		"its type '>f4' is not supported":              with("<f4", ">f4"),
		"if it is bfloat16, save a.view('<u2')":        with("<f4", "|V2"),
		"if it is an 8-bit float, save a.view('|u1')":  with("<f4", "|V1"),
		"it holds records":                             with("'<f4'", "[('x', '<f4')]"),
		"no descr":                                     with("descr", "dascr"),
		"no fortran_order":                             with("False", "1"),
		"no shape":                                     with("(2,)", "2"),
		"the shape holds something other than numbers": with("(2,)", "('2',)"),
		"the shape has 65 dimensions; NumPy allows 64": with("(2,)", "("+strings.Repeat("1,", 65)+")"),
		"a negative dimension":                         with("(2,)", "(-1, -2)"),
		"more than 2^40 elements":                      with("(2,)", "(1048577, 1048576)"),
		"it is cut off: 8 bytes of data, its header":   with("(2,)", "(1048576, 1048576)"),
		"'}' is missing":                               with(", }", ""),
		"text after the dictionary":                    with("}", "} + {}"),
		"a string does not end":                        with("'shape': (2,), }", "'shape"),
		"brackets nested too deep":                     with("(2,)", strings.Repeat("(", 100)),
		"a value is missing":                           file("{'descr':", ""),
		"a value cannot be read":                       with("(2,)", "None"),
		"its header is damaged: 4278190080 bytes":      "\x93NUMPY\x02\x00\x00\x00\x00\xff",
		"its header is damaged: '{' is missing":        file("\xff\xff", ""),
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
	for want, a := range map[string]Array{
		"shape (2, 2) of float32 does not fit 12 bytes": {[]int{2, 2}, Float32, make([]byte, 12)},
		"shape (3,) of uint16 does not fit 12 bytes":    {[]int{3}, Uint16, make([]byte, 12)},
		`arrays of type "<f8" cannot be written`:        {[]int{1}, "<f8", make([]byte, 8)},
	} {
		if err := Write(&bytes.Buffer{}, a); err == nil || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}

func TestArchive(t *testing.T) {
	in := []Named{{"layer.0/w", twoByThree}, {"b", Array{[]int{1}, Uint8, []byte{7}}}}
	var b bytes.Buffer
	if err := WriteArchive(&b, in); err != nil {
		t.Fatal(err)
	}
	out, err := ReadArchive(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 2 || out[0].Name != "b" || out[1].Name != "layer.0/w" || !same(out[0].Array, in[1].Array) || !same(out[1].Array, in[0].Array) {
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
		`it holds array "w" twice`:                    archive("w", "w"),
	} {
		if _, err := ReadArchive(bytes.NewReader(in), int64(len(in))); err == nil || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}

// numPy loads the files that Go wrote and prints every array's shape and bits. It saves each
// array again in all of NumPy's ways.
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

// TestNumPy checks that NumPy reads the files of this package, and this package those of NumPy,
// with the same shapes and bits.
func TestNumPy(t *testing.T) {
	dir := t.TempDir()
	cube := Array{Shape: []int{2, 3, 2}, Type: Float32}
	wantHex := ""
	for _, bits := range []uint32{0, 0x80000000, 1, 0x807fffff, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffa00001, 0x3f800000, 0x42, 0xdeadbeef} {
		cube.Data = binary.LittleEndian.AppendUint32(cube.Data, bits)
		wantHex += fmt.Sprintf("%02x%02x%02x%02x", byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	scalar := float32s([]int{}, 1)
	named := []Named{
		{"bytes", Array{[]int{3}, Uint8, []byte{1, 2, 255}}}, {"cube", cube}, {"halves", Array{[]int{1, 2}, Float16, []byte{0, 0x3c, 1, 0x7c}}},
		{"integers", Array{[]int{1}, Int32, []byte{0xff, 0xff, 0xff, 0x7f}}}, {"patterns", Array{[]int{2, 1}, Uint16, []byte{0x80, 0x3f, 0xc0, 0x7f}}}, {"scalar", scalar},
	}

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
	want := "<f4 (2, 3, 2) " + wantHex + "\nbytes |u1 (3,) 0102ff\ncube <f4 (2, 3, 2) " + wantHex +
		"\nhalves <f2 (1, 2) 003c017c\nintegers <i4 (1,) ffffff7f\npatterns <u2 (2, 1) 803fc07f\nscalar <f4 () 0000803f\n"
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
		if err != nil || len(got) != len(named) {
			t.Errorf("%s: read %v, error %v", name, got, err)
			continue
		}
		for i, a := range got {
			if a.Name != named[i].Name || !same(a.Array, named[i].Array) {
				t.Errorf("%s: read %v, want %v", name, a, named[i])
			}
		}
	}
}

// archiveOf returns an .npz file with one compressed array. Its directory announces the given
// size.
func archiveOf(t *testing.T, content string, announced uint64) []byte {
	t.Helper()
	var packed, b bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, content)
	w.Close()
	z := zip.NewWriter(&b)
	m, err := z.CreateRaw(&zip.FileHeader{
		Name: "w.npy", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(content)),
		CompressedSize64: uint64(packed.Len()), UncompressedSize64: announced,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Write(packed.Bytes())
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadArchiveWithin checks that the announced size limits an archive, and that an array
// larger than announced is an error.
func TestReadArchiveWithin(t *testing.T) {
	zeros := file("{'descr': '<f4', 'fortran_order': False, 'shape': (262144,), }", strings.Repeat("\x00", 1<<20))
	size := uint64(len(zeros))
	read := func(announced, limit uint64) error {
		in := archiveOf(t, zeros, announced)
		_, err := ReadArchiveWithin(bytes.NewReader(in), int64(len(in)), limit)
		return err
	}
	if err := read(size, size); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	var large *TooLargeError
	if err := read(size, size-1); !errors.As(err, &large) || large.Size != size || large.Limit != size-1 ||
		!strings.Contains(err.Error(), fmt.Sprintf("unpack to %d bytes, more than the limit of %d", size, size-1)) {
		t.Errorf("beyond the limit: %v", err)
	}
	for _, announced := range []uint64{0, 200, size - 1} {
		if err := read(announced, size-1); err == nil || !strings.Contains(err.Error(), `array "w": it is damaged: it unpacks to more than`) {
			t.Errorf("%d bytes announced: %v", announced, err)
		}
	}
	in := archiveOf(t, zeros, 1<<50)
	if _, err := ReadArchive(bytes.NewReader(in), int64(len(in))); !errors.As(err, &large) || large.Size != 1<<50 {
		t.Errorf("a pebibyte: %v", err)
	}
}

// FuzzRead checks that Read neither panics nor takes unlimited memory. Every array that it
// reads is the same after Write and another Read.
func FuzzRead(f *testing.F) {
	f.Add([]byte(rowMajor))
	f.Add([]byte(columnMajor))
	f.Add([]byte(rowMajor[:len(rowMajor)-5]))
	f.Add([]byte(file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2, 2), }", strings.Repeat("abcd", 8))))
	f.Add([]byte(file("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 2), }", "abcdefgh")))
	f.Add([]byte(file("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc")))
	f.Add([]byte(file("{'descr': '<i4', 'fortran_order': False, 'shape': (), }", "abcd")))
	f.Add([]byte(file("{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }", "ab")))
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

// FuzzReadArchive checks that ReadArchive does not panic. All arrays that it reads are the same
// after WriteArchive and another ReadArchive.
func FuzzReadArchive(f *testing.F) {
	for _, arrays := range [][]Named{
		{{"w", twoByThree}},
		{{"z", Array{[]int{2}, Uint8, []byte("ab")}}, {"a", Array{[]int{1, 1}, Uint16, []byte("ab")}}},
		nil,
	} {
		var b bytes.Buffer
		if err := WriteArchive(&b, arrays); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()/2])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		arrays, err := ReadArchive(bytes.NewReader(in), int64(len(in)))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteArchive(&b, arrays); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := ReadArchive(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil || len(again) != len(arrays) {
			t.Fatalf("read %v, wrote it, read %v, error %v", arrays, again, err)
		}
		for i, a := range arrays {
			if a.Name != again[i].Name || !same(a.Array, again[i].Array) {
				t.Fatalf("read %v, wrote it, read %v", a, again[i])
			}
		}
	})
}
