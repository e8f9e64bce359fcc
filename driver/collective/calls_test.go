package collective_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// TestQueue: calls run in the order of their starts, while their arrays are in use.
func TestQueue(t *testing.T) {
	noLeak(t)
	for _, a := range hosts {
		allWell(t, newGroup(t, 3), by(a), func(ctx context.Context, c collective.Collective) error {
			var pending []*collective.Pending
			arrays := make([][]int32, 20)
			for i := range arrays {
				arrays[i] = []int32{int32(i), 1}
				p, err := collective.StartAllReduce(ctx, c, wire.Int32, arrays[i], arrays[i])
				if err != nil {
					return err
				}
				pending = append(pending, p)
			}
			<-pending[19].Done()
			for i, p := range pending {
				if p.Err() != nil || p.Wait(ctx) != nil || arrays[i][0] != int32(3*i) || arrays[i][1] != 3 {
					return fmt.Errorf("call %d: %v, %v", i, p.Err(), arrays[i])
				}
			}
			return nil
		})
	}
}

// TestWaitEnds: the end of Wait's context leaves the call alone.
func TestWaitEnds(t *testing.T) {
	var waited sync.WaitGroup
	waited.Add(1)
	allWell(t, newGroup(t, 2), by(collective.Ring), func(ctx context.Context, c collective.Collective) error {
		array := []float32{1}
		if c.Group().Rank == 1 {
			waited.Wait()
			return collective.AllReduce(ctx, c, wire.FP32, array, array)
		}
		p, err := collective.StartAllReduce(ctx, c, wire.FP32, array, array)
		if err != nil {
			return err
		}
		over, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
		defer cancel()
		var stopped *collective.StoppedError
		if err := p.Wait(over); !asStopped(err, &stopped) || !stopped.Timeout() || p.Err() != nil {
			return fmt.Errorf("wait: %w", err)
		}
		waited.Done()
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if array[0] != 2 {
			return fmt.Errorf("the sum is %v", array[0])
		}
		return nil
	})
}

func asStopped(err error, to **collective.StoppedError) (ok bool) {
	*to, ok = err.(*collective.StoppedError)
	return ok
}

// TestGoTypes: each Go type holds its formats and no others.
func TestGoTypes(t *testing.T) {
	allWell(t, newGroup(t, 2), by(collective.Tree), func(ctx context.Context, c collective.Collective) error {
		half := []uint16{0x3f80} // 1 in bf16
		if err := collective.AllReduce(ctx, c, wire.BF16, half, half); err != nil || half[0] != 0x4000 {
			return fmt.Errorf("bf16: %w, %x", err, half)
		}
		piece, whole := make([]float32, 1), []float32{1, 2}
		if err := collective.ReduceScatter(ctx, c, wire.FP32, piece, whole); err != nil || piece[0] != 2*whole[c.Group().Rank] {
			return fmt.Errorf("fp32: %w, %v", err, piece)
		}
		if err := collective.AllGather(ctx, c, wire.FP32, whole, piece); err != nil || whole[0] != 2 || whole[1] != 4 {
			return fmt.Errorf("fp32: %w, %v", err, whole)
		}
		tiny := []uint8{byte(c.Group().Rank)}
		if err := collective.Broadcast(ctx, c, wire.FP8E4M3, tiny, 1); err != nil || tiny[0] != 1 {
			return fmt.Errorf("fp8: %w, %v", err, tiny)
		}
		var input *collective.InputError
		for _, err := range []error{
			collective.AllReduce(ctx, c, wire.Int32, whole, whole),
			collective.AllReduce(ctx, c, wire.FP32, []int32{1}, []int32{1}),
			collective.AllReduce(ctx, c, wire.FP8E5M2, half, half),
		} {
			if !asInput(err, &input) {
				return fmt.Errorf("a wrong type: %w", err)
			}
		}
		return nil
	})
}

