package driver_test

// Jobs that continue after their card has gone away and come back.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// comingAndGoing are the cards of the scheme "comes". The function of a card opens it for the
// n-th time, from 0.
var comingAndGoing struct {
	sync.Mutex
	open []func(n int) (transport.Conn, error)
	n    []int
}

// opening is how long it takes to open such a card in the bubble's time. Nothing else takes
// time there.
const opening = time.Millisecond

func init() {
	transport.Register("comes", func(_ context.Context, r transport.Request) (transport.Conn, error) {
		var i int
		if _, err := fmt.Sscan(r.Address, &i); err != nil {
			return nil, err
		}
		c := &comingAndGoing
		c.Lock()
		open, n := c.open[i], c.n[i]
		c.n[i]++
		c.Unlock()
		time.Sleep(opening)
		return open(n)
	})
}

// comes returns the name of a card that open opens.
func comes(open func(n int) (transport.Conn, error)) string {
	c := &comingAndGoing
	c.Lock()
	defer c.Unlock()
	c.open, c.n = append(c.open, open), append(c.n, 0)
	return fmt.Sprintf("comes:%d", len(c.open)-1)
}

// openName opens a card by its name and closes it at the end of the test.
func openName(t testing.TB, name string, opts ...driver.Option) *driver.Card {
	t.Helper()
	card, err := driver.Open(testContext(t), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { card.Close() })
	return card
}

var errCut = errors.New("the dog ate the cable")

// outageLog records the calls of OnOutage.
type outageLog struct {
	mu  sync.Mutex
	all []driver.Outage
}

func (o *outageLog) note(x driver.Outage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, x)
}

