package main

// How fast the card simulates, and how many cycles it takes, between bare ports.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	rounds = 5 // of value and peer, one after the other

	saturatedChunks = 20_000
	adderCycles     = 320_000
)

// cardRows measures a card of 16 lanes and 8 ports all of whose ports are
// saturated, beside its 112 adders alone.
func cardRows(ctx context.Context) ([]Row, error) {
	dir, err := generate(ctx, "l16_w8_none", "-lanes", "16", "-workers", "8", "-shell", "none")
	if err != nil {
		return nil, err
	}
	saturate, err := compileProgram(ctx, dir, "saturate")
	if err != nil {
		return nil, err
	}
	adders, err := compileAdders(ctx, dir)
	if err != nil {
		return nil, err
	}
	latencies, err := readLatencies(dir)
	if err != nil {
		return nil, err
	}
	progress("simulating a card with saturated ports, and its adders alone")
	var speeds []pair
	var card, alone map[string]float64
	for range rounds {
		if card, err = numbers(ctx, saturate, saturatedChunks); err != nil {
			return nil, err
		}
		if alone, err = numbers(ctx, adders, adderCycles, latencies.Tree); err != nil {
			return nil, err
		}
		speeds = append(speeds, pair{kilocycles(card), kilocycles(alone)})
	}
	return []Row{speedRow(median(speeds)), rateRow(card), latencyRow(card, latencies), overheadRow(card, latencies)}, nil
}

// compileAdders builds the adders of the card in dir without the card around
// them, in a folder like a card's, so that the same Makefile builds them with
// the same flags.
func compileAdders(ctx context.Context, dir string) (string, error) {
	alone := filepath.Join(folder, "adders")
	if err := os.MkdirAll(filepath.Join(alone, "sim"), 0o777); err != nil {
		return "", err
	}
	sources := []string{"verify/bench/programs/adders.v", filepath.Join(dir, "agg_lane.v"), filepath.Join(dir, "agg_fp32_add.v")}
	list := "SOURCES="
	for _, from := range sources {
		name := filepath.Base(from)
		list += " ../" + name
		if err := copyChanged(filepath.Join(alone, name), from); err != nil {
			return "", err
		}
	}
	if err := copyChanged(filepath.Join(alone, "sim", "Makefile"), filepath.Join(dir, "sim", "Makefile")); err != nil {
		return "", err
	}
	return compileProgram(ctx, alone, "adders", "TOP=adders", list)
}

// copyChanged copies a file unless the copy has its bytes already.
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

// numbers runs a program whose arguments are numbers, and returns the
// NAME=NUMBER pairs that it prints.
func numbers(ctx context.Context, program string, arguments ...int) (map[string]float64, error) {
	var words []string
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

// kilocycles returns how many thousand cycles were simulated in a second.
func kilocycles(run map[string]float64) float64 { return run["cycles"] / run["seconds"] / 1000 }

func speedRow(p pair) Row {
	return Row{Name: "simulation, 16 lanes x 8 ports, saturated", Value: p.value, Unit: "kcycles/s"}.
		beside("112 fp32 adders alone", p.peer).
		must("at least 200 kcycles/s", p.value >= 200)
}

func rateRow(run map[string]float64) Row {
	rate := min(run["in"], run["trees"], run["out"])
	return Row{Name: "beats, saturated: slowest port in, trees, slowest port out", Value: rate, Unit: "a cycle"}.
		beside("what headers leave", 1).
		must("at least 0.98", rate >= 0.98)
}

// latencies is what a card's manifest says of its own latency.
type latencies struct {
	Card int `json:"latency"`
	Tree int `json:"tree_latency"`
}

func readLatencies(dir string) (latencies, error) {
	var l latencies
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(text, &l)
}

func latencyRow(run map[string]float64, l latencies) Row {
	return Row{Name: "latency, last beat in to first beat out", Value: run["latency_max"], Unit: "cycles"}.
		beside("the manifest", float64(l.Card)).
		must("equal, whoever is last", run["latency"] == float64(l.Card) && run["latency_max"] == float64(l.Card))
}

func overheadRow(run map[string]float64, l latencies) Row {
	extra := run["latency_max"] - float64(l.Tree)
	return Row{Name: "latency beyond the adder trees'", Value: extra, Unit: "cycles"}.must("at most 8 cycles", extra <= 8)
}