func asInput(err error, to **collective.InputError) (ok bool) {
	*to, ok = err.(*collective.InputError)
	return ok
}

// TestInput: invalid arguments are refused by name, and the group goes on.
func TestInput(t *testing.T) {
	b := make([]byte, 64)
	allWell(t, newGroup(t, 2), by(collective.Ring), func(ctx context.Context, c collective.Collective) error {
		for want, err := range map[string]error{
			"it is empty":                      c.AllReduce(ctx, wire.FP32, nil, nil),
			"not whole elements of fp32":       c.AllReduce(ctx, wire.FP32, b[:7], b[:7]),
			"it has 8 bytes, src has 4":        c.AllReduce(ctx, wire.FP32, b[8:16], b[:4]),
			"it overlaps src; they must":       c.AllReduce(ctx, wire.FP32, b[4:12], b[:8]),
			"format 9 is unknown":              c.AllReduce(ctx, 9, b, b),
			"it has 4 bytes; the piece of ran": c.ReduceScatter(ctx, wire.FP32, b[60:], b[:32]),
			"dst: it overlaps src":             c.ReduceScatter(ctx, wire.FP32, b[4:20], b[:32]),
			"it has 12 bytes; the piece":       c.AllGather(ctx, wire.FP32, b[:32], b[52:]),
			"it must be this member's piece":   c.AllGather(ctx, wire.FP32, b[:32], b[4:20]),
			"the group has no rank 2":          c.Broadcast(ctx, wire.FP32, b, 2),
			"the group has no rank -1":         c.Broadcast(ctx, wire.FP32, b, -1),
		} {
			var input *collective.InputError
			if !asInput(err, &input) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%s: %w", want, err)
			}
		}
		return oneCall(ctx, c)
	})
	for want, option := range map[string]collective.Option{
		"silence time: it is 0s; it must be more than zero": collective.WithSilence(0),
		"connect time: it is -1ns; it must not be negative": collective.WithConnectTime(-1),
	} {
		_, err := collective.Open(t.Context(), collective.Ring, newGroup(t, 2), option)
		require.EqualError(t, err, want)
	}
	_, err := collective.Open(t.Context(), collective.Card, newGroup(t, 1))
	require.ErrorContains(t, err, "card is not one of ring, tree and ps")
}

// TestClosed: calls after Close, and a second Close.
func TestClosed(t *testing.T) {
	c, err := collective.Open(t.Context(), collective.Ring, newGroup(t, 1))
	require.NoError(t, err)
	require.NoError(t, oneCall(t.Context(), c))
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, c.Close(t.Context()))
	require.ErrorIs(t, oneCall(t.Context(), c), collective.ErrClosed)
	<-c.Done()
}

// TestClosedTwice: a second Close waits for the first, which waits for a call. It once returned at once.
func TestClosedTwice(t *testing.T) {
	g := newGroup(t, 2)
	synctest.Test(t, func(t *testing.T) {
		allWell(t, g, by(collective.Ring, new(pipes).option()), func(ctx context.Context, c collective.Collective) error {
			if c.Group().Rank == 1 {
				time.Sleep(time.Second)
				return oneCall(ctx, c)
			}
			p, err := collective.StartAllReduce(ctx, c, wire.Int32, make([]int32, 1000), make([]int32, 1000))
			if err != nil {
				return err
			}
			errs := make(chan error, 2)
			for range 2 {
				go func() {
					err := c.Close(ctx)
					select {
					case <-p.Done():
					default:
						err = errors.New("the call is under way after Close")
					}
					errs <- err
				}()
			}
			over, cancel := context.WithCancel(ctx)
			cancel()
			synctest.Wait()
			var stopped *collective.StoppedError
			if err := c.Close(over); !asStopped(err, &stopped) {
				return fmt.Errorf("a third Close: %w", err)
			}
			return errors.Join(<-errs, <-errs)
		})
	})
}

