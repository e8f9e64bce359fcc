package reduction_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/reduction"
	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// lossy is a link that loses some of the frames to its card.
type lossy struct {
	transport.Conn
	scanner *frame.Scanner
	loses   func(h *frame.Header) bool
}

func (l *lossy) Write(p []byte) (int, error) {
	var f frame.Frame
	var kept []byte
	for rest := p; len(rest) > 0; {
		rest = rest[l.scanner.Feed(rest):]
		for l.scanner.Next(&f) {
			if !l.loses(&f.Header) {
				kept = append(kept, f.Raw...)
			}
		}
	}
	if _, err := l.Conn.Write(kept); err != nil {
		return 0, err
	}
	return len(p), nil
}

// openLossy opens a model of a card with chunks of 4 elements, whose link loses frames.
func openLossy(t *testing.T, loses func(h *frame.Header) bool) *driver.Card {
	t.Helper()
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: 4, Chunk: 4, Window: 2, Shell: wire.ShellStream, Link: 32})
	require.NoError(t, err)
	host, end := pipe.New(64 << 10)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = card.Serve(end)
	}()
	opened, err := driver.OpenConn(t.Context(), "test", &lossy{host, frame.NewScanner(frame.ToCard, 0), loses})
	require.NoError(t, err)
	t.Cleanup(func() {
		opened.Close()
		<-served
	})
	return opened
}

// isData reports whether a frame holds the contribution of rank to chunk vid.
func isData(h *frame.Header, rank uint8, vid uint32) bool {
	return h.Kind == wire.KindData && h.Rank == rank && h.VID == vid
}

// twoChunks returns arrays of 6 elements, one and a half chunks of the card of openLossy, from 3
// workers. The arrays of a worker hold one number.
func twoChunks(numbers ...float32) []reduction.Arrays {
	var all []reduction.Arrays
	for _, x := range numbers {
		all = append(all, reduction.Array(float32s([]int{2, 3}, x, x, x, x, x, x)))
	}
	return all
}

// TestPartialSums checks that the first chunk lacks its late worker, that the report and a warning
// name both, and that a mean divides each element by its number of contributors.
func TestPartialSums(t *testing.T) {
	for op, want := range map[reduction.Op][]float32{
		reduction.Sum:  {9, 9, 9, 9, 15, 15},
		reduction.Mean: {4.5, 4.5, 4.5, 4.5, 5, 5},
	} {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				card := openLossy(t, func(h *frame.Header) bool { return isData(h, 1, 0) })
				done, err := reduction.Reduce(t.Context(), card, twoChunks(3, 6, 6), reduction.Options{Op: op, Deadline: 20 * time.Millisecond, Partial: true})
				require.NoError(t, err)
				require.Equal(t, float32s([]int{2, 3}, want...), done.Sum.Tensors[0].Array)
				require.Equal(t, []reduction.PartialIn{{From: 0, To: 4, Workers: []int{0, 2}}}, done.Report.Partial)
				require.Empty(t, done.Report.Evicted)
				require.Equal(t, []string{"4 of 6 elements of the sum lack worker 1, which came too late; the first is element [0, 0]"}, done.Warnings)
			})
		})
	}
}

// TestPartialSumsOfAll checks that a deadline changes nothing when all workers are punctual.
func TestPartialSumsOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openLossy(t, func(*frame.Header) bool { return false })
		done, err := reduction.Reduce(t.Context(), card, twoChunks(3, 6, 6), reduction.Options{Op: reduction.Mean, Deadline: 20 * time.Millisecond, Partial: true})
		require.NoError(t, err)
		require.Equal(t, float32s([]int{2, 3}, 5, 5, 5, 5, 5, 5), done.Sum.Tensors[0].Array)
		require.Empty(t, done.Report.Partial)
		require.Empty(t, done.Warnings)
	})
}

// TestEvicted checks that a worker that never sends is evicted, and that the reduction continues
// without it.
func TestEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openLossy(t, func(h *frame.Header) bool { return h.Rank == 0 && (h.Kind == wire.KindData || h.Kind == wire.KindAsk) })
		in := make([]float32, 40)
		arrays := []reduction.Arrays{reduction.Array(float32s([]int{40}, in...)), reduction.Array(float32s([]int{40}, in...))}
		done, err := reduction.Reduce(t.Context(), card, arrays, reduction.Options{Deadline: 20 * time.Millisecond, Partial: true})
		require.NoError(t, err)
		require.Equal(t, []int{0}, done.Report.Evicted)
		require.Equal(t, []reduction.PartialIn{{From: 0, To: 40, Workers: []int{1}}}, done.Report.Partial)
		require.Equal(t, []string{
			"40 of 40 elements of the sum lack worker 0, which came too late; the first is element 0",
			"worker 0 was evicted: it blocked the others for a second deadline",
		}, done.Warnings)
	})
}

// TestOverdue checks that without partial sums, the caller learns once of each chunk that waits
// and of its late workers, although the card repeats its notices, and that the sum is complete.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := map[uint32]time.Time{} // when the link lost the first frame of a chunk
		card := openLossy(t, func(h *frame.Header) bool {
			if !isData(h, 1, 0) && !isData(h, 2, 1) {
				return false
			}
			if began[h.VID].IsZero() {
				began[h.VID] = time.Now()
			}
			return time.Since(began[h.VID]) < 500*time.Millisecond
		})
		var overdue []driver.Overdue
		done, err := reduction.Reduce(t.Context(), card, twoChunks(3, 6, 6), reduction.Options{
			Window: 1, Deadline: 20 * time.Millisecond, OnOverdue: func(o driver.Overdue) { overdue = append(overdue, o) },
		})
		require.NoError(t, err)
		require.Equal(t, float32s([]int{2, 3}, 15, 15, 15, 15, 15, 15), done.Sum.Tensors[0].Array)
		require.Empty(t, done.Warnings)
		require.Equal(t, []driver.Overdue{{Card: "test", VID: 0, Ranks: []int{1}}, {Card: "test", VID: 1, Ranks: []int{2}}}, overdue)

		require.Greater(t, count(t, card, "overdue"), uint32(2))
	})
}

// count returns a counter of the card.
func count(t *testing.T, card *driver.Card, name string) uint32 {
	t.Helper()
	counters, err := card.Counters(t.Context())
	require.NoError(t, err)
	for _, c := range counters {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("the card has no counter %s", name)
	return 0
}

// TestOverdueFails checks that a reduction whose worker never sends reports the worker, and then
// fails with the chunk and the rank.
func TestOverdueFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openLossy(t, func(h *frame.Header) bool { return h.Kind == wire.KindData && h.Rank == 2 })
		var overdue []driver.Overdue
		_, err := reduction.Reduce(t.Context(), card, twoChunks(3, 6, 6), reduction.Options{
			Window: 1, Deadline: 20 * time.Millisecond, OnOverdue: func(o driver.Overdue) { overdue = append(overdue, o) },
		})
		missing := new(driver.MissingError)
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []int{2}, missing.Ranks)
		require.EqualValues(t, 0, missing.VID)
		require.Equal(t, []driver.Overdue{{Card: "test", VID: 0, Ranks: []int{2}}}, overdue)
	})
}
