package main

// Seeds that are placed, of circuits whose row is not complete.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// seedsFile keeps the frequency of every placed seed until its circuit's row is recorded. A core of
// 16 lanes takes more than an hour for each, so runs on different days and machines add up.
const seedsFile = "verify/gateware/synth/seeds.json"

// placement is the result of one seed.
type placement struct {
	Circuit string  `json:"circuit"`
	Source  string  `json:"source"` // as in the row: a hash of all that determines it but the seed
	Seed    int     `json:"seed"`
	MHz     float64 `json:"mhz"`
}

// seedsMutex makes changes of the file whole.
var seedsMutex sync.Mutex

// findSeed returns the frequency of a seed that is placed already.
func findSeed(source string, seed int) (mhz float64, ok bool, err error) {
	seedsMutex.Lock()
	defer seedsMutex.Unlock()
	placed, err := readSeeds()
	i := slices.IndexFunc(placed, func(p placement) bool { return p.Source == source && p.Seed == seed })
	if i < 0 {
		return 0, false, err
	}
	return placed[i].MHz, true, nil
}

// keepSeed adds a seed, and drops those of earlier text of its circuit.
func keepSeed(fresh placement) error {
	return changeSeeds(func(placed []placement) []placement {
		return append(slices.DeleteFunc(placed, func(p placement) bool {
			return p.Circuit == fresh.Circuit && p.Source != fresh.Source
		}), fresh)
	})
}

// dropSeeds removes a circuit's seeds: its row has them.
func dropSeeds(circuit string) error {
	return changeSeeds(func(placed []placement) []placement {
		return slices.DeleteFunc(placed, func(p placement) bool { return p.Circuit == circuit })
	})
}

// changeSeeds replaces what the file holds, one seed in each line.
func changeSeeds(change func([]placement) []placement) error {
	seedsMutex.Lock()
	defer seedsMutex.Unlock()
	placed, err := readSeeds()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("[")
	for i, p := range change(placed) {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %s", line)
	}
	b.WriteString("\n]\n")
	return os.WriteFile(seedsFile, b.Bytes(), 0o666)
}

// readSeeds returns all kept seeds: none without a file.
func readSeeds() (placed []placement, err error) {
	text, err := os.ReadFile(seedsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &placed); err != nil {
		return nil, fmt.Errorf("%s: %w", seedsFile, err)
	}
	return placed, nil
}
