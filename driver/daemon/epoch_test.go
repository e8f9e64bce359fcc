package daemon_test

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// fragile is a model card on a socket, whose links a test cuts.
type fragile struct {
	name string

	mu   sync.Mutex
	conn net.Conn
	shut bool // closes new links at once
}

func newFragile(t testing.TB) *fragile {
	path := filepath.Join(t.TempDir(), "card")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	f := &fragile{name: "unix:" + path}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			card, err := model.NewCard(model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4, Jobs: 2, Shell: wire.ShellStream, Link: 32})
			if err != nil {
				t.Error(err)
				return
			}
			f.mu.Lock()
			f.conn = conn
			shut := f.shut
			f.mu.Unlock()
			if shut {
				conn.Close()
				continue
			}
			serving.Go(func() { _ = card.Serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		f.cut()
		serving.Wait()
	})
	return f
}

func (f *fragile) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conn.Close()
}

// leave cuts the card off until it returns.
func (f *fragile) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut = true
	f.conn.Close()
}

func (f *fragile) back() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut = false
}

// TestCardDies cuts the card off when one of two members has a result. The other gets it from the
// daemon, and the next epoch begins with the chunk that nobody has.
func TestCardDies(t *testing.T) {
	card := newFragile(t)
	open, err := driver.Open(testContext(t), card.name)
	if err != nil {
		t.Fatal(err)
	}
	one, two, b := pair(t, serveCard(t, open, daemon.Options{}), &protocol.Parameters{CarryOnNs: pointer(uint64(10 * time.Second))})
	for rank, c := range []*client{one, two} {
		c.call(&protocol.Call{Nonce: b.Nonce, Rank: uint32(rank), Elements: 64, Format: uint32(wire.FP32)})
		c.write(data(b, uint8(rank), 0, float32(rank+1)))
	}
	one.read()
	card.cut()
	for rank, c := range []*client{one, two} {
		if m := c.receive(); m.GetStop() == nil {
			t.Fatalf("got %v", m)
		}
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: b.Nonce, Rank: uint32(rank), Low: uint32(1 - rank)}}})
	}
	if h := one.receive().GetHand(); !h.GetDone() {
		t.Errorf("the member that lacks nothing gets %v", h)
	}
	h := two.receive().GetHand()
	if h.GetVid() != 0 || h.GetMask() != 3 || len(h.GetPayload()) != 64 || math.Float32frombits(binary.LittleEndian.Uint32(h.GetPayload())) != 3 {
		t.Errorf("the member that lacks chunk 0 gets %v", h)
	}
	if h := two.receive().GetHand(); !h.GetDone() {
		t.Errorf("got %v", h)
	}
	var again [2]*protocol.Begin
	for rank, c := range []*client{one, two} {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: b.Nonce, Rank: uint32(rank)}}})
	}
	for rank, c := range []*client{one, two} {
		again[rank] = c.begun()
		if again[rank].FirstVid != 1 || again[rank].Epoch == b.Epoch {
			t.Errorf("rank %d goes on with %v, after epoch %d", rank, again[rank], b.Epoch)
		}
		c.write(data(b, uint8(rank), 1, 100)) // of the old epoch: dropped
		for vid := range uint32(3) {
			c.write(data(again[rank], uint8(rank), vid+1, float32(vid)))
		}
	}
	for vid := range uint32(3) {
		for rank, c := range []*client{one, two} {
			f := c.read()
			for f.Epoch != uint16(again[rank].Epoch) { // under way when the card died
				f = c.read()
			}
			if x := math.Float32frombits(binary.LittleEndian.Uint32(f.Payload)); f.VID != vid+1 || x != float32(2*vid) {
				t.Errorf("rank %d gets chunk %d: %g", rank, f.VID, x)
			}
		}
	}
}

