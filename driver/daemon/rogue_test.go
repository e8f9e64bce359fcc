package daemon_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// rogueCard is a card that takes frames, with room for jobs of rogues.
const rogueCard = "model:lanes=4,workers=4,chunk=256,window=4,jobs=4"

const (
	victims     = 4   // members of the others' job
	victimCalls = 20  // at least
	victimChunk = 256 // elements
)

// rogue is a client that breaks the protocol beside the others' job.
type rogue struct {
	*client
	path   string
	rings  bool            // its sessions have frames in shared memory
	own    *protocol.Begin // of its job with one member, which has announced a call of one chunk
	victim *protocol.Begin // of the others' job: nonce, number and epoch
	random *rand.Rand
}

// newRogue opens a session that has a job of its own.
func newRogue(t testing.TB, path string, rings bool, victim *protocol.Begin) *rogue {
	t.Helper()
	hello := &protocol.Hello{Version: 1, Admin: true, Memory: true, Rings: rings}
	r := &rogue{client: attach(t, path, hello), path: path, rings: rings, victim: victim, random: rand.New(rand.NewPCG(1, 2))}
	r.own = r.alone()
	r.call(&protocol.Call{Nonce: r.own.Nonce, Elements: victimChunk, Format: uint32(wire.FP32)})
	return r
}

// alone begins a job of one member.
func (c *client) alone() *protocol.Begin {
	c.Helper()
	c.join(c.create(&protocol.Parameters{Workers: pointer(uint32(1))}), 0, nil)
	return c.begun()
}

// another opens one more session.
func (r *rogue) another() *client {
	r.Helper()
	return attach(r.TB, r.path, &protocol.Hello{Version: 1, Rings: r.rings})
}

// chunk returns the header of a data frame.
func chunk(b *protocol.Begin, rank uint8, vid uint32) frame.Header {
	return frame.Header{Kind: wire.KindData, Job: uint8(b.Number), Epoch: uint16(b.Epoch), Format: wire.FP32, Rank: rank, VID: vid, Length: victimChunk}
}

// forged returns a frame whose payload has all bits set.
func forged(h frame.Header) []byte {
	info, _ := h.Format.Info()
	return frame.Append(nil, &h, []byte(strings.Repeat("\xff", int(h.Length)*info.Bits/8)))
}

// flipped returns a frame with a wrong bit in byte i; negative: from its end.
func flipped(raw []byte, i int) []byte {
	raw[(i+len(raw))%len(raw)] ^= 1
	return raw
}

// handled waits until the daemon has handled all frames: it answers register accesses in their order.
func (c *client) handled() {
	c.Helper()
	c.write(frame.Append(nil, &frame.Header{Kind: wire.KindRegRead, VID: wire.RegMagic}, nil))
	for f := c.read(); f.Kind != wire.KindReply || f.VID != wire.RegMagic; {
		f = c.read()
	}
}

// ended waits until the daemon has ended the session.
func (c *client) ended() {
	c.Helper()
	for {
		_, err := c.stream.Recv()
		if status.Code(err) == codes.DeadlineExceeded {
			c.Fatal("the session goes on")
		}
		if err != nil {
			return
		}
	}
}

const (
	foreignMetric   = `tributary_frames_dropped_total{card="card",kind="foreign"}`
	staleMetric     = `tributary_frames_dropped_total{card="card",kind="stale"}`
	malformedMetric = `tributary_frames_dropped_total{card="card",kind="malformed"}`
	fullMetric      = `tributary_frames_dropped_total{card="card",kind="full_queue"}`
	skippedMetric   = `tributary_bytes_skipped_total{card="card"}`
	writesMetric    = `tributary_register_writes_refused_total{card="card"}`
	startedMetric   = `tributary_refusals_total{reason="started"}`
	lostMetric      = `tributary_members_lost_total{card="card"}`
	finishedMetric  = `tributary_jobs_ended_total{card="card",cause="finished"}`
)

// misdeed is what a client does while other members' call is under way.
type misdeed struct {
	name   string
	does   func(r *rogue)
	metric string  // what the daemon counts; "": nothing
	counts float64 // how many each time; 0: at least one, some time
}