// check closes the card, so that the last return has been reported. It checks that the card
// went and came back in turns, each time in a later epoch and never from an earlier chunk. It
// returns the number of outages.
func (o *outageLog) check(t testing.TB, card *driver.Card, epoch uint16) int {
	t.Helper()
	if err := card.Close(); err != nil {
		t.Error(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var vid uint32
	for i, x := range o.all {
		if x.Cause == nil || x.VID < vid || (i%2 == 0) != (x.Epoch == 0 && x.Away == 0) {
			t.Errorf("outage %d: %+v", i, x)
		}
		if i%2 == 1 && (x.VID != vid || int16(x.Epoch-epoch) <= 0 || x.Away <= 0) {
			t.Errorf("back from outage %d: %+v, after epoch %d and chunk %d", i, x, epoch, vid)
		}
		if vid = x.VID; i%2 == 1 {
			epoch = x.Epoch
		}
	}
	if len(o.all)%2 != 0 {
		t.Errorf("the last outage has no end: %+v", o.all)
	}
	return len(o.all) / 2
}

// restarting returns the name of a card that loses its link after a random number of bytes,
// times often. If stays, the same card comes back; otherwise a new one without state does.
func restarting(t testing.TB, seed uint64, times int, stays bool, f faults.Rates) string {
	rng := rand.New(rand.NewPCG(seed, 5))
	card, err := model.NewCard(small)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.Mutex
	return comes(func(n int) (transport.Conn, error) {
		if !stays && n > 0 {
			if card, err = model.NewCard(small); err != nil {
				return nil, err
			}
		}
		f.Seed = seed + uint64(n)
		link := faults.New(connectNext(t, card, &serving), f, new(faults.Counts))
		link.On.Store(true)
		if n >= times {
			return link, nil
		}
		least := 500 // during the set-up
		if n == 0 {
			least = 3000 // after it: Configure must succeed
		}
		return faults.CutAfter(link, least+rng.IntN(20000)), nil
	})
}

// connectNext returns a link to a card that takes one host at a time. The card serves the link
// after the link before has ended.
func connectNext(t testing.TB, card *model.Card, serving *sync.Mutex) transport.Conn {
	host, end := pipe.New(4000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serving.Lock()
		defer serving.Unlock()
		_ = card.Serve(end)
	}()
	t.Cleanup(func() { host.Close(); <-ended })
	return host
}

// TestCarryOn lets a card go and come back repeatedly, in the middle of frames. It covers a new
// process and the same one, links with and without faults, and reduction in place. Every bit
// must be as without outages.
func TestCarryOn(t *testing.T) {
	const elements = 3000
	noise := faults.Rates{Drop: 0.05, Repeat: 0.05, Reorder: 0.1, Flip: 0.05, Garbage: 0.02}
	const noisy = 40 // later seeds are noisy
	for seed := range uint64(noisy + 2) {
		t.Run(fmt.Sprint(seed), bubble(func(t *testing.T) {
			f, times := faults.Rates{}, 12
			if seed >= noisy { // a lost register access takes time to repeat
				f, times = noise, 4
			}
			var log outageLog
			card := openName(t, restarting(t, seed, times, seed%2 == 1, f))
			first := uint32(math.MaxUint32 - 100)
			job := configure(t, card, driver.JobConfig{FirstVID: first, CarryOn: 10 * time.Second, OnOutage: func(o driver.Outage) {
				o.VID -= first // VIDs wrap around
				log.note(o)
			}})
			epoch := job.Epoch()
			for round := 0; round < 20 && (round < 4 || job.Outages() < times/2); round++ {
				in := arrays(seed<<8|uint64(round), 4, elements)
				want := treeSum(in, firstPorts(4), 4)
				if round%2 == 0 {
					if err := job.Reduce(testContext(t), in[round%4], in); err != nil {
						t.Fatal(err)
					}
					sameBits(t, "reduced in place", in[round%4], want)
					continue
				}
				if err := errors.Join(allReduce(testContext(t), job, in)...); err != nil {
					t.Fatal(err)
				}
				for r := range in {
					sameBits(t, fmt.Sprintf("rank %d", r), in[r], want)
				}
			}
			if err := job.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
			reuse(t, card)
			if n := log.check(t, card, epoch); n < times/2 {
				t.Errorf("%d outages; the test is to have %d", n, times/2)
			}
		}))
	}
}

// TestCarryOnSendsNoSumAgain has results above the first missing one that have overwritten
// their inputs when the card goes. Their chunks must pass as zeros, and must not be summed or
// stored again. That must also hold when the card goes again before all of them have passed.
func TestCarryOnSendsNoSumAgain(t *testing.T) {
	const lost, window = 1, 8 // the first link loses the results of chunk 1
	big := small
	big.Chunk, big.Window = 1008, window // a chunk of all ranks is a quarter of a write
	for _, outages := range []int{1, 2} {
		t.Run(fmt.Sprint(outages), bubble(func(t *testing.T) {
			var mu sync.Mutex
			last := map[uint32]bool{} // whether the last link's chunks were zeros
			results := 0
			name := comes(func(n int) (transport.Conn, error) {
				conn := serve(t, big, 64<<10)
				return &watched{Conn: conn, toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
					out: func(f *frame.Frame) bool {
						mu.Lock()
						defer mu.Unlock()
						switch {
						case f.Kind != wire.KindData:
						case n == outages:
							last[f.VID] = !slices.ContainsFunc(f.Payload, func(b byte) bool { return b != 0 })
						case n > 0:
							conn.Close()
						}
						return true
					},
					in: func(f *frame.Frame) (pass, ends bool) {
						if n > 0 || f.Kind != wire.KindResult && f.Kind != wire.KindReplay {
							return true, false
						}
						if f.VID == lost {
							return false, false
						}
						results++
						return true, results == window // chunks 0 and 2 to 8: the window is full
					}}, nil
			})
			var log outageLog
			card := openName(t, name)
			job := configure(t, card, driver.JobConfig{CarryOn: 10 * time.Second, OnOutage: log.note})
			epoch := job.Epoch()
			const chunks = 20
			in := arrays(1, 4, 1008*chunks)
			want := treeSum(in, firstPorts(4), 4)
			if err := job.Reduce(testContext(t), in[2], in); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "sum", in[2], want)
			mu.Lock()
			for vid, zeros := range last {
				if held := vid > lost && vid <= window; vid < lost || held != zeros {
					t.Errorf("after the card came back, chunk %d was sent; zeros: %t", vid, zeros)
				}
			}
			mu.Unlock()
			if s := job.Stats(); s.Sent != 4*chunks || s.Results != 4*chunks || s.Resent < 4*window {
				t.Errorf("%+v", s)
			}
			if err := job.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
			if n := log.check(t, card, epoch); n != outages || log.all[1].VID != lost {
				t.Errorf("%+v", log.all)
			}
		}))
	}
}

// TestMembersHoldTheSame checks that a lost result that is replayed to one member reaches the
// others too. That member may then reuse its buffer. After an outage nobody could send its
// contribution again.
func TestMembersHoldTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const last = 9
		name := comes(func(n int) (transport.Conn, error) {
			return &watched{Conn: serve(t, small, 64<<10), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
				out: func(f *frame.Frame) bool { return f.Kind != wire.KindAsk || f.Rank == 0 || n > 0 },
				in: func(f *frame.Frame) (pass, ends bool) {
					ends = n == 0 && f.Kind == wire.KindReplay && f.VID == last
					return n > 0 || f.Kind != wire.KindResult || f.VID != last, ends
				}}, nil
		})
		card := openName(t, name, driver.WithTimeout(time.Second))
		job := configure(t, card, driver.JobConfig{Workers: 3, CarryOn: patience})
		in := arrays(1, 3, 16*(last+1))
		want := treeSum(in, firstPorts(3), 4)
		if err := errors.Join(allReduce(testContext(t), job, in)...); err != nil {
			t.Fatal(err)
		}
		for r := range in {
			sameBits(t, fmt.Sprintf("rank %d", r), in[r], want)
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCarryOnBehindAnotherHost lets another host use the card during the outage, with its own
// epochs. The job must continue in a later epoch than that host's and its own.
func TestCarryOnBehindAnotherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card, err := model.NewCard(small)
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.Mutex
		name := comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return &dying{connectNext(t, card, &serving), 6000, errCut}, nil
			}
			other, err := driver.OpenConn(context.Background(), "other", connectNext(t, card, &serving))
			if err != nil {
				return nil, err
			}
			for range 5 {
				if _, err := other.Configure(context.Background(), driver.JobConfig{}); err != nil {
					return nil, err
				}
			}
			return connectNext(t, card, &serving), other.Close()
		})
		job := configure(t, openName(t, name), driver.JobConfig{CarryOn: patience})
		epoch := job.Epoch()
		in := arrays(1, 4, 3000)
		want := treeSum(in, firstPorts(4), 4)
		if err := job.Reduce(testContext(t), in[0], in); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "sum", in[0], want)
		if later := job.Epoch() - epoch; later != 6 || job.Outages() != 1 {
			t.Errorf("%d epochs later, after %d outages", later, job.Outages())
		}
	})
}

