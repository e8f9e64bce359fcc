package main

// Simulation speed and cycle counts of cards with bare ports.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tributary/driver/wire"
)

const (
	rounds = 5 // measurements of value and peer, in turn

	// About one second of simulation.
	saturatedChunks = 20_000
	adderCycles     = 320_000
)

// cardRows measures cards of 16 lanes and 8 saturated ports, one for each sum. The peer is the
// 112 adders of a tree without a card.
func cardRows(ctx context.Context) ([]Row, error) {
	var cards []saturated
	for _, sum := range []wire.Sum{wire.SumTree, wire.SumFused, wire.SumExact} {
		card, err := buildSaturated(ctx, sum, 8, closeExponents(8))
		if err != nil {
			return nil, err
		}
		cards = append(cards, card)
	}
	adders, err := compileAdders(ctx, cards[0].dir)
	if err != nil {
		return nil, err
	}
	progress("simulating cards with saturated ports, and adders alone")
	speeds := make([][]pair, len(cards))
	for range rounds {
		alone, err := numbers(ctx, adders, cards[0].operands, adderCycles, cards[0].latencies.Lane)
		if err != nil {
			return nil, err
		}
		adders := kilocycles(alone)
		for i := range cards {
			if err := cards[i].run(ctx, saturatedChunks); err != nil {
				return nil, err
			}
			speeds[i] = append(speeds[i], pair{kilocycles(cards[i].ran), adders})
		}
	}
	var rows []Row
	for i, card := range cards {
		rows = append(rows, card.speedRow(median(speeds[i])), card.rateRow())
	}
	for _, card := range cards {
		rows = append(rows, card.latencyRow(), card.overheadRow())
	}
	return rows, nil
}

// stallRows measures the cost of undecided beats in a card of 16 lanes and 4 ports with the exact
// sum. The operands are the gradients of a training step, and hostile operands.
func stallRows(ctx context.Context) ([]Row, error) {
	real, err := gradients()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, data := range []struct {
		name   string
		arrays [][]uint32
		chunks int
		most   float64 // limit on the share of the cycles; 0: none
	}{
		{"gradients", real, 10_000, 0.001},
		{"hostile operands", hostile(4), 1_000, 0},
	} {
		card, err := buildSaturated(ctx, wire.SumExact, 4, data.arrays)
		if err != nil {
			return nil, err
		}
		progress("simulating a card that sums exactly: %s", data.name)
		if err := card.run(ctx, data.chunks); err != nil {
			return nil, err
		}
		rows = append(rows, card.stallRows(data.name, data.most)...)
	}
	return rows, nil
}

// saturated is a card of 16 lanes without a shell, with traffic on all ports in all cycles.
type saturated struct {
	sum       wire.Sum
	ports     int
	dir       string
	program   string // that saturates the card
	operands  string // file of operands
	latencies latencies
	ran       map[string]float64 // results of the last run
}

// buildSaturated builds a card and the program that saturates it.
func buildSaturated(ctx context.Context, sum wire.Sum, ports int, arrays [][]uint32) (saturated, error) {
	c := saturated{sum: sum, ports: ports}
	name := fmt.Sprintf("l16_w%d_none_%s", ports, sum)
	var err error
	if c.dir, err = generate(ctx, name, "-lanes", "16", "-workers", strconv.Itoa(ports), "-shell", "none", "-registers", "bus",
		"-sum", sum.String(), "-chunk", strconv.Itoa(chunk)); err != nil {
		return c, err
	}
	if c.program, err = compileProgram(ctx, c.dir, "saturate"); err != nil {
		return c, err
	}
	if c.operands, err = writeOperands(name+".operands", sum, arrays); err != nil {
		return c, err
	}
	c.latencies, err = readLatencies(c.dir)
	return c, err
}

// run saturates the card for a number of chunks.
func (c *saturated) run(ctx context.Context, chunks int) (err error) {
	c.ran, err = numbers(ctx, c.program, c.operands, chunks)
	return err
}