// TestListIsReused: a program may change its list of members while the group goes on. The group once changed with it.
func TestListIsReused(t *testing.T) {
	g := newGroup(t, 2)
	allWell(t, g, func(ctx context.Context, own collective.Group) (collective.Collective, error) {
		c, err := collective.Open(ctx, collective.Ring, own)
		if own.Rank == 1 {
			clear(g.Members)
		}
		return c, err
	}, oneCall)
}

// TestGroups: invalid lists of members are refused by name.
func TestGroups(t *testing.T) {
	good := newGroup(t, 3)
	require.NoError(t, good.Check())
	for want, change := range map[string]func(g *collective.Group){
		"it has 0 members":                        func(g *collective.Group) { g.Members = nil },
		"it has no rank 3":                        func(g *collective.Group) { g.Rank = 3 },
		"it has no rank -1":                       func(g *collective.Group) { g.Rank = -1 },
		"its name has 300 bytes":                  func(g *collective.Group) { g.Name = strings.Repeat("x", 300) },
		"the ID of rank 1 has 0 bytes":            func(g *collective.Group) { g.Members[1].ID = "" },
		"ranks 0 and 2 have the same ID worker0":  func(g *collective.Group) { g.Members[2].ID = "worker0" },
		`the address of rank 1 is "udp:host:1"`:   func(g *collective.Group) { g.Members[1].Address = "udp:host:1" },
		"ranks 1 and 2 have the same address tcp": func(g *collective.Group) { g.Members[1].Address, g.Members[2].Address = "tcp:h:1", "tcp:h:1" },
	} {
		g := good
		g.Members = append([]collective.Member{}, g.Members...)
		change(&g)
		var input *collective.InputError
		err := g.Check()
		require.True(t, asInput(err, &input), want)
		require.Contains(t, err.Error(), want)
	}
}

// card opens a card in software with a job for a group, and returns an opener of its members.
func card(t testing.TB, name string, size int, f wire.Format, warn func(string)) opener {
	c, err := driver.Open(t.Context(), name, driver.WithWorkers(size), driver.WithFormat(f))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	job, err := c.Configure(t.Context(), driver.JobConfig{Workers: size})
	require.NoError(t, err)
	return func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		return collective.OpenCard(ctx, job.Member(g.Rank), g, collective.WithWarnings(warn))
	}
}

// TestCard: the card's sum, here tree, which adds neighbors of ports, and for int32 the plain sum.
func TestCard(t *testing.T) {
	noLeak(t)
	for _, f := range []wire.Format{wire.Int32, wire.FP32, wire.FP8E5M2} {
		for _, size := range []int{2, 4} { // trees of whole levels are the binomial tree
			x := randomArrays(4, f, size, 1001)
			all, _ := written(collective.Tree, f, x)
			open := card(t, "cpu:", size, f, func(text string) { t.Error(text) })
			allWell(t, newGroup(t, size), open, func(ctx context.Context, c collective.Collective) error {
				return everything(ctx, c, f, x, all, all)
			})
		}
	}
}

// TestUnfitCard: a card that is not fit is not used; a ring sums, with one warning a member.
func TestUnfitCard(t *testing.T) {
	noLeak(t)
	for name, want := range map[string]string{
		"cpu:":                               "sums int32, not fp32",
		"cpu:format=fp32,sum=max":            "computes max, which is no sum",
		"cpu:format=bf16,result=fp32":        "sums bf16, not fp32",
		"cpu:format=int32,saturate=true":     "sums int32, not fp32",
		"cpu:workers=3,format=fp8e4m3":       "sums fp8e4m3, not fp32",
		"cpu:sum=exact,format=fp32,lanes=16": "",
	} {
		f := wire.Int32
		if name != "cpu:" {
			f = 0
		}
		var mu sync.Mutex
		var warned []string
		open := card(t, name, 3, max(f, wire.FP32), func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warned = append(warned, text)
		})
		x := randomArrays(4, wire.FP32, 3, 100)
		all, scattered := written(collective.Ring, wire.FP32, x)
		allWell(t, newGroup(t, 3), open, func(ctx context.Context, c collective.Collective) error {
			if want == "" {
				return oneCallOf(ctx, c, wire.FP32)
			}
			return everything(ctx, c, wire.FP32, x, all, scattered)
		})
		if want == "" {
			require.Empty(t, warned)
			continue
		}
		require.Len(t, warned, 3)
		for _, w := range warned {
			require.Contains(t, w, want)
		}
	}
}

