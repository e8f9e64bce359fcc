package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// patience is far longer than any call of these tests takes.
const patience = 2 * time.Minute

// everyone runs f as every member of a group.
func everyone(t *testing.T, a collective.Algorithm, size int, f func(c collective.Collective) error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "b") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	g := collective.Group{Name: t.Name(), Generation: 1}
	for r := range size {
		g.Members = append(g.Members, collective.Member{ID: fmt.Sprintf("rank%d", r), Address: "unix:" + filepath.Join(dir, fmt.Sprint(r))})
	}
	var members []collective.Collective
	for r := range size {
		g.Rank = r
		c, err := collective.Open(t.Context(), a, g)
		require.NoError(t, err)
		members = append(members, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := make([]error, size)
	var wg sync.WaitGroup
	for r, c := range members {
		wg.Go(func() {
			errs[r] = f(c)
			if err := c.Close(ctx); errs[r] == nil {
				errs[r] = err
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
}

var operations = []collective.Operation{collective.AllReduceOp, collective.ReduceScatterOp, collective.AllGatherOp, collective.BroadcastOp}

// TestRight measures every operation in every format; lengths are also shorter than the group. All
// members have the same outcome: no wrong element, and the steps and bytes of a ring.
func TestRight(t *testing.T) {
	const size = 3
	for _, op := range operations {
		for _, f := range wire.Formats {
			for _, n := range []int{1, 2, 600} {
				k := Case{Operation: op, Format: f.Format, Elements: n}
				if op == collective.BroadcastOp {
					k.Root = 2
				}
				results := make([]Result, size)
				everyone(t, collective.Ring, size, func(c collective.Collective) (err error) {
					rank := c.Group().Rank
					results[rank], err = Measure(t.Context(), c, k, Options{Warmup: 1, Iterations: 2, Check: true, Timeout: patience})
					return err
				})
				for rank, r := range results {
					require.Zero(t, r.Wrong, "%+v", k)
					require.Positive(t, r.Time)
					require.Equal(t, results[0].Time, r.Time)
					if n == 600 && op == collective.AllReduceOp {
						require.Equal(t, 2*(size-1.0), r.Steps, "rank %d", rank)
						require.Equal(t, BusFactor(op, size)*float64(k.Bytes()), r.Sent)
						require.Equal(t, r.Sent, r.Received)
					}
				}
			}
		}
	}
}

// damaging is a collective that damages elements of results of one member.
type damaging struct {
	collective.Collective
	damage func(dst []byte)
	calls  int
}

func (d *damaging) AllReduce(ctx context.Context, f wire.Format, dst, src []byte) error {
	d.calls++
	if d.damage == nil {
		return nil // leaves dst as it was
	}
	err := d.Collective.AllReduce(ctx, f, dst, src)
	d.damage(dst)
	return err
}

// TestWrong: every member reports the wrong elements of one, be it a bit of an element or a call that
// writes nothing.
func TestWrong(t *testing.T) {
	results := make([]Result, 3)
	k := Case{Operation: collective.AllReduceOp, Format: wire.BF16, Elements: 100}
	everyone(t, collective.Tree, 3, func(c collective.Collective) (err error) {
		rank := c.Group().Rank
		if rank == 1 {
			c = &damaging{Collective: c, damage: func(dst []byte) {
				for _, i := range []int{0, 150, 151, 199} { // 150 and 151 are of one element
					dst[i] ^= 1
				}
			}}
		}
		results[rank], err = Measure(t.Context(), c, k, Options{Iterations: 1, Check: true})
		return err
	})
	for _, r := range results {
		require.Equal(t, 3, r.Wrong)
	}
	everyone(t, collective.Ring, 2, func(c collective.Collective) (err error) {
		d := &damaging{Collective: c}
		results[c.Group().Rank], err = Measure(t.Context(), d, k, Options{Warmup: 2, Iterations: 3, Check: true})
		require.Equal(t, 6, d.calls)
		return err
	})
	require.Equal(t, 200, results[0].Wrong)
	require.Equal(t, 200, results[1].Wrong)
}

// TestEveryOrderIsExact: all partial sums of contributions are integers with an encoding, whatever the
// number of members, and not all contributions are zero.
func TestEveryOrderIsExact(t *testing.T) {
	for _, f := range wire.Formats {
		if f.Exp == 0 {
			continue
		}
		for _, members := range []int{1, 2, 3, 17, 100} {
			b := &run{Case: Case{Operation: collective.AllReduceOp, Format: f.Format, Elements: 50}, group: collective.Group{Members: make([]collective.Member, members)}}
			var any bool
			for i := range b.Elements {
				var magnitudes int64
				for rank := range members {
					x := b.contribution(rank, i)
					any = any || x != 0
					magnitudes += max(x, -x)
				}
				require.LessOrEqual(t, magnitudes, int64(1)<<(f.Frac+1))
			}
			require.True(t, any)
		}
		for x := range min(1<<(f.Frac+1), 5000) + 1 {
			require.Equal(t, float64(x), element.Value(f.Format, encode(f.Format, int64(x))), "%s", f.Name)
		}
		require.Equal(t, math.Ldexp(1, f.Frac+1), element.Value(f.Format, encode(f.Format, 1<<(f.Frac+1))))
	}
}

// TestBusFactor compares with the table of nccl-tests' doc/PERFORMANCE.md.
func TestBusFactor(t *testing.T) {
	require.Equal(t, 1.5, BusFactor(collective.AllReduceOp, 4))
	require.Equal(t, 0.75, BusFactor(collective.ReduceScatterOp, 4))
	require.Equal(t, 0.75, BusFactor(collective.AllGatherOp, 4))
	require.Equal(t, 1.0, BusFactor(collective.BroadcastOp, 4))
	require.Zero(t, BusFactor(collective.AllReduceOp, 1))
}

// TestAlgorithmBandwidth: 4 MB in 2 ms are 2 GB a second.
func TestAlgorithmBandwidth(t *testing.T) {
	r := Result{Time: 2 * time.Millisecond}
	require.InDelta(t, 2e9, r.AlgorithmBandwidth(Case{Format: wire.FP32, Elements: 1_000_000}), 1)
}

// TestTimeout: a call that takes too long ends with a StoppedError that is a timeout, and with a
// GivenUpError on the other member.
func TestTimeout(t *testing.T) {
	failed := make(chan struct{})
	everyone(t, collective.Ring, 2, func(c collective.Collective) error {
		o := Options{Warmup: 1, Iterations: 1, Timeout: time.Millisecond}
		if c.Group().Rank == 1 {
			<-failed
			o.Timeout = patience
		}
		_, err := Measure(t.Context(), c, Case{collective.AllReduceOp, wire.FP32, 1, 0}, o)
		if c.Group().Rank == 1 {
			require.ErrorAs(t, err, new(*collective.GivenUpError))
			return nil
		}
		close(failed)
		var stopped *collective.StoppedError
		require.ErrorAs(t, err, &stopped)
		require.True(t, stopped.Timeout())
		return nil
	})
}
