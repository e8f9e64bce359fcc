package main_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// congested is a card behind a network that marks whatever leaves the card. After some results it keeps
// the next ones until many chunks are in flight. If asks is set, it keeps them at most until the host asks
// for one of them: a host with a small window then sends no more.
type congested struct {
	udp.Card
	asks     bool
	arrivals *frame.DatagramChecker // of what arrives
	leaving  *frame.DatagramChecker // of what leaves

	mu       sync.Mutex
	sent     map[uint32]bool // VIDs of data
	came     map[uint32]bool // VIDs of results that left
	inFlight int             // chunks at the end of the wait, at most many
	over     bool            // the wait
}

// Of chunks: the window of the card, how many results pass before the wait, and how many chunks end it.
// Each round trip of marks halves the window, so settled is more than the rounds of 64, 32, ... and 2.
const window, settled, many = 64, 200, 8

func (c *congested) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var f frame.Frame
	if !c.arrivals.Check(datagram, &f) {
		return
	}
	if f.Kind == wire.KindData {
		c.sent[f.VID] = true
	}
	inFlight := len(c.sent) - len(c.came)
	if c.waits() && (inFlight >= many || c.asks && f.Kind == wire.KindAsk && !c.came[f.VID]) {
		c.inFlight, c.over = min(inFlight, many), true
	}
	c.Card.Receive(datagram, from, mark)
}

func (c *congested) waits() bool { return len(c.came) >= settled && !c.over }

func (c *congested) Send(dst []byte) ([]byte, wire.Address, wire.ECN, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits() {
		return dst, wire.Address{}, wire.NotECT, false
	}
	leaves, to, _, ok := c.Card.Send(dst)
	var f frame.Frame
	if ok && c.leaving.Check(leaves[len(dst):], &f) && f.Kind == wire.KindResult {
		c.came[f.VID] = true
	}
	return leaves, to, wire.CE, ok
}

// TestFixedWindow: in a congested network, many chunks are in flight with a fixed window alone.
func TestFixedWindow(t *testing.T) {
	t.Parallel()
	program := compile(t, "window", true)
	for kind, inFlight := range map[string]int{"fixed": many, "congested": 1} {
		socket, err := udp.Listen("127.0.0.1:0")
		require.NoError(t, err)
		inner, err := model.NewEndpoint(model.Config{Lanes: 4, Ports: 2, Chunk: 16, Window: window, Shell: wire.ShellUDP, Link: 64}, socket.Address())
		require.NoError(t, err)
		card := &congested{
			Card: inner, asks: inFlight < many, arrivals: frame.NewDatagramChecker(frame.ToCard), leaving: frame.NewDatagramChecker(frame.FromCard),
			sent: map[uint32]bool{}, came: map[uint32]bool{},
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- socket.Serve(ctx, card) }()
		assert.Equal(t, "done\n", output(t, program, socket.Name(), kind))
		cancel()
		require.NoError(t, <-ended)
		assert.Equal(t, inFlight, card.inFlight, kind)
	}
}