// TestMemberReturnsBeforeResultsAreTaken: the daemon has seen all results of a call when a member
// returns, and the other member, which waits for the stop alone, has taken none of them. It gets them from
// the daemon. The daemon began an epoch at the first of them, saw that nothing was missing up to the
// member's return, and began the next one, for ever.
func TestMemberReturnsBeforeResultsAreTaken(t *testing.T) {
	path := serve(t, daemon.Options{})
	one, two, b := pair(t, path, &protocol.Parameters{Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond))})
	two.conn.Close()
	if l := one.receive().GetLost(); len(l.GetRanks()) != 1 {
		t.Fatalf("lost %v", l)
	}
	one.announce(&protocol.Call{Nonce: b.Nonce, Elements: 64, Format: uint32(wire.FP32)})
	for vid := range uint32(4) {
		one.write(data(b, 0, vid, 1))
	}
	for range 4 {
		one.read()
	}
	back := attach(t, path, &protocol.Hello{Version: 1})
	back.join(b.Nonce, 1, nil)
	if p := one.receive().GetPause(); p.GetVid() != 4 {
		t.Errorf("got %v", p)
	}
	if m := one.receive(); m.GetStop() == nil {
		t.Fatalf("got %v", m)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: b.Nonce}}})
	for vid := range uint32(4) {
		if h := one.receive().GetHand(); h.GetVid() != vid || h.GetMask() != 1 {
			t.Errorf("got %v instead of chunk %d", h, vid)
		}
	}
	if h := one.receive().GetHand(); !h.GetDone() {
		t.Fatalf("got %v", h)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: b.Nonce}}})
	for rank, c := range []*client{one, back} {
		if again := c.begun(); again.FirstVid != 4 || again.Calls != 1 || !slices.Equal(again.Ranks, []uint32{uint32(rank)}) {
			t.Errorf("rank %d goes on with %v", rank, again)
		}
	}
}

// TestLastMemberIsLostDuringAReturn: a member waits to return after a call whose other members are all
// lost meanwhile. It goes on after that call, which nobody can complete. It waited for ever; then others
// waited for ever who returned later.
func TestLastMemberIsLostDuringAReturn(t *testing.T) {
	path := serve(t, daemon.Options{})
	one, two, b := pair(t, path, &protocol.Parameters{Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond))})
	two.conn.Close()
	if l := one.receive().GetLost(); len(l.GetRanks()) != 1 {
		t.Fatalf("lost %v", l)
	}
	one.announce(&protocol.Call{Nonce: b.Nonce, Elements: 64, Format: uint32(wire.FP32)})
	one.write(data(b, 0, 0, 1)) // of four chunks
	one.read()
	back := attach(t, path, &protocol.Hello{Version: 1})
	back.join(b.Nonce, 1, nil)
	if p := one.receive().GetPause(); p.GetVid() != 4 {
		t.Errorf("got %v", p)
	}
	one.conn.Close()
	again := back.begun()
	if again.FirstVid != 4 || again.Calls != 1 || !slices.Equal(again.Ranks, []uint32{1}) {
		t.Errorf("the member that returned goes on with %v", again)
	}
	back.announce(&protocol.Call{Nonce: b.Nonce, Rank: 1, Sequence: 1, Elements: 16, Format: uint32(wire.FP32), FirstVid: 4})
	other := attach(t, path, &protocol.Hello{Version: 1})
	other.join(b.Nonce, 0, nil)
	if p := back.receive().GetPause(); p.GetVid() != 5 {
		t.Errorf("got %v", p)
	}
	back.write(data(again, 1, 4, 1))
	back.read()
	if m := back.receive(); m.GetStop() == nil {
		t.Errorf("got %v, although the results up to the second member's return are there", m)
	}
}

// sumAlone lets rank 0 sum the first chunks of a call without the other ranks.
func (c *client) sumAlone(b *protocol.Begin, chunks uint32) {
	c.Helper()
	for vid := range chunks {
		c.write(data(b, 0, vid, 1))
		for c.read().Kind != wire.KindResult {
			c.write(data(b, 0, vid, 1)) // the card was not ready
		}
	}
}

