package main

// The driver's throughput on one core: the Go benchmarks of its packages, run
// in turn.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/tools/benchmark/parse"
)

// driverRows runs the benchmarks of package frame and of package driver.
func driverRows(ctx context.Context) ([]Row, error) {
	progress("building and checking frames, and reducing through the model")
	frames, err := compileTest(ctx, "driver/frame")
	if err != nil {
		return nil, err
	}
	whole, err := compileTest(ctx, "driver")
	if err != nil {
		return nil, err
	}
	var crc, paths []pair
	for range rounds {
		speed, err := benchmark(ctx, frames, "BenchmarkFrames", "-test.cpu=1")
		if err != nil {
			return nil, err
		}
		driver, sigurn := speed["BenchmarkFrames/driver"], speed["BenchmarkFrames/sigurn"]
		if speed, err = benchmark(ctx, whole, "BenchmarkReduce/4_workers"); err != nil {
			return nil, err
		}
		crc = append(crc, pair{driver, sigurn})
		paths = append(paths, pair{speed["BenchmarkReduce/4_workers"], driver})
	}
	return []Row{framesRow(median(crc)), modelRow(median(paths))}, nil
}

// packetRows runs the benchmark of packets to and from a card on a network. Both sides of the row are
// in CPU time, because the far end is another process.
func packetRows(ctx context.Context) ([]Row, error) {
	progress("sending packets over the loopback network, by the driver and by bare batches")
	whole, err := compileTest(ctx, "driver")
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for range rounds {
		speed, err := benchmark(ctx, whole, "BenchmarkPackets", "-test.cpu=1")
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{speed["BenchmarkPackets/driver"], speed["BenchmarkPackets/bare"]})
	}
	return []Row{packetRow(median(pairs))}, nil
}

func packetRow(p pair) Row {
	return Row{Name: "driver: packets of 1 KiB sent, taken and checked, one core", Value: p.value, Unit: "MB/s"}.
		beside("bare ReadBatch and WriteBatch", p.peer).
		mustRatio(0.8)
}

// compileTest builds the test program of a package and returns its path.
func compileTest(ctx context.Context, folderOf string) (string, error) {
	program := filepath.Join(folder, strings.ReplaceAll(folderOf, "/", "_")+".test")
	_, err := output(ctx, "go", "test", "-c", "-o", program, "./"+folderOf)
	return program, err
}

// benchmark runs a benchmark of a test program and returns MB/s by benchmark name.
func benchmark(ctx context.Context, program, name string, flags ...string) (map[string]float64, error) {
	pattern := "^" + strings.ReplaceAll(name, "/", "$/^") + "$"
	text, err := output(ctx, program, append(flags, "-test.run=^$", "-test.bench="+pattern, "-test.benchtime=300ms")...)
	if err != nil {
		return nil, err
	}
	set, err := parse.ParseSet(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	speeds := map[string]float64{}
	for full, runs := range set {
		speeds[strings.Split(full, "-")[0]] = runs[0].MBPerS
	}
	if len(speeds) == 0 {
		return nil, fmt.Errorf("%s has no benchmark %s:\n%s", program, name, text)
	}
	return speeds, nil
}

func framesRow(p pair) Row {
	return Row{Name: "driver: frames built and checked, both ways, one core", Value: p.value, Unit: "MB/s"}.
		beside("sigurn/crc16 alone", p.peer).
		mustRatio(2.7)
}

func modelRow(p pair) Row {
	return Row{Name: "whole way through a model card, 4 workers", Value: p.value, Unit: "MB/s", Holds: true}.
		beside("frames alone", p.peer)
}
