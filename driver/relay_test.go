package driver_test

// Jobs whose members are elsewhere: here, goroutines that send one chunk at a time.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// elsewhere is the remote side of a relay, with its members.
type elsewhere struct {
	t       testing.TB
	relay   *driver.Relay
	inputs  [][]float32 // by rank
	sums    [][]float32
	changed sync.Cond

	mu       sync.Mutex
	running  bool
	epoch    uint16
	low      []int // by rank: the first chunk without its sum
	finished []bool
	began    []uint16 // epochs
	ended    chan error
}

func newElsewhere(t testing.TB, inputs [][]float32) *elsewhere {
	e := &elsewhere{t: t, inputs: inputs, low: make([]int, len(inputs)), finished: make([]bool, len(inputs)), ended: make(chan error, 1)}
	e.changed.L = &e.mu
	for range inputs {
		e.sums = append(e.sums, make([]float32, len(inputs[0])))
	}
	return e
}

func (e *elsewhere) Receive(f *frame.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.running || f.Epoch != e.epoch {
		return
	}
	for rank := range e.inputs {
		switch {
		case f.Kind == wire.KindStatus:
			e.finished[rank] = e.finished[rank] || int(f.Rank) == rank && f.Code == wire.CodeDone
		case f.Receivers>>rank&1 != 0 && int(f.VID) == e.low[rank]:
			for i := range f.Payload[:len(f.Payload)/4] {
				if at := 16*e.low[rank] + i; i < 16 && at < len(e.sums[rank]) {
					e.sums[rank][at] = math.Float32frombits(binary.LittleEndian.Uint32(f.Payload[4*i:]))
				}
			}
			e.low[rank]++
		}
	}
	e.changed.Broadcast()
}

func (e *elsewhere) Flush() {}

// Stop hands the members that are behind what the others hold.
func (e *elsewhere) Stop(context.Context) (uint32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
	most := 0
	for rank := range e.low {
		if e.low[rank] > e.low[most] {
			most = rank
		}
	}
	for rank := range e.low {
		copy(e.sums[rank], e.sums[most][:min(16*e.low[most], len(e.sums[most]))])
		e.low[rank] = e.low[most]
	}
	return uint32(e.low[most]), nil
}

func (e *elsewhere) Begin(epoch uint16) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running, e.epoch = true, epoch
	e.began = append(e.began, epoch)
	e.changed.Broadcast()
}

func (e *elsewhere) Ended(err error) { e.ended <- err }

// work sends a member's chunks, each until its sum is there, and then its finish.
func (e *elsewhere) work(rank int) {
	for {
		e.mu.Lock()
		for !e.running {
			e.changed.Wait()
		}
		low, epoch, done := e.low[rank], e.epoch, e.finished[rank]
		e.mu.Unlock()
		if done {
			return
		}
		h := frame.Header{Kind: wire.KindData, Job: uint8(e.relay.Job().Number()), Format: wire.FP32, Epoch: epoch, Rank: uint8(rank),
			VID: uint32(low), Length: 16, Flags: uint8(wire.ECT0)}
		var raw []byte
		if 16*low < len(e.inputs[rank]) {
			var payload []byte
			for _, x := range e.inputs[rank][16*low : min(16*low+16, len(e.inputs[rank]))] {
				payload = binary.LittleEndian.AppendUint32(payload, math.Float32bits(x))
			}
			raw = frame.AppendPadded(nil, &h, payload)
			h.Kind, h.Format, h.Length, h.Flags = wire.KindAsk, 0, 0, 0
			raw = frame.Append(raw, &h, nil)
		} else {
			h.Kind, h.Format, h.Length, h.Flags = wire.KindFinish, 0, 0, 0
			raw = frame.Append(nil, &h, nil)
		}
		e.relay.Send(raw)
		timer := time.AfterFunc(50*time.Millisecond, e.wake)
		e.mu.Lock()
		for since := time.Now(); e.running && e.low[rank] == low && !e.finished[rank] && time.Since(since) < 50*time.Millisecond; {
			e.changed.Wait()
		}
		e.mu.Unlock()
		timer.Stop()
	}
}

func (e *elsewhere) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed.Broadcast()
}

// relayed runs the members of a relay until all have finished.
func relayed(t testing.TB, card *driver.Card, cfg driver.JobConfig, inputs [][]float32) *elsewhere {
	t.Helper()
	e := newElsewhere(t, inputs)
	relay, err := card.ConfigureRelay(testContext(t), driver.RelayConfig{JobConfig: cfg}, e)
	if err != nil {
		t.Fatal(err)
	}
	e.relay = relay
	e.Begin(relay.Job().Epoch())
	var members sync.WaitGroup
	for rank := range inputs {
		members.Go(func() { e.work(rank) })
	}
	members.Wait()
	relay.Finish()
	if err := <-e.ended; err != nil {
		t.Errorf("the job ended with %v", err)
	}
	want := treeSum(inputs, firstPorts(len(inputs)), small.Ports)
	for rank := range inputs {
		sameBits(t, fmt.Sprintf("rank %d", rank), e.sums[rank], want)
	}
	return e
}

