package driver_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// wide is a card on a network with a window of 64 chunks.
var wide = model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 64, Jobs: 2, Shell: wire.ShellUDP, Link: 64}

// congested is a link to a card that marks, loses and counts. It takes a time that ends only when nothing
// else runs: then all is sent that a window allows.
type congested struct {
	transport.PacketConn
	marks func(vid uint32) bool // marks the results on their way to the host
	loses func(data *frame.Header, again bool) bool

	mu                sync.Mutex
	sent              map[uint32]bool // VIDs of data
	came              map[uint32]bool // VIDs of results
	most              int             // chunks in flight since patience
	patience, repeats int
}

func (c *congested) WritePackets(buf []byte, ends []int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	check := frame.NewDatagramChecker(frame.ToCard)
	var kept []byte
	var keptEnds []int
	start := 0
	for _, end := range ends {
		packet := buf[start:end]
		start = end
		var f frame.Frame
		if check.Check(packet, &f) && f.Kind == wire.KindData && f.Rank == 0 {
			again := c.sent[f.VID]
			c.sent[f.VID] = true
			if again {
				c.repeats++
			}
			if len(c.came) >= c.patience {
				c.most = max(c.most, len(c.sent)-len(c.came))
			}
			if c.loses != nil && c.loses(&f.Header, again) {
				continue
			}
		}
		kept = append(kept, packet...)
		keptEnds = append(keptEnds, len(kept))
	}
	if len(keptEnds) == 0 {
		return nil
	}
	return c.PacketConn.WritePackets(kept, keptEnds)
}

func (c *congested) ReadPackets(batch []transport.Packet) (int, error) {
	n, err := c.PacketConn.ReadPackets(batch)
	time.Sleep(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	check := frame.NewDatagramChecker(frame.FromCard)
	for i := range n {
		var f frame.Frame
		if !check.Check(batch[i].Bytes, &f) || f.Payload == nil {
			continue
		}
		c.came[f.VID] = true
		if c.marks != nil && c.marks(f.VID) {
			batch[i].ECN = wire.CE
		}
	}
	return n, err
}

// congest puts marks and losses before the card wide.
func congest(t *testing.T, c *congested) *congested {
	c.PacketConn = serveInMemory(t, wide)
	c.sent, c.came = map[uint32]bool{}, map[uint32]bool{}
	return c
}

// always marks each result.
func always(uint32) bool { return true }

// TestCongestionWindow: marks shrink the window to one chunk, as the link sees, and nothing else does. A
// fixed window stays.
func TestCongestionWindow(t *testing.T) {
	for name, c := range map[string]struct {
		marks func(uint32) bool
		opts  []driver.Option
		most  int
	}{
		"no marks":       {nil, nil, 64},
		"marks":          {always, nil, 1},
		"a fixed window": {always, []driver.Option{driver.WithFixedWindow()}, 64},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link := congest(t, &congested{marks: c.marks, patience: 600})
				job := configure(t, open(t, link, c.opts...), driver.JobConfig{Window: 64})
				if got := job.Congestion(); got != (driver.CongestionStats{}) {
					t.Errorf("before the first call: %+v", got)
				}
				for seed := range uint64(2) {
					sums(t, job, seed, 400*16)
				}
				got := job.Congestion()
				if link.most != c.most || (got.Cuts != 0) != (c.most == 1) || got.Halvings != 0 {
					t.Errorf("up to %d chunks in flight, want %d: %+v", link.most, c.most, got)
				}
				if c.most == 64 && got.MeanWindow != 64 || c.marks != nil && got.Marked != got.Results || got.Results != 400*5 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestCongestionRecovers: after marks have passed, the window grows to the job's again, not above it.
func TestCongestionRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const marked = 100
		link := congest(t, &congested{marks: func(vid uint32) bool { return vid < marked }})
		job := configure(t, open(t, link), driver.JobConfig{Window: 16})
		sums(t, job, 2, marked*16)
		link.most = 0
		sums(t, job, 4, 8*16) // eight chunks do not fill it
		if link.most > 8 || job.Congestion().Cuts < 4 {
			t.Errorf("up to %d chunks in flight soon after the marks: %+v", link.most, job.Congestion())
		}
		sums(t, job, 6, 1000*16)
		if link.most != 16 {
			t.Errorf("up to %d chunks in flight long after the marks", link.most)
		}
	})
}

