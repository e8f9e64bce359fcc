package vectors

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tributary/driver/model"
	"tributary/driver/wire"
	"tributary/verify/reference/operands"
	"tributary/verify/reference/oracle"
)

var (
	count  = flag.Int("vectors", 100_000, "vectors for every sum and format; others get a part of it")
	seed   = flag.Uint64("seed", 1, "of the operands")
	replay = flag.String("replay", "", "run this one line alone, in the form of testdata/kept.txt")
)

const root = "../../.." // of the repository

var builder = &Builder{Folder: filepath.Join(root, "build", "vectors")}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "vectors")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		builder.HWGen = filepath.Join(dir, "hwgen")
		build := exec.Command("go", "build", "-o", builder.HWGen, "./hwgen")
		build.Dir = root
		if said, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, said)
			return 1
		}
		return m.Run()
	}())
}

// judge checks a sum against both the model and the oracle, and the card in software against them.
type judge struct {
	lane      Lane
	model     *model.Arithmetic
	oracle    *oracle.Oracle
	software  *software
	checked   int
	undecided int
}

func newJudge(l Lane) (*judge, error) {
	m, err := model.NewArithmetic(l.Sum, l.Format, l.Result, l.Saturate)
	if err != nil {
		return nil, err
	}
	s, err := newSoftware(l)
	return &judge{lane: l, model: m, oracle: oracle.New(l.Sum, l.Format, l.Result, l.Saturate), software: s}, err
}

func (j *judge) check(kind string, x []uint32, y, flags uint32) error {
	j.checked++
	if flags&Undecided != 0 {
		j.undecided++
	}
	got := answer{y, flags&Overflowed != 0}
	var fromModel, fromOracle answer
	fromModel.y, fromModel.over = j.model.Element(x)
	fromOracle.y, fromOracle.over = j.oracle.Sum(x)
	if got == fromModel && got == fromOracle {
		return j.software.add(kind, x, got)
	}
	by := "lane"
	if flags&Undecided != 0 {
		by = "exact unit"
	}
	return fmt.Errorf("vector %d (%s):\n%s:%x\n%s %v, model %v, oracle %v", j.checked, kind, j.lane, x, by, got, fromModel, fromOracle)
}

// answer is a sum and its overflow flag.
type answer struct {
	y    uint32
	over bool
}

func (a answer) String() string {
	if a.over {
		return fmt.Sprintf("%x overflowed", a.y)
	}
	return fmt.Sprintf("%x", a.y)
}

// stream sends vectors through a lane, and reports the first wrong one in the format of -replay.
func stream(t *testing.T, l Lane, optimize string, n int, next func([]uint32) string) *judge {
	t.Helper()
	j, err := newJudge(l)
	if err != nil {
		t.Fatal(err)
	}
	streamTo(t, l, optimize, n, next, j.check)
	if err := j.software.finish(); err != nil {
		t.Fatal(err)
	}
	if j.checked != n {
		t.Fatalf("%d of %d vectors were checked", j.checked, n)
	}
	if j.undecided > 0 {
		t.Logf("%d vectors, %d of them (%.3g per million) undecided by the lane", n, j.undecided, 1e6*float64(j.undecided)/float64(n))
	}
	return j
}

// streamTo sends vectors through a lane and calls check on each.
func streamTo(t *testing.T, l Lane, optimize string, n int, next func([]uint32) string, check func(string, []uint32, uint32, uint32) error) {
	t.Helper()
	program, err := builder.Lane(t.Context(), l, optimize)
	if err != nil {
		t.Fatal(err)
	}
	if err := Stream(t.Context(), program, l.Ports, n, next, check); err != nil {
		t.Fatal(err)
	}
}

// name returns a test name for a lane.
func name(l Lane) string { return strings.ReplaceAll(l.String(), " ", "_") }

// allSums are all sums of the tables.
var allSums = func() (all []wire.Sum) {
	for _, row := range wire.Sums {
		all = append(all, row.Sum)
	}
	return all
}()

