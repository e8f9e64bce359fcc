package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tributary/driver"
	"tributary/driver/wire"
)

// job is a job of three members with partial sums and two reductions of 5 elements in chunks of
// 2. All members hold the complete sums.
func job() *verdict {
	cfg := driver.JobConfig{Workers: 3, Ports: []int{1, 2, 5}, Chunk: 2, FirstVID: 7, DeadlineCycles: 1, Partial: true}
	rng := rand.New(rand.NewPCG(1, 1))
	v := newVerdict(cfg, []reduction{{chunks: 3, short: 1}, {chunks: 3, short: 1}}, rng)
	for i, inputs := range v.inputs {
		for rank := range inputs {
			v.outcomes[i][rank] = &outcome{buffer: sumOf(v, i, 0, 1, 2)}
		}
	}
	return v
}

// sumOf is the sum of some ranks in a reduction of job.
func sumOf(v *verdict, i int, ranks ...int) []float32 {
	parts := make([][]float32, ports)
	for _, rank := range ranks {
		parts[v.cfg.Ports[rank]] = v.inputs[i][rank]
	}
	return treeSum(parts, len(v.inputs[i][0]))
}

// lacks replaces chunk 1 of a rank's second reduction by the sum of ranks 0 and 2, and reports
// that.
func lacks(v *verdict, rank int) {
	o := v.outcomes[1][rank]
	copy(o.buffer[2:4], sumOf(v, 1, 0, 2)[2:4])
	o.partials = []driver.Partial{{VID: 11, From: 2, To: 4, Ranks: []int{0, 2}}}
}

// TestVerdict: judge accepts right jobs and rejects wrong ones.
func TestVerdict(t *testing.T) {
	evicted := &driver.EvictedError{Rank: 1}
	gone := &driver.EndedError{Err: &driver.RefusedError{Code: wire.CodeBadJob}}
	for name, c := range map[string]struct {
		does  func(v *verdict)
		wrong string // part of the error; empty when the job is right
	}{
		"whole": {func(*verdict) {}, ""},
		"partial": {func(v *verdict) {
			for rank := range 3 {
				lacks(v, rank)
			}
		}, ""},
		"evicted": {func(v *verdict) {
			v.outcomes[1][1] = &outcome{buffer: slices.Clone(v.inputs[1][1]), err: evicted}
			copy(v.outcomes[1][1].buffer, v.outcomes[1][0].buffer[:2])
			v.evicted = []int{1}
		}, ""},
		"evicted, and not by the job's word": {func(v *verdict) { v.outcomes[1][1].err = evicted }, "rank 1"},
		"another was evicted": {func(v *verdict) {
			v.outcomes[1][2].err = evicted
			v.evicted = []int{1, 2}
		}, "rank 2"},
		"evicted, and left neither input nor sum": {func(v *verdict) {
			v.outcomes[1][1].err, v.evicted = evicted, []int{1}
			v.outcomes[1][1].buffer[4] *= -1
		}, "rank 1: chunk 2: element 0"},
		"evicted from a job whose sums are whole": {func(v *verdict) { v.cfg.Partial, v.evicted = false, []int{1} }, "were evicted"},
		"some hold a partial sum":                 {func(v *verdict) { lacks(v, 1) }, "rank 1: chunk 1: one rank received a sum of ranks 101, another rank a sum of ranks 111"},
		"says the wrong ranks": {func(v *verdict) {
			for rank := range 3 {
				lacks(v, rank)
				v.outcomes[1][rank].partials[0].Ranks = []int{1, 2}
			}
		}, "the sum of ranks 110 is"},
		"says nothing": {func(v *verdict) {
			lacks(v, 0)
			v.outcomes[1][0].partials = nil
		}, "rank 0: chunk 1"},
		"says it of another chunk": {func(v *verdict) {
			lacks(v, 0)
			v.outcomes[1][0].partials[0].VID++
		}, "invalid run of partial sums"},
		"nobody is left": {func(v *verdict) { v.outcomes[1][0].err, v.outcomes[1][1].err, v.outcomes[1][2].err = gone, gone, gone }, ""},
		"nobody is left of a job whose sums are whole": {func(v *verdict) {
			v.cfg.Partial = false
			v.outcomes[1][1].err = gone
		}, "rank 1"},
		"another ends as if one had died": {func(v *verdict) { v.outcomes[1][2].err = &driver.EndedError{} }, "rank 2"},
		"told of somebody else's chunk": {func(v *verdict) {
			v.cfg.Partial = false
			v.overdue = []driver.Overdue{{Job: 2, VID: 13, Ranks: []int{1}}}
		}, "received the notice"},
	} {
		t.Run(name, func(t *testing.T) {
			v := job()
			c.does(v)
			switch err := v.judge(2, nil); {
			case c.wrong == "" && err != nil:
				t.Error(err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}
