package main

import (
	"context"
	"fmt"
	"math"

	"tributary/driver"
)

// compareWithModel sums the inputs once more on the Go model of a card and
// compares every bit. The model may use other chunks than the card did: the
// sum must not depend on them.
func (f *reduceFlags) compareWithModel(ctx context.Context, inputs [][]float32, sum []float32) error {
	want := make([]float32, len(sum))
	opts := []driver.Option{driver.WithWorkers(f.portsNeeded(len(inputs)))}
	err := useCard(ctx, "model:", opts, func(card *driver.Card) error {
		job, err := card.Configure(ctx, driver.JobConfig{Workers: len(inputs), Ports: f.ports})
		if err != nil {
			return err
		}
		if err := job.Reduce(ctx, want, inputs); err != nil {
			return err
		}
		return job.Close(ctx)
	})
	if err != nil {
		return fmt.Errorf("-verify: the model could not sum them: %w", err)
	}
	return sameBits(f.card, sum, want)
}

// sameBits says how many elements of a card's sum are not the wanted ones, and
// which is the first.
func sameBits(card string, have, want []float32) error {
	wrong, first := 0, 0
	for i := range want {
		if math.Float32bits(have[i]) != math.Float32bits(want[i]) {
			if wrong == 0 {
				first = i
			}
			wrong++
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("-verify: %d of %d elements that card %s summed are not the model's; the first is element %d: 0x%08x, the model has 0x%08x; nothing was written",
		wrong, len(want), card, first, math.Float32bits(have[first]), math.Float32bits(want[first]))
}