// TestEvictedLacksResults cuts the card off when it has evicted a member. That member has none of the
// results, and nobody keeps the first ones. The job goes on without asking it.
func TestEvictedLacksResults(t *testing.T) {
	const chunks = 12 // three windows, in which the card evicts
	card := newFragile(t)
	open, err := driver.Open(testContext(t), card.name)
	if err != nil {
		t.Fatal(err)
	}
	one, two, b := pair(t, serveCard(t, open, daemon.Options{}), &protocol.Parameters{
		Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond)), CarryOnNs: pointer(uint64(10 * time.Second))})
	one.call(&protocol.Call{Nonce: b.Nonce, Elements: chunks * 16, Format: uint32(wire.FP32)})
	one.sumAlone(b, chunks)
	card.cut()
	for _, c := range []*client{two, one} {
		if e := c.receive().GetEvicted(); !slices.Equal(e.GetRanks(), []uint32{1}) {
			t.Errorf("got %v", e)
		}
		if m := c.receive(); m.GetStop() == nil {
			t.Fatalf("got %v", m)
		}
	}
	two.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: b.Nonce, Rank: 1}}})
	if r := two.join(b.Nonce, 1, nil).GetRefused(); r.GetReason() != protocol.Reason_TAKEN { // the report has come
		t.Errorf("got %v", r)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: b.Nonce, Low: chunks}}})
	if h := one.receive().GetHand(); !h.GetDone() {
		t.Fatalf("got %v", h)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: b.Nonce}}})
	if again := one.begun(); again.FirstVid != chunks {
		t.Errorf("the job goes on with %v", again)
	}
}

// TestFinishedWithoutTheEvicted: a job is over when all members have finished but those that the card has
// evicted. All hear of that before, although the card's own word may come later.
func TestFinishedWithoutTheEvicted(t *testing.T) {
	const chunks = 12 // three windows, in which the card evicts
	path := serve(t, daemon.Options{})
	one, two, b := pair(t, path, &protocol.Parameters{Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond))})
	one.call(&protocol.Call{Nonce: b.Nonce, Elements: chunks * 16, Format: uint32(wire.FP32)})
	one.sumAlone(b, chunks)
	one.write(finish(b, 0, chunks))
	for _, c := range []*client{one, two} {
		if e := c.receive().GetEvicted(); !slices.Equal(e.GetRanks(), []uint32{1}) {
			t.Errorf("got %v", e)
		}
		if e := c.receive().GetEnded(); e.GetCause() != protocol.Cause_FINISHED {
			t.Errorf("got %v", e)
		}
	}
}

// TestMembersReturnOneAfterAnother takes a second member back while the others are paused for the first
// one. The card evicts both meanwhile. Both take part in the next epoch: the job outlasts the finish of
// the other member.
func TestMembersReturnOneAfterAnother(t *testing.T) {
	const chunks = 12 // three windows, in which the card evicts
	path := serve(t, daemon.Options{})
	hello := &protocol.Hello{Version: 1}
	p := &protocol.Parameters{Workers: pointer(uint32(3)), Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond))}
	one, two, three := attach(t, path, hello), attach(t, path, hello), attach(t, path, hello)
	nonce := one.create(p)
	one.join(nonce, 0, nil)
	two.join(nonce, 1, nil)
	three.join(nonce, 2, nil)
	b := one.begun()
	one.announce(&protocol.Call{Nonce: nonce, Elements: chunks * 16, Format: uint32(wire.FP32)})
	back := []*client{attach(t, path, hello), attach(t, path, hello)}
	for i, gone := range []*client{two, three} {
		gone.conn.Close()
		if l := one.receive().GetLost(); !slices.Equal(l.GetRanks(), []uint32{uint32(i + 1)}) {
			t.Fatalf("lost %v", l)
		}
		if m := back[i].join(nonce, uint32(i+1), nil); m.GetWaiting() == nil {
			t.Fatalf("rank %d did not return: %v", i+1, m)
		}
		if i == 0 && one.receive().GetPause().GetVid() != chunks {
			t.Error("rank 0 was not paused after its call")
		}
	}
	one.sumAlone(b, chunks)
	if e := one.receive().GetEvicted(); !slices.Equal(e.GetRanks(), []uint32{1, 2}) {
		t.Errorf("got %v", e)
	}
	if m := one.receive(); m.GetStop() == nil {
		t.Fatalf("got %v", m)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: nonce, Low: chunks}}})
	if h := one.receive().GetHand(); !h.GetDone() {
		t.Fatalf("got %v", h)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: nonce}}})
	b = one.begun()
	for i, c := range back {
		if again := c.begun(); again.FirstVid != chunks || again.Calls != 1 || !slices.Equal(again.Ranks, []uint32{uint32(i + 1)}) {
			t.Errorf("rank %d goes on with %v", i+1, again)
		}
	}
	one.write(finish(b, 0, chunks))
	for n, mask := uint64(1), uint64(0); mask != 0b110; n++ { // on a busy machine one may be too late for a chunk
		vid := chunks + uint32(n-1)
		for i, c := range back {
			c.call(&protocol.Call{Nonce: nonce, Rank: uint32(i + 1), Sequence: n, Elements: 16, Format: uint32(wire.FP32), FirstVid: vid})
			c.write(data(b, uint8(i+1), vid, 2))
		}
		for _, c := range back {
			f := c.read()
			for f.Kind != wire.KindResult || f.VID != vid {
				f = c.read()
			}
			mask = f.Mask
		}
	}
}