// TestVectors covers every sum and format with eight ports.
func TestVectors(t *testing.T) {
	t.Parallel()
	if *replay != "" {
		t.Skip("-replay")
	}
	for _, which := range allSums {
		for _, format := range []wire.Format{wire.FP32, wire.BF16, wire.FP16, wire.Int32} {
			l := Lane{Sum: which, Format: format, Result: format, Ports: 8}
			t.Run(name(l), func(t *testing.T) {
				t.Parallel()
				stream(t, l, "-O1", *count, operands.New(format, format, *seed).Next)
			})
		}
	}
}

// TestOtherLanes sends fewer vectors through lanes with other results and numbers of ports, and
// with integers that saturate.
func TestOtherLanes(t *testing.T) {
	t.Parallel()
	if *replay != "" {
		t.Skip("-replay")
	}
	withDSP := sumsWithDSP(t)
	for _, which := range allSums {
		row, _ := which.Info()
		var lanes []Lane
		for _, f := range [][2]wire.Format{
			{wire.BF16, wire.FP32}, {wire.FP16, wire.FP32}, {wire.FP8E4M3, wire.FP32}, {wire.FP8E5M2, wire.FP32},
			{wire.FP8E4M3, wire.FP16}, {wire.FP8E5M2, wire.BF16}, {wire.FP8E4M3, wire.FP8E4M3}, {wire.FP8E5M2, wire.FP8E5M2},
		} {
			lanes = append(lanes, Lane{Sum: which, Format: f[0], Result: f[1], Ports: 8})
		}
		for _, ports := range []int{1, 2, 3, 5, 16, 64} {
			lanes = append(lanes, Lane{Sum: which, Format: wire.FP32, Result: wire.FP32, Ports: ports})
		}
		for _, ports := range []int{1, 3, 7} {
			lanes = append(lanes, Lane{Sum: which, Format: wire.FP16, Result: wire.FP16, Ports: ports},
				Lane{Sum: which, Format: wire.FP8E4M3, Result: wire.BF16, Ports: ports},
				Lane{Sum: which, Format: wire.Int32, Result: wire.Int32, Saturate: row.Adds, Ports: ports})
		}
		lanes = append(lanes, Lane{Sum: which, Format: wire.Int32, Result: wire.Int32, Saturate: row.Adds, Ports: 64},
			Lane{Sum: which, Format: wire.Int32, Result: wire.Int32, Ports: 5})
		if which == wire.SumExact { // with so few bits, eight ports do not reach the limits of the window
			lanes = append(lanes, Lane{Sum: which, Format: wire.BF16, Result: wire.BF16, Ports: 16})
		}
		if slices.Contains(withDSP, which.String()) {
			lanes = append(lanes, Lane{Sum: which, Format: wire.FP32, Result: wire.FP32, DSP: true, Ports: 8})
		}
		for _, l := range lanes {
			t.Run(name(l), func(t *testing.T) {
				t.Parallel()
				stream(t, l, "-O0", max(*count/100*8/max(l.Ports, 8), 1000), operands.New(l.Format, l.Result, *seed).Next)
			})
		}
	}
}

// sumsWithDSP returns the words of hwgen's help for -dsp, which include the names of the sums
// that support it. It returns none without such a flag.
func sumsWithDSP(t *testing.T) []string {
	t.Helper()
	help, err := output(t.Context(), builder.HWGen, "-help")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(help) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "-dsp" {
			return words
		}
	}
	return nil
}