// TestRepeatsNeedNoWindow: with windows of one chunk, each first transmission of rank 0 is lost. The repeat
// goes out all the same, and every sum is right.
func TestRepeatsNeedNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := congest(t, &congested{marks: always, patience: 300})
		link.loses = func(_ *frame.Header, again bool) bool { return !again }
		job := configure(t, open(t, link), driver.JobConfig{Window: 64})
		sums(t, job, 2, 400*16)
		if got := job.Congestion(); link.most != 1 || link.repeats < 400 || got.Halvings == 0 {
			t.Errorf("up to %d chunks in flight, %d repeats: %+v", link.most, link.repeats, got)
		}
	})
}

// TestLossHalves: a lost chunk halves the window once, and a lost result too.
func TestLossHalves(t *testing.T) {
	for name, loses := range map[string]func(*congested) transport.PacketConn{
		"data": func(c *congested) transport.PacketConn {
			c.loses = func(data *frame.Header, again bool) bool { return data.VID == 50 && !again }
			return c
		},
		"a result": func(c *congested) transport.PacketConn {
			return losing{c, func(f *frame.Frame) bool { return f.Kind == wire.KindResult && f.VID == 50 }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job := configure(t, open(t, loses(congest(t, &congested{}))), driver.JobConfig{Window: 64})
				sums(t, job, 2, 60*16)
				if got := job.Congestion(); got.Halvings != 1 || got.Cuts != 0 || got.Results != 60 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestCongestionOverMarks: on real sockets, marks on the way to the card and on the way back cut the
// windows.
func TestCongestionOverMarks(t *testing.T) {
	for _, way := range []struct {
		name           string
		there, return_ wire.ECN
	}{{"to the card", wire.CE, wire.ECT0}, {"from the card", wire.ECT0, wire.CE}} {
		t.Run(way.name, func(t *testing.T) {
			proxy, err := faults.NewProxy(strings.TrimPrefix(serveUDP(t, wide), "udp:"), faults.Rates{}, new(faults.Counts))
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			proxy.Mark(way.there, way.return_)
			card := openForever(t, proxy.Name(), driver.WithTimeout(patience))
			job := configure(t, card, driver.JobConfig{Window: 64})
			sums(t, job, 2, 200*16)
			sums(t, job, 3, 200*16)
			if got := job.Congestion(); got.Cuts < 6 || got.MeanWindow > 32 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestBottleneck: two jobs share a queue that marks and drops. Every bit of every sum is right. It is in
// memory: what a slow machine sends over sockets may be too little to fill the queue.
func TestBottleneck(t *testing.T) {
	for _, d := range []frame.Direction{frame.ToCard, frame.FromCard} {
		t.Run(fmt.Sprint("direction ", d), bubble(func(t *testing.T) {
			queue := faults.NewBottleneck(faults.BottleneckConfig{Rate: 2e6, Limit: 20_000, Threshold: 2_000})
			t.Cleanup(queue.Close)
			link := serveInMemory(t, wide).(*memory)
			card := open(t, link, driver.WithTimeout(patience))
			first := configure(t, card, driver.JobConfig{Ports: []int{0, 2}, Window: 32})
			second := configure(t, card, driver.JobConfig{Ports: []int{1, 3}, Window: 32})
			link.narrow(d, queue)
			var jobs sync.WaitGroup
			for n, job := range []*driver.Job{first, second} {
				jobs.Go(func() { sums(t, job, 2+uint64(n), 400*16) })
			}
			jobs.Wait()
			for _, job := range []*driver.Job{first, second} {
				if got := job.Congestion(); got.Marked == 0 || got.Cuts == 0 || got.MeanWindow >= 32 {
					t.Errorf("%+v", got)
				}
			}
			if got := queue.Stats(); got.Marked == 0 || got.Marked == got.Passed {
				t.Errorf("%+v", got)
			}
		}))
	}
}
