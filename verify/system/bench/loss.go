package main

// Speed of a reduction over a link that loses frames.

import (
	"context"
	"fmt"
	"time"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/verify/system/faults"
)

const (
	// lossChunks is the number of chunks in a reduction. With 8 workers a chunk takes nine
	// frames, so a loss of one frame in a thousand occurs often.
	lossChunks = 2_000

	lossRounds = 5
)

// lossRows measures a virtual card at losses of 0.1, 1 and 5 % of the frames in each direction.
// Narrow lanes, short chunks and a wide window give many frames in little time.
func lossRows(ctx context.Context) ([]Row, error) {
	dir, err := generate(ctx, "l1_w8_loss", "-lanes", "1", "-workers", "8", "-chunk", "8", "-window", "64")
	if err != nil {
		return nil, err
	}
	if err := compile(ctx, dir, "build/card"); err != nil {
		return nil, err
	}
	var rows []Row
	for _, way := range []lossWay{{"one call", reduceAtOnce}, {"a call of each worker", reduceEach}} {
		for i, share := range []float64{0.001, 0.01, 0.05} {
			progress("reducing over a link that loses %g %%, %s", 100*share, way.name)
			row, err := way.row(ctx, "sim:"+dir, share, uint64(i))
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// lossWay is one of the driver's ways to reduce.
type lossWay struct {
	name   string
	reduce func(context.Context, *driver.Job, [][]float32) error
}

// reduceAtOnce reduces for all workers with one call.
func reduceAtOnce(ctx context.Context, job *driver.Job, arrays [][]float32) error {
	return job.Reduce(ctx, make([]float32, len(arrays[0])), arrays)
}

// reduceEach reduces in place for each worker, in its own goroutine.
func reduceEach(ctx context.Context, job *driver.Job, arrays [][]float32) error {
	errs := make(chan error, len(arrays))
	for rank, array := range arrays {
		go func() { errs <- job.Member(rank).AllReduce(ctx, array) }()
	}
	var first error
	for range arrays {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// row measures reductions over the same link with and without losses, in turn.
func (w lossWay) row(ctx context.Context, name string, share float64, seed uint64) (row Row, err error) {
	conn, err := transport.Open(ctx, name, transport.Needs{})
	if err != nil {
		return row, err
	}
	link := faults.New(conn, faults.Rates{Drop: share, Seed: seed}, &faults.Counts{})
	card, err := driver.OpenConn(ctx, name, link)
	if err != nil {
		return row, err
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{Window: card.Info().Window})
	if err != nil {
		return row, err
	}
	inputs := makeInputs(card.Info().Ports, lossChunks*card.Info().Chunk)
	timed := func(lossy bool) (float64, error) {
		link.On.Store(lossy)
		defer link.On.Store(false)
		start := time.Now()
		err := w.reduce(ctx, job, inputs)
		return lossChunks / time.Since(start).Seconds(), err
	}
	var rates []pair
	for range lossRounds {
		free, err := timed(false)
		if err != nil {
			return row, err
		}
		lossy, err := timed(true)
		if err != nil {
			return row, err
		}
		rates = append(rates, pair{lossy, free})
	}
	rate := median(rates)
	return Row{Name: fmt.Sprintf("chunks of %d workers over a link that loses %g %% both ways, %s", card.Info().Ports, 100*share, w.name), Value: rate.value, Unit: "a second", Holds: true}.
		beside("without losses", rate.peer), job.Close(ctx)
}
