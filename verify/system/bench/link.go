package main

// Link utilization of the driver with a virtual card.

import (
	"context"
	"fmt"

	"tributary/driver"
	"tributary/driver/wire"
)

const (
	// linkChunks is the number of chunks in a reduction. It is large enough to hide the cycles
	// before the first chunk arrives.
	linkChunks = 1024

	linkRounds = 3
)

// linkRows measures cards of 16 lanes and 4 workers, with links of two widths.
func linkRows(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, bits := range []int{32, 64} {
		dir, err := generate(ctx, fmt.Sprintf("l16_w4_link%d", bits), "-lanes", "16", "-workers", "4", "-link", fmt.Sprint(bits))
		if err != nil {
			return nil, err
		}
		if err := compile(ctx, dir, "build/card"); err != nil {
			return nil, err
		}
		progress("reducing through a link of %d bits", bits)
		row, err := linkRow(ctx, "sim:"+dir)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// linkRow measures a reduction in cycles of the card's clock. The peer is the number of cycles
// that the data frames take; the results use the other direction.
func linkRow(ctx context.Context, name string) (row Row, err error) {
	card, err := driver.Open(ctx, name)
	if err != nil {
		return row, err
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{Window: card.Info().Window})
	if err != nil {
		return row, err
	}
	info := card.Info()
	inputs := makeInputs(info.Ports, linkChunks*info.Chunk)
	data, _ := wire.KindData.Info()
	payload := 4 * info.Chunk // bytes in a frame
	limit := float64(info.Link) * float64(payload) / float64(data.FrameBytes(payload))
	var rates []pair
	for range linkRounds {
		cycles, err := countCycles(ctx, card, func() error {
			return job.Reduce(ctx, make([]float32, len(inputs[0])), inputs)
		})
		if err != nil {
			return row, err
		}
		rates = append(rates, pair{float64(32*info.Ports*len(inputs[0])) / float64(cycles), limit})
	}
	rate := median(rates)
	return Row{Name: fmt.Sprintf("payload on a shared %d-bit link, %d workers", info.Link, info.Ports), Value: rate.value, Unit: "bits a cycle"}.
		beside("what frames leave", limit).
		must("at least 0.98", rate.value >= 0.98*limit), job.Close(ctx)
}

// makeInputs returns an array of n elements for each worker.
func makeInputs(workers, n int) [][]float32 {
	inputs := make([][]float32, workers)
	for w := range inputs {
		inputs[w] = make([]float32, n)
		for i := range inputs[w] {
			inputs[w][i] = float32(w + i)
		}
	}
	return inputs
}

// countCycles returns the number of cycles on the card's clock that work takes.
func countCycles(ctx context.Context, card *driver.Card, work func() error) (uint64, error) {
	from, err := card.ReadRegister(ctx, wire.RegCycles)
	if err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	to, err := card.ReadRegister(ctx, wire.RegCycles)
	return to - from, err
}
