//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"tributary/driver"
	_ "tributary/driver/transport/serve" // the scheme of daemons
)

// order is what the demo tells a worker. The first one seats it in a job, the others are reductions, and
// the last one finishes the job. The worker lives until the end of the orders: its namespace, and the
// card's TAP device there, end with it.
type order struct {
	Daemon string `json:"daemon,omitempty"` // of the first order
	Rank   int    `json:"rank,omitempty"`
	Ticket string `json:"ticket,omitempty"` // empty: makes the job

	Round    int `json:"round,omitempty"` // of a reduction
	Elements int `json:"elements,omitempty"`

	Finish bool `json:"finish,omitempty"`
}

// report is a worker's answer to an order.
type report struct {
	Ticket string `json:"ticket,omitempty"`
	Sum    []byte `json:"sum,omitempty"` // fp32, little-endian
}

// work is a worker process: it obeys the orders on in until they end, and reports on out.
func work(in io.Reader, out io.Writer) error {
	orders, reports := json.NewDecoder(in), json.NewEncoder(out)
	ctx := context.Background()
	var first order
	if err := orders.Decode(&first); err != nil {
		return err
	}
	member, finish, err := sit(ctx, first)
	if err != nil {
		return err
	}
	if err := reports.Encode(report{Ticket: member.Job().Ticket()}); err != nil {
		return err
	}
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r, err := obey(ctx, member, finish, o)
		if err != nil {
			return err
		}
		if err := reports.Encode(r); err != nil {
			return err
		}
	}
}

// obey sums a worker's array, or finishes the worker's part in the job.
func obey(ctx context.Context, member *driver.Member, finish func() error, o order) (report, error) {
	if o.Finish {
		return report{}, finish()
	}
	array := contribution(member.Rank(), o.Round, o.Elements)
	if err := member.AllReduceBytes(ctx, array, array); err != nil {
		return report{}, fmt.Errorf("reduction %d: %w", o.Round, err)
	}
	return report{Sum: array}, nil
}

// sit makes the job or joins it. finish ends the worker's part.
func sit(ctx context.Context, o order) (member *driver.Member, finish func() error, err error) {
	card, err := driver.Open(ctx, o.Daemon)
	if err != nil {
		return nil, nil, err
	}
	if o.Ticket != "" {
		member, err = card.Join(ctx, o.Ticket, o.Rank)
	} else {
		var job *driver.Job
		if job, err = card.Configure(ctx, driver.JobConfig{Workers: hosts, Here: []int{o.Rank}}); err == nil {
			member = job.Member(o.Rank)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, card.Close())
	}
	return member, func() error { return errors.Join(member.Job().Close(ctx), card.Close()) }, nil
}

// elementBytes is the size of an fp32 element.
const elementBytes = 4

// contribution returns a rank's array of a round, fp32 in little-endian order: normally distributed
// numbers, different in each.
func contribution(rank, round, elements int) []byte {
	random := rand.New(rand.NewPCG(uint64(rank), uint64(round)))
	var array []byte
	for range elements {
		array = binary.LittleEndian.AppendUint32(array, math.Float32bits(float32(random.NormFloat64())))
	}
	return array
}