// TestOrderDoesNotMatter sends every order of hostile operands through lanes of eight ports; all
// orders must give the same sum.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	if *replay != "" {
		t.Skip("-replay")
	}
	const sets, orders = 3, 40320
	for _, which := range allSums {
		if which == wire.SumTree {
			continue // the only sum that depends on the order
		}
		for _, format := range []wire.Format{wire.FP32, wire.BF16, wire.FP16} {
			l := Lane{Sum: which, Format: format, Result: format, Ports: 8}
			t.Run(name(l), func(t *testing.T) {
				t.Parallel()
				next, stop := iter.Pull2(hostileOrders(operands.New(format, format, *seed), l.Ports))
				defer stop()
				j, err := newJudge(l)
				if err != nil {
					t.Fatal(err)
				}
				var first answer
				streamTo(t, l, "-O1", sets*orders, func(x []uint32) string {
					kind, order, _ := next()
					copy(x, order)
					return kind
				}, func(kind string, x []uint32, y, flags uint32) error {
					got := answer{y, flags&Overflowed != 0}
					if j.checked%orders == 0 {
						first = got
					}
					if got != first {
						return fmt.Errorf("%s (%s):%x is %v, in another order %v", l, kind, x, got, first)
					}
					return j.check(kind, x, y, flags)
				})
				if err := j.software.finish(); err != nil {
					t.Fatal(err)
				}
				if j.checked != sets*orders {
					t.Fatalf("%d of %d orders were checked", j.checked, sets*orders)
				}
			})
		}
	}
}

// hostileOrders yields every order of one set of hostile operands after the other, with its kind.
func hostileOrders(source *operands.Source, ports int) iter.Seq2[string, []uint32] {
	return func(yield func(string, []uint32) bool) {
		for {
			x := make([]uint32, ports)
			kind := source.Next(x)
			if !operands.Hurts(kind) {
				continue
			}
			for order := range operands.Permutations(x) {
				if !yield(kind, order) {
					return
				}
			}
		}
	}
}

// TestAllPairs sends all pairs of both fp8 formats through lanes of two ports.
func TestAllPairs(t *testing.T) {
	t.Parallel()
	if *replay != "" {
		t.Skip("-replay")
	}
	for _, which := range allSums {
		for _, format := range []wire.Format{wire.FP8E4M3, wire.FP8E5M2} {
			l := Lane{Sum: which, Format: format, Result: format, Ports: 2}
			t.Run(name(l), func(t *testing.T) {
				t.Parallel()
				pair := uint32(0)
				stream(t, l, "-O0", 1<<16, func(x []uint32) string {
					x[0], x[1] = pair>>8, pair&0xff
					pair++
					return "pair"
				})
			})
		}
	}
}

// kept parses vectors that once failed: a lane, a colon, the operands.
func kept(t *testing.T, text string) (lanes map[Lane][][]uint32) {
	t.Helper()
	lanes = map[Lane][][]uint32{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, list, _ := strings.Cut(line, ":")
		l, err := ParseLane(name)
		if err != nil {
			t.Fatal(err)
		}
		var x []uint32
		for _, word := range strings.Fields(strings.Trim(list, " []")) {
			e, err := strconv.ParseUint(word, 16, 32)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			x = append(x, uint32(e))
		}
		if len(x) != l.Ports {
			t.Fatalf("%q: %d operands for %d ports", line, len(x), l.Ports)
		}
		lanes[l] = append(lanes[l], x)
	}
	return lanes
}

// TestKept replays the vectors of testdata/kept.txt, or the one of -replay.
func TestKept(t *testing.T) {
	t.Parallel()
	text := *replay
	if text == "" {
		file, err := os.ReadFile(filepath.Join("testdata", "kept.txt"))
		if err != nil {
			t.Fatal(err)
		}
		text = string(file)
	}
	for l, vectors := range kept(t, text) {
		t.Run(name(l), func(t *testing.T) {
			i := 0
			j := stream(t, l, "-O0", len(vectors), func(x []uint32) string {
				copy(x, vectors[i])
				i++
				return "kept"
			})
			if *replay != "" {
				y, over := j.oracle.Sum(vectors[0])
				t.Logf("%s:%x gives %v", l, vectors[0], answer{y, over})
			}
		})
	}
}
