package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/npy"
	"tributary/driver/transport/serial"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asCommand in the environment makes the test binary act as the command.
const asCommand = "TRIBUTARY_TEST_AS_COMMAND"

// asCard in the environment makes it act as the virtual card of the folder in its value.
const asCard = "TRIBUTARY_TEST_AS_CARD"

func TestMain(m *testing.M) {
	if os.Getenv(asSimulator) != "" && filepath.Base(os.Args[0]) == "card" {
		startSim()
		return
	}
	if dir := os.Getenv(asCard); dir != "" {
		if strings.HasSuffix(os.Args[len(os.Args)-1], ".fst") {
			serveTraced(dir)
		} else {
			serveHosts(dir)
		}
		return
	}
	listPorts = func() []serial.Port { return nil } // independent of the machine
	if port := os.Getenv(asRDMAHost); port != "" {
		useHost(port)
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// until waits for a condition.
func until(so func() bool) {
	for !so() {
		runtime.Gosched()
	}
}

// said is the outcome of one command line.
type said struct {
	status    int
	out, errs string
}

// tributary runs a command line in this process.
func tributary(ctx context.Context, args ...string) said {
	var out, errs bytes.Buffer
	status := run(ctx, args, &out, &errs)
	return said{status, out.String(), errs.String()}
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s; to accept it: go test ./driver/cmd/tributary -update", path)
}

// transcript formats the outcome of a command line like a terminal, with the exit status. It masks
// values that differ from run to run.
func transcript(args []string, s said) string {
	text := fmt.Sprintf("$ tributary %s\n%s%s[exit %d]\n", strings.Join(args, " "), s.out, s.errs, s.status)
	for _, mask := range []struct{ pattern, with string }{
		{` test:,`, ""}, // only the tests have this scheme
		{`there is serial:\S+(, serial:\S+)*`, "no serial port is plugged in by USB"},
		{`(epoch\s+)\d+`, "${1}N"},
		{`((?m:^|  )frames +|"frames": |"frames",\s*"value": ?)\d+`, "${1}N"}, // a slow machine repeats accesses
		{`(sent again .*, )\d+ results`, "${1}N results"},
		{`\d+ results asked for`, "N results asked for"},
		{`("epoch": )\d+`, "${1}N"},
		{`(time\s+)[\d.]+ s`, "${1}T s"},
		{`(clock +|"cycles": ?)\d+`, "${1}N"},
		{`in cycles \d+ to \d+`, "in cycles N to N"},
		{`(read +|"time":")[\d:TZ.-]+`, "${1}T"},
		{`(back after |waiting for it, )[\d.]+m?s`, "${1}T"},
		{`(waited|answer for) [\d.]+m?s`, "${1} T"},
		{`(TAG|OWNER|JOB_TOKEN|RELEASE|JOB_COMMIT) = 0x[0-9a-f]+`, "${1} = X"},
	} {
		text = regexp.MustCompile(mask.pattern).ReplaceAllString(text, mask.with)
	}
	return text
}

// workFolder makes a folder with input files and enters it. It keeps the notes of running cards
// separate from the user's.
func workFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	write := func(name string, data []byte) { require.NoError(t, os.WriteFile(name, data, 0o666)) }
	for name, a := range map[string]npy.Array{
		"w0.npy":      float32s([]int{2, 3}, 1, 2, 3, 4, 5, 6),
		"w1.npy":      float32s([]int{2, 3}, 10, 20, 30, 40, 50, 60),
		"w2.npy":      float32s([]int{2, 3}, 0.5, 0, -3, -4, 1e30, 1e-40),
		"flat.npy":    float32s([]int{6}, 0, 0, 0, 0, 0, 0),
		"number.npy":  float32s([]int{}, 7),
		"nothing.npy": float32s([]int{0, 3}),
	} {
		writeArray(t, name, a)
	}
	whole, err := os.ReadFile("w0.npy")
	require.NoError(t, err)
	write("cut.npy", whole[:len(whole)-5])
	write("double.npy", bytes.Replace(whole, []byte("<f4"), []byte("<f8"), 1))
	write("text.npy", []byte("1 2 3\n"))
	write("none.npy", nil)
	for name, a := range map[string][]npy.Named{
		"a0.npz": {{Name: "w", Array: float32s([]int{1, 2}, 1, 2)}, {Name: "b", Array: float32s([]int{}, 3)}},
		"a1.npz": {{Name: "b", Array: float32s([]int{}, 30)}, {Name: "w", Array: float32s([]int{1, 2}, 10, 20)}},
		"a2.npz": {{Name: "w", Array: float32s([]int{2}, 1, 2)}, {Name: "c", Array: float32s([]int{1}, 3)}},
	} {
		var b bytes.Buffer
		require.NoError(t, npy.WriteArchive(&b, a))
		write(name, b.Bytes())
	}
}

// float32s returns an array of numbers.
func float32s(shape []int, x ...float32) npy.Array {
	a := npy.Array{Shape: shape, Type: npy.Float32}
	for _, number := range x {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(number))
	}
	return a
}

// numbers returns an array's float32 numbers.
func numbers(data []byte) []float32 {
	x := make([]float32, len(data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x
}

// elements returns an array with the given encodings of a type.
func elements(t npy.Type, shape []int, encodings ...uint32) npy.Array {
	a := npy.Array{Shape: shape, Type: t}
	for _, x := range encodings {
		a.Data = append(a.Data, binary.LittleEndian.AppendUint32(nil, x)[:t.Size()]...)
	}
	return a
}

// writeArray writes an input file.
func writeArray(t *testing.T, path string, a npy.Array) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, a))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
}

// cardManifest returns hwgen's manifest of a card with 4 lanes and 3 ports. It must be called from
// this package's folder.
func cardManifest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../hwgen/testdata/golden/l4_w3_stream/manifest.json")
	require.NoError(t, err)
	return string(text)
}

// readArray reads an output file.
func readArray(t *testing.T, path string) npy.Array {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	a, err := npy.Read(f)
	require.NoError(t, err)
	return a
}

// requireNoNewFiles checks that the folder has the same files as before.
func requireNoNewFiles(t *testing.T, before []string) {
	t.Helper()
	require.Equal(t, before, files(t))
}

func files(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*")
	require.NoError(t, err)
	hidden, err := filepath.Glob(".*")
	require.NoError(t, err)
	return append(names, hidden...)
}