// watched is a link that shows its frames to out and in, which may drop them. The link ends
// after the frame for which in returns end.
type watched struct {
	transport.Conn
	toCard, fromCard *frame.Scanner
	out              func(*frame.Frame) (pass bool)
	in               func(*frame.Frame) (pass, ends bool)
	read             []byte
	over             bool
}

func (w *watched) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[w.toCard.Feed(rest):]
		for f := (frame.Frame{}); w.toCard.Next(&f); {
			if !w.out(&f) {
				continue
			}
			if _, err := w.Conn.Write(f.Raw); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (w *watched) Read(p []byte) (int, error) {
	for len(w.read) == 0 {
		if w.over {
			return 0, errCut
		}
		if _, err := w.fromCard.Fill(w.Conn); err != nil {
			return 0, err
		}
		for f := (frame.Frame{}); !w.over && w.fromCard.Next(&f); {
			pass, ends := w.in(&f)
			if pass {
				w.read = append(w.read, f.Raw...)
			}
			w.over = ends
		}
	}
	n := copy(p, w.read)
	w.read = w.read[n:]
	return n, nil
}

// TestNotCarriedOn checks what ends a job with CarryOn, and the errors.
func TestNotCarriedOn(t *testing.T) {
	first := func(t *testing.T) (transport.Conn, error) {
		return &dying{serve(t, small, 4000), 6000, errCut}, nil
	}
	in := arrays(1, 4, 100_000)
	for name, c := range map[string]struct {
		again   func(t *testing.T) (transport.Conn, error)
		carryOn time.Duration
		ctx     time.Duration
		most    time.Duration // limit of the time it takes
		words   []string
	}{
		"never": {func(t *testing.T) (transport.Conn, error) { return nil, errors.New("nobody listens there") }, 300 * time.Millisecond, patience, 2 * time.Second,
			[]string{"disconnected (the dog ate the cable)", "did not return within ", "nobody listens there", "start it and begin again, or wait longer"}},
		"another": {func(t *testing.T) (transport.Conn, error) {
			other := small
			other.Window = 2
			return serve(t, other, 4000), nil
		}, patience, patience, 5 * time.Second,
			[]string{"the dog ate the cable", "another card replies", "configuration hash", "reconnect the job's card"}},
		"dies each time": {func(t *testing.T) (transport.Conn, error) {
			return &watched{Conn: serve(t, small, 4000), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
				out: func(*frame.Frame) bool { return true },
				in: func(f *frame.Frame) (pass, ends bool) {
					result := f.Kind == wire.KindResult
					return !result, result
				}}, nil
		}, 500 * time.Millisecond, patience, 3 * time.Second,
			[]string{"did not return within"}},
		"context": {func(t *testing.T) (transport.Conn, error) { return nil, errors.New("nobody listens there") }, patience, 300 * time.Millisecond, 2 * time.Second,
			[]string{"the dog ate the cable", "context deadline exceeded"}},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			card := openName(t, comes(func(n int) (transport.Conn, error) {
				if n == 0 {
					return first(t)
				}
				return c.again(t)
			}))
			job := configure(t, card, driver.JobConfig{CarryOn: c.carryOn})
			ctx, cancel := context.WithTimeout(context.Background(), c.ctx)
			defer cancel()
			start := time.Now()
			err := job.Reduce(ctx, make([]float32, len(in[0])), in)
			if took := time.Since(start); took > c.most {
				t.Errorf("it took %s", took)
			}
			wantError[*driver.LostError](t, err, c.words...)
			wantError[*driver.DiedError](t, err)
			<-card.Done()
			wantError[*driver.DiedError](t, card.Err())
			if _, err := card.ReadRegister(testContext(t), wire.RegLanes); err == nil {
				t.Error("a register of a card that is gone was read")
			}
		}))
	}
}

