package sweep

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/element"
)

// TestLateMembersLikeTheModel makes members of a job late or absent, on cards of every sum.
func TestLateMembersLikeTheModel(t *testing.T) {
	for _, name := range []string{
		"model:lanes=4,workers=4,chunk=16,window=4",
		"model:lanes=2,workers=5,chunk=8,window=2,format=bf16,result=fp32,sum=exact",
		"model:lanes=1,workers=3,chunk=5,window=8,format=fp16,sum=fused",
	} {
		t.Run(name, func(t *testing.T) {
			if sumLate(t, name) == 0 {
				t.Error("no sum was partial: nothing was tried")
			}
		})
	}
}

// TestLateMembersOnCards does so on virtual cards.
func TestLateMembersOnCards(t *testing.T) {
	for _, c := range append([]shape{
		{lanes: 1, workers: 3, chunk: 8, window: 128, link: 64},
		{lanes: 2, workers: 3, chunk: 32, window: 2, link: 16, arithmetic: arithmetic{format: "fp16", sum: "exact"}},
	}, also(
		shape{lanes: 4, workers: 4, chunk: 64, window: 8, link: 32},
		shape{lanes: 2, workers: 4, chunk: 32, window: 4, link: 64, arithmetic: arithmetic{format: "bf16", result: "fp32", sum: "fused"}},
	)...) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("%d partial sums", sumLate(t, "sim:"+c.build(t)))
		})
	}
}

// round is one reduction as seen by a member.
type round struct {
	sum      []byte // nil if the call failed
	partials []driver.Partial
	err      error
}

// sumLate opens a card with a chunk deadline of 5 ms. The members of a job pause at random,
// sometimes for longer, before their calls. All members that are not evicted must hold the same
// sums, and every bit must equal the model's sum of the named members. It returns the card's
// count of partial sums.
func sumLate(t *testing.T, name string) (partial uint32) {
	const rounds = 15
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	card, err := driver.Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{Deadline: 5 * time.Millisecond, Partial: true, Window: card.Info().Window})
	if err != nil {
		t.Fatal(err)
	}
	info, cfg := card.Info(), job.Config()
	rng := rand.New(rand.NewPCG(info.ConfigHash, 1))
	var inputs [rounds][][]byte
	var seen [rounds][]round
	for i := range inputs {
		inputs[i] = someInputs(info, rng.Uint64(), cfg.Workers, 1+rng.IntN(3*cfg.Window*cfg.Chunk))
		seen[i] = make([]round, cfg.Workers)
	}
	var members sync.WaitGroup
	for rank := range cfg.Workers {
		pauses := rand.New(rand.NewPCG(info.ConfigHash, uint64(2+rank)))
		members.Go(func() {
			for i := range rounds {
				if pauses.IntN(5) == 0 {
					time.Sleep(time.Duration(pauses.IntN(30)) * time.Millisecond)
				}
				r := &seen[i][rank]
				r.sum = make([]byte, len(inputs[i][rank])/element.Size(info.Format)*element.Size(info.Result))
				if r.err = job.Member(rank).AllReduceBytes(ctx, r.sum, inputs[i][rank]); r.err != nil {
					return
				}
				r.partials = job.Member(rank).Partials()
			}
		})
	}
	members.Wait()
	for i := range seen {
		compareRound(t, info, inputs[i], seen[i])
	}
	if err := job.Close(ctx); err != nil {
		t.Fatal(err)
	}
	counters, err := card.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counters {
		if c.Name == "partial" {
			partial = c.Value
		}
	}
	return partial
}

// compareRound compares a reduction's sums with each other, and with the model.
func compareRound(t *testing.T, info driver.Info, inputs [][]byte, members []round) {
	t.Helper()
	var first *round
	for rank := range members {
		r := &members[rank]
		var evicted *driver.EvictedError
		switch {
		case r.sum == nil || errors.As(r.err, &evicted):
		case r.err != nil:
			t.Errorf("rank %d: %v", rank, r.err)
		case first == nil:
			first = r
		case !reflect.DeepEqual(r.sum, first.sum) || !reflect.DeepEqual(r.partials, first.partials):
			t.Errorf("rank %d does not hold what another does; %+v, %+v", rank, r.partials, first.partials)
		}
	}
	if first == nil {
		t.Error("nobody holds the sum")
		return
	}
	in, out := element.Size(info.Format), element.Size(info.Result)
	all := make([]int, len(inputs))
	for rank := range all {
		all[rank] = rank
	}
	part := func(from, to int, ranks []int) {
		var contributions [][]byte
		for _, rank := range ranks {
			contributions = append(contributions, inputs[rank][from*in:to*in])
		}
		if err := compare(info, ranks, contributions, first.sum[from*out:to*out]); err != nil {
			t.Fatal(err)
		}
	}
	done := 0
	for _, p := range first.partials {
		part(done, p.From, all)
		part(p.From, p.To, p.Ranks)
		done = p.To
	}
	part(done, len(first.sum)/out, all)
}
