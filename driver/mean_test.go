package driver_test

import (
	"sync"
	"testing"

	"tributary/driver"
)

// meansOf returns sums divided by a number.
func meansOf(sums []float32, by float32) []float32 {
	means := make([]float32, len(sums))
	for i := range sums {
		means[i] = sums[i] / by
	}
	return means
}

// TestMean divides the sums of calls of all ranks, of members, and of calls that queue behind sums.
func TestMean(t *testing.T) {
	for _, name := range []string{"model:lanes=4,workers=4,chunk=16,window=4", "cpu:workers=4,chunk=16,window=4,sum=tree"} {
		t.Run(name, bubble(func(t *testing.T) {
			ctx := testContext(t)
			card, err := driver.Open(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			defer card.Close()
			job := configure(t, card, driver.JobConfig{Workers: 3})
			in := arrays(1, 3, 100)
			want := treeSum(in, firstPorts(3), 4)
			dst := make([]float32, 100)
			if err := job.Reduce(ctx, dst, in, driver.WithMean()); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "mean", dst, meansOf(want, 3))
			if err := job.Reduce(ctx, dst, in); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "sum after a mean", dst, want)
			var members sync.WaitGroup
			for rank := range 3 {
				members.Go(func() {
					sum, mean := clone(in)[rank], clone(in)[rank]
					first, err := job.Member(rank).StartAllReduce(ctx, sum)
					if err != nil {
						t.Error(err)
						return
					}
					second, err := job.Member(rank).StartAllReduce(ctx, mean, driver.WithMean())
					if err != nil {
						t.Error(err)
						return
					}
					if err := second.Wait(ctx); err != nil {
						t.Error(err)
					}
					if err := first.Wait(ctx); err != nil {
						t.Error(err)
					}
					sameBits(t, "queued sum", sum, want)
					sameBits(t, "queued mean", mean, meansOf(want, 3))
				})
			}
			members.Wait()
			closes(t, job)
		}))
	}
}

// TestMeanOfPartialSums divides each sum by the number of its contributors.
func TestMeanOfPartialSums(t *testing.T) {
	bubble(func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, partialJob)
		in := arrays(2, 4, 40)
		_, errs := reduceAll(testContext(t), job, []int{0, 1, 2, 3}, in) // all are there
		wantNil(t, errs, 0, 1, 2, 3)
		got := clone(in)
		var members sync.WaitGroup
		for rank := range 3 { // and rank 3 is late
			members.Go(func() {
				if err := job.Member(rank).AllReduce(testContext(t), got[rank], driver.WithMean()); err != nil {
					t.Error(err)
				}
			})
		}
		members.Wait()
		for rank := range 3 {
			sameBits(t, "mean of three", got[rank], meansOf(sumOf(in, []int{0, 1, 2}), 3))
		}
		if err := job.Abort(testContext(t)); err != nil {
			t.Fatal(err)
		}
	})(t)
}

// TestMeanNeedsSums: a card that does not add refuses it, and sends nothing.
func TestMeanNeedsSums(t *testing.T) {
	bubble(func(t *testing.T) {
		card, err := driver.Open(testContext(t), "model:workers=2,sum=max")
		if err != nil {
			t.Fatal(err)
		}
		defer card.Close()
		job := configure(t, card, driver.JobConfig{})
		err = job.Member(0).AllReduce(testContext(t), make([]float32, 3), driver.WithMean())
		wantError[*driver.InputError](t, err, "mean", "max")
		closes(t, job)
	})(t)
}