func oneCallOf(ctx context.Context, c collective.Collective, f wire.Format) error {
	b := make([]byte, 100*element.Size(f))
	return c.AllReduce(ctx, f, b, b)
}

// TestWithDialer: a member connects to others by the program's dialer alone.
func TestWithDialer(t *testing.T) {
	g := newGroup(t, 2)
	var mu sync.Mutex
	var dialed []string
	open := by(collective.Ring, collective.WithDialer(func(ctx context.Context, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialed = append(dialed, address)
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(address, "unix:"))
	}))
	allWell(t, g, open, oneCall)
	slices.Sort(dialed)
	require.Equal(t, []string{g.Members[0].Address, g.Members[1].Address}, dialed)
}

// TestFits lists why a card is not fit.
func TestFits(t *testing.T) {
	good := driver.Info{Format: wire.Int32, Result: wire.Int32, Sum: wire.SumTree, Ports: 4}
	require.Empty(t, collective.Fits(good, wire.Int32, 4))
	require.Contains(t, collective.Fits(good, wire.Int32, 5), "4 ports for 5 members")
	require.Contains(t, collective.Fits(good, wire.FP32, 4), "sums int32, not fp32")
	saturates := good
	saturates.Saturate = true
	require.Contains(t, collective.Fits(saturates, wire.Int32, 4), "saturate")
	wide := driver.Info{Format: wire.BF16, Result: wire.FP32, Sum: wire.SumTree, Ports: 4}
	require.Contains(t, collective.Fits(wide, wire.BF16, 4), "into fp32")
	greatest := driver.Info{Format: wire.FP32, Result: wire.FP32, Sum: wire.SumMax, Ports: 4}
	require.Contains(t, collective.Fits(greatest, wire.FP32, 4), "max, which is no sum")
}

// TestCardDiffers: members of a card that differ are named, and no call hangs.
func TestCardDiffers(t *testing.T) {
	noLeak(t)
	open := card(t, "cpu:", 3, wire.Int32, func(string) {})
	errs := together(t, newGroup(t, 3), open, func(ctx context.Context, c collective.Collective) error {
		b := make([]byte, 400+4*(c.Group().Rank/2))
		return c.AllReduce(ctx, wire.Int32, b, b)
	})
	for rank, err := range errs {
		var differ *collective.DifferError
		require.ErrorAs(t, err, &differ, "rank %d", rank)
		require.Contains(t, differ.Ranks, 2)
	}
}

// TestCardOfOthers: a member of a job with another size or rank is refused.
func TestCardOfOthers(t *testing.T) {
	open := card(t, "cpu:", 3, wire.Int32, func(string) {})
	g := newGroup(t, 2)
	_, err := open(t.Context(), g)
	require.ErrorContains(t, err, "its member is rank 0 of 3; that of the group is 0 of 2")
}

// FuzzHeader: no bytes make a header that its own encoding does not repeat.
func FuzzHeader(f *testing.F) {
	f.Add(collective.NewHeader(collective.AllReduceOp, wire.FP32, collective.Ring, 1, 2, 3, 4, 5).Encode())
	f.Add(make([]byte, collective.HeaderBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != collective.HeaderBytes {
			return
		}
		var h collective.Header
		if h.Decode(b) == "" {
			again := h.Encode()
			binary.LittleEndian.PutUint16(again[10:], binary.LittleEndian.Uint16(b[10:]))
			require.Equal(t, b[:60], again[:60])
		}
	})
}
