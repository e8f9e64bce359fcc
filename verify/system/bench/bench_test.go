package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

func TestMedianIsTheMiddleRatioWithItsOwnPeer(t *testing.T) {
	require.Equal(t, pair{9, 3}, median([]pair{{10, 1}, {9, 3}, {100, 50}}))
	require.Equal(t, pair{4, 2}, median([]pair{{4, 2}, {4, 2}, {1, 2}}))
}

func TestSignificant(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 0.98765432: "0.9877", 1: "1", 31.3269: "31.33", 297.66: "297.7", 1168.7: "1169", 123456.7: "123457",
	} {
		require.Equal(t, want, significant(value))
	}
}

// TestSpeedsAreWeighedBesideTheirPeers: a row's verdict is the same on slow and fast machines.
func TestSpeedsAreWeighedBesideTheirPeers(t *testing.T) {
	for _, machine := range []float64{1, 1000} {
		for sum, least := range map[wire.Sum]float64{wire.SumTree: 0.76, wire.SumFused: 1.26, wire.SumExact: 0.72} {
			c := saturated{sum: sum, ports: 8}
			require.True(t, c.speedRow(pair{machine * least * 1.001, machine}).Holds, sum)
			require.False(t, c.speedRow(pair{machine * least * 0.999, machine}).Holds, sum)
		}
		require.True(t, framesRow(pair{machine * 2.71, machine}).Holds)
		require.False(t, framesRow(pair{machine * 2.69, machine}).Holds)
	}
	for _, s := range inSoftwares {
		if s.least > 0 {
			require.True(t, s.row(pair{s.least * 1.001, 1}).Holds, s)
			require.False(t, s.row(pair{s.least * 0.999, 1}).Holds, s)
		}
		require.Contains(t, peers, s.peer)
	}
	require.True(t, serveRow(pair{0.901, 1}).Holds)
	require.False(t, serveRow(pair{0.899, 1}).Holds)
	for _, measured := range []bool{true, false} {
		require.True(t, allReduceRow(pair{1.99, 1}, measured).Holds)
		require.False(t, allReduceRow(pair{2.01, 1}, measured).Holds)
	}
	require.True(t, fairRow(pair{1.99, 1}).Holds)
	require.False(t, fairRow(pair{2.01, 1}).Holds)
	require.True(t, rogueRow(pair{1.19, 1}).Holds)
	require.False(t, rogueRow(pair{1.21, 1}).Holds)
	require.True(t, lostRow(999).Holds)
	require.False(t, lostRow(1001).Holds)
	require.Equal(t, "at least 0.7 x, aim 0.95 x", inSoftwares[0].row(pair{2, 1}).Target)
	require.Equal(t, "at least 1.26 x, aim 1.8 x", saturated{sum: wire.SumFused}.speedRow(pair{2, 1}).Target)
}

func TestTable(t *testing.T) {
	rows := []Row{
		Row{Name: "speed", Value: 150, Unit: "kcycles/s"}.beside("peer", 200).must("at least 200", false),
		{Name: "alone", Value: 5, Unit: "cycles", Holds: true},
	}
	var b strings.Builder
	require.NoError(t, printTable(&b, rows))
	require.Equal(t, ""+
		"what   measured       beside      ratio  target\n"+
		"speed  150 kcycles/s  200 (peer)  0.750  at least 200 (FALLS SHORT)\n"+
		"alone  5 cycles                          \n", b.String())
}

// TestFirstCall: a first call with a wrong sum fails, and a right one leaves zeros.
func TestFirstCall(t *testing.T) {
	array := make([]float32, 10)
	require.NoError(t, firstCall(array, 1, 3, func() error {
		for i := range array {
			require.Equal(t, float32(2*(i%7+1)), array[i])
			array[i] *= 3 // 1 + 2 + 3 instead of 2
		}
		return nil
	}))
	require.Equal(t, make([]float32, 10), array)
	require.EqualError(t, firstCall(array, 1, 3, func() error { return nil }), "sum 0 is 2, not 6")
}

// TestRing: processes of a ring, here goroutines, have the sums.
func TestRing(t *testing.T) {
	sockets := t.TempDir()
	var all sync.WaitGroup
	for rank := range 3 {
		all.Go(func() {
			r := &ring{ringSettings: ringSettings{sockets, 3, rank, 1000}, array: make([]float32, 1000), scratch: make([]float32, ringPiece)}
			assert.NoError(t, r.connect())
			assert.NoError(t, firstCall(r.array, rank, 3, r.reduce))
		})
	}
	all.Wait()
}

// TestRubbish: a rogue sends frames that a switch takes for such, and other bytes.
func TestRubbish(t *testing.T) {
	scan := frame.NewSwitchScanner(frame.ToCard)
	_, err := scan.Fill(bytes.NewReader(makeRubbish()))
	require.NoError(t, err)
	for scan.Next(new(frame.Frame)) {
	}
	require.GreaterOrEqual(t, scan.Stats().Frames, uint64(20))
	require.Greater(t, scan.Stats().Hunted, uint64(rogueBytes/4))
}

// TestHolds: generate keeps a folder with the same files, and replaces one where a file differs
// or is missing.
func TestHolds(t *testing.T) {
	write := func(dir, name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "sim"), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	expect := func(want bool, dir, fresh string) {
		t.Helper()
		same, err := holds(dir, fresh)
		require.NoError(t, err)
		require.Equal(t, want, same)
	}
	dir, fresh := t.TempDir(), t.TempDir()
	write(fresh, "a.v", "module a")
	write(fresh, "sim/Makefile", "all:")
	expect(false, dir, fresh)
	write(dir, "a.v", "module a")
	write(dir, "sim/Makefile", "all:")
	write(dir, "sim/built", "by make")
	expect(true, dir, fresh)
	write(dir, "sim/Makefile", "none:")
	expect(false, dir, fresh)
}
