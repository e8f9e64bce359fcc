package reduction

import (
	"context"
	"fmt"

	"tributary/driver"
	"tributary/driver/element"
)

// compareWithModel repeats the card's sum on the Go model of a card with the same arithmetic, and
// compares every bit. The model may use other chunks than the card: the sum must not depend on
// them.
func (r *Reduction) compareWithModel(ctx context.Context) error {
	want, err := r.sumOnModel(ctx)
	if err != nil {
		text := say("${verify}: the model could not sum them: %v", err)
		text.err = err
		return &VerifyError{words: text}
	}
	return r.sameBits(want)
}

func (r *Reduction) sumOnModel(ctx context.Context) ([]byte, error) {
	if r.nested != nil {
		return r.sumOnModels()
	}
	model, err := driver.Open(ctx, modelOf(r.card), driver.WithTimeout(r.opts.timeout()), driver.WithWorkers(r.Needs().Workers))
	if err != nil {
		return nil, err
	}
	defer model.Close() // no data can be lost
	job, err := model.Configure(ctx, driver.JobConfig{Workers: len(r.inputs), Ports: r.opts.Ports})
	if err != nil {
		return nil, err
	}
	sums := make([]byte, len(r.sums))
	if err := job.ReduceBytes(ctx, sums, r.inputs); err != nil {
		return nil, err
	}
	return sums, job.Close(ctx)
}

// nesting returns the function that computes a tree's sum of one element, from the contributions by rank.
type nesting func() (func(contributions []uint32) uint32, error)

// sumOnModels computes the nested sum of the models of a tree's cards.
func (r *Reduction) sumOnModels() ([]byte, error) {
	sum, err := r.nested()
	if err != nil {
		return nil, err
	}
	contributions := make([]uint32, r.ranks[len(r.ranks)-1]+1)
	sums := make([]byte, len(r.sums))
	for i := range r.elements {
		for n, rank := range r.ranks {
			contributions[rank] = element.At(r.card.Format, r.inputs[n], i)
		}
		element.Put(r.card.Result, sums, i, sum(contributions))
	}
	return sums, nil
}

// modelOf returns the name of a model with the arithmetic of a card.
func modelOf(card driver.Info) string {
	return fmt.Sprintf("model:format=%s,result=%s,sum=%s,saturate=%t", card.Format, card.Result, card.Sum, card.Saturate)
}

// sameBits refuses a sum with wrong elements.
func (r *Reduction) sameBits(want []byte) error {
	f := r.card.Result
	size := element.Size(f)
	e := &VerifyError{Elements: len(want) / size}
	for i := range e.Elements {
		have, wanted := element.At(f, r.sums, i), element.At(f, want, i)
		if have == wanted {
			continue
		}
		if e.Wrong == 0 {
			e.First, e.Have, e.Want = i, have, wanted
		}
		e.Wrong++
	}
	if e.Wrong == 0 {
		return nil
	}
	e.words = say("${verify}: %d of %d elements that card %s summed are not the model's; the first is element %d: 0x%0*x, the model has 0x%0*x; nothing was written",
		e.Wrong, e.Elements, r.card.Name, e.First, 2*size, e.Have, 2*size, e.Want)
	return e
}
