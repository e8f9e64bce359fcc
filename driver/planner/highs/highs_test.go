package highs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// knapsack minimizes x + 2y under x + y >= 5/2, x <= 2.
func knapsack(whole bool) *Model {
	m := &Model{}
	x, y := m.Add("x", 2, 1, whole), m.Add("y", 10, 2, whole)
	m.Limit("enough", []Term{{x, 1}, {y, 1}}, ">=", 2.5)
	return m
}

func TestWrite(t *testing.T) {
	m := knapsack(true)
	m.Limit("none", []Term{{0, -1.5}}, "<=", -1)
	var b bytes.Buffer
	require.NoError(t, m.Write(&b))
	assert.Equal(t, `Minimize
 cost: + 1 x + 2 y
Subject To
 enough: + 1 x + 1 y >= 2.5
 none: - 1.5 x <= -1
Bounds
 x <= 2
 y <= 10
General
 x
 y
End
`, b.String())
}

// TestSolve asks the real HiGHS, which `make setup` installs.
func TestSolve(t *testing.T) {
	s, err := Find(t.Context(), "")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	s.Keep = t.TempDir()
	solution, err := s.Solve(t.Context(), knapsack(false), Options{})
	require.NoError(t, err)
	assert.Equal(t, &Solution{Status: Optimal, Values: []float64{2, 0.5}, Cost: 3}, solution)
	solution, err = s.Solve(t.Context(), knapsack(true), Options{})
	require.NoError(t, err)
	assert.Equal(t, &Solution{Status: Optimal, Values: []float64{2, 1}, Cost: 4}, solution)
	impossible := knapsack(false)
	impossible.Limit("little", []Term{{0, 1}, {1, 1}}, "<=", 2)
	solution, err = s.Solve(t.Context(), impossible, Options{})
	require.NoError(t, err)
	assert.Equal(t, &Solution{Status: Infeasible}, solution)

	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left, "it writes no log into the user's folder")
	kept, err := os.ReadFile(filepath.Join(s.Keep, "002.lp"))
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, knapsack(true).Write(&b))
	assert.Equal(t, b.String(), string(kept))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Solve(ctx, knapsack(false), Options{})
	assert.ErrorIs(t, err, context.Canceled)
}

// TestOptimum: the optimum of a knapsack of ten things, found by trying all sets. Once HiGHS stopped at
// 79,704, within the gap of 0.01 % that it allows by default, and columns took that for a bound.
func TestOptimum(t *testing.T) {
	s, err := Find(t.Context(), "")
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(35, 1))
	m, total := &Model{}, 0
	var weights, costs []int
	var terms []Term
	for i := range 10 {
		weight := 10000 + random.IntN(10000)
		weights, costs = append(weights, weight), append(costs, weight+random.IntN(4))
		total += weight
		terms = append(terms, Term{m.Add(fmt.Sprint("x", i), 1, float64(costs[i]), true), float64(weight)})
	}
	m.Limit("enough", terms, ">=", float64(total/2))
	least := math.Inf(1)
	for set := range 1 << len(weights) {
		weight, cost := 0, 0
		for i := range weights {
			if set>>i&1 != 0 {
				weight, cost = weight+weights[i], cost+costs[i]
			}
		}
		if weight >= total/2 {
			least = min(least, float64(cost))
		}
	}
	solution, err := s.Solve(t.Context(), m, Options{})
	require.NoError(t, err)
	assert.Equal(t, Optimal, solution.Status)
	assert.InDelta(t, least, solution.Cost, 0.01)
}

// program writes a shell script that stands for HiGHS. Its third and fifth arguments are the files of
// options and solution.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "highs")
	text := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo HiGHS version 9.9.9; exit; fi\n" + script
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

const optimal = `cat > "$4" <<EOF
Model status
Optimal

# Primal solution values
Feasible
Objective 3
# Columns 2
x 2
y 0.5
# Rows 1
enough 2.5
EOF
`

