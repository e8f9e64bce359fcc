package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/reduction"
	"tributary/driver/wire"
)

// TestBench checks that every pair is measured, that the shares are those of the frames, and that
// the card is left without a job.
func TestBench(t *testing.T) {
	workFolder(t)
	card := newCard(t, nil, straight)
	s := tributary(context.Background(), "bench", "-card", card, "-workers", "1,3", "-window", "1,2", "-elements", "100", "-time", "50ms", "-json")
	require.Equal(t, 0, s.status, s.errs)
	require.Empty(t, s.errs)
	var report benchReport
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Len(t, report.Runs, 4)
	for i, r := range report.Runs {
		require.Equal(t, []int{1, 1, 3, 3}[i], r.Workers)
		require.Equal(t, []int{1, 2, 1, 2}[i], r.Window)
		require.EqualValues(t, 100, r.Elements)
		require.EqualValues(t, 13, r.Chunks) // of 8 elements
		require.EqualValues(t, 26, r.Beats)
		require.InDelta(t, 400./(13*(22+32)), r.PayloadOut, 0.05) // with register accesses in addition
		require.InDelta(t, 400./(13*(38+32)), r.PayloadIn, 0.05)
		require.InDelta(t, r.ChunksPerSecond/13, 1/r.Seconds, 1e-6*r.ChunksPerSecond)
		require.Positive(t, r.AccessSeconds)
		require.Positive(t, r.ChunkSeconds)
		require.InDelta(t, 13.*8/32*max(float64(r.Workers)*(22+32), 38+32), r.LinkShare*float64(r.Cycles), 1)
	}
	require.Regexp(t, `job 0 +none; the last one had epoch`, tributary(context.Background(), "info", "-card", card).out)
}

// TestBenchOfModel measures a card without a clock.
func TestBenchOfModel(t *testing.T) {
	workFolder(t)
	s := tributary(context.Background(), "bench", "-time", "200ms", "-json")
	require.Equal(t, 0, s.status, s.errs)
	var report benchReport
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Len(t, report.Runs, 1)
	require.Positive(t, report.Runs[0].Seconds)
	require.Zero(t, report.Runs[0].LinkShare, "the model has no clock that would tell")
}

// TestBenchFindsWrongSums: bench fails on a card that adds wrongly.
func TestBenchFindsWrongSums(t *testing.T) {
	workFolder(t)
	card := newCard(t, nil, func(f *frame.Frame) bool {
		if f.Kind == wire.KindResult && f.VID > 8 {
			f.Payload[4] ^= 1
		}
		return true
	})
	s := tributary(context.Background(), "bench", "-card", card, "-elements", "64", "-time", "50ms")
	require.Equal(t, 1, s.status)
	require.Contains(t, s.errs, "element 1 of a sum is 0x40000001, must be 0x40000000")
	require.Empty(t, s.out)
}

// TestBenchStops checks that a stopped bench reports it, names no output file, and leaves the card
// without a job.
func TestBenchStops(t *testing.T) {
	workFolder(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var results atomic.Int32
	card := newCard(t, nil, func(f *frame.Frame) bool {
		if f.Kind == wire.KindResult && results.Add(1) == 100 {
			stop()
		}
		return true
	})
	s := tributary(ctx, "bench", "-card", card, "-time", "1h")
	require.Equal(t, 1, s.status)
	require.Empty(t, s.out)
	require.Equal(t, "tributary bench: stopped, context canceled\n", s.errs)
	require.Regexp(t, `job 0 +none; the last one had epoch`, tributary(context.Background(), "info", "-card", card).out)
}

// TestBenchTables checks the printed tables, with a clock, without one, and with flipped bits.
func TestBenchTables(t *testing.T) {
	info := driver.Info{Name: "unix:card.sock", Lanes: 16, Ports: 8, Format: wire.BF16, Result: wire.FP32, Sum: wire.SumExact, Link: 32}
	m := reduction.Measurement{Cycles: 1_050_000, Elapsed: 2 * time.Second, Rise: map[string]uint32{"chunks": 1000, "beats": 16000, "replays": 3, "payload_crc": 2}}
	did := counts{driver.MemberStats{Sent: 8000, Resent: 40, Asked: 12}, driver.LinkStats{BytesOut: 4_300_000, BytesIn: 1_070_000, HeaderCRC: 1}, driver.CongestionStats{}}
	run := func(workers, window int) benchRun {
		return *newBenchRun(info, driver.JobConfig{Workers: workers, Window: window, Chunk: 256}, 256_000, m, did, time.Millisecond/4, time.Millisecond)
	}
	report := newBenchReport(info)
	report.Runs = append(report.Runs, run(8, 16))
	m.Rise["payload_crc"], did.link.HeaderCRC, did.member.Resent, did.member.Asked = 0, 0, 0, 0
	info.Name = "model:"
	report.Runs = append(report.Runs, run(4, 1))
	var b bytes.Buffer
	require.NoError(t, report.print(&b))
	golden(t, filepath.Join("testdata", "bench.txt"), b.String())
}

// TestBenchTablesOfANetwork: the table of congestion has each run on a network.
func TestBenchTablesOfANetwork(t *testing.T) {
	report := benchReport{Card: "udp:lab", Lanes: 16, Ports: 8, Runs: []benchRun{
		{Workers: 2, Window: 8, Congestion: &reduction.Congestion{Marked: 12, Cuts: 3, Halvings: 4, Window: 5.25}},
		{Workers: 4, Window: 1},
		{Workers: 8, Window: 16, Congestion: &reduction.Congestion{Window: 16}},
	}}
	var b bytes.Buffer
	require.NoError(t, report.print(&b))
	require.Contains(t, b.String(), `
workers  window  marked  cuts  halvings  mean window
2        8       12      3     4         5.2
8        16      0       0     0         16.0
`)
}

// TestCongestionSince takes the figures of a measurement from those of the job by hand: 10 results with a
// mean of 8 chunks, and then 30 with a mean of 4.
func TestCongestionSince(t *testing.T) {
	before := driver.CongestionStats{Results: 10, Marked: 1, Cuts: 2, Halvings: 3, MeanWindow: 8}
	after := driver.CongestionStats{Results: 40, Marked: 11, Cuts: 22, Halvings: 33, MeanWindow: 5}
	require.Equal(t, driver.CongestionStats{Results: 30, Marked: 10, Cuts: 20, Halvings: 30, MeanWindow: 4}, congestionSince(before, after))
	require.Zero(t, congestionSince(before, before))
	require.Equal(t, after, congestionSince(driver.CongestionStats{}, after))
}
