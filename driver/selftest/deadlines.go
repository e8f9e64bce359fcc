package selftest

import (
	"context"
	"errors"
	"slices"

	"tributary/driver"
)

// deadlineCycles is long enough for a host to send a chunk, and short enough for a simulation.
const deadlineCycles = 20_000

// checkDeadlines lets the second of two ports be late, and then absent.
func checkDeadlines(ctx context.Context, s *subject) error {
	job, err := s.Configure(ctx, driver.JobConfig{Workers: 2, Chunk: s.smallChunk(), Window: 1, DeadlineCycles: deadlineCycles, Partial: true})
	if err != nil {
		return err
	}
	if err := s.checkPartial(ctx, job); err != nil {
		return err
	}
	if err := s.checkEviction(ctx, job); err != nil {
		return err
	}
	return job.Close(ctx)
}

// reduceAlone reduces chunks of whole numbers by one member. The sums must be those of the
// first port alone, and all must be marked partial.
func (s *subject) reduceAlone(ctx context.Context, job *driver.Job, rank, chunks int) error {
	n := chunks * job.Config().Chunk
	sum := make([]byte, n*s.outBytes())
	if err := job.Member(rank).AllReduceBytes(ctx, sum, s.wholeInput(1, 0, n)); err != nil {
		return err
	}
	if err := s.compare([]int{0}, sum, func(i int) uint32 { return s.wholeSum(1, i) }); err != nil {
		return wrong("the sum without port 1, as sent to rank %d: %w", rank, err)
	}
	partials := job.Member(rank).Partials()
	ok := len(partials) == 1 && partials[0].From == 0 && partials[0].To == n && slices.Equal(partials[0].Ranks, []int{0})
	return check(nil, ok, "rank %d was told of partial sums %v, must be all of rank 0 alone", rank, partials)
}

// checkPartial lets rank 1 contribute after the chunk is summed.
func (s *subject) checkPartial(ctx context.Context, job *driver.Job) error {
	for rank := range 2 {
		if err := s.reduceAlone(ctx, job, rank, 1); err != nil {
			return err
		}
	}
	return check(nil, len(job.Evicted()) == 0, "ranks %v were evicted though they came", job.Evicted())
}

// checkEviction lets rank 0 continue alone.
func (s *subject) checkEviction(ctx context.Context, job *driver.Job) error {
	const chunks = 4 // the card has slots for two
	if err := s.reduceAlone(ctx, job, 0, chunks); err != nil {
		return err
	}
	err := s.reduceAlone(ctx, job, 1, chunks)
	var evicted *driver.EvictedError
	if !errors.As(err, &evicted) {
		return wrong("the call of rank 1, which blocked rank 0, returned %v, must be an eviction", err)
	}
	states, err := s.Card.Jobs(ctx)
	if err != nil {
		return err
	}
	have := states[job.Number()].Evicted
	return check(nil, slices.Equal(have, []int{1}), "the card says that ranks %v were evicted, must be rank 1", have)
}
