package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// startTop runs tributary top until stop is called, which returns the outcome; out and errs can be
// read meanwhile.
func startTop(args ...string) (out, errs *lockedBuffer, stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	out, errs = &lockedBuffer{}, &lockedBuffer{}
	status := make(chan int)
	go func() { status <- run(ctx, append([]string{"top"}, args...), out, errs) }()
	return out, errs, func() int {
		cancel()
		return <-status
	}
}

// lockedBuffer can be read and written concurrently.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// soon waits until a buffer holds some text.
func (l *lockedBuffer) soon(t *testing.T, text string) {
	t.Helper()
	until(func() bool { return strings.Contains(l.String(), text) })
}

// TestTopFollowsHosts checks that top reads a card without a host once and leaves it free. top then
// follows the hosts that drive the card, and reports when they leave. Ctrl-C exits with status 0,
// and the card is usable after it.
func TestTopFollowsHosts(t *testing.T) {
	workFolder(t)
	ctx := context.Background()
	name := newCard(t, nil, straight)
	out, errs, stop := startTop("-card", name, "-interval", "5ms", "-json")
	errs.soon(t, "nobody drives the card; waiting for tributary reduce to do so\n")

	for range 2 {
		card, err := driver.Open(ctx, name)
		require.NoError(t, err)
		hide := showCard(ctx, card, "tributary test", io.Discard)
		job, err := card.Configure(ctx, driver.JobConfig{Ports: []int{0, 2}})
		require.NoError(t, err)
		require.NoError(t, job.Reduce(ctx, make([]float32, 20), [][]float32{make([]float32, 20), make([]float32, 20)}))
		seen := strings.Count(out.String(), "\n")
		until(func() bool { return strings.Count(out.String(), "\n") > seen+3 })
		hide()
		require.NoError(t, card.Close())
		errs.soon(t, ", before tributary test (process "+strconv.Itoa(os.Getpid())+") left the card\n")
	}
	require.Equal(t, 0, stop())
	require.Equal(t, 0, tributary(ctx, "reduce", "-card", name, "-o", "s.npy", "w0.npy", "w1.npy").status)

	var readings []reading
	for line := range strings.Lines(out.String()) {
		var r reading
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		readings = append(readings, r)
	}
	first, last := readings[0], readings[len(readings)-1]
	require.Nil(t, first.Host)
	require.Empty(t, first.Owner)
	require.Nil(t, first.Counters[0].PerSecond)
	require.Equal(t, "tributary test", last.Host.Command)
	require.Equal(t, name, last.Card)
	require.True(t, last.JobStates[0].SetUp)
	require.NotEmpty(t, last.Owner)
	require.Equal(t, stagedJob{Ports: []int{0, 2}, Chunk: 8, Window: 2}, last.Staged)
	require.Equal(t, counterRate{Name: "stored", Value: 12, PerSecond: new(float64)}, last.Counters[1])
}

// TestTopThroughReduce checks that tributary reduce, as a host, lets top read its card.
func TestTopThroughReduce(t *testing.T) {
	workFolder(t)
	release := make(chan struct{})
	card := newCard(t, nil, func(f *frame.Frame) bool {
		if f.Kind == wire.KindResult {
			<-release
		}
		return true
	})
	ended := make(chan said)
	go func() {
		ended <- tributary(context.Background(), "reduce", "-card", card, "-o", "s.npy", "w0.npy", "w1.npy")
	}()
	until(func() bool {
		_, ok, err := hostOf(card)
		return err == nil && ok
	})
	close(release)
	s := <-ended
	require.Equal(t, 0, s.status, s.errs)
	require.Empty(t, s.errs)
	_, ok, err := hostOf(card)
	require.NoError(t, err)
	require.False(t, ok)
}

// TestTopThroughAProgram checks that top reads a card through a program for as long as it shows the
// card.
func TestTopThroughAProgram(t *testing.T) {
	workFolder(t)
	ctx := context.Background()
	card, err := driver.Open(ctx, "model:")
	require.NoError(t, err)
	shown := newLink(func() net.Conn {
		here, there := net.Pipe()
		go func() { _ = card.ServeReads(ctx, there) }()
		return here
	})
	s := tributary(ctx, "top", "-card", shown, "-count", "2", "-interval", "1ms")
	require.Equal(t, 0, s.status, s.errs)
	require.Empty(t, s.errs)
	require.Equal(t, 2, strings.Count(s.out, ", through the program that drives the card\n"))
	require.Equal(t, 1, strings.Count(s.out, " a second; owner: token "))

	out, errs, stop := startTop("-card", shown, "-interval", "1ms")
	out.soon(t, "through the program")
	require.NoError(t, card.Close())
	errs.soon(t, "disconnected: ")
	require.Equal(t, 1, stop())
}

// TestTopBusy checks a card whose host does not show it.
func TestTopBusy(t *testing.T) {
	workFolder(t)
	card := newLink(func() net.Conn {
		here, there := net.Pipe()
		there.Close()
		return here
	})
	s := tributary(context.Background(), "top", "-card", card)
	require.Equal(t, 1, s.status)
	require.Contains(t, s.errs, "is busy: ")
	require.Contains(t, s.errs, "; top can read a busy card only through the same user's tributary reduce")
}

// TestScreen checks that the terminal's window is taken once, redrawn, and restored with the last
// reading left behind.
func TestScreen(t *testing.T) {
	card, err := driver.Open(context.Background(), "model:")
	require.NoError(t, err)
	defer card.Close()
	r, err := takeReading(context.Background(), card, nil)
	require.NoError(t, err)

	var out bytes.Buffer
	d := &screen{out: &out, fd: -1}
	require.NoError(t, d.close())
	require.Empty(t, out.String(), "nothing was taken")
	require.NoError(t, d.show(r, "first", true))
	require.NoError(t, d.show(r, "second", false))
	require.NoError(t, d.close())
	text := out.String()
	require.Equal(t, 1, strings.Count(text, enterScreen))
	require.True(t, strings.HasPrefix(text, enterScreen))
	require.Equal(t, 2, strings.Count(text, toTop))
	_, left, ok := strings.Cut(text, leaveScreen)
	require.True(t, ok)
	require.Equal(t, strings.Join(r.lines("second"), "\n")+"\n", left)

	require.Equal(t, []string{"ab", "cd", "ef"}, fit([]string{"abc", "cd", "efg"}, 2, 3))
	require.Equal(t, []string{"abc", "... 2 more lines in a taller window"}, fit([]string{"abc", "d", "e"}, 80, 2))
}

// TestRise checks that counters wrap around, and that a reset clears them.
func TestRise(t *testing.T) {
	for _, c := range []struct{ from, to, want uint32 }{
		{0, 0, 0}, {3, 10, 7}, {1<<32 - 2, 3, 5}, {1000, 3, 3},
	} {
		require.Equal(t, c.want, rise(c.from, c.to), "%d to %d", c.from, c.to)
	}
	for x, want := range map[float64]string{0: "0", 0.25: "0.2", 12.34: "12.3", 999: "999", 1234: "1.2 k", 447_182_000: "447 M", 2e12: "2000 G"} {
		require.Equal(t, want, shortRate(x))
	}
}

// TestTopEndsForACardOfThisProcess: no other program can drive it, so top would wait forever.
func TestTopEndsForACardOfThisProcess(t *testing.T) {
	for _, card := range []string{"cpu:", "model:"} {
		s := tributary(t.Context(), "top", "-card", card, "-count", "2")
		require.Zero(t, s.status, s.errs)
		require.Contains(t, s.out, card)
	}
}
