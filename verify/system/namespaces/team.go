//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"tributary/driver"
)

// team is the workers of one job.
type team struct {
	workers  []*program
	reports  []*json.Decoder
	elements int
	model    *driver.Job // sums the same arrays
}

// newTeam seats the workers in a job of the daemon.
func newTeam(ctx context.Context, workers []*program, daemon string, elements int) (*team, error) {
	t := &team{workers: workers, elements: elements}
	ticket := ""
	for rank, w := range workers {
		t.reports = append(t.reports, json.NewDecoder(w.out))
		if err := t.tell(rank, order{Daemon: daemon, Rank: rank, Ticket: ticket}); err != nil {
			return nil, err
		}
		r, err := t.hear(rank)
		if err != nil {
			return nil, err
		}
		ticket = r.Ticket
	}
	model, err := driver.Open(ctx, fmt.Sprintf("model:workers=%d", hosts))
	if err != nil {
		return nil, err
	}
	t.model, err = model.Configure(ctx, driver.JobConfig{Workers: hosts})
	return t, err
}

// reduce runs a reduction and compares every worker's sum with the model's.
func (t *team) reduce(ctx context.Context, round int) error {
	for rank := range t.workers {
		if err := t.tell(rank, order{Round: round, Elements: t.elements}); err != nil {
			return err
		}
	}
	want := make([]byte, elementBytes*t.elements)
	var arrays [][]byte
	for rank := range t.workers {
		arrays = append(arrays, contribution(rank, round, t.elements))
	}
	if err := t.model.ReduceBytes(ctx, want, arrays); err != nil {
		return fmt.Errorf("the model: %w", err)
	}
	for rank := range t.workers {
		r, err := t.hear(rank)
		if err != nil {
			return err
		}
		if err := sameBits(r.Sum, want); err != nil {
			return fmt.Errorf("reduction %d, worker %d: %w", round, rank, err)
		}
	}
	return nil
}

// finish ends the job. The workers live on: a card at a TAP device dies with the namespace where the
// device is, and must answer all of them before.
func (t *team) finish() error {
	for rank := range t.workers {
		if err := t.tell(rank, order{Finish: true}); err != nil {
			return err
		}
	}
	for rank := range t.workers {
		if _, err := t.hear(rank); err != nil {
			return err
		}
	}
	return nil
}

func (t *team) tell(rank int, o order) error {
	if err := json.NewEncoder(t.workers[rank].in).Encode(o); err != nil {
		return t.workers[rank].ended()
	}
	return nil
}

func (t *team) hear(rank int) (r report, err error) {
	if err := t.reports[rank].Decode(&r); err != nil {
		return r, t.workers[rank].ended()
	}
	return r, nil
}

// sameBits refuses a sum with a wrong bit.
func sameBits(have, want []byte) error {
	if len(have) != len(want) {
		return fmt.Errorf("the sum has %d bytes, the model's %d", len(have), len(want))
	}
	for at := 0; at < len(want); at += elementBytes {
		if h, w := have[at:at+elementBytes], want[at:at+elementBytes]; !bytes.Equal(h, w) {
			return fmt.Errorf("element %d of the sum is %x, the model's %x", at/elementBytes, h, w)
		}
	}
	return nil
}
