package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"tributary/driver/collective"
)

// TestRackRows: Rina must be within 15 % of its formula. With 1 MiB, 5 nodes, 12.5 MB/s and steps of 1 ms
// that is 142.2 ms; the ring's, with 8 nodes and steps of 2 ms, is 174.8 ms.
func TestRackRows(t *testing.T) {
	for seconds, holds := range map[float64]bool{0.121: true, 0.120: false, 0.163: true, 0.164: false} {
		rows := rackRowsOf(1<<20, pair{seconds, 0.2}, pair{0.001, 0.002})
		require.Equal(t, holds, rows[0].Holds, seconds)
		require.InDelta(t, 142.2, rows[0].PeerValue, 0.1)
		require.InDelta(t, 174.8, rows[1].PeerValue, 0.1)
		require.InDelta(t, 5000*seconds, rows[2].Ratio*1000, 1e-6)
	}
}

// TestCrossover: times of 1/r + 0.5 beside 1 are equal at r = 2.
func TestCrossover(t *testing.T) {
	require.InDelta(t, 2, crossover([]float64{1, 1.6, 3.2}, []pair{{1.5, 1}, {1.125, 1}, {0.8125, 1}}), 1e-9)
	require.Zero(t, crossover([]float64{1, 2}, []pair{{3, 1}, {2, 1}}))
	require.Zero(t, crossover([]float64{1, 2}, []pair{{0.9, 1}, {0.8, 1}}))
	require.InDelta(t, 2, crossoverRow(nil).PeerValue, 1e-9)
}

// TestPass: a link passes every byte in order, and no more than its bucket holds without new tokens.
func TestPass(t *testing.T) {
	b := bytes.Repeat([]byte("0123456"), shapedBurst/4)
	var out bytes.Buffer
	n, err := pass(t.Context(), rate.NewLimiter(rate.Inf, shapedBurst), &out, b)
	require.NoError(t, err)
	require.Equal(t, len(b), n)
	require.Equal(t, b, out.Bytes())

	out.Reset()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	n, err = pass(ctx, rate.NewLimiter(0, shapedBurst), &out, b)
	require.ErrorContains(t, err, "would exceed context deadline")
	require.Equal(t, shapedBurst, n)
	require.Equal(t, b[:n], out.Bytes())
}

// TestRelay: a relay passes both directions on, each by its own link, and ends with the other end.
func TestRelay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := make([]byte, 4)
		_, _ = io.ReadFull(conn, b)
		_, _ = conn.Write(append(b, "back"...))
	}()
	up, down := newShape(slowLink), newShape(slowLink)
	at, err := startRelay(t.Context(), l.Addr().String(), up, down)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", at)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("away"))
	require.NoError(t, err)
	all, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "awayback", string(all))
}

// TestSlowGroup: members of Rina on links without a limit have the sums.
func TestSlowGroup(t *testing.T) {
	cards, err := openRacks(t.Context())
	require.NoError(t, err)
	group, err := openSlow(func(g *collective.Group) {
		for rank := range g.Members {
			g.Members[rank].Rack = slowRacks[rank]
		}
	}, func(g collective.Group) (collective.Collective, error) {
		dialer := dialShaped(func(string) *rate.Limiter { return rate.NewLimiter(rate.Inf, shapedBurst) })
		return collective.OpenRina(t.Context(), g, cards.config(g.Rank), collective.WithDialer(dialer))
	})
	require.NoError(t, err)
	seconds, err := group.fastest(t.Context(), 1000, 2)
	require.NoError(t, err)
	require.Positive(t, seconds)
	require.NoError(t, group.close(t.Context()))
	require.NoError(t, cards.close())
}