// compileAdders builds the adders of the card in dir without the rest of the card. Its folder has
// the layout of a card's, so the same Makefile builds both with the same flags.
func compileAdders(ctx context.Context, dir string) (string, error) {
	alone := filepath.Join(folder, "adders")
	if err := os.MkdirAll(filepath.Join(alone, "sim"), 0o777); err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.v*"))
	if err != nil {
		return "", err
	}
	list := "SOURCES="
	for _, from := range append(sources, "verify/system/bench/programs/adders.v") {
		name := filepath.Base(from)
		if filepath.Ext(name) == ".v" {
			list += " ../" + name
		}
		if err := copyChanged(filepath.Join(alone, name), from); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"sim/Makefile", "sim/bench.h"} {
		if err := copyChanged(filepath.Join(alone, name), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return compileProgram(ctx, alone, "adders", "TOP=adders", list)
}

// copyChanged copies a file unless the copy already has its bytes.
func copyChanged(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(to); err == nil && string(old) == string(text) {
		return nil
	}
	return os.WriteFile(to, text, 0o666)
}

// numbers runs a program on a file of operands with numeric arguments, and returns the
// NAME=NUMBER pairs that it prints.
func numbers(ctx context.Context, program, operands string, arguments ...int) (map[string]float64, error) {
	words := []string{operands}
	for _, a := range arguments {
		words = append(words, strconv.Itoa(a))
	}
	text, err := output(ctx, program, words...)
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		if found[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("%s printed %q: %w", program, text, err)
		}
	}
	return found, nil
}

// kilocycles returns the simulation speed in thousand cycles per second.
func kilocycles(run map[string]float64) float64 { return run["cycles"] / run["seconds"] / 1000 }

// leastSpeed is the least speed of a card's simulation, relative to the adders alone.
var leastSpeed = map[wire.Sum]float64{wire.SumTree: 0.76, wire.SumFused: 1.26, wire.SumExact: 0.72}

// aimedSpeed is the target, where it is above leastSpeed.
var aimedSpeed = map[wire.Sum]float64{wire.SumFused: 1.8}

func (c saturated) speedRow(p pair) Row {
	row := Row{Name: fmt.Sprintf("simulation of %s, 16 lanes x %d ports, saturated", c.sum, c.ports), Value: p.value, Unit: "kcycles/s"}
	row = row.beside("112 fp32 adders alone", p.peer).mustRatio(leastSpeed[c.sum])
	if aim, has := aimedSpeed[c.sum]; has {
		row.Target += fmt.Sprintf(", aim %g x", aim)
	}
	return row
}

func (c saturated) rateRow() Row {
	rate := min(c.ran["in"], c.ran["trees"], c.ran["out"])
	return Row{Name: fmt.Sprintf("beats of %s: slowest port in, lanes, slowest port out", c.sum), Value: rate, Unit: "a cycle"}.
		beside("what headers leave", 1).
		must("at least 0.98", rate >= 0.98)
}

// stallRows returns the rows about undecided beats in a card.
func (c saturated) stallRows(data string, most float64) []Row {
	what := func(text string) string {
		return fmt.Sprintf("exact on %s, 16 lanes x %d ports: %s", data, c.ports, text)
	}
	stalled := c.ran["stalled"] / c.ran["cycles"]
	stall := Row{Name: what("cycles stalled"), Value: 100 * stalled, Unit: "%", Holds: true}
	if most > 0 {
		stall = stall.must(fmt.Sprintf("less than %g %%", 100*most), stalled < most)
	}
	return []Row{
		{Name: what("beats undecided"), Value: 100 * c.ran["undecided"] / c.ran["beats"], Unit: "%", Holds: true},
		stall,
		{Name: what("results"), Value: c.ran["out"], Unit: "beats a cycle", Holds: true},
	}
}

// latencies is the part of a card's manifest about its latency.
type latencies struct {
	Card int `json:"port_latency"`
	Lane int `json:"lane_latency"`
}

func readLatencies(dir string) (latencies, error) {
	var l latencies
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}

func (c saturated) latencyRow() Row {
	latency, latest, manifest := c.ran["latency"], c.ran["latency_max"], float64(c.latencies.Card)
	return Row{Name: fmt.Sprintf("latency of %s, last beat in to first beat out", c.sum), Value: latest, Unit: "cycles"}.
		beside("the manifest", manifest).
		must("equal, whoever is last", latency == manifest && latest == manifest)
}

func (c saturated) overheadRow() Row {
	extra := c.ran["latency_max"] - float64(c.latencies.Lane)
	return Row{Name: fmt.Sprintf("latency of %s beyond its lanes'", c.sum), Value: extra, Unit: "cycles"}.must("at most 16 cycles", extra <= 16)
}
