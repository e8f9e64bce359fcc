package driver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/wire"
)

// TestTreeNamesRefusalsOfAParent: card 1, which has no workers, loses its job behind the driver's back, and
// refuses what the cards 2 and 3 below it send. The call of one rank gives up: that at the root, which
// misses the ranks below card 1, or one below. Or the close of the job gives up. The error has both
// refusals, and so have the errors of the other calls, which end with it.
func TestTreeNamesRefusalsOfAParent(t *testing.T) {
	shape := branches{[]int{0}, []branches{{nil, []branches{{[]int{1, 2}, nil}, {[]int{3}, nil}}}}}
	start := func(t *testing.T, opts ...driver.Option) (*driver.Job, []driver.UpRefusal) {
		g := growOnLAN(t, []int{-1, 0, 1, 1}, []int{1, 0, 2, 1}, plain, opts...)
		job := g.configure(t, driver.JobConfig{FirstVID: 7})
		name := uint64(job.Number())<<48 | uint64(job.Epoch())<<32
		treeSums(t, job, shape, 1, 3*16)
		if _, err := g.cards[1].Card.WriteRegister(testContext(t), wire.RegJobAbort, name); err != nil {
			t.Fatal(err)
		}
		var want []driver.UpRefusal
		for _, leaf := range []string{"card 2", "card 3"} {
			want = append(want, driver.UpRefusal{Card: leaf, Parent: "card 1", VID: 7 + 3, Code: wire.CodeBadJob})
		}
		return job, want
	}
	check := func(t *testing.T, err error, got, want []driver.UpRefusal) {
		t.Helper()
		words := fmt.Sprintf("; card %s: its parent %s refused chunk 10 with bad_job; card %s: its parent ", want[0].Card, want[0].Parent, want[1].Card)
		if !slices.Equal(got, want) || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v, want %+v: %v", got, want, err)
		}
	}
	for _, impatient := range []int{0, 3} {
		t.Run(fmt.Sprint("call of rank ", impatient), bubble(func(t *testing.T) {
			job, want := start(t)
			calls := make([]*driver.Pending, 4)
			begin := func(rank int, opts ...driver.ReduceOption) {
				var err error
				if calls[rank], err = job.Member(rank).StartAllReduce(testContext(t), make([]float32, 16), opts...); err != nil {
					t.Fatal(err)
				}
			}
			for rank := range calls {
				if rank != impatient {
					begin(rank)
				}
			}
			begin(impatient, driver.WithCallTimeout(time.Second))
			for rank, p := range calls {
				err := p.Wait(testContext(t))
				if rank != impatient {
					err = wantError[*driver.EndedError](t, err).Err
				}
				if impatient == 0 {
					missing := wantError[*driver.MissingError](t, err)
					if !slices.Equal(missing.Ranks, []int{1, 2, 3}) {
						t.Errorf("rank %d misses %v", rank, missing.Ranks)
					}
					check(t, err, missing.Up, want)
				} else {
					check(t, err, wantError[*driver.TimeoutError](t, err).Up, want)
				}
			}
		}))
	}
	t.Run("close", bubble(func(t *testing.T) {
		job, want := start(t, driver.WithTimeout(time.Second))
		err := job.Close(testContext(t))
		late := wantError[*driver.TimeoutError](t, err)
		check(t, err, late.Up, want)
		if late.What != "finish of ranks 2" && late.What != "finish of ranks 3" { // the last ones at the leaves
			t.Error(late)
		}
	}))
}

// TestTreeKeepsQuietAboutRepeats: a card repeats its sum for an ask, and the parent, which waits for
// others, refuses it as a duplicate. The error of the call has no word of that.
func TestTreeKeepsQuietAboutRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := growOnLAN(t, []int{-1, 0}, []int{1, 1}, plain)
		job := g.configure(t, driver.JobConfig{})
		p, err := job.Member(1).StartAllReduce(testContext(t), make([]float32, 16), driver.WithCallTimeout(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		late := wantError[*driver.TimeoutError](t, p.Wait(testContext(t)))
		last, err := g.cards[1].Card.ReadRegister(testContext(t), wire.JobAddr(wire.RegJobUpRefusal, job.Number()))
		if code, _ := wire.SplitUpRefusal(last); err != nil || code != wire.CodeDuplicate || len(late.Up) != 0 || !strings.Contains(late.Error(), "longer timeout") {
			t.Errorf("%v; the last refusal is %s: %v", late, code, err)
		}
	})
}
