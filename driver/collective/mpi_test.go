package collective_test

// Open MPI and NumPy judge every implementation.

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// implementation is a way to all-reduce among up to mostJudged ranks.
type implementation struct {
	name string
	// open returns a group of a size, and the opener of its members for a format.
	open func(t *testing.T, size int, f wire.Format) (collective.Group, opener)
	// roundings is the d of SPEC.md, section 3.
	roundings func(size int) float64
	exact     bool // the real sum is rounded once
}

const mostJudged = 5

// implementations returns all implementations.
func implementations() []implementation {
	oneByOne := func(size int) float64 { return float64(size - 1) }
	all := []implementation{
		onHosts(collective.Ring, oneByOne),
		onHosts(collective.Tree, levels),
		onHosts(collective.PS, oneByOne),
	}
	for sum := range cardRoundings {
		all = append(all, onOneCard(sum))
	}
	for _, layout := range []string{"aa.bb", "abab."} {
		for from := range len(cardRoundings) {
			all = append(all, onRacks(layout, from))
		}
	}
	for _, sum := range []string{"", "tree", "fused", "exact"} {
		all = append(all, onMachines(sum))
	}
	return all
}

// cardRoundings has the d of a card's sum of n numbers, by the options of the card.
var cardRoundings = map[string]func(n int) float64{
	"sum=tree":  levels,
	"sum=fused": func(n int) float64 { return 1 + float64(n-1)/8 },
	"sum=exact": func(int) float64 { return 1 },
}

// levels returns the levels of a binary tree over n numbers.
func levels(n int) float64 { return float64(bits.Len(uint(n - 1))) }

func onHosts(a collective.Algorithm, roundings func(int) float64) implementation {
	return implementation{name: a.String(), roundings: roundings,
		open: func(t *testing.T, size int, _ wire.Format) (collective.Group, opener) {
			return newGroup(t, size), by(a)
		}}
}

func onOneCard(sum string) implementation {
	return implementation{name: "card " + sum, roundings: cardRoundings[sum], exact: sum == "sum=exact",
		open: func(t *testing.T, size int, f wire.Format) (collective.Group, opener) {
			return newGroup(t, size), card(t, "cpu:"+sum, size, f, func(text string) { t.Error(text) })
		}}
}

// onRacks is Rina with the first ranks of a layout; racks a and b have cards.
func onRacks(layout string, from int) implementation {
	first := func(size int, f wire.Format) racks {
		equipped := "a"
		if strings.Contains(layout[:size], "b") {
			equipped = "ab"
		}
		return racks{layout[:size], equip(equipped, from), f, 0}
	}
	return implementation{name: fmt.Sprint("rina ", first(mostJudged, wire.FP32)),
		open: func(t *testing.T, size int, f wire.Format) (collective.Group, opener) {
			k := first(size, f)
			return k.group(t), k.opener(t, collective.WithWarnings(func(text string) { t.Error(text) }))
		},
		roundings: func(size int) (all float64) {
			k := first(size, wire.FP32)
			for _, ranks := range k.nodes() {
				if of := cardRoundings[k.cards[layout[ranks[0]:ranks[0]+1]]]; of != nil {
					all += of(len(ranks) + 1)
				} else {
					all++
				}
			}
			return all
		}}
}

// onMachines is a parallel all-reduce: on two machines if the ranks are even in number, else on one for each.
// sum is that of the cards; "" is a ring.
func onMachines(sum string) implementation {
	layouts := map[int]string{2: "ab", 3: "abc", 4: "abab", 5: "abcde"}
	return implementation{name: "parallel " + sum,
		open: func(t *testing.T, size int, f wire.Format) (collective.Group, opener) {
			k := machines{layouts[size], sum, f}
			return k.group(t), k.opener(t, collective.WithWarnings(func(text string) { t.Error(text) }))
		},
		roundings: func(size int) float64 {
			all := machines{layout: layouts[size]}.ranks()
			between := float64(len(all) - 1)
			if of := cardRoundings["sum="+sum]; of != nil {
				between = of(len(all))
			}
			return float64(len(all[0])-1) + between
		}}
}

// judged is a case for the judges.
type judged struct {
	Format string `json:"format"`
	Ranks  int    `json:"ranks"`
	Length int    `json:"length"`

	kind   string
	arrays [][]byte
	mpi    []byte    // MPI_Allreduce
	sum    []byte    // NumPy, int32
	real   []float64 // NumPy in float64, fp32
	abs    []float64 // of magnitudes
}

func (j *judged) format() wire.Format {
	if j.Format == "int32" {
		return wire.Int32
	}
	return wire.FP32
}

func (j *judged) String() string {
	return fmt.Sprintf("%s, %s, %d ranks, %d elements", j.Format, j.kind, j.Ranks, j.Length)
}

// difficult has arrays of fp32, by kind.
var difficult = map[string]func(r *rand.Rand, x [][]byte){
	"of many exponents": func(*rand.Rand, [][]byte) {},
	"cancelling": func(r *rand.Rand, x [][]byte) {
		for i := range len(x[0]) / 4 {
			p := r.Perm(len(x))
			large := math.Float32bits(float32(r.NormFloat64() * 0x1p40))
			element.Put(wire.FP32, x[p[0]], i, large)
			element.Put(wire.FP32, x[p[1]], i, large^1<<31)
		}
	},
	"subnormal": func(r *rand.Rand, x [][]byte) {
		for _, y := range x {
			for i := range len(y) / 4 { // exponent fields 0 and 1
				element.Put(wire.FP32, y, i, r.Uint32()&0x80ffffff)
			}
		}
	},
	"not finite": func(r *rand.Rand, x [][]byte) {
		for _, y := range x {
			for i := range len(y) / 4 {
				if r.IntN(4) == 0 { // NaNs quiet and signaling
					element.Put(wire.FP32, y, i, []uint32{0x7f800000, 0xff800000, 0x7fc12345, 0xff800001}[r.IntN(4)])
				}
			}
		}
	},
}

