package driver

// A hostile card: whatever frames it sends, the driver must neither panic nor lose count of
// what it waits for.

import (
	"bytes"
	"math/bits"
	"slices"
	"testing"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// liveCard is an open card with the test as its reader and writer. It has no goroutines, timers
// or link that could wait.
type liveCard struct {
	*testing.T
	*Card
	link   *link
	now    time.Time
	jobs   []*Job
	queued []*call // besides those of the flows
	reads  []*access
	scan   *frame.Scanner
	out    *batch
}

// liveInfo is a very small card, so that every boundary is near.
var liveInfo = Info{
	Name: "live", Version: wire.Version, Lanes: 1, Ports: 3, Format: wire.FP32, Result: wire.FP32,
	Sum: wire.SumTree, Shell: wire.ShellStream, Chunk: 4, Window: 4, Jobs: 2, Link: 32,
}

const (
	liveEpoch    = 0xfffe
	liveFirst    = 0xfffffffe
	liveElements = 22 // six chunks, the last not full
)

func newLiveCard(t *testing.T) *liveCard {
	l := &link{over: make(chan struct{})}
	c := &Card{
		name: liveInfo.Name, info: liveInfo, link: l, opts: newOptions(nil), accesses: newAccesses(false),
		wake: make(chan struct{}, 1), done: make(chan struct{}), configuring: make(chan struct{}, 1),
		table: make([]jobEntry, liveInfo.Jobs),
	}
	c.unpinned.L = &c.mu
	b := &liveCard{T: t, Card: c, link: l, out: newBatch(false), now: time.Now(), scan: frame.NewScanner(frame.FromCard, 0)}
	for number := range c.table {
		cfg, err := liveInfo.Complete(JobConfig{Window: 2, FirstVID: liveFirst, Partial: number == 1, DeadlineCycles: uint32(number) * 100, CarryOn: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		j := newJob(c, cfg, uint8(number), liveEpoch, 0)
		c.table[number] = jobEntry{job: j}
		b.jobs = append(b.jobs, j)
	}
	return b
}

// step makes the program or the card do one thing, chosen by eight bytes.
func (b *liveCard) step(s []byte) {
	j := b.jobs[s[1]%2]
	switch s[0] % 8 {
	case 0:
		b.begin(j, s)
	case 1:
		b.reads = append(b.reads, b.startAccesses(b.link, []frame.Header{readHeader(uint32(s[2]) << 3)})...)
	case 2:
		b.now = b.now.Add(time.Duration(s[2]) * time.Duration(s[3]) * time.Millisecond)
	default:
		b.send(j, s)
	}
	b.out.clear()
	b.gather(b.link, b.out)
}

// begin starts a call of one member or of all, or the close of the job.
func (b *liveCard) begin(j *Job, s []byte) {
	f := j.whole
	switch s[2] % 8 {
	case 0:
		_, _ = j.startFinish()
		return
	case 1, 2, 3:
		f = j.members[s[2]%8-1].own
	}
	dst := make([]byte, 4*liveElements)
	inputs := make([][]byte, len(f.members))
	for i := range inputs {
		inputs[i] = dst
	}
	k := f.own
	if s[3]&2 != 0 && len(b.queued) < 20 {
		k = newCall(f)
		b.queued = append(b.queued, k)
	}
	var o reduceOptions
	if s[3]%2 == 0 {
		o.progress = func(int, int) {}
	}
	_ = k.start(o, dst, liveElements, inputs...)
}

// send makes the card send a frame similar to an expected one, complete or damaged.
func (b *liveCard) send(j *Job, s []byte) {
	kinds := []wire.Kind{wire.KindResult, wire.KindReplay, wire.KindStatus, wire.KindReply, wire.KindStatus}
	h := frame.Header{
		Kind: kinds[s[0]>>3%5], Job: j.number, Format: wire.FP32, Epoch: liveEpoch, Rank: s[3] & 3, Code: wire.Code(s[4]),
		VID: liveFirst + uint32(int8(s[2])), Mask: uint64(s[5]), Receivers: uint64(s[6]), Flags: s[7] & 0x0f,
	}
	switch {
	case h.Kind == wire.KindReply:
		h.VID, h.Length = uint32(s[2])<<3, uint16(s[3])
	case h.Kind != wire.KindStatus:
		h.Code, h.Length = 0, 4
		if s[4] >= 250 {
			h.Length = uint16(s[4]) - 249
		}
	}
	if s[7]&0x10 != 0 {
		h.Epoch, h.Job, h.Rank = uint16(s[5]), s[6], s[4]
	}
	var payload []byte
	if info, _ := h.Kind.Info(); info.Payload {
		payload = bytes.Repeat([]byte{s[6]}, 4*int(h.Length))
	}
	raw := frame.Append(nil, &h, payload)
	if s[7]&0xe0 == 0xe0 {
		raw[int(s[6])%len(raw)] ^= s[5]
	}
	b.feed(raw)
}

// feed receives bytes like the reader of a link.
func (b *liveCard) feed(raw []byte) {
	var f frame.Frame
	for len(raw) > 0 {
		raw = raw[b.scan.Feed(raw):]
		for b.scan.Next(&f) {
			b.take(b.link, &f, b.now)
		}
	}
}

func (b *liveCard) holds(ok bool, what string) {
	if !ok {
		b.Helper()
		b.Fatal(what)
	}
}

// check checks what must hold between any two frames, and receives the outcomes of ended calls.
func (b *liveCard) check() {
	for _, j := range b.jobs {
		b.holds(!j.ended || len(j.flows) == 0 && j.finish.left == 0, "a job has ended and a call waits")
		b.holds(j.evicted&^j.ranks == 0, "a rank is evicted that is none")
		for _, f := range j.flows {
			b.checkFlow(f)
		}
		if j.history != nil {
			b.holds(len(j.history.results) <= 4*liveElements, "the history grows")
		}
		select {
		case <-j.finish.done:
		default:
		}
	}
	calls := slices.Clone(b.queued)
	for _, j := range b.jobs {
		calls = append(calls, j.whole.own, j.members[0].own.own, j.members[1].own.own, j.members[2].own.own)
	}
	for _, k := range calls {
		select {
		case <-k.done:
			b.holds(!k.active && !slices.Contains(k.flow.calls, k), "a call has an outcome and goes on")
			k.forget()
		default:
		}
	}
	b.holds(len(b.accesses.open) <= len(b.reads), "accesses multiply")
}

func (b *liveCard) checkFlow(f *flow) {
	b.holds(len(f.calls) > 0 && f.users >= len(f.calls) && f.low <= f.held && f.low <= f.next && f.next <= f.chunks && f.next <= f.low+len(f.ring), "a flow is beyond its window")
	held, resend := f.low, 0
	for i := f.low; i < f.next; i++ {
		s := f.state(i)
		if s.held {
			held++
		}
		if s.resend != 0 {
			resend++
		}
		b.holds(s.resend&^f.ranks == 0 && bits.Len64(s.missing) <= liveInfo.Ports, "a rank is missing that is none")
	}
	b.holds(f.low < f.calls[0].end() && f.calls[len(f.calls)-1].end() == f.chunks, "a call that holds all results waits")
	b.holds(held == f.held, "results are miscounted")
	b.holds(resend == f.resend, "chunks to be sent again are miscounted")
}

// FuzzHostileCard plays scripts of eight bytes a step. It feeds the rest to the driver as raw
// bytes.
func FuzzHostileCard(f *testing.F) {
	start := []byte{0, 0, 4, 0, 0, 0, 0, 0}
	f.Add(start, []byte("\xa5TRB\xb2"))
	f.Add(bytes.Join([][]byte{start, {3, 0, 0, 0, 0, 7, 7, 0}, {3, 0, 1, 0, 0, 7, 7, 0}, {11, 0, 2, 0, 0, 7, 7, 0}, {19, 0, 2, 1, 2, 3, 0, 0}}, nil), []byte{})
	f.Add(bytes.Join([][]byte{{0, 1, 1}, {0, 1, 2}, {19, 1, 0, 0, byte(wire.CodeEvicted), 1, 0, 0}, {3, 1, 0, 0, 0, 6, 7, wire.FlagPartial}}, make([]byte, 5)), []byte{})
	f.Add(bytes.Join([][]byte{{1, 0, 3, 0, 0, 0, 0, 0}, {27, 0, 3, 1, 0, 9, 0, 0}, {2, 0, 255, 255, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}}, nil), []byte{})
	f.Fuzz(func(t *testing.T, script, garbage []byte) {
		b := newLiveCard(t)
		for script = script[:min(len(script), 8*100)]; len(script) >= 8; script = script[8:] {
			b.step(script[:8])
			b.check()
		}
		b.feed(garbage)
		b.check()
		b.fail(ErrClosed)
		b.check()
		for _, j := range b.jobs {
			b.holds(j.ended, "a job outlives its card")
		}
	})
}
