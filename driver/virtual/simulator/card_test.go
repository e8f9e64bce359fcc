package simulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// asSimulator in the environment makes the test binary act as a simulator: of the model, or one that
// ends at once with that status.
const asSimulator = "TRIBUTARY_TEST_AS_SIMULATOR"

func TestMain(m *testing.M) {
	switch os.Getenv(asSimulator) {
	case "":
		os.Exit(m.Run())
	case "model":
		if err := frames.Simulate(os.Stdin, os.Stdout, newModel()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "no licence")
		os.Exit(3)
	}
}

// newModel returns the model with two Ethernet ports.
func newModel() *ethernet.Card {
	endpoint, err := model.NewEndpoint(model.Config{Lanes: 1, Ports: 2, Window: 1, Shell: wire.ShellUDP, Link: 8, Ethernet: 2}, frames.CardAddress)
	if err != nil {
		panic(err)
	}
	card, err := ethernet.New(endpoint, 2)
	if err != nil {
		panic(err)
	}
	return card
}

// start starts the test binary as a simulator.
func start(t *testing.T, as string, errs io.Writer) (*Card, error) {
	t.Setenv(asSimulator, as)
	program, err := os.Executable()
	require.NoError(t, err)
	return Start(context.Background(), program, 2, errs)
}

// drain returns what leaves.
func drain(d ethernet.Device) (all []string) {
	for {
		frame, port, ok := d.Send(nil)
		if !ok {
			return all
		}
		all = append(all, fmt.Sprintf("%d %x", port, frame))
	}
}

// TestAProcess: the model in a process does what the model does here.
func TestAProcess(t *testing.T) {
	card, err := start(t, "model", os.Stderr)
	require.NoError(t, err)
	here := newModel()
	for n := range 100 {
		frame := [][]byte{
			frames.ARPRequest(frames.ToAll, frames.CardIP),
			frames.EchoRequest(0, make([]byte, n)),
			frames.NewDatagram(frames.Question()).Bytes(),
			frames.Strange(frames.HostMAC, frames.ToAll, byte(n)),
			nil,
		}[n%5]
		for _, d := range []ethernet.Device{card, here} {
			d.Advance(uint64(10 * n))
			d.Receive(n%2, frame)
		}
		require.Equal(t, drain(here), drain(card))
		require.Equal(t, here.Cycles(), card.Cycles())
	}
	assert.NoError(t, card.Err())
	assert.NoError(t, card.Close())
}

// TestSeveralFramesWait: what leaves keeps its order.
func TestSeveralFramesWait(t *testing.T) {
	card, err := start(t, "model", os.Stderr)
	require.NoError(t, err)
	here := newModel()
	for _, d := range []ethernet.Device{card, here} {
		d.Receive(0, frames.Strange(frames.HostMAC, frames.ToAll, 1))
		d.Receive(1, frames.Strange(frames.CardMAC, frames.ToAll, 2))
		d.Receive(1, frames.ARPRequest(frames.ToAll, frames.CardIP))
	}
	want := drain(here)
	require.Len(t, want, 3)
	assert.Equal(t, want, drain(card))
	assert.NoError(t, card.Close())
}

