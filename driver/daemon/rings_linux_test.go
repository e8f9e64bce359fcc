package daemon_test

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/ring"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// useRings moves the client's frames into the daemon's memory.
func (c *client) useRings(welcome *protocol.Welcome) {
	c.Helper()
	var bell [1]byte
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.conn.(*net.UnixConn).ReadMsgUnix(bell[:], rights)
	if err != nil {
		c.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		c.Fatalf("got %v, %v instead of a descriptor", messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		c.Fatalf("got descriptors %v, %v", fds, err)
	}
	defer unix.Close(fds[0])
	if err := unix.Ftruncate(fds[0], 0); err != unix.EPERM {
		c.Errorf("a client can cut the memory: %v", err)
	}
	if c.memory, err = unix.Mmap(fds[0], 0, int(welcome.Memory), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = unix.Munmap(c.memory) })
	rings, err := ring.Client(c.memory, ring.Size{ToDaemon: int(welcome.RingToDaemon), ToClient: int(welcome.RingToClient)})
	if err != nil {
		c.Fatal(err)
	}
	if err := rings.Attach(c.conn); err != nil {
		c.Fatal(err)
	}
	c.frames = rings
}

// Words of SPEC.md, section 11: bytes from the beginning of the memory.
const (
	writtenToDaemon = 0
	readFromDaemon  = 2048 + 128
	firstByte       = 4096
)

func (c *client) word(offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&c.memory[offset]))
}

// bell rings, whatever the daemon wishes.
func (c *client) bell(n int) {
	_, _ = c.conn.Write(make([]byte, n)) // the session may have ended
}

// misdeedsInMemory are misdeeds of a client that shares memory with the daemon.
var misdeedsInMemory = []misdeed{
	{"positions that cannot be", func(r *rogue) {
		c := r.another()
		c.alone()
		c.word(writtenToDaemon).Add(256<<10 + 1 + r.random.Uint64N(1<<40))
		c.bell(1)
		c.ended()
	}, lostMetric, 1},

	{"results read that nobody wrote", func(r *rogue) {
		c := r.another()
		c.alone()
		c.word(readFromDaemon).Store(1 << 40)
		c.write(frame.Append(nil, &frame.Header{Kind: wire.KindRegRead, VID: wire.RegMagic}, nil)) // the daemon replies
		c.ended()
	}, lostMetric, 1},

	{"bytes that nobody wrote", func(r *rogue) { // what the memory has held before
		c := r.another()
		b := c.alone()
		c.call(&protocol.Call{Nonce: b.Nonce, Elements: victimChunk, Format: uint32(wire.FP32)})
		c.write(forged(chunk(b, 0, 0)))
		c.word(writtenToDaemon).Add(100_000)
		c.bell(1)
		c.conn.Close()
		c.ended()
	}, lostMetric, 1},

	{"bytes that change", func(r *rogue) { // while the daemon checks and forwards them
		c := r.another()
		b := c.alone()
		c.call(&protocol.Call{Nonce: b.Nonce, Elements: 1000 * victimChunk, Format: uint32(wire.FP32)})
		var changing sync.WaitGroup
		var over atomic.Bool
		changing.Go(func() {
			for i := 0; !over.Load(); i++ {
				c.memory[firstByte+i*31%4000] ^= 0x40 // the ring's first frames
			}
		})
		for vid := range uint32(3) {
			c.write(forged(chunk(b, 0, vid)))
			c.write(forged(chunk(r.victim, 0, vid)))
		}
		c.conn.Close()
		c.ended()
		over.Store(true)
		changing.Wait()
	}, lostMetric, 1},

	{"words of random bits", func(r *rogue) {
		c := r.another()
		c.alone()
		for range 100 {
			for line := range 8 {
				offset := line%4*64 + line/4*2048
				c.word(offset).Store(r.random.Uint64() >> r.random.IntN(64))
			}
			c.bell(1)
		}
		c.word(writtenToDaemon).Store(1 << 63)
		c.bell(1)
		c.ended()
	}, lostMetric, 1},

	{"doorbells in vain", func(r *rogue) {
		r.bell(100_000)
		r.handled()
	}, "", 0},

	{"no doorbells", func(r *rogue) {
		c := r.another()
		c.alone()
		copy(c.memory[firstByte:], forged(chunk(r.victim, 0, 0)))
		c.word(writtenToDaemon).Store(1000)
		c.conn.Close()
		c.ended()
	}, lostMetric, 1},
}