var misdeeds = []misdeed{
	{"foreign job", func(r *rogue) {
		for rank := range uint8(victims) {
			h := chunk(r.victim, rank, r.random.Uint32N(3*victimCalls))
			for _, h.Kind = range []wire.Kind{wire.KindData, wire.KindAsk, wire.KindFinish} {
				r.write(forged(h))
			}
		}
		r.handled()
	}, foreignMetric, 3 * victims},

	{"rank beyond the job", func(r *rogue) {
		for _, rank := range []uint8{1, 63, 64, 255} {
			r.write(forged(chunk(r.own, rank, 0)))
		}
		r.handled()
	}, foreignMetric, 4},

	{"wrong epoch", func(r *rogue) {
		h := chunk(r.own, 0, 0)
		for _, h.Epoch = range []uint16{h.Epoch - 1, h.Epoch + 1, h.Epoch + 1<<15} {
			r.write(forged(h))
		}
		r.handled()
	}, staleMetric, 3},

	{"wrong length and format", func(r *rogue) {
		h := chunk(r.own, 0, 0)
		for _, h.Length = range []uint16{1, victimChunk - 1, victimChunk + 1, 0, 65535} { // no frame has the last two
			r.write(forged(h))
		}
		h = chunk(r.own, 0, 0)
		h.Format = wire.BF16
		r.write(forged(h))
		r.handled()
	}, malformedMetric, 6},

	{"garbage", func(r *rogue) {
		garbage := make([]byte, 1000)
		for i := range garbage {
			garbage[i] = byte(r.random.Uint32())
		}
		r.write(garbage)
		r.write(flipped(forged(chunk(r.victim, 0, 0)), 5)) // its header
		r.handled()
	}, skippedMetric, 1000 + float64(len(forged(chunk(&protocol.Begin{}, 0, 0))))},

	{"wrong payload", func(r *rogue) { // the card drops it
		r.write(flipped(forged(chunk(r.own, 0, 0)), -1))
		r.handled()
	}, "", 0},

	{"half a frame, then silence", func(r *rogue) {
		r.another().write(forged(chunk(r.victim, 0, 0))[:500])
	}, "", 0},

	{"half a header, then the end", func(r *rogue) {
		c := r.another()
		c.write(forged(chunk(r.victim, 0, 0))[:10])
		c.conn.Close()
		c.ended()
	}, "", 0},

	{"reads no frames", func(r *rogue) {
		write := frame.Append(nil, &frame.Header{Kind: wire.KindRegWrite, VID: wire.RegReset}, nil)
		r.write(bytes.Repeat(write, 10_000)) // the daemon replies
		r.write(forged(chunk(r.own, 0, 0)))  // the card replies with the sum
	}, fullMetric, 0},

	{"reads no messages", func(r *rogue) {
		for range 500 {
			_ = r.stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{ // too many
				Parameters: &protocol.Parameters{Workers: pointer(uint32(100))}}}})
		}
	}, lostMetric, 0},

	{"writes registers", func(r *rogue) {
		name := uint64(r.victim.Number)<<48 | uint64(r.victim.Epoch)<<32
		for _, register := range []uint32{wire.RegOwner, wire.RegRelease, wire.RegReset, wire.RegJobPorts, wire.RegJobCommit, wire.RegJobAbort, wire.JobBase, ^uint32(7)} {
			r.write(frame.Append(nil, &frame.Header{Kind: wire.KindRegWrite, VID: register, Mask: name}, nil))
		}
		r.handled()
	}, writesMetric, 8},

	{"others' seats", func(r *rogue) {
		for rank := range uint32(victims) {
			nonce := r.victim.Nonce
			join := &protocol.Join{Request: 1, Nonce: nonce, Rank: &rank}
			for _, m := range []*protocol.ToDaemon{
				{Message: &protocol.ToDaemon_Call{Call: &protocol.Call{Nonce: nonce, Rank: rank, Sequence: 99, Elements: 1}}},
				{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: nonce, Rank: rank, Low: 1 << 30}}},
				{Message: &protocol.ToDaemon_Kept{Kept: &protocol.Kept{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Block{Block: &protocol.Block{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Finish{Finish: &protocol.Finish{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Connect{Connect: &protocol.Connect{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Failed{Failed: &protocol.Failed{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Disconnected{Disconnected: &protocol.Disconnected{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Leave{Leave: &protocol.Leave{Nonce: nonce, Rank: rank}}},
				{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: nonce}}},
				{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{Join: join}}},
				{Message: &protocol.ToDaemon_Join{Join: join}},
			} {
				r.send(m)
			}
			r.receive() // Ended, for the Rejoin
			r.receive()
		}
	}, startedMetric, victims},

	{"calls out of order", func(r *rogue) {
		c := r.another()
		b := c.alone()
		c.call(&protocol.Call{Nonce: b.Nonce, Elements: 1, Format: uint32(wire.FP32)})
		c.call(&protocol.Call{Nonce: b.Nonce, Elements: 1, Format: uint32(wire.FP32), Sequence: 2, FirstVid: 1})
		c.ended()
	}, lostMetric, 1},

	{"calls that overlap", func(r *rogue) {
		c := r.another()
		c.call(&protocol.Call{Nonce: c.alone().Nonce, Elements: 1, Format: uint32(wire.FP32), FirstVid: 1})
		c.ended()
	}, lostMetric, 1},
}

// block returns a misdeed: a client sends a block of a call of one chunk.
func block(name string, b *protocol.Block) misdeed {
	return misdeed{name, func(r *rogue) {
		c := attach(r.TB, r.path, &protocol.Hello{Version: 1, Memory: true})
		own := c.alone()
		c.call(&protocol.Call{Nonce: own.Nonce, Elements: victimChunk, Format: uint32(wire.FP32)})
		b.Nonce = own.Nonce
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Block{Block: b}})
		c.ended()
	}, lostMetric, 1}
}

// misdeedsOfBlocks are misdeeds on a card that takes arrays.
var misdeedsOfBlocks = []misdeed{
	block("another block", &protocol.Block{Vid: 1, Elements: victimChunk}),
	block("a short block", &protocol.Block{Elements: victimChunk - 1}),
	block("a long block", &protocol.Block{Elements: 1 << 31}),
	block("a block of other bytes", &protocol.Block{Elements: victimChunk, Payload: make([]byte, 4*victimChunk+1)}),
	block("a block at the end of memory", &protocol.Block{Elements: victimChunk, Place: 32<<20 - 4*victimChunk + 1}),
	block("a block beyond memory", &protocol.Block{Elements: victimChunk, Place: 1<<64 - 4}),
	{"frames", func(r *rogue) {
		r.write(forged(chunk(r.victim, 0, 0)))
		r.write(forged(chunk(r.own, 0, 0)))
		r.handled()
	}, foreignMetric, 2},
}

// TestRogues: a job's sums are right, bit for bit, and it finishes, whatever other clients do meanwhile.
// The daemon counts that, and keeps nothing of it.
func TestRogues(t *testing.T) {
	for card, all := range map[string][]misdeed{
		rogueCard:                        misdeeds,
		"cpu:workers=4,chunk=256,jobs=4": misdeedsOfBlocks,
	} {
		for _, m := range all {
			t.Run(m.name, func(t *testing.T) { m.beside(t, card, false) })
		}
	}
}

// beside does the misdeed during each call of a job on a card.
func (m misdeed) beside(t *testing.T, card string, rings bool) {
	ctx := testContext(t)
	s, path := serveNamed(t, card, daemon.Options{Limits: daemon.Limits{Connections: 1_000_000}})
	sessions := openAll(t, path, victims)
	j, err := sessions[0].Configure(ctx, driver.JobConfig{Workers: victims, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	victim := newTeam(t, j, sessions, 1)
	if err := j.AwaitMembers(ctx); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	t.Run("calls", func(t *testing.T) { // its sessions end with it
		r := newRogue(t, path, rings, beginOf(t, j))
		for n := 1; n <= victimCalls || m.metric != "" && metric(t, s, m.metric) == 0; n++ {
			call, err := victim.start(ctx, 5*victimChunk/2)
			if err != nil {
				t.Fatal(err)
			}
			m.does(r)
			if err := call.wait(ctx); err != nil {
				t.Fatal(err)
			}
			if m.counts > 0 {
				awaitMetric(t, s, m.metric, float64(n)*m.counts)
			}
		}
	})
	awaitMetric(t, s, `tributary_sessions{card="card"}`, victims)
	awaitMetric(t, s, `tributary_jobs{card="card",state="running"}`, 1)
	for runtime.NumGoroutine() >= before+victimCalls { // not one for each time
		if ctx.Err() != nil {
			t.Fatalf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(pollTime)
	}
	if err := victim.finish(ctx); err != nil {
		t.Error(err)
	}
	awaitNoJobs(t, s)
	if n := metric(t, s, finishedMetric); n != 1 {
		t.Errorf("%g jobs finished, want 1", n)
	}
	for _, session := range sessions {
		session.Close()
	}
	awaitMetric(t, s, `tributary_sessions{card="card"}`, 0)
}

// beginOf returns what others can know of a job that runs.
func beginOf(t testing.TB, j *driver.Job) *protocol.Begin {
	t.Helper()
	_, number, _ := strings.Cut(j.Ticket(), "?job=")
	nonce, err := strconv.ParseUint(number, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return &protocol.Begin{Nonce: nonce, Number: uint32(j.Number()), Epoch: uint32(j.Epoch())}
}

// TestTraitor: a member sends frames for the other members of its job, of other epochs and with wrong
// CRCs before each of its own. The sums are right, bit for bit, and the others finish.
func TestTraitor(t *testing.T) {
	const traitor, chunks = victims - 1, 3
	ctx := testContext(t)
	s, path := serveNamed(t, "model:lanes=4,workers=4,chunk=256,window=4,jobs=2", daemon.Options{})
	sessions := openAll(t, path, victims)
	j, err := sessions[0].Configure(ctx, driver.JobConfig{Workers: victims, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	c := attach(t, path, &protocol.Hello{Version: 1})
	c.join(beginOf(t, j).Nonce, traitor, nil)
	sessions[traitor] = nil
	victim := newTeam(t, j, sessions, 1)
	b := c.begun()
	vid := uint32(0)
	for n := range uint64(victimCalls) {
		c.call(&protocol.Call{Nonce: b.Nonce, Rank: traitor, Sequence: n, Elements: chunks * victimChunk, Format: uint32(wire.FP32), FirstVid: vid})
		call, err := victim.start(ctx, chunks*victimChunk)
		if err != nil {
			t.Fatal(err)
		}
		for i := range chunks {
			right := chunk(b, traitor, vid)
			for h, rank := right, uint8(0); rank < traitor; rank++ {
				h.Rank = rank
				for _, h.Kind = range []wire.Kind{wire.KindData, wire.KindAsk, wire.KindFinish} {
					c.write(forged(h))
				}
			}
			h := right
			for _, h.Epoch = range []uint16{right.Epoch - 1, right.Epoch + 1} {
				c.write(forged(h))
			}
			h = right
			h.Length = victimChunk / 2
			c.write(forged(h))
			c.write(flipped(forged(right), -1)) // the card drops it
			c.write(frame.Append(nil, &right, call.in[traitor][i*4*victimChunk:][:4*victimChunk]))
			for f := c.read(); f.Kind != wire.KindResult || f.VID != vid; {
				f = c.read()
			}
			vid++
		}
		if err := call.wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]float64{foreignMetric: 3 * traitor, staleMetric: 2, malformedMetric: 1} {
		if n := metric(t, s, name); n != chunks*victimCalls*want {
			t.Errorf("%s is %g, want %g", name, n, chunks*victimCalls*want)
		}
	}
	c.write(finish(b, traitor, vid))
	if err := victim.finish(ctx); err != nil {
		t.Error(err)
	}
	awaitNoJobs(t, s)
	if n := metric(t, s, finishedMetric); n != 1 {
		t.Errorf("%g jobs finished, want 1", n)
	}
}