// TestMemberLeavesBetweenEpochs loses a member that has not reported: the job ends for the other.
func TestMemberLeavesBetweenEpochs(t *testing.T) {
	card := newFragile(t)
	open, err := driver.Open(testContext(t), card.name)
	if err != nil {
		t.Fatal(err)
	}
	one, two, b := pair(t, serveCard(t, open, daemon.Options{}), &protocol.Parameters{CarryOnNs: pointer(uint64(10 * time.Second))})
	card.cut()
	if m := one.receive(); m.GetStop() == nil {
		t.Fatalf("got %v", m)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: b.Nonce}}})
	two.conn.Close()
	if e := one.receive().GetEnded(); e.GetCause() != protocol.Cause_MEMBER_LOST {
		t.Errorf("got %v", e)
	}
}

// TestMemberGivesUpWaiting: two members of an earlier daemon's job wait for a third, and one gives up. The
// other hears that it has left, and not that it aborted the job.
func TestMemberGivesUpWaiting(t *testing.T) {
	path := serve(t, daemon.Options{})
	const nonce = 5
	clients := []*client{attach(t, path, &protocol.Hello{Version: 1}), attach(t, path, &protocol.Hello{Version: 1})}
	for rank, c := range clients {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{
			Join: &protocol.Join{Nonce: nonce, Rank: pointer(uint32(rank)), Parameters: &protocol.Parameters{
				Workers: pointer(uint32(3)), CarryOnNs: pointer(uint64(time.Hour))}},
			Report: &protocol.Report{Nonce: nonce, Rank: uint32(rank)}}}})
	}
	sees := clients[1].join(nonce, 2, nil).GetRefused() // and its seat is taken by now
	if sees.GetReason() != protocol.Reason_STARTED {
		t.Fatalf("got %v", sees)
	}
	clients[0].send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Leave{Leave: &protocol.Leave{Nonce: nonce}}})
	e := clients[1].receive().GetEnded()
	if e.GetCause() != protocol.Cause_MEMBER_LOST || !slices.Equal(e.Ranks, []uint32{0}) || e.Text != "rank 0 has left" {
		t.Errorf("got %v", e)
	}
}

// TestTrailingMemberWasEvicted: of two members of an earlier daemon's job, one lacks more results than a
// member may that the card has not evicted. The job goes on without it.
func TestTrailingMemberWasEvicted(t *testing.T) {
	path := serve(t, daemon.Options{})
	const nonce, ahead = 5, 12
	clients := []*client{attach(t, path, &protocol.Hello{Version: 1}), attach(t, path, &protocol.Hello{Version: 1})}
	for rank, c := range clients {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{
			Join: &protocol.Join{Nonce: nonce, Rank: pointer(uint32(rank)), Parameters: &protocol.Parameters{
				Workers: pointer(uint32(2)), Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond)),
				CarryOnNs: pointer(uint64(patience))}},
			Report: &protocol.Report{Nonce: nonce, Rank: uint32(rank), Low: uint32(ahead * rank)}, Epoch: pointer(uint32(1)), Calls: 1, NextVid: ahead}}})
	}
	for _, c := range clients {
		if e := c.receive().GetEvicted(); !slices.Equal(e.GetRanks(), []uint32{0}) || e.Vid != 0 {
			t.Errorf("got %v", e)
		}
	}
	if h := clients[1].receive().GetHand(); !h.GetDone() {
		t.Fatalf("got %v", h)
	}
	clients[1].send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: nonce, Rank: 1}}})
	if b := clients[1].begun(); b.FirstVid != ahead {
		t.Errorf("the job goes on with %v", b)
	}
}