// TestNonsense: a solver that is killed, hangs, or answers nonsense is an error that names it.
func TestNonsense(t *testing.T) {
	defer func(p time.Duration) { patience = p }(patience)
	s, err := Find(t.Context(), program(t, optimal))
	require.NoError(t, err)
	assert.Equal(t, "9.9.9", s.Version)
	solution, err := s.Solve(t.Context(), knapsack(false), Options{})
	require.NoError(t, err)
	assert.Equal(t, []float64{2, 0.5}, solution.Values)

	replace := func(old, with string) string {
		require.Contains(t, optimal, old)
		return string(bytes.Replace([]byte(optimal), []byte(old), []byte(with), 1))
	}
	for says, script := range map[string]string{
		"HiGHS: signal: killed; its last line: so far":                      "echo so far; kill -9 $$\n",
		"HiGHS: exit status 3; its last line: no":                           "echo no; exit 3\n",
		"HiGHS: it wrote no solution; its last line: done":                  "echo done\n",
		"HiGHS: its solution has no status":                                 replace("Optimal", "Perfect"),
		"HiGHS: its solution has values of 0 variables instead of 2":        replace("Feasible", "None"),
		"HiGHS: its solution has values of 1 variables instead of 2":        replace("y 0.5\n", ""),
		`HiGHS: its solution has the line "z 0.5", which is nonsense`:       replace("y 0.5", "z 0.5"),
		`HiGHS: its solution has the line "y half", which is nonsense`:      replace("y 0.5", "y half"),
		"HiGHS: its solution breaks constraint enough":                      replace("y 0.5", "y 0.4"),
		"HiGHS: its solution breaks the value of x":                         replace("x 2", "x 3"),
		"HiGHS: its solution breaks the value of y":                         replace("y 0.5", "y nan"),
		"HiGHS: its solution has the objective 0, and costs 3":              replace("Objective 3\n", ""),
		"HiGHS: its solution has the objective 2.9, and costs 3":            replace("Objective 3", "Objective 2.9"),
		"HiGHS: its solution has the objective NaN, and costs 3":            replace("Objective 3", "Objective nan"),
		"HiGHS: its solution has the objective -Inf, and costs 3":           replace("Objective 3", "Objective -inf"),
		`HiGHS: its solution has the line "Objective x", which is nonsense`: replace("Objective 3", "Objective x"),
	} {
		s, err := Find(t.Context(), program(t, script))
		require.NoError(t, err)
		_, err = s.Solve(t.Context(), knapsack(false), Options{})
		assert.EqualError(t, err, says)
	}
	s, err = Find(t.Context(), program(t, "exec sleep 1000\n"))
	require.NoError(t, err)
	patience = 0
	_, err = s.Solve(t.Context(), knapsack(false), Options{Time: time.Millisecond})
	assert.EqualError(t, err, "HiGHS: it did not stop 0s after its time limit, and was killed")
}

// TestKilled: with a solver that is a script, what the script runs ends too. It keeps a FIFO open.
func TestKilled(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "alive")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	s, err := Find(t.Context(), program(t, "sleep 1000 > "+fifo+"\nexit\n"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Solve(ctx, knapsack(false), Options{})
		ended <- err
	}()
	alive, err := os.Open(fifo) // waits for the script
	require.NoError(t, err)
	defer alive.Close()
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
	left, err := io.ReadAll(alive)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestTail: of what a solver prints without end, its last line is kept.
func TestTail(t *testing.T) {
	var log tail
	for i := range 3 * tailBytes {
		n, err := fmt.Fprintln(&log, i)
		require.NoError(t, err)
		require.Positive(t, n)
		require.LessOrEqual(t, log.Len(), tailBytes)
	}
	assert.Equal(t, fmt.Sprint(3*tailBytes-1), lastLine(log.Bytes()))
	_, err := log.Write(bytes.Repeat([]byte("x"), 5*tailBytes))
	require.NoError(t, err)
	assert.Equal(t, tailBytes, log.Len())
}

// TestNoGap: the cost of a solution that is optimal is the least one. HiGHS may stop 0.01 % above it, unless
// it is told not to.
func TestNoGap(t *testing.T) {
	assert.Contains(t, Options{}.file(), "mip_rel_gap = 0\nmip_abs_gap = 0\n")
}

// TestFind: a program that is missing, or is something else.
func TestFind(t *testing.T) {
	_, err := Find(t.Context(), "/nowhere/highs")
	var missing *Missing
	assert.ErrorAs(t, err, &missing)
	_, err = Find(t.Context(), "nowhere-highs")
	assert.ErrorAs(t, err, &missing)
	t.Setenv("PATH", t.TempDir())
	_, err = Find(t.Context(), "")
	assert.EqualError(t, err, "HiGHS is not installed (looked for highs on PATH, the package highsbox of python3 on PATH); install it by `pip install highsbox`, or name the program with -highs")
	path := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho other 1.0\n"), 0o755))
	_, err = Find(t.Context(), path)
	assert.EqualError(t, err, "HiGHS: "+path+` --version prints "other 1.0", which is not HiGHS`)

	// Solve runs in another folder.
	folder := filepath.Dir(program(t, optimal))
	t.Chdir(folder)
	s, err := Find(t.Context(), "./highs")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(folder, "highs"), s.Program)
}