// TestAProcessThatEnds: the card has an error, and so has its process.
func TestAProcessThatEnds(t *testing.T) {
	var errs bytes.Buffer
	_, err := start(t, "failing", &errs)
	assert.ErrorContains(t, err, "the card's simulator has ended")
	assert.ErrorContains(t, err, "exit status 3")
	assert.Equal(t, "no licence\n", errs.String())

	_, err = Start(context.Background(), filepath.Join(t.TempDir(), "card"), 2, nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestRecords compares what the card writes with its bytes, as the package's page has them.
func TestRecords(t *testing.T) {
	var in bytes.Buffer
	out := bytes.NewReader([]byte{
		'I', 0, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0,
		'F', 1, 5, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
		'I', 0, 8, 0, 0, 1, 0, 0, 0, 0, 0, 0,
	})
	c := newCard(&in, out, 2)
	c.run(idle, nil)
	c.Receive(1, []byte{1, 2, 3})
	frame, port, ok := c.Send([]byte{9})
	assert.Equal(t, []byte{9, 0xaa, 0xbb, 0xcc, 0xdd, 0xee}, frame)
	assert.Equal(t, 1, port)
	assert.True(t, ok)
	assert.EqualValues(t, 256, c.Cycles())
	frame, _, ok = c.Send([]byte{9})
	assert.Equal(t, []byte{9}, frame)
	assert.False(t, ok)
	assert.NoError(t, c.Err())
	c.Advance(2)
	assert.Error(t, c.Err())
	assert.Equal(t, []byte{
		'I', 0, 0, 0,
		'F', 1, 3, 0, 1, 2, 3,
		'I', 0, 0, 0,
		'A', 0, 8, 0, 2, 1, 0, 0, 0, 0, 0, 0,
	}, in.Bytes())
}

// TestRunningFreely: what leaves comes with the clock, which runs fast while frames come and leave.
func TestRunningFreely(t *testing.T) {
	card, err := start(t, "model", os.Stderr)
	require.NoError(t, err)
	pace := card.RunFreely()
	pace.every = 0
	began := card.Cycles()
	steps := func(n int, cycles uint64) {
		t.Helper()
		for range n {
			before := card.Cycles()
			pace.CatchUp(card)
			require.Equal(t, before+cycles, card.Cycles())
		}
	}
	steps(33, 256)
	require.Equal(t, began+8448, card.Cycles())
	steps(5, 16)
	card.Receive(0, frames.ARPRequest(frames.ToAll, frames.CardIP))
	require.Empty(t, drain(card))
	steps(1, 256)
	require.Len(t, drain(card), 1)
	steps(32, 256)
	steps(5, 16)
	assert.NoError(t, card.Close())
}

// TestPace: between two steps a card that runs freely gets frames at once, but no more bytes than a pipe takes.
func TestPace(t *testing.T) {
	card, err := start(t, "model", os.Stderr)
	require.NoError(t, err)
	pace := card.RunFreely()
	pace.every = time.Hour
	began := card.Cycles()
	for range 3 {
		pace.CatchUp(card)
	}
	require.Equal(t, began+busyStep, card.Cycles(), "one step")
	card.Receive(0, frames.ARPRequest(frames.ToAll, frames.CardIP))
	require.Zero(t, card.in.Buffered())
	for given := 64; given < mostGiven; given += 1024 {
		pace.CatchUp(card)
		require.Equal(t, began+busyStep, card.Cycles(), "after %d bytes", given)
		card.Receive(0, make([]byte, 1024))
	}
	pace.CatchUp(card)
	require.Equal(t, began+2*busyStep, card.Cycles())
	pace.CatchUp(card)
	require.Equal(t, began+2*busyStep, card.Cycles(), "only frames since the last step count")
	assert.Len(t, drain(card), 1)
	assert.NoError(t, card.Close())
}

// TestWrongRecords: a process that does not follow the protocol is found out, and hears nothing more.
func TestWrongRecords(t *testing.T) {
	for text, message := range map[string]string{
		"":                           "has ended",
		"F":                          "unexpected EOF",
		"F\x00\x05\x00ab":            "unexpected EOF",
		"F\x02\x01\x00a":             `a record of type 'F', port 2 and 1 bytes, which a card with 2 Ethernet ports does not`,
		"I\x00\x07\x001234567":       "7 bytes",
		"X\x00\x00\x00":              "type 'X'",
		"I\x00\x08\x0012345678F\x00": "unexpected EOF",
	} {
		c := newCard(io.Discard, bytes.NewReader([]byte(text)), 2)
		c.run(idle, nil)
		if c.err == nil {
			c.run(idle, nil)
		}
		require.ErrorContains(t, c.Err(), message, "%q", text)
		was := c.err
		c.Receive(0, nil)
		c.Advance(1)
		_, _, ok := c.Send(nil)
		require.False(t, ok)
		require.Equal(t, was, c.Err())
	}
}

// TestAProcessThatDoesNotListen: a pipe that broke is the end of the process.
func TestAProcessThatDoesNotListen(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	c := newCard(w, bytes.NewReader(nil), 2)
	c.Receive(0, make([]byte, 9000))
	assert.ErrorContains(t, c.Err(), "has ended")
}