// newCases returns cases of every size, length and kind.
func newCases() (all []*judged) {
	for size := 2; size <= mostJudged; size++ {
		for _, length := range append(lengths(size), 30_011) {
			for seed := range uint64(2) {
				all = append(all, &judged{Format: "int32", Ranks: size, Length: length, kind: "any bits",
					arrays: randomArrays(seed, wire.Int32, size, length)})
				for kind, change := range difficult {
					x := randomArrays(seed, wire.FP32, size, length)
					change(rand.New(rand.NewPCG(seed, uint64(length))), x)
					all = append(all, &judged{Format: "fp32", Ranks: size, Length: length, kind: kind, arrays: x})
				}
			}
		}
	}
	return all
}

// askJudges has Open MPI and NumPy sum the arrays of all cases, in one run of mpirun.
func askJudges(t *testing.T, cases []*judged) {
	folder := t.TempDir()
	list, err := json.Marshal(cases)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cases.json"), list, 0o666))
	file := func(index int, suffix string) string { return filepath.Join(folder, fmt.Sprint(index)+suffix) }
	for index, j := range cases {
		require.NoError(t, os.WriteFile(file(index, ".in"), bytes.Join(j.arrays, nil), 0o666))
	}
	// All ranks are on this machine, and maybe more than its processors. They share memory: single copies need
	// permissions that containers lack.
	run := exec.CommandContext(t.Context(), "mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated",
		"--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism", "none", "-n", fmt.Sprint(mostJudged), "python", filepath.Join("testdata", "mpi.py"), folder)
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s\nmake setup installs Open MPI and mpi4py; make env has the settings", out)
	floats := func(path string) []float64 {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		numbers := make([]float64, len(raw)/8)
		require.NoError(t, binary.Read(bytes.NewReader(raw), binary.LittleEndian, numbers))
		return numbers
	}
	for index, j := range cases {
		j.mpi, err = os.ReadFile(file(index, ".mpi"))
		require.NoError(t, err)
		if j.format() == wire.Int32 {
			j.sum, err = os.ReadFile(file(index, ".sum"))
			require.NoError(t, err)
			continue
		}
		j.real, j.abs = floats(file(index, ".sum")), floats(file(index, ".abs"))
	}
}

// judge compares an all-reduce with the judges'.
func (j *judged) judge(got []byte, roundings float64, exact bool) error {
	if j.format() == wire.Int32 {
		switch {
		case !bytes.Equal(got, j.mpi):
			return fmt.Errorf("%s: the sum differs from MPI_Allreduce", j)
		case !bytes.Equal(got, j.sum):
			return fmt.Errorf("%s: the sum differs from NumPy", j)
		}
		return nil
	}
	for i, real := range j.real {
		x, mpi := element.Value(wire.FP32, element.At(wire.FP32, got, i)), element.Value(wire.FP32, element.At(wire.FP32, j.mpi, i))
		if class(x) != class(mpi) || class(x) != class(real) {
			return fmt.Errorf("%s: element %d is %g, MPI's %g, NumPy's %g", j, i, x, mpi, real)
		}
		if off, most := math.Abs(x-real), j.bound(i, roundings, exact); class(real) == finite && off > most {
			return fmt.Errorf("%s: element %d is %g, NumPy's %g; the error %g exceeds %g", j, i, x, real, off, most)
		}
	}
	return nil
}

// bound is the largest error of element i (SPEC.md, section 3), and that of NumPy's float64 sum.
func (j *judged) bound(i int, roundings float64, exact bool) float64 {
	const u = 0x1p-24
	most := roundings * u / (1 - roundings*u) * j.abs[i]
	if exact {
		most = u * math.Abs(j.real[i])
	}
	return most + float64(j.Ranks)*0x1p-53*j.abs[i]
}

// finite is the class of finite numbers.
const finite = "finite"

// class returns finite, or which infinity or NaN a number is.
func class(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Sprint(x)
	}
	return finite
}

// TestMPI: every implementation has the int32 sums of MPI_Allreduce and NumPy, bit by bit, also where they
// wrap around. Its fp32 sums are within the bound of its order from a float64 sum, and NaNs and
// infinities are where MPI's are. MPI's own sums are within the bound of any order.
func TestMPI(t *testing.T) {
	cases := newCases()
	askJudges(t, cases)
	classes := map[string]int{}
	for _, j := range cases {
		require.NoError(t, j.judge(j.mpi, float64(j.Ranks-1), false), "MPI itself")
		for _, real := range j.real {
			classes[class(real)]++
		}
	}
	for _, c := range []string{finite, "NaN", "+Inf", "-Inf"} {
		require.Greater(t, classes[c], 1000, c)
	}
	for _, k := range implementations() {
		for size := 2; size <= mostJudged; size++ {
			for _, f := range []wire.Format{wire.Int32, wire.FP32} {
				t.Run(fmt.Sprintf("%s/%d/%s", k.name, size, f), func(t *testing.T) {
					own := slices.DeleteFunc(slices.Clone(cases), func(j *judged) bool { return j.Ranks != size || j.format() != f })
					g, open := k.open(t, size, f)
					allWell(t, g, open, func(ctx context.Context, c collective.Collective) error {
						for _, j := range own {
							got := make([]byte, len(j.mpi))
							err := c.AllReduce(ctx, f, got, j.arrays[c.Group().Rank])
							if err == nil {
								err = j.judge(got, k.roundings(size), k.exact)
							}
							if err != nil {
								return err
							}
						}
						return nil
					})
				})
			}
		}
	}
}
