package sweep

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tributary/driver/wire"
	"tributary/verify/gateware/lint"
)

var (
	allLanes   = []int{1, 2, 4, 8, 16, 32, 64}
	allWorkers = []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 32, 64}
)

// TestEveryShapeIsGenerated: hwgen generates every number of lanes with every kind of tree, and
// both shells. Each folder lists its files.
func TestEveryShapeIsGenerated(t *testing.T) {
	for _, shell := range []string{"stream", "none"} {
		for _, lanes := range allLanes {
			for _, workers := range allWorkers {
				s := shape{lanes: lanes, workers: workers, shell: shell}
				t.Run(s.String(), func(t *testing.T) {
					t.Parallel()
					card, err := lint.Open(s.generate(t))
					if err != nil {
						t.Fatal(err)
					}
					for _, file := range card.Files {
						if info, err := os.Stat(file); err != nil || info.Size() == 0 {
							t.Errorf("%s is named by the manifest: %v", file, err)
						}
					}
				})
			}
		}
	}
}

// TestEveryArithmeticLints runs every tool on a card of each sum and width of operands and results:
// nothing outside of the lanes depends on more of the arithmetic. With CARDS=all in the environment it
// also lints the lanes of every other format and result format.
func TestEveryArithmeticLints(t *testing.T) {
	type kind struct {
		sum     string
		in, out int
	}
	seen := map[kind]bool{}
	var cards []lint.Card
	for i, a := range arithmetics(t) {
		k := kind{a.sum, bits(t, a.format), bits(t, a.result)}
		if seen[k] && !everyCard {
			continue
		}
		s := shape{lanes: 1 + i%2, workers: []int{3, 1, 2, 8}[i%4], window: 1, chunk: 2, arithmetic: a,
			shell: []string{"none", "stream"}[i/2%2]}
		if s.shell == "stream" {
			s.link = 64
		}
		card, err := lint.Open(s.generate(t))
		if err != nil {
			t.Fatal(err)
		}
		if seen[k] {
			card.Top = "agg_lane"
		}
		seen[k] = true
		cards = append(cards, card)
	}
	if err := lint.Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// bits returns the width of a format.
func bits(t *testing.T, name string) int {
	for _, f := range wire.Formats {
		if f.Name == name {
			return f.Bits
		}
	}
	t.Fatalf("there is no format %s", name)
	return 0
}

// TestTheSameFlagsGiveTheSameBytes, wherever they are written.
func TestTheSameFlagsGiveTheSameBytes(t *testing.T) {
	s := shape{lanes: 8, workers: 5}
	first, second := s.generate(t), s.generate(t)
	files := 0
	err := fs.WalkDir(os.DirFS(first), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		a, err := os.ReadFile(filepath.Join(first, path))
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(second, path))
		if err == nil && !bytes.Equal(a, b) {
			t.Errorf("%s differs", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("only %d files", files)
	}
}

// TestPairwiseLint runs every tool on a set of cards that contains every pair of choices. With CARDS=all
// in the environment, these are of larger cards too, and it adds a card with the most lanes, and one with
// the most ports.
func TestPairwiseLint(t *testing.T) {
	shapes := make([]shape, 0, 32)
	for _, row := range pairwise([]int{len(lintLanes), len(lintWorkers), len(lintShells), len(lintWindows), len(lintBeats), 2, len(lintJobs)}) {
		shell := lintShells[row[2]]
		s := shape{
			lanes:     lintLanes[row[0]],
			workers:   lintWorkers[row[1]],
			shell:     shell.name,
			registers: shell.registers,
			link:      shell.link,
			window:    lintWindows[row[3]],
			chunk:     lintBeats[row[4]] * lintLanes[row[0]],
			atOnce:    lintJobs[row[6]],
		}
		if row[5] == 1 {
			s.bundle, s.prefix = true, "ring0"
		}
		shapes = append(shapes, s)
	}
	shapes = append(shapes, also(shape{lanes: 64, workers: 3, chunk: 512, link: 64, atOnce: 16}, shape{lanes: 1, workers: 64})...)
	cards := make([]lint.Card, 0, len(shapes))
	for _, s := range shapes {
		card, err := lint.Open(s.generate(t))
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, card)
	}
	if err := lint.Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

var (
	lintLanes   = append([]int{1, 4}, also(16)...)
	lintWorkers = append([]int{1, 2, 5}, also(16)...)
	lintShells  = []struct {
		name, registers string
		link            int
	}{{"none", "axil", 0}, {"none", "bus", 0}, {"stream", "", 8}, {"stream", "", 32}, {"stream", "", 64}}
	lintWindows = []int{1, 16}
	lintBeats   = []int{1, 3, 8}
	lintJobs    = append([]int{1, 2}, also(16)...)
)

// pairwise returns rows that choose a level (0..levels[f]-1) for each factor f, such that for
// every two factors every pair of their levels is in some row. It is greedy: for each factor in
// turn it takes the level that covers the most uncovered pairs.
func pairwise(levels []int) [][]int {
	type pair struct{ f, i, g, j int }
	open := map[pair]bool{}
	for f := range levels {
		for g := f + 1; g < len(levels); g++ {
			for i := range levels[f] {
				for j := range levels[g] {
					open[pair{f, i, g, j}] = true
				}
			}
		}
	}
	gain := func(row []int, g, j int) int {
		n := 0
		for f, i := range row {
			if open[pair{f, i, g, j}] {
				n++
			}
		}
		for h := g + 1; h < len(levels); h++ {
			for k := range levels[h] {
				if open[pair{g, j, h, k}] {
					n++
				}
			}
		}
		return n
	}
	var rows [][]int
	for len(open) > 0 {
		var row []int
		for g := range levels {
			best := 0
			for j := range levels[g] {
				if gain(row, g, j) > gain(row, g, best) {
					best = j
				}
			}
			row = append(row, best)
		}
		for g := range row {
			for f := range g {
				delete(open, pair{f, row[f], g, row[g]})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// TestPairwise: the set covers all pairs, and is small.
func TestPairwise(t *testing.T) {
	rows := pairwise([]int{3, 4, 2})
	seen := map[[4]int]bool{}
	for _, row := range rows {
		for g := range row {
			for f := range g {
				seen[[4]int{f, row[f], g, row[g]}] = true
			}
		}
	}
	if want := 3*4 + 3*2 + 4*2; len(seen) != want {
		t.Errorf("%d pairs are covered, want %d", len(seen), want)
	}
	if len(rows) > 16 {
		t.Errorf("%d rows where 12 can do", len(rows))
	}
}