// TestRejoinBeforeTheFirstEpoch: a member rejoins that has not seen an epoch. It once counted as one that
// has seen epoch 0, and the card refused the next epoch as older than its last one.
func TestRejoinBeforeTheFirstEpoch(t *testing.T) {
	var path string
	var last uint32
	for last < 40_000 || last > 58_000 { // a new card's first epoch is random
		_, path = serveNamed(t, "model:lanes=4,workers=4,chunk=16,window=4", daemon.Options{})
		one, two, b := pair(t, path, &protocol.Parameters{})
		last = b.Epoch
		for rank, c := range []*client{one, two} {
			c.write(finish(b, uint8(rank), 0))
		}
		for _, c := range []*client{one, two} {
			if e := c.receive().GetEnded(); e.GetCause() != protocol.Cause_FINISHED {
				t.Fatalf("got %v", e)
			}
		}
		one.handled() // the card has dropped the job: the next one has its number
	}
	const nonce = 5
	clients := []*client{attach(t, path, &protocol.Hello{Version: 1}), attach(t, path, &protocol.Hello{Version: 1})}
	for rank, epoch := range []*uint32{nil, pointer(uint32(26_000))} {
		clients[rank].send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{
			Join: &protocol.Join{Nonce: nonce, Rank: pointer(uint32(rank)), Parameters: &protocol.Parameters{
				Workers: pointer(uint32(2)), CarryOnNs: pointer(uint64(patience))}},
			Report: &protocol.Report{Nonce: nonce, Rank: uint32(rank)}, Epoch: epoch}}})
	}
	for rank, c := range clients {
		if h := c.receive().GetHand(); !h.GetDone() {
			t.Fatalf("got %v", h)
		}
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: nonce, Rank: uint32(rank)}}})
	}
	if b := clients[0].receive().GetBegin(); b.GetEpoch() != last+1 {
		t.Errorf("after epoch %d, got %v", last, b)
	}
}

// TestRejoinInTheMiddle: a member with partial sums that has not begun cannot rejoin. Its calls once began
// where the job stood, in the middle of the others' calls: the sums were wrong.
func TestRejoinInTheMiddle(t *testing.T) {
	c := attach(t, serve(t, daemon.Options{}), &protocol.Hello{Version: 1})
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{
		Join: &protocol.Join{Nonce: 5, Rank: pointer(uint32(1)), Parameters: &protocol.Parameters{
			Workers: pointer(uint32(2)), Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond)),
			CarryOnNs: pointer(uint64(patience))}}}}})
	if e := c.receive().GetEnded(); e.GetCause() != protocol.Cause_MEMBER_LOST || !slices.Equal(e.Ranks, []uint32{1}) {
		t.Errorf("got %v", e)
	}
}

// TestPauseCountsCallsOfTheLost: a member returns after the calls of its former life, too. The card may sum
// what that life has sent of them.
func TestPauseCountsCallsOfTheLost(t *testing.T) {
	path := serve(t, daemon.Options{})
	one, two, b := pair(t, path, &protocol.Parameters{Partial: pointer(true), DeadlineNs: pointer(uint64(10 * time.Millisecond))})
	one.call(&protocol.Call{Nonce: b.Nonce, Elements: 64, Format: uint32(wire.FP32)})
	for n := range uint64(2) {
		two.announce(&protocol.Call{Nonce: b.Nonce, Rank: 1, Sequence: n, Elements: 64, Format: uint32(wire.FP32), FirstVid: uint32(4 * n)})
	}
	two.conn.Close()
	if l := one.receive().GetLost(); len(l.GetRanks()) != 1 {
		t.Fatalf("lost %v", l)
	}
	attach(t, path, &protocol.Hello{Version: 1}).join(b.Nonce, 1, nil)
	if p := one.receive().GetPause(); p.GetVid() != 8 {
		t.Errorf("got %v", p)
	}
}

// TestStopsInOrder stops a daemon that has a job: the members learn it, and their sessions end.
func TestStopsInOrder(t *testing.T) {
	card, err := driver.Open(testContext(t), "model:lanes=4,workers=4,chunk=16")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.New(map[string]daemon.Card{"card": card}, daemon.Options{}).Serve(ctx, listener, 0)
	}()
	one, _, _ := pair(t, path, &protocol.Parameters{})
	stop()
	if e := one.receive().GetEnded(); e.GetCause() != protocol.Cause_ABORTED {
		t.Errorf("got %v", e)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := one.stream.Recv(); err == nil {
		t.Error("the session goes on")
	}
	if card.Err() == nil {
		t.Error("the card is open")
	}
}