// TestRelay forwards the frames of three members, beside a job of this process, and over a card that
// goes and comes back.
func TestRelay(t *testing.T) {
	t.Run("beside another job", bubble(func(t *testing.T) {
		two := small
		two.Jobs = 2
		card := open(t, reach(t, two, 64<<10))
		var other sync.WaitGroup
		other.Go(func() { reuse(t, card) })
		relayed(t, card, driver.JobConfig{Workers: 3}, arrays(1, 3, 500))
		other.Wait()
		relayed(t, card, driver.JobConfig{Workers: 2}, arrays(2, 2, 100))
	}))
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("outages ", seed), bubble(func(t *testing.T) {
			card := openName(t, restarting(t, seed, 6, seed%2 == 1, faults.Rates{}))
			e := relayed(t, card, driver.JobConfig{CarryOn: 10 * time.Second}, arrays(seed, 4, 3000))
			if n := e.relay.Job().Outages(); n < 3 || len(e.began) != n+1 {
				t.Errorf("%d outages, and the members began epochs %v", n, e.began)
			}
		}))
	}
}

// unstoppable are members that cannot be stopped: one is lost.
type unstoppable struct{ *elsewhere }

var errMember = errors.New("a member is lost")

func (unstoppable) Stop(context.Context) (uint32, error) { return 0, errMember }

// TestRelayEnds ends relays: by an abort, by the card's death, and by members that cannot be stopped.
// What is sent afterwards is dropped.
func TestRelayEnds(t *testing.T) {
	for name, end := range map[string]func(*driver.Card, *driver.Relay) error{
		"abort": func(_ *driver.Card, r *driver.Relay) error { return r.Job().Abort(context.Background()) },
		"close": func(c *driver.Card, _ *driver.Relay) error { return c.Close() },
	} {
		t.Run(name, bubble(func(t *testing.T) {
			card := openSmall(t)
			e := newElsewhere(t, arrays(1, 2, 10))
			relay, err := card.ConfigureRelay(testContext(t), driver.RelayConfig{JobConfig: driver.JobConfig{Workers: 2}}, e)
			if err != nil {
				t.Fatal(err)
			}
			wantInputError(t, relay.Job().Reduce(testContext(t), make([]float32, 4), arrays(1, 2, 4)), "reduction: the job's members are in other processes")
			if err := end(card, relay); err != nil {
				t.Fatal(err)
			}
			if err := <-e.ended; err == nil {
				t.Error("the job ended without a reason")
			}
			if relay.Send([]byte("late")) {
				t.Error("a job that has ended takes frames")
			}
		}))
	}
	t.Run("lost member", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			card := openName(t, restarting(t, 3, 1, false, faults.Rates{}))
			e := newElsewhere(t, arrays(1, 4, 3000))
			relay, err := card.ConfigureRelay(testContext(t), driver.RelayConfig{JobConfig: driver.JobConfig{CarryOn: 10 * time.Second}}, unstoppable{e})
			if err != nil {
				t.Fatal(err)
			}
			for relay.Send(make([]byte, 1000)) { // until the link is cut
				time.Sleep(time.Millisecond)
			}
			if err := <-e.ended; !errors.Is(err, errMember) {
				t.Errorf("got %v", err)
			}
		})
	})
}

// TestCloseDuringRelaySetUp: a card that is closed while ConfigureRelay returns ends the job, and no
// data race is there (under -race).
func TestCloseDuringRelaySetUp(t *testing.T) {
	for range 20 {
		card := openSmall(t)
		e := newElsewhere(t, arrays(1, 2, 10))
		returned := make(chan error, 1)
		go func() {
			_, err := card.ConfigureRelay(testContext(t), driver.RelayConfig{JobConfig: driver.JobConfig{Workers: 2}}, e)
			returned <- err
		}()
		for setUp := false; !setUp; {
			jobs, err := card.Jobs(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			setUp = jobs[0].SetUp
		}
		card.Close()
		if err := <-returned; err != nil {
			continue // the card was closed first
		}
		if err := <-e.ended; err == nil {
			t.Error("the job ended without a reason")
		}
	}
}

// TestRelayEpochs: a relayed job's epoch is later than those that members have seen, and none of those to
// avoid.
func TestRelayEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		first := configure(t, card, driver.JobConfig{})
		next := first.Epoch() + 1
		for _, c := range []struct {
			seen, avoid []uint16
			want        uint16
		}{
			{nil, nil, next},
			{[]uint16{next + 4, next - 3}, nil, next + 5},
			{nil, []uint16{next + 7, next + 6, next + 9}, next + 8},
			{[]uint16{next + 10}, []uint16{next + 11, next + 12}, next + 13},
		} {
			e := newElsewhere(t, arrays(1, 2, 10))
			relay, err := card.ConfigureRelay(testContext(t), driver.RelayConfig{JobConfig: driver.JobConfig{Workers: 2}, Seen: c.seen, Avoid: c.avoid}, e)
			if err != nil {
				t.Fatal(err)
			}
			if got := relay.Job().Epoch(); got != c.want {
				t.Errorf("after %d, seen %d, avoid %d: epoch %d, want %d", next-1, c.seen, c.avoid, got, c.want)
			}
			if err := relay.Job().Abort(testContext(t)); err != nil {
				t.Fatal(err)
			}
			<-e.ended
		}
	})
}
