package walks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/driver/wire"
)

var (
	oneSeed = flag.Uint64("seed", 0, "take this walk alone")
	walks   = flag.Uint64("walks", 64, "take so many on each virtual card")
)

const root = "../../.." // of the repository

// explore and hwgen are the programs of those names, built by TestMain.
var explore, hwgen string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "walks")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-o", dir+"/", "./hwgen", "./verify/protocol/explore")
		build.Dir = root
		if said, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, said)
			return 1
		}
		explore, hwgen = filepath.Join(dir, "explore"), filepath.Join(dir, "hwgen")
		return m.Run()
	}())
}

// walk returns the explorer's walk of a seed.
func walk(t *testing.T, seed uint64, weakening string) *Walk {
	t.Helper()
	w, err := TakeWalk(t.Context(), explore, seed, weakening)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// take sends a walk to a card after its hard reset, and returns the first difference.
func take(t *testing.T, card Card, w *Walk, heard map[string]int) *Difference {
	t.Helper()
	err := Replay(card, w, heard)
	if err := card.Close(); err != nil {
		t.Errorf("walk %d: the card ends with %v", w.Seed, err)
	}
	if d := new(Difference); errors.As(err, &d) {
		return d
	}
	if err != nil {
		t.Fatal(err)
	}
	return nil
}

// fresh returns a card after its hard reset, for the walk of a seed.
type fresh func(t *testing.T, seed uint64) Card

// takeAll sends n walks to fresh cards, each to one of each kind. Every entry of happens must occur
// on each.
func takeAll(t *testing.T, n uint64, kinds map[string]fresh) {
	heard := map[string]map[string]int{}
	for kind := range kinds {
		heard[kind] = map[string]int{}
	}
	from, to := uint64(1), n
	if *oneSeed != 0 {
		from, to = *oneSeed, *oneSeed
	}
	for seed := from; seed <= to; seed++ {
		w := walk(t, seed, "")
		for kind, fresh := range kinds {
			if d := take(t, fresh(t, seed), w, heard[kind]); d != nil {
				t.Fatalf("%s: %v\nalone: go test ./verify/protocol/walks -run '%s' -seed %d", kind, d, t.Name(), seed)
			}
		}
	}
	for kind, heard := range heard {
		t.Logf("%s: %v", kind, heard)
		for _, name := range happens {
			if heard[name] == 0 && *oneSeed == 0 {
				t.Errorf("%s: it never happens: %s", kind, name)
			}
		}
	}
}

// happens lists the events, the outcomes of packets, and the packets of cards. An ask or a
// repetition while the card sums its chunk is not listed: walks wait until the card is at rest.
var happens = []string{
	"commit", "abort", "reset", "data", "ask", "finish", "together", "deadline",
	"stored", "duplicate", "owes", "wait", "send", "not_ready", "late", "early", "done",
	"bad_job", "bad_epoch", "bad_rank", "evicted", "stale_epoch",
	"result", "replay", "status overdue", "status evicted", "status done", "no member is left",
}

// TestSoftware sends walks to the model, and to the card in software with ports and behind a link.
func TestSoftware(t *testing.T) {
	takeAll(t, 8**walks, map[string]fresh{
		"model": func(t *testing.T, _ uint64) Card { return modelled(t) },
		"cpu":   func(t *testing.T, _ uint64) Card { return software(t, wire.ShellNone) },
		"link":  func(t *testing.T, _ uint64) Card { return software(t, wire.ShellStream) },
	})
}

func software(t *testing.T, shell wire.Shell) Card {
	t.Helper()
	card, err := NewSoftware(shell)
	if err != nil {
		t.Fatal(err)
	}
	return card
}

func modelled(t *testing.T) Card {
	t.Helper()
	card, err := NewModelled()
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// unseen are the explorer's weakenings that no walk can show, and why.
var unseen = map[string]string{
	"window-of-three":          "it is no rule's",
	"send-one-ahead":           "a worker's",
	"outlives-wrap":            "the network's",
	"same-epoch-return":        "a worker's",
	"inputs-given-up":          "a worker's",
	"one-window-of-inputs":     "a worker's",
	"unstopped-workers":        "the controller's",
	"result-of-any-epoch":      "a worker's",
	"result-before-sent":       "a worker's",
	"result-of-any-vid":        "a worker's",
	"eviction-untold":          "a worker's: what it hears",
	"overwrite-while-sending":  "only while a result is being sent",
	"replays-outlive-turnover": "only while results wait: at rest none is owed",
	"turnover-leaves-owed":     "likewise",
	"set-up-keeps-owed":        "likewise",
	"eviction-drops-owed":      "likewise",
	"reduction-outlives-epoch": "only while a chunk is being summed",
	"begun-leaves-torn":        "likewise",
	"set-up-keeps-held":        "the first turnover of each slot clears them",
}

// TestGateware sends walks to virtual cards of both shells. The card with ports also gets walks
// of a weakened explorer, from which it must differ.
func TestGateware(t *testing.T) {
	for _, shell := range []string{"none", "stream"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			program := build(t, shell)
			t.Run("walks", func(t *testing.T) {
				takeAll(t, *walks, map[string]fresh{shell: func(t *testing.T, seed uint64) Card { return simulated(t, program, shell, seed) }})
			})
			if shell == "none" {
				t.Run("weakened", func(t *testing.T) { differs(t, program, shell) })
			}
		})
	}
}

// differs searches, for every weakening, for a walk in which the model differs. The gateware and
// the card in software must differ there, too.
func differs(t *testing.T, program, shell string) {
	for _, name := range weakenings(t) {
		seeds := uint64(300)
		if unseen[name] != "" {
			seeds = 12
		}
		seed := uint64(1)
		var w *Walk
		for ; seed <= seeds; seed++ {
			if w = walk(t, seed, name); take(t, modelled(t), w, nil) != nil {
				break
			}
		}
		switch {
		case unseen[name] != "":
			if seed <= seeds {
				t.Errorf("%s is seen in walk %d", name, seed)
			}
		case seed > seeds:
			t.Errorf("%s: no card differs", name)
		case take(t, simulated(t, program, shell, seed), w, nil) == nil:
			t.Errorf("%s: the model differs in walk %d, and the gateware does not", name, seed)
		case take(t, software(t, wire.ShellNone), w, nil) == nil:
			t.Errorf("%s: the model differs in walk %d, and package cpu does not", name, seed)
		}
	}
}

// weakenings returns the names that the explorer lists.
func weakenings(t *testing.T) []string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), explore, "-list").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "weakenings\n")
	if !ok {
		t.Fatalf("no weakenings are listed:\n%s", text)
	}
	var names []string
	for line := range strings.Lines(list) {
		names = append(names, strings.Fields(line)[0])
	}
	return names
}

// build builds the card of a shell.
func build(t *testing.T, shell string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	program, err := Build(ctx, hwgen, "programs/card.cpp", shell, filepath.Join(t.TempDir(), "card"))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func simulated(t *testing.T, program, shell string, seed uint64) Card {
	t.Helper()
	card, err := Start(program, shell, seed)
	if err != nil {
		t.Fatal(err)
	}
	return card
}