// TestRoguesInMemory: TestRogues with clients that share memory with the daemon.
func TestRoguesInMemory(t *testing.T) {
	for _, m := range slices.Concat(misdeeds, misdeedsInMemory) {
		t.Run(m.name, func(t *testing.T) { m.beside(t, rogueCard, true) })
	}
}

// TestRings: results fill a ring more than once, and contributions the other one many times.
func TestRings(t *testing.T) {
	const n = 5 << 18 // 5 MiB of results
	ctx := testContext(t)
	card, err := driver.Open(ctx, "model:workers=2")
	if err != nil {
		t.Fatal(err)
	}
	j, err := open(t, serveCard(t, card, daemon.Options{})).Configure(ctx, driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, n)
	if err := j.Reduce(ctx, got, [][]float32{ramp(n, 1), ramp(n, 2)}); err != nil {
		t.Fatal(err)
	}
	check(t, "sum", got, 3)
	if err := j.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestRingsRefused: a client without shared memory works as before: one that does not ask for it, one that
// is not on a Unix socket, and one whose daemon has a lower limit.
func TestRingsRefused(t *testing.T) {
	asks := &protocol.Hello{Version: 1, Rings: true}
	for name, at := range map[string]struct {
		address string
		hello   *protocol.Hello
		limits  daemon.Limits
	}{
		"not asked": {"unix:" + socket(t), &protocol.Hello{Version: 1, Memory: true}, daemon.Limits{}},
		"TCP":       {"tcp:127.0.0.1:0", asks, daemon.Limits{}},
		"limit":     {"unix:" + socket(t), asks, daemon.Limits{Memory: 4 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			_, address, _ := serveOn(t, at.address, daemon.Options{Limits: at.limits})
			place := address.String()
			if address.Network() == "unix" {
				place = "unix:" + place
			}
			if w := helloAt(t, place, at.hello).GetWelcome(); w == nil || w.Memory != 0 || w.RingToDaemon != 0 || w.RingToClient != 0 {
				t.Errorf("got %v", w)
			}
			c, err := driver.Open(testContext(t), "serve:"+place)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			j, err := c.Configure(testContext(t), driver.JobConfig{})
			if err != nil {
				t.Fatal(err)
			}
			in := slices.Repeat([][]float32{ramp(200, 1)}, c.Info().Ports)
			got := make([]float32, 200)
			if err := j.Reduce(testContext(t), got, in); err != nil {
				t.Fatal(err)
			}
			check(t, "sum", got, float32(len(in)))
		})
	}
}

// TestFrameInTheEnd: the daemon forwards the frames before half a frame, with which a client ends.
func TestFrameInTheEnd(t *testing.T) {
	s, path := serveNamed(t, rogueCard, daemon.Options{})
	c := attach(t, path, &protocol.Hello{Version: 1, Rings: true})
	b := c.alone()
	h := chunk(b, 0, 0)
	for h.Epoch = range uint16(3) {
		h.Epoch += uint16(b.Epoch) + 1
		c.write(forged(h))
	}
	c.write(forged(h)[:100])
	if c.word(writtenToDaemon).Load() == 0 {
		t.Error("the frames are not in the memory")
	}
	c.conn.Close()
	c.ended()
	awaitMetric(t, s, staleMetric, 3)
	awaitMetric(t, s, lostMetric, 1)
	for ctx := testContext(t); c.word(writtenToDaemon).Load() != 0; {
		if ctx.Err() != nil {
			t.Fatal("the session has ended, and its pages stay")
		}
	}
}

// TestQueueInTheRing: frames that a client has not read are in the queue's metric.
func TestQueueInTheRing(t *testing.T) {
	s, path := serveNamed(t, rogueCard, daemon.Options{})
	c := attach(t, path, &protocol.Hello{Version: 1, Rings: true})
	for range 3 {
		c.write(frame.Append(nil, &frame.Header{Kind: wire.KindRegRead, VID: wire.RegMagic}, nil))
	}
	reply := frame.Append(nil, &frame.Header{Kind: wire.KindReply}, nil)
	awaitMetric(t, s, `tributary_queue_bytes{card="card"}`, float64(3*len(reply)))
	for range 3 {
		c.read()
	}
	awaitMetric(t, s, `tributary_queue_bytes{card="card"}`, 0)
}
