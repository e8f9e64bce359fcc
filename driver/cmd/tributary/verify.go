package main

import (
	"context"
	"fmt"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// compareWithModel sums what the card was sent once more on the Go model of a card
// of the same arithmetic, and compares every bit. The model may use other chunks
// than the card did: the sum must not depend on them.
func (r *reduction) compareWithModel(ctx context.Context) error {
	want := make([]byte, len(r.sums))
	modelCard := cardFlags{card: modelOf(r.card), timeout: r.timeout}
	needs := transport.Needs{Workers: r.portsNeeded(len(r.inputs))}
	err := modelCard.withCard(ctx, needs, func(card *driver.Card) error {
		job, err := card.Configure(ctx, driver.JobConfig{Workers: len(r.inputs), Ports: r.ports})
		if err != nil {
			return err
		}
		if err := job.ReduceBytes(ctx, want, r.inputs); err != nil {
			return err
		}
		return job.Close(ctx)
	})
	if err != nil {
		return fmt.Errorf("-verify: the model could not sum them: %w", err)
	}
	return sameBits(r.cardFlags.card, r.card.Result, r.sums, want)
}

// modelOf names a model with the arithmetic of a card.
func modelOf(card driver.Info) string {
	return fmt.Sprintf("model:format=%s,result=%s,sum=%s,saturate=%t", card.Format, card.Result, card.Sum, card.Saturate)
}

// sameBits says how many elements of a card's sum are not the wanted ones, and
// which is the first.
func sameBits(card string, f wire.Format, have, want []byte) error {
	wrong, first, size := 0, 0, element.Size(f)
	for i := range len(want) / size {
		if element.At(f, have, i) != element.At(f, want, i) {
			if wrong == 0 {
				first = i
			}
			wrong++
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("-verify: %d of %d elements that card %s summed are not the model's; the first is element %d: 0x%0*x, the model has 0x%0*x; nothing was written",
		wrong, len(want)/size, card, first, 2*size, element.At(f, have, first), 2*size, element.At(f, want, first))
}
