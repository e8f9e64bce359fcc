package driver_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/cpu"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// small is a card with a small chunk and window, so that every boundary is near.
var small = model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4, Shell: wire.ShellStream, Link: 32, Latency: 9}

// patience ends a test that hangs, long before the test binary's own timeout.
const patience = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// serve starts a model card and returns the link to it. In the subtests of TestOnCPU it starts a
// card in software instead, which takes arrays.
func serve(t testing.TB, cfg model.Config, capacity int) transport.Conn {
	t.Helper()
	switch suite, _, _ := strings.Cut(t.Name(), "/"); suite {
	case "TestServed", "TestServedCPU", "TestServedNetwork":
		return serveShared(t, suite, cfg, capacity)
	case "TestOnCPU":
		conn, err := driver.ServeCPU(cpu.Config(cfg))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	card, err := model.NewCard(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, card, capacity)
}

// connect returns a link to card, which serves the link until it is closed.
func connect(t testing.TB, card *model.Card, capacity int) transport.Conn {
	host, end := pipe.New(capacity)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = card.Serve(end)
	}()
	t.Cleanup(func() {
		host.Close()
		<-served
	})
	return host
}

// reach is serve, for tests that do not look at the link. In the subtests of TestOverUDP and of
// TestOnPackets the card is on a network.
func reach(t testing.TB, cfg model.Config, capacity int) transport.Link {
	t.Helper()
	switch suite, _, _ := strings.Cut(t.Name(), "/"); suite {
	case "TestOverUDP":
		conn, err := transport.OpenLink(testContext(t), serveUDP(t, onNetwork(cfg)), transport.Needs{})
		if err != nil {
			t.Fatal(err)
		}
		return conn
	case "TestOnPackets":
		return serveInMemory(t, onNetwork(cfg))
	}
	return serve(t, cfg, capacity)
}

// open opens a card behind a link and closes it at the end of the test.
func open(t testing.TB, link transport.Link, opts ...driver.Option) *driver.Card {
	t.Helper()
	var card *driver.Card
	var err error
	if packets, ok := link.(transport.PacketConn); ok {
		card, err = driver.OpenPackets(testContext(t), "test", packets, opts...)
	} else {
		card, err = driver.OpenConn(testContext(t), "test", link.(transport.Conn), opts...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { card.Close() })
	if t, ok := t.(*testing.T); ok && inRealTime(t) {
		keepForever(t, card)
	}
	return card
}

func openSmall(t testing.TB, opts ...driver.Option) *driver.Card {
	t.Helper()
	return open(t, reach(t, small, 64<<10), opts...)
}

func configure(t testing.TB, card *driver.Card, cfg driver.JobConfig) *driver.Job {
	t.Helper()
	job, err := card.Configure(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// arrays returns one array per worker of random bits without NaNs. The numbers are huge, tiny
// and subnormal, of both signs, so that the order of additions matters.
func arrays(seed uint64, workers, n int) [][]float32 {
	rng := rand.New(rand.NewPCG(seed, 99))
	all := make([][]float32, workers)
	for w := range all {
		all[w] = make([]float32, n)
		for i := range all[w] {
			bits := rng.Uint32()
			switch rng.IntN(4) {
			case 0: // a small range, for cancellation
				bits = bits&0x80ffffff | 0x3f000000
			case 1: // subnormal
				bits &= 0x807fffff
			}
			if bits&0x7f800000 == 0x7f800000 {
				bits &^= 0x40000000
			}
			all[w][i] = math.Float32frombits(bits)
		}
	}
	return all
}

// treeSum computes the sum tree of SPEC.md, section 7, with the processor's float32 additions.
// inputs[r] enters at ports[r] of a card with size ports.
func treeSum(inputs [][]float32, ports []int, size int) []float32 {
	sum := make([]float32, len(inputs[0]))
	for i := range sum {
		level := make([]float32, size)
		for p := range level {
			level[p] = float32(math.Copysign(0, -1))
		}
		for r, p := range ports {
			level[p] = inputs[r][i]
		}
		for len(level) > 1 {
			var up []float32
			for k := 0; k+1 < len(level); k += 2 {
				up = append(up, level[k]+level[k+1])
			}
			if len(level)%2 == 1 {
				up = append(up, level[len(level)-1])
			}
			level = up
		}
		if sum[i] = level[0]; sum[i] != sum[i] {
			sum[i] = math.Float32frombits(0x7fc00000)
		}
	}
	return sum
}

// firstPorts returns the default ports of a job.
func firstPorts(workers int) []int {
	ports := make([]int, workers)
	for i := range ports {
		ports[i] = i
	}
	return ports
}

func clone(all [][]float32) [][]float32 {
	c := make([][]float32, len(all))
	for i := range all {
		c[i] = append([]float32(nil), all[i]...)
	}
	return c
}

// sameBits checks that got equals want, bit for bit.
func sameBits(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if g, w := math.Float32bits(got[i]), math.Float32bits(want[i]); g != w {
			t.Fatalf("%s: element %d is %08x, want %08x", what, i, g, w)
		}
	}
}

// bubble returns f in a bubble of package synctest. Time passes there only when all goroutines
// wait, so the machine's load does not matter. All of its goroutines must end. Tests that wait
// only inside their bubbles may run in parallel.
func bubble(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		inBubble(t, f)
	}
}

// inBubble runs f in such a bubble, except in the subtests of TestOverUDP: a goroutine that waits for
// a socket keeps the time of a bubble from passing.
func inBubble(t *testing.T, f func(t *testing.T)) {
	if inRealTime(t) {
		f(t)
		return
	}
	synctest.Test(t, f)
}

// inRealTime reports whether a test that calls inBubble is in none.
func inRealTime(t *testing.T) bool { return strings.HasPrefix(t.Name(), "TestOverUDP/") }
