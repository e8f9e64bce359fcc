package driver

import (
	"slices"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// crowded is a flow on a card on a network, whose packets the test exchanges one by one. Chunks are
// counted from 0, and so are the packets of the card.
type crowded struct {
	*liveCard
	*flow
	job *Job
}

// newCrowded starts a call of 12 chunks: of all three ranks, or of rank 0. The job's window is 4.
func newCrowded(t *testing.T, whole bool) *crowded {
	b := newLiveCard(t)
	b.Card.info.Shell = wire.ShellUDP
	cfg, err := b.Card.info.Complete(JobConfig{Window: 4, FirstVID: liveFirst})
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(b.Card, cfg, 0, liveEpoch, 0)
	b.table[0] = jobEntry{job: j}
	c := &crowded{b, j.members[0].own, j}
	if whole {
		c.flow = j.whole
	}
	c.call()
	return c
}

// call starts another call.
func (c *crowded) call() {
	inputs := slices.Repeat([][]byte{make([]byte, 4*4*12)}, len(c.members))
	if err := newCall(c.flow).start(reduceOptions{}, make([]byte, 4*4*12), 4*12, inputs...); err != nil {
		c.Fatal(err)
	}
}

// send sends at most n packets of data, and returns how many there were.
func (c *crowded) send(n int) (sent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for sent < n && c.job.addData(c.out, c.now) {
		sent++
	}
	return sent
}

// take takes the result of a chunk, with the ECN mark.
func (c *crowded) take(kind wire.Kind, chunk int, mark wire.ECN) {
	c.feed(frame.Append(nil, &frame.Header{Kind: kind, Flags: uint8(mark), Format: wire.FP32, Epoch: liveEpoch, VID: c.vid(chunk),
		Length: 4, Mask: 7, Receivers: 7}, make([]byte, 16)))
}

// lack asks for a chunk, and takes a status: the card lacks ranks.
func (c *crowded) lack(chunk int, ranks uint64) {
	c.mu.Lock()
	c.addAsk(c.out, chunk, c.now)
	c.mu.Unlock()
	c.feed(frame.Append(nil, &frame.Header{Kind: wire.KindStatus, Code: wire.CodeWait, Epoch: liveEpoch, VID: c.vid(chunk), Mask: ranks}, nil))
}

// wantSize checks the congestion window.
func (c *crowded) wantSize(what string, size float64) {
	c.Helper()
	near(c.T, what, c.congestion.size, size)
}

// TestFlowEndsAChunkThatItHasBegun: member 0 has sent chunk 3 when a mark closes the window. The other
// members send theirs, and nothing more.
func TestFlowEndsAChunkThatItHasBegun(t *testing.T) {
	c := newCrowded(t, true)
	if sent := c.send(3*3 + 1); sent != 10 {
		t.Fatalf("%d packets sent", sent)
	}
	c.take(wire.KindResult, 0, wire.CE)
	c.wantSize("cut by alpha/2", 2)
	if sent := c.send(10); sent != 2 {
		t.Errorf("%d packets sent, want those of chunk 3 that are left", sent)
	}
}

// TestResultsOutOfOrderMakeRoom: results of later chunks count, while the first one is missing.
func TestResultsOutOfOrderMakeRoom(t *testing.T) {
	c := newCrowded(t, false)
	c.congestion.size = 3
	if sent := c.send(10); sent != 3 {
		t.Fatalf("%d chunks sent by a window of 3", sent)
	}
	c.take(wire.KindResult, 1, wire.ECT0)
	if sent := c.send(10); sent != 1 {
		t.Errorf("%d chunks sent after the result of chunk 1, want 1", sent)
	}
}

// TestFlowCutsOnceARoundTrip: a cut for chunk 0 is that for all that were in flight then. Chunk 4 is the
// first that was sent after it; its result comes before that of chunk 3.
func TestFlowCutsOnceARoundTrip(t *testing.T) {
	c := newCrowded(t, false)
	if sent := c.send(10); sent != 4 {
		t.Fatalf("%d chunks sent by a window of 4", sent)
	}
	for _, chunk := range []int{0, 1, 2} {
		c.take(wire.KindResult, chunk, wire.CE)
		c.wantSize("cut once", 2)
	}
	if sent := c.send(10); sent != 1 {
		t.Fatalf("%d chunks sent beside the one in flight", sent)
	}
	c.take(wire.KindResult, 4, wire.CE)
	c.wantSize("cut for chunk 4", 1)
	if got := c.job.Congestion(); got.Cuts != 2 || got.Marked != 4 || got.Results != 4 {
		t.Errorf("%+v", got)
	}
}

// TestFlowHalvesOnceARoundTrip: replays show that results were lost, and statuses that data was. Two of them
// halve once. The loss of another rank's data does not concern this one.
func TestFlowHalvesOnceARoundTrip(t *testing.T) {
	c := newCrowded(t, false)
	c.send(10)
	c.lack(0, 1<<1)
	c.wantSize("rank 1 is late", 4)
	c.take(wire.KindReplay, 0, wire.ECT0)
	c.wantSize("halved, and grown by the result", 2.5)
	c.take(wire.KindReplay, 1, wire.ECT0)
	c.wantSize("a second replay", 2.5+1/2.5)

	c = newCrowded(t, false)
	c.send(10)
	c.lack(1, 1<<0)
	c.wantSize("a loss of data", 2)
	c.lack(2, 1<<0|1<<1)
	c.wantSize("a second one", 2)
	c.lack(0, 1<<0)
	c.wantSize("an older one", 2)
}

// TestFlowForgetsRoundsAtRest: between two calls of the flow, calls of others have moved the members 2^31
// chunks on. The first mark of the second call is news.
func TestFlowForgetsRoundsAtRest(t *testing.T) {
	c := newCrowded(t, false)
	for chunk := range 12 {
		mark := wire.ECT0
		if chunk == 11 {
			mark = wire.CE
		}
		c.send(10)
		c.take(wire.KindResult, chunk, mark)
	}
	size := c.congestion.size
	c.members[0].next += 1<<31 + 100
	c.call()
	c.send(10)
	c.take(wire.KindResult, 0, wire.CE)
	c.wantSize("cut again", max(1, size*(1-c.congestion.alpha/2)))
	if c.congestion.stats.Cuts != 2 || size >= 4 {
		t.Errorf("%+v, a window of %g before", c.congestion.stats, size)
	}
}

// TestCongestionOfSmallWindows: the congestion window begins with the job's window, not with the card's. A
// card on a byte stream has none.
func TestCongestionOfSmallWindows(t *testing.T) {
	b := newLiveCard(t)
	if f := b.jobs[0].whole; f.congestion != nil || b.jobs[0].Congestion() != (CongestionStats{}) {
		t.Errorf("on a byte stream: %+v", f.congestion)
	}
	b.Card.info.Shell = wire.ShellUDP
	for _, f := range []*flow{newFlow(b.jobs[0], b.jobs[0].members[:1]), newFlow(b.jobs[0], b.jobs[0].members)} {
		if !f.congestion.allows(1) || f.congestion.allows(2) {
			t.Errorf("%+v", f.congestion)
		}
	}
}