// TestCardDisconnectsSilently checks that the driver gives up a silent card with an open link
// after the timeout, and then looks for it.
func TestCardDisconnectsSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return &stalling{Conn: serve(t, small, 4000), writes: 50, closed: make(chan struct{})}, nil
			}
			return serve(t, small, 4000), nil
		})
		card := openName(t, name, driver.WithTimeout(300*time.Millisecond))
		job := configure(t, card, driver.JobConfig{CarryOn: patience})
		in := arrays(1, 4, 50_000)
		want := treeSum(in, firstPorts(4), 4)
		if err := job.Reduce(testContext(t), in[0], in); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "sum", in[0], want)
		if n := job.Outages(); n != 1 {
			t.Errorf("%d outages", n)
		}
	})
}

// TestRegisterWaitsForTheCard checks that an access during an outage gets its reply when the
// card is back. Close must not wait for an absent card.
func TestRegisterWaitsForTheCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := serve(t, small, 4000)
		back := make(chan struct{})
		name := comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			select {
			case <-back:
				return serve(t, small, 4000), nil
			default:
				return nil, errors.New("not yet")
			}
		})
		card := openName(t, name)
		gone := make(chan struct{}, 9)
		job := configure(t, card, driver.JobConfig{CarryOn: patience, OnOutage: func(driver.Outage) { gone <- struct{}{} }})
		first.Close()
		<-gone
		time.AfterFunc(100*time.Millisecond, func() { close(back) })
		if v, err := card.ReadRegister(testContext(t), wire.RegLanes); err != nil || v != uint64(small.Lanes) {
			t.Errorf("%d, %v", v, err)
		}
		if job.Outages() != 1 {
			t.Errorf("%d outages", job.Outages())
		}
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		for range 100 { // the card may answer before the driver looks
			if _, err := card.ReadRegister(ctx, wire.RegLanes); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// TestCloseWhileAway checks that Close does not wait while the driver looks for the card.
func TestCloseWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := serve(t, small, 4000)
		name := comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			return nil, errors.New("not yet")
		})
		card := openName(t, name)
		gone := make(chan struct{}, 9)
		job := configure(t, card, driver.JobConfig{CarryOn: patience, OnOutage: func(driver.Outage) { gone <- struct{}{} }})
		waits := make(chan error)
		go func() { waits <- job.Member(0).AllReduce(testContext(t), make([]float32, 100)) }()
		first.Close()
		<-gone
		start := time.Now()
		card.Close()
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if err := <-waits; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// TestCarryOnRefused checks that Configure rejects CarryOn for a stream of the caller, which
// cannot be opened again, and a negative time.
func TestCarryOnRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := openSmall(t).Configure(testContext(t), driver.JobConfig{CarryOn: time.Second})
		wantError[*driver.InputError](t, err, "carry on", "open the card by its name")
		_, err = openName(t, "model:").Configure(testContext(t), driver.JobConfig{CarryOn: -time.Second})
		if e := wantError[*driver.InputError](t, err, "carry on"); !strings.Contains(e.Why, "-1s") {
			t.Error(e)
		}
	})
}

// halfDead is a link whose writes fail once on is set, although they arrive. The card's replies
// come a second later, followed by the end.
type halfDead struct {
	transport.Conn
	on   atomic.Bool
	ends bool
}

func (h *halfDead) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p)
	if h.on.Load() {
		return 0, errCut
	}
	return n, err
}

func (h *halfDead) Read(p []byte) (int, error) {
	if h.ends {
		return 0, errCut
	}
	n, err := h.Conn.Read(p)
	if h.on.Load() {
		time.Sleep(time.Second)
		h.ends = true
	}
	return n, err
}

// TestResultsAfterTheEnd checks that results read after the writer has found the link to be
// over do not shorten the wait for the card. The driver once gave such a job up at once.
func TestResultsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &halfDead{Conn: serve(t, small, 64<<10)}
		card := openName(t, comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return link, nil
			}
			return serve(t, small, 64<<10), nil
		}))
		job := configure(t, card, driver.JobConfig{CarryOn: 10 * time.Second})
		in := arrays(1, 4, 500)
		want := treeSum(in, firstPorts(4), small.Ports)
		link.on.Store(true)
		sum := make([]float32, len(want))
		if err := job.Reduce(testContext(t), sum, in); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "sum", sum, want)
		if n := job.Outages(); n != 1 {
			t.Errorf("%d outages", n)
		}
		closes(t, job)
	})
}
