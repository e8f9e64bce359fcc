package rig_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/system/roce/rig"
)

// worker is a test's end of a rank's channel.
type worker struct {
	testing.TB
	net.Conn
	lines *bufio.Scanner
}

// say sends a line.
func (w *worker) say(line string) {
	_, err := fmt.Fprintln(w.Conn, line)
	require.NoError(w, err)
}

// hears takes the next line, which must be this one.
func (w *worker) hears(line string) {
	w.Helper()
	require.True(w, w.lines.Scan(), "the channel has ended")
	require.Equal(w, line, w.lines.Text())
}

// end describes a rank, as workers do.
func end(rank int) string {
	return fmt.Sprintf("ip=10.0.0.%d mac=02:00:00:00:00:%02x send_qpn=%d receive_qpn=%d psn=16777215 mtu=1024 rkey=7 address=8", rank+1, rank, 17+rank, 33+rank)
}

// join is a rank's first line.
func join(rank, ranks int) string {
	return fmt.Sprintf("JOIN rank=%d ranks=%d %s", rank, ranks, end(rank))
}

// ready goes as far as READY.
func ready(workers []*worker) {
	for rank, w := range workers {
		w.say(join(rank, len(workers)))
	}
	for _, w := range workers {
		for rank := range workers {
			w.hears(fmt.Sprintf("PEER rank=%d %s", rank, end(rank)))
		}
		w.say("READY")
	}
}

// all makes every worker hear a line, and say another one.
func all(workers []*worker, hear, say string) {
	for _, w := range workers {
		w.hears(hear)
		w.say(say)
	}
}

// pair returns the ends of a channel.
func pair(t *testing.T) (ends [2]net.Conn) {
	t.Helper()
	sockets, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	for i, s := range sockets {
		file := os.NewFile(uintptr(s), "channel")
		ends[i], err = net.FileConn(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends
}

// coordinate runs a coordinator, while act plays the two workers, and returns its error.
func coordinate(ctx context.Context, t *testing.T, register func([]rig.End) error, late map[int]<-chan struct{}, act func(workers []*worker)) error {
	t.Helper()
	var channels []net.Conn
	var workers []*worker
	for range 2 {
		ends := pair(t)
		channels = append(channels, ends[0])
		workers = append(workers, &worker{t, ends[1], bufio.NewScanner(ends[1])})
	}
	ended := make(chan error, 1)
	go func() { ended <- rig.Coordinate(ctx, channels, register, late) }()
	act(workers)
	return <-ended
}

// accept registers nothing.
func accept([]rig.End) error { return nil }

// TestCoordinate: ranks hear of each other when all are registered, and begin and end together.
func TestCoordinate(t *testing.T) {
	var ends []rig.End
	register := func(e []rig.End) error {
		ends = e
		return nil
	}
	require.NoError(t, coordinate(t.Context(), t, register, nil, func(w []*worker) {
		ready(w)
		all(w, "GO", "DONE")
		w[0].hears("GO")
		w[1].hears("GO")
	}))
	require.Len(t, ends, 2)
	assert.Equal(t, "10.0.0.2", ends[1].IP.String())
	assert.Equal(t, "02:00:00:00:00:01", ends[1].MAC.String())
	assert.Equal(t, []uint32{18, 34, 0xffffff}, []uint32{ends[1].SendQPN, ends[1].ReceiveQPN, ends[1].PSN})
	assert.Equal(t, 1024, ends[1].MTU)
}

// TestFailures: the first error comes back, and all workers hear of it.
func TestFailures(t *testing.T) {
	refuse := func([]rig.End) error { return errors.New("no room") }
	for _, c := range []struct {
		want     string
		register func([]rig.End) error
		act      func(w []*worker)
	}{
		{"rank 1: no device", accept, func(w []*worker) { w[1].say("FAILED no device") }},
		{"rank 0: it is rank 1 of 2, not 0 of 2", accept, func(w []*worker) { w[0].say(join(1, 2)) }},
		{"rank 0: it is rank 0 of 3, not 0 of 2", accept, func(w []*worker) { w[0].say(join(0, 3)) }},
		{`rank 0: "hello" instead of JOIN`, accept, func(w []*worker) { w[0].say("hello") }},
		{"no room", refuse, func(w []*worker) {
			w[0].say(join(0, 2))
			w[1].say(join(1, 2))
		}},
		{`rank 1: "DONE" instead of READY`, accept, func(w []*worker) {
			w[0].say(join(0, 2))
			w[1].say(join(1, 2))
			w[0].hears("PEER rank=0 " + end(0))
			w[0].hears("PEER rank=1 " + end(1))
			w[1].hears("PEER rank=0 " + end(0))
			w[1].hears("PEER rank=1 " + end(1))
			w[1].say("DONE")
		}},
		{"rank 0: no acknowledgement", accept, func(w []*worker) {
			ready(w)
			w[0].hears("GO")
			w[1].hears("GO")
			w[0].say("FAILED no acknowledgement")
		}},
	} {
		err := coordinate(t.Context(), t, c.register, nil, func(w []*worker) {
			c.act(w)
			all(w, "ABORT "+c.want, "FAILED aborted")
		})
		require.EqualError(t, err, c.want)
	}
}

// TestLateRanks: one begins when its channel is closed, and one whose channel is nil never does.
func TestLateRanks(t *testing.T) {
	begins := make(chan struct{})
	require.NoError(t, coordinate(t.Context(), t, accept, map[int]<-chan struct{}{1: begins}, func(w []*worker) {
		ready(w)
		w[0].hears("GO")
		w[0].say("DONE")
		close(begins)
		w[1].hears("GO")
		w[1].say("DONE")
		w[0].hears("GO")
		w[1].hears("GO")
	}))
	require.EqualError(t, coordinate(t.Context(), t, accept, map[int]<-chan struct{}{1: nil}, func(w []*worker) {
		ready(w)
		w[0].hears("GO")
		w[0].say("FAILED no acknowledgement")
		all(w, "ABORT rank 0: no acknowledgement", "FAILED aborted")
	}), "rank 0: no acknowledgement")
}

// TestNoWorkers: the coordinator ends with its context, and leaves the channels to the next one.
func TestNoWorkers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ends := pair(t)
	ended := make(chan error, 1)
	go func() { ended <- rig.Coordinate(ctx, []net.Conn{ends[0]}, accept, nil) }()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	w := &worker{t, ends[1], bufio.NewScanner(ends[1])}
	go func() { ended <- rig.Coordinate(t.Context(), []net.Conn{ends[0]}, accept, nil) }()
	w.hears("ABORT context canceled")
	ready([]*worker{w})
	all([]*worker{w}, "GO", "DONE")
	w.hears("GO")
	require.NoError(t, <-ended)
}
