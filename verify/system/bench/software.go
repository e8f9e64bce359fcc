package main

// The sums of the card in software (cpu:), on one core, beside plain additions and beside other libraries'
// exact sums of the same arrays.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"tributary/driver"
	"tributary/driver/wire"
)

const (
	arrayBytes = 25_000_000             // of each array, in memory
	spell      = 300 * time.Millisecond // of one measurement
	library    = "xsum-2.0.0"           // R. M. Neal's superaccumulators, from PyPI
)

// inSoftware is a row: a sum of some arrays beside a peer's sum of them.
type inSoftware struct {
	sum    wire.Sum
	arrays int
	data   string // what the arrays hold
	peer   string // a key of peers
	least  float64
	aim    float64
}

var inSoftwares = []inSoftware{
	{wire.SumTree, 4, "gradients", "gcc", 0.7, 0.95},
	{wire.SumTree, 8, "gradients", "gcc", 0.7, 0.95},
	{wire.SumFused, 4, "gradients", "gcc", 0.25, 0.5},
	{wire.SumFused, 8, "gradients", "gcc", 0.25, 0.5},
	{wire.SumExact, 4, "gradients", "gcc", 0.12, 0.3},
	{wire.SumExact, 8, "gradients", "gcc", 0.12, 0.3},
	{wire.SumExact, 8, "hostile operands", "gcc", 0, 0},
	{wire.SumExact, 8, "gradients", "xsum", 1, 0},
	{wire.SumExact, 8, "gradients", "fsum", 1, 0},
	{wire.SumExact, 8, "hostile operands", "xsum", 0, 0},
}

// peers names the programs that sum arrays.
var peers = map[string]string{
	"gcc":  "one pass of additions, c++ -O3 -march=native",
	"xsum": library + ", exact",
	"fsum": "Python's math.fsum, exact",
}

// softwareRows measures every sum right before its peer. It takes the fastest pass of each: other
// work on the machine slows the others, and not both alike.
func softwareRows(ctx context.Context) ([]Row, error) {
	commands, err := peerCommands(ctx)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, s := range inSoftwares {
		progress("%v of %d arrays of %s in software, beside %s", s.sum, s.arrays, s.data, peers[s.peer])
		file, arrays, err := s.operands()
		if err != nil {
			return nil, err
		}
		var pairs []pair
		for range rounds {
			speed, err := s.speed(ctx, arrays)
			if err != nil {
				return nil, err
			}
			beside, err := peerSpeed(ctx, commands[s.peer], file, s.arrays)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, pair{speed, beside})
		}
		rows = append(rows, s.row(median(pairs)))
	}
	return rows, nil
}

func (s inSoftware) row(p pair) Row {
	row := Row{Name: fmt.Sprintf("card cpu:, %v of %d fp32 arrays of %s, one core", s.sum, s.arrays, s.data), Value: p.value, Unit: "MB/s", Holds: true}
	row = row.beside(peers[s.peer], p.peer)
	if s.least > 0 {
		row = row.mustRatio(s.least)
	}
	if s.aim > 0 {
		row.Target += fmt.Sprintf(", aim %g x", s.aim)
	}
	return row
}

// operands returns the arrays, and a file that holds their first elements one array after another:
// an array is these, over and over.
func (s inSoftware) operands() (file string, arrays [][]byte, err error) {
	elements := hostile(s.arrays)
	if s.data == "gradients" {
		if elements, err = gradients(); err != nil {
			return "", nil, err
		}
		// Further workers have the gradients of the first four, of other weights.
		for w := len(elements); w < s.arrays; w++ {
			first := elements[w-4]
			elements = append(elements, append(append([]uint32{}, first[64*w:]...), first[:64*w]...))
		}
	}
	file = filepath.Join(folder, "software_"+strings.ReplaceAll(s.data, " ", "_")+"_"+strconv.Itoa(s.arrays))
	var all []byte
	for _, array := range elements[:s.arrays] {
		var part []byte
		for _, x := range array {
			part = binary.LittleEndian.AppendUint32(part, x)
		}
		all = append(all, part...)
		whole := make([]byte, 0, arrayBytes+len(part))
		for len(whole) < arrayBytes {
			whole = append(whole, part...)
		}
		arrays = append(arrays, whole[:arrayBytes])
	}
	return file, arrays, os.WriteFile(file, all, 0o666)
}

// speed returns the MB/s of arrays that the fastest of many reductions on the card takes. One
// processor runs the driver and the card.
func (s inSoftware) speed(ctx context.Context, arrays [][]byte) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	card, err := driver.Open(ctx, fmt.Sprintf("cpu:sum=%v,workers=%d", s.sum, s.arrays))
	if err != nil {
		return 0, err
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{})
	if err != nil {
		return 0, err
	}
	sum := make([]byte, arrayBytes)
	best := time.Hour
	for begin, passes := time.Now(), 0; passes < 6 || time.Since(begin) < spell; passes++ { // the first brings the pages of sum into memory
		before := time.Now()
		if err := job.ReduceBytes(ctx, sum, arrays); err != nil {
			return 0, err
		}
		best = min(best, time.Since(before))
	}
	return float64(s.arrays*arrayBytes) / best.Seconds() / 1e6, nil
}

// peerSpeed runs a peer, which prints the MB/s of arrays that the fastest of its passes takes.
func peerSpeed(ctx context.Context, command []string, file string, arrays int) (float64, error) {
	args := append(command[1:], file, strconv.Itoa(arrays), strconv.Itoa(arrayBytes), strconv.FormatFloat(spell.Seconds(), 'g', -1, 64))
	text, err := output(ctx, command[0], args...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(text), 64)
}

// peerCommands builds the peers.
func peerCommands(ctx context.Context) (map[string][]string, error) {
	const programs = "verify/system/bench/programs"
	header, err := fetchLibrary(ctx)
	if err != nil {
		return nil, err
	}
	commands := map[string][]string{"fsum": {"python", filepath.Join(programs, "fsum.py")}}
	for name, flags := range map[string][]string{"gcc": {"-DPAIRWISE"}, "xsum": {"-I", header}} {
		program := filepath.Join(folder, "software_"+name)
		args := append([]string{"-std=c++17", "-O3", "-march=native"}, flags...)
		if _, err := output(ctx, "c++", append(args, filepath.Join(programs, "software.cpp"), "-o", program)...); err != nil {
			return nil, err
		}
		commands[name] = []string{program}
	}
	return commands, nil
}

// fetchLibrary downloads the library unless it is there, and returns the folder of its headers.
func fetchLibrary(ctx context.Context) (string, error) {
	to := filepath.Join(folder, library)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return to, err
	}
	name, version, _ := strings.Cut(library, "-")
	_, err := output(ctx, "python", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:",
		"-d", folder, name+"=="+version)
	if err != nil {
		return "", err
	}
	_, err = output(ctx, "tar", "-xzf", to+".tar.gz", "-C", folder, library+"/xsum/xsum.hpp")
	return to, err
}
