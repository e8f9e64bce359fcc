package collective_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/wire"
)

// victim is a network whose connections can be killed, as by the death of the process, or frozen: it
// then loses all bytes in both directions. It may take its time for what it reads.
type victim struct {
	listenOn func(ctx context.Context, address string) (net.Listener, error)
	dialOn   func(ctx context.Context, address string) (net.Conn, error)
	frozen   atomic.Bool
	lag      atomic.Int64 // nanoseconds from a read to its return

	dead atomic.Bool

	mu  sync.Mutex
	all []io.Closer
}

type victimConn struct {
	net.Conn
	v *victim
}

type victimListener struct {
	net.Listener
	v *victim
}

func (v *victim) keep(c io.Closer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, c)
	if v.dead.Load() {
		c.Close()
	}
}

func (v *victim) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead.Store(true)
	for _, c := range v.all {
		c.Close()
	}
}

func (v *victim) listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := v.listenOn(ctx, address)
	if err != nil {
		return nil, err
	}
	v.keep(l)
	return &victimListener{l, v}, nil
}

func (v *victim) dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := v.dialOn(ctx, address)
	if err != nil {
		return nil, err
	}
	v.keep(c)
	return &victimConn{c, v}, nil
}

func (l *victimListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.v.keep(c)
	return &victimConn{c, l.v}, nil
}

func (c *victimConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		time.Sleep(time.Duration(c.v.lag.Load()))
		if err != nil || !c.v.frozen.Load() {
			return n, err
		}
	}
}

func (c *victimConn) Write(b []byte) (int, error) {
	switch {
	case c.v.dead.Load():
		return 0, net.ErrClosed
	case c.v.frozen.Load():
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// socketVictim returns a victim at Unix sockets.
func socketVictim() *victim {
	return &victim{
		listenOn: func(_ context.Context, address string) (net.Listener, error) { return net.Listen("unix", address[5:]) },
		dialOn:   func(_ context.Context, address string) (net.Conn, error) { return net.Dial("unix", address[5:]) },
	}
}

// except opens rank with one network, and the others with another one.
func except(rank int, a collective.Algorithm, v *victim, others ...collective.Option) opener {
	return func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		if g.Rank == rank {
			return collective.Open(ctx, a, g, collective.WithNetwork(v.listen, v.dial))
		}
		return collective.Open(ctx, a, g, others...)
	}
}

// allLose checks that the errors of all others name the rank that is lost.
func allLose(t *testing.T, errs []error, dead int) {
	t.Helper()
	for rank, err := range errs {
		if rank == dead {
			continue
		}
		var lost *collective.LostError
		require.ErrorAs(t, err, &lost, "rank %d", rank)
		require.Equal(t, dead, lost.Rank, "rank %d: %v", rank, err)
		require.False(t, lost.Timeout(), "rank %d: %v", rank, err)
	}
}

// oneCall all-reduces some int32.
func oneCall(ctx context.Context, c collective.Collective) error {
	b := make([]byte, 4000)
	return c.AllReduce(ctx, wire.Int32, b, b)
}

// queuedCalls starts calls that queue, with arrays of their own.
func queuedCalls(ctx context.Context, c collective.Collective) error {
	g := c.Group()
	var pending []*collective.Pending
	arrays := make([][]int32, 20)
	for i := range arrays {
		arrays[i] = slices.Repeat([]int32{int32(i)}, i+1)
		p, err := collective.StartAllReduce(ctx, c, wire.Int32, arrays[i], arrays[i])
		if err != nil {
			return err
		}
		pending = append(pending, p)
	}
	for i, p := range pending {
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if !slices.Equal(arrays[i], slices.Repeat([]int32{int32(g.Size() * i)}, i+1)) {
			return fmt.Errorf("call %d: %v", i, arrays[i])
		}
	}
	return nil
}

// callsUntilDeath makes a call of all members. Then one dies, and the others make another call.
func callsUntilDeath(members, dead int, v *victim) func(ctx context.Context, c collective.Collective) error {
	var ready sync.WaitGroup
	ready.Add(members)
	return func(ctx context.Context, c collective.Collective) error {
		err := oneCall(ctx, c)
		ready.Done()
		ready.Wait()
		switch {
		case err != nil:
			return fmt.Errorf("the first call: %w", err)
		case c.Group().Rank == dead:
			v.kill()
			return nil
		}
		return oneCall(ctx, c)
	}
}

// giveUp makes a call in which one of several members gives up, and another one is late: it calls when the
// others have failed.
func giveUp(members, quitter, late int) func(ctx context.Context, c collective.Collective) error {
	var over sync.WaitGroup
	over.Add(members - 1)
	return func(ctx context.Context, c collective.Collective) error {
		array := make([]byte, 4<<20)
		if c.Group().Rank == late {
			over.Wait()
			return c.AllReduce(ctx, wire.Int32, array, array)
		}
		defer over.Done()
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		p, err := c.StartAllReduce(own, wire.Int32, array, array)
		if err != nil {
			return err
		}
		if c.Group().Rank == quitter {
			for s := c.Stats(); s.Sent == 0 && s.Chunks == 0; s = c.Stats() { // until it is under way
				runtime.Gosched()
			}
			cancel()
		}
		<-p.Done()
		return p.Err()
	}
}

// TestDeadMember: when a member dies in a call, all others get a LostError that names it.
func TestDeadMember(t *testing.T) {
	noLeak(t)
	for _, a := range hosts {
		for _, dead := range []int{0, 2} {
			t.Run(fmt.Sprint(a, dead), func(t *testing.T) {
				v := socketVictim()
				var ready sync.WaitGroup
				ready.Add(5)
				errs := together(t, newGroup(t, 5), except(dead, a, v), func(ctx context.Context, c collective.Collective) error {
					err := oneCall(ctx, c)
					ready.Done()
					if err != nil {
						return err
					}
					if c.Group().Rank == dead {
						ready.Wait()
						v.kill()
						return nil
					}
					return oneCall(ctx, c)
				})
				allLose(t, errs, dead)
			})
		}
	}
}

// TestSilentMember: when a member is cut off, or its process stopped, all others get a LostError that
// names it, after the silence time. It once took twice that time.
func TestSilentMember(t *testing.T) {
	for _, a := range hosts {
		t.Run(a.String(), func(t *testing.T) {
			g := newGroup(t, 5)
			synctest.Test(t, func(t *testing.T) {
				net := &pipes{}
				v := &victim{listenOn: net.listen, dialOn: net.dial}
				begin := time.Now()
				var ready sync.WaitGroup
				ready.Add(5)
				errs := together(t, g, except(2, a, v, net.option()), func(ctx context.Context, c collective.Collective) error {
					err := oneCall(ctx, c)
					ready.Done()
					ready.Wait()
					if err != nil {
						return err
					}
					if c.Group().Rank == 2 {
						v.frozen.Store(true)
						<-c.Done() // it loses the others
						return nil
					}
					return oneCall(ctx, c)
				})
				allLose(t, errs, 2)
				require.Less(t, time.Since(begin), 3*collective.DefaultSilence/2)
			})
		})
	}
}

// TestNeverCame: a member that nobody reaches within the connect time is lost, with a timeout, also for
// members that learn it from others.
func TestNeverCame(t *testing.T) {
	g := newGroup(t, 3)
	synctest.Test(t, func(t *testing.T) {
		net := &pipes{}
		var wg sync.WaitGroup
		for rank, patient := range []time.Duration{time.Hour, 3 * time.Second} {
			g := g
			g.Rank = rank
			wg.Go(func() {
				c, err := collective.Open(t.Context(), collective.Ring, g, net.option(), collective.WithConnectTime(patient))
				require.NoError(t, err)
				var lost *collective.LostError
				require.ErrorAs(t, oneCall(t.Context(), c), &lost)
				require.True(t, lost.Timeout())
				require.Equal(t, []int{2, 1}, []int{lost.Rank, lost.By})
				require.Contains(t, lost.Error(), fmt.Sprintf("rank 2 (worker2) is lost: it cannot be reached at %s within 3s: nobody listens", g.Members[2].Address))
				require.NoError(t, c.Close(t.Context()))
			})
		}
		wg.Wait()
	})
}

// TestIdleGroup: a group that makes no calls for an hour goes on.
func TestIdleGroup(t *testing.T) {
	g := newGroup(t, 3)
	synctest.Test(t, func(t *testing.T) {
		net := &pipes{}
		ctx := t.Context()
		var wg sync.WaitGroup
		for rank := range g.Members {
			g.Rank = rank
			c, err := collective.Open(ctx, collective.Ring, g, net.option())
			require.NoError(t, err)
			wg.Go(func() {
				require.NoError(t, oneCall(ctx, c))
				time.Sleep(time.Hour)
				require.NoError(t, oneCall(ctx, c))
				require.NoError(t, c.Close(ctx))
			})
		}
		wg.Wait()
	})
}

// TestLateMember: a member may make its first call much later than the others, and listen later.
func TestLateMember(t *testing.T) {
	g := newGroup(t, 3)
	synctest.Test(t, func(t *testing.T) {
		net := &pipes{}
		var wg sync.WaitGroup
		for rank := range g.Members {
			g := g
			g.Rank = rank
			wg.Go(func() {
				time.Sleep(time.Duration(rank) * 4 * time.Second)
				c, err := collective.Open(t.Context(), collective.Tree, g, net.option())
				require.NoError(t, err)
				time.Sleep(time.Duration(rank) * time.Minute)
				require.NoError(t, oneCall(t.Context(), c))
				require.NoError(t, c.Close(t.Context()))
			})
		}
		wg.Wait()
	})
}

// TestDifferentCalls: members whose calls differ in anything are named on all members.
func TestDifferentCalls(t *testing.T) {
	noLeak(t)
	b := func(n int) []byte { return make([]byte, n) }
	for name, other := range map[string]func(context.Context, collective.Collective) error{
		"length": func(ctx context.Context, c collective.Collective) error {
			return c.AllReduce(ctx, wire.Int32, b(4004), b(4004))
		},
		"format": func(ctx context.Context, c collective.Collective) error {
			return c.AllReduce(ctx, wire.FP32, b(4000), b(4000))
		},
		"operation": func(ctx context.Context, c collective.Collective) error {
			return c.Broadcast(ctx, wire.Int32, b(4000), 0)
		},
		"call": func(ctx context.Context, c collective.Collective) error {
			return c.ReduceScatter(ctx, wire.Int32, b(1000), b(4000))
		},
	} {
		for _, a := range hosts {
			t.Run(fmt.Sprint(name, a), func(t *testing.T) {
				errs := together(t, newGroup(t, 4), by(a), func(ctx context.Context, c collective.Collective) error {
					if c.Group().Rank == 2 {
						return other(ctx, c)
					}
					return oneCall(ctx, c)
				})
				for rank, err := range errs {
					if rank == 2 && err == nil && name == "operation" {
						continue // a broadcast may be over before others notice
					}
					var differ *collective.DifferError
					require.ErrorAs(t, err, &differ, "rank %d", rank)
					require.Contains(t, differ.Ranks, 2, "%v", err)
				}
			})
		}
	}
}

// TestDifferentAlgorithms: members with different algorithms notice.
func TestDifferentAlgorithms(t *testing.T) {
	noLeak(t)
	open := func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		return collective.Open(ctx, hosts[g.Rank%2], g)
	}
	for rank, err := range together(t, newGroup(t, 4), open, oneCall) {
		var differ *collective.DifferError
		require.ErrorAs(t, err, &differ, "rank %d", rank)
	}
}

// TestOldGeneration: a member of another generation is refused, and refuses.
func TestOldGeneration(t *testing.T) {
	noLeak(t)
	open := func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		if g.Rank == 1 {
			g.Generation--
		}
		return collective.Open(ctx, collective.Ring, g)
	}
	var both sync.WaitGroup
	both.Add(2)
	errs := together(t, newGroup(t, 2), open, func(ctx context.Context, c collective.Collective) error {
		err := oneCall(ctx, c)
		both.Done()
		both.Wait() // else one finds that the other has closed
		return err
	})
	for rank, err := range errs {
		var refused *collective.RefusedError
		require.ErrorAs(t, err, &refused, "rank %d", rank)
		require.Equal(t, collective.ReasonGeneration, refused.Reason)
		require.Contains(t, err.Error(), "has generation")
	}
}

// TestStrangers: nobody else gets into a group, and no attempt disturbs it.
func TestStrangers(t *testing.T) {
	noLeak(t)
	g := newGroup(t, 3)
	var once sync.WaitGroup
	once.Add(3)
	stranger := func(change func(*collective.Group)) error {
		g := g
		g.Members = append([]collective.Member{}, g.Members...)
		change(&g)
		conn, err := net.Dial("unix", g.Members[0].Address[5:])
		if err != nil {
			return err
		}
		defer conn.Close()
		return collective.Greet(&g, conn, 0)
	}
	allWell(t, g, by(collective.Ring), func(ctx context.Context, c collective.Collective) error {
		if err := oneCall(ctx, c); err != nil {
			return err
		}
		once.Done()
		once.Wait()
		if c.Group().Rank == 0 {
			for _, s := range []struct {
				reason collective.Reason
				change func(*collective.Group)
			}{
				{collective.ReasonStranger, func(g *collective.Group) { g.Rank, g.Token = 1, "guess" }},
				{collective.ReasonInvalid, func(g *collective.Group) { g.Rank, g.Name = 1, "another" }},
				{collective.ReasonGeneration, func(g *collective.Group) { g.Rank, g.Generation = 1, 8 }},
				{collective.ReasonMember, func(g *collective.Group) { g.Rank, g.Members[1].ID = 1, "mallory" }},
				{collective.ReasonMember, func(g *collective.Group) {
					g.Rank, g.Members = 3, append(g.Members, collective.Member{ID: "one more"})
				}},
				{collective.ReasonMember, func(g *collective.Group) { g.Rank = 0 }},
				{collective.ReasonTwice, func(g *collective.Group) { g.Rank = 2 }},
			} {
				var refused *collective.RefusedError
				if err := stranger(s.change); !errors.As(err, &refused) || refused.Reason != s.reason {
					return fmt.Errorf("%s: %v", s.reason, err)
				}
			}
			conn, err := net.Dial("unix", g.Members[0].Address[5:])
			if err != nil {
				return err
			}
			if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: worker\r\n\r\n")); err != nil {
				return err
			}
			if b, _ := io.ReadAll(conn); len(b) > 0 {
				return fmt.Errorf("a browser got %q", b)
			}
			conn.Close()
		}
		return oneCall(ctx, c)
	})
}

// TestSecondMember: a second process of a rank finds the address in use.
func TestSecondMember(t *testing.T) {
	g := newGroup(t, 2)
	c, err := collective.Open(t.Context(), collective.Ring, g)
	require.NoError(t, err)
	_, err = collective.Open(t.Context(), collective.Ring, g)
	require.ErrorContains(t, err, "another program listens at unix:")
	require.NoError(t, c.Close(t.Context()))
	c, err = collective.Open(t.Context(), collective.Ring, g)
	require.NoError(t, err)
	require.NoError(t, c.Close(t.Context()))
}

// TestLiar: what a proven member sends is checked before it is summed or stored.
func TestLiar(t *testing.T) {
	noLeak(t)
	good := func() *collective.Header {
		return collective.NewHeader(collective.AllReduceOp, wire.Int32, collective.Ring, 7, 1, 1000, 2000, crc32.Checksum(make([]byte, 2000), crc32.MakeTable(crc32.Castagnoli)))
	}
	payload := make([]byte, 2000)
	message := func(edit func(b []byte)) func() []byte {
		return func() []byte {
			h := good().Encode()
			edit(h)
			binary.LittleEndian.PutUint32(h[60:], crc32.Checksum(h[:60], crc32.MakeTable(crc32.Castagnoli)))
			return append(h, payload...)
		}
	}
	le := binary.LittleEndian
	for name, s := range map[string]struct {
		send func() []byte
		text string
	}{
		"nothing wrong but the piece": {message(func(b []byte) { le.PutUint64(b[40:], 1) }), "came instead of"},
		"garbage":                     {func() []byte { return bytes.Repeat([]byte("garbage!"), 100) }, `a message begins with "garb"`},
		"header":                      {func() []byte { h := good().Encode(); h[33] ^= 4; return h }, "CRC of a header"},
		"payload":                     {message(func(b []byte) { b[56] ^= 1 }), "CRC of a payload"},
		"version":                     {message(func(b []byte) { b[4] = 2 }), "version 2"},
		"kind":                        {message(func(b []byte) { b[5] = 9 }), "kind 9"},
		"huge":                        {message(func(b []byte) { le.PutUint32(b[52:], 1<<31) }), "2147483648 bytes of payload"},
		"generation":                  {message(func(b []byte) { le.PutUint64(b[16:], 6) }), "generation 6, not 7"},
		"call 0":                      {message(func(b []byte) { le.PutUint64(b[24:], 0) }), "came after that call"},
		"half an element":             {message(func(b []byte) { le.PutUint32(b[52:], 1999) }), "1999 bytes at element 0 of 1000"},
		"beyond the end":              {message(func(b []byte) { le.PutUint64(b[40:], 501) }), "2000 bytes at element 501 of 1000"},
		"far beyond the end":          {message(func(b []byte) { le.PutUint64(b[40:], 1<<63) }), "at element 9223372036854775808 of 1000"},
		"phase":                       {message(func(b []byte) { b[9] = 1 }), "came instead of"},
		"step":                        {message(func(b []byte) { b[48] = 1 }), "came instead of"},
		"an abort that is none":       {func() []byte { h := &collective.Header{}; *h = *good(); return abortOf(7, []byte{1, 2}) }, "an abort has 2 bytes"},
		"an abort that names nobody":  {func() []byte { return abortOf(7, []byte{1, 9, 0, 0, 0, 0, 0, 0, 0}) }, "names rank 9"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 2)
			c, err := collective.Open(t.Context(), collective.Ring, g)
			require.NoError(t, err)
			conn, err := net.Dial("unix", g.Members[0].Address[5:])
			require.NoError(t, err)
			defer conn.Close()
			liar := g
			liar.Rank = 1
			require.NoError(t, collective.Greet(&liar, conn, 0))
			_, err = conn.Write(s.send())
			require.NoError(t, err)
			array := bytes.Repeat([]byte{1, 0, 0, 0}, 1000)
			err = c.AllReduce(t.Context(), wire.Int32, array, array)
			var lies *collective.ProtocolError
			require.ErrorAs(t, err, &lies)
			require.Equal(t, 1, lies.Rank)
			require.Contains(t, lies.Text, s.text)
			conn.Close()
			require.NoError(t, c.Close(t.Context()))
		})
	}
}

// abortOf returns an abort with a payload.
func abortOf(generation uint64, payload []byte) []byte {
	h := collective.NewHeader(0, 0, 0, generation, 0, 0, uint32(len(payload)), crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli))).Encode()
	h[5] = byte(collective.KindAbort)
	binary.LittleEndian.PutUint32(h[60:], crc32.Checksum(h[:60], crc32.MakeTable(crc32.Castagnoli)))
	return append(h, payload...)
}

// TestGivenUp: a call whose context ends on one member ends it on all, by name; later calls fail with
// the reason.
func TestGivenUp(t *testing.T) {
	noLeak(t)
	for _, a := range hosts {
		var ready, tried sync.WaitGroup
		ready.Add(4)
		tried.Add(3)
		errs := together(t, newGroup(t, 4), by(a), func(ctx context.Context, c collective.Collective) error {
			err := oneCall(ctx, c)
			ready.Done()
			ready.Wait()
			if err != nil {
				return fmt.Errorf("the first call: %w", err)
			}
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			switch c.Group().Rank {
			case 3: // makes no second call
				<-c.Done()
				tried.Wait()
				return c.Err()
			case 1:
				cancel()
			}
			err = oneCall(own, c)
			tried.Done()
			var ended *collective.EndedError
			if later := oneCall(ctx, c); !errors.As(later, &ended) {
				return fmt.Errorf("a later call: %w", later)
			}
			return err
		})
		for rank, err := range errs {
			if rank == 1 {
				var stopped *collective.StoppedError
				require.ErrorAs(t, err, &stopped)
				require.ErrorIs(t, err, context.Canceled)
				require.False(t, stopped.Timeout())
				continue
			}
			var up *collective.GivenUpError
			require.ErrorAs(t, err, &up, "rank %d of %s", rank, a)
			require.Equal(t, 1, up.Rank)
		}
	}
}

// TestLeft: a call that needs a member that has left in order fails by its name.
func TestLeft(t *testing.T) {
	noLeak(t)
	for _, a := range hosts {
		var left sync.WaitGroup
		left.Add(1)
		errs := together(t, newGroup(t, 3), by(a), func(ctx context.Context, c collective.Collective) error {
			err := oneCall(ctx, c)
			if c.Group().Rank == 0 {
				err = errors.Join(err, c.Close(ctx))
				left.Done()
				return err
			}
			left.Wait()
			return errors.Join(err, oneCall(ctx, c))
		})
		require.NoError(t, errs[0])
		for rank, err := range errs[1:] {
			var lost *collective.LostError
			require.ErrorAs(t, err, &lost, "rank %d of %s", rank+1, a)
			require.Equal(t, 0, lost.Rank)
			require.Contains(t, err.Error(), "left the group")
		}
	}
}

// TestLeftFirst: a member leaves in order though another one has sent data of a call that it never makes. Its
// Close ends without the end of its context, and the call fails by its name.
func TestLeftFirst(t *testing.T) {
	for _, a := range hosts {
		g := newGroup(t, 3)
		synctest.Test(t, func(t *testing.T) {
			net := &pipes{}
			var wg sync.WaitGroup
			for rank := range g.Members {
				g := g
				g.Rank = rank
				wg.Go(func() {
					c, err := collective.Open(t.Context(), a, g, net.option())
					require.NoError(t, err)
					require.NoError(t, oneCall(t.Context(), c))
					if rank == 0 {
						time.Sleep(time.Second) // data of the next call has come
					} else {
						var lost *collective.LostError
						require.ErrorAs(t, oneCall(t.Context(), c), &lost, "rank %d of %s", rank, a)
						require.Equal(t, 0, lost.Rank)
						require.Contains(t, lost.Error(), "left the group")
					}
					require.NoError(t, c.Close(context.Background()))
				})
			}
			wg.Wait()
		})
	}
}

// slow pauses after a number of writes of its connections.
type slow struct {
	net.Listener
	writes int
	pause  func()
}

type slowConn struct {
	net.Conn
	*slow
}

func (s *slow) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	return &slowConn{c, s}, err
}

func (c *slowConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.writes--; c.writes == 0 {
		c.pause()
	}
	return n, err
}

// TestFailedAtTheWelcome: a member that has just been welcomed learns why the group ends, though the other
// one closes before it has noticed that the welcome was sent.
func TestFailedAtTheWelcome(t *testing.T) {
	g := newGroup(t, 2)
	synctest.Test(t, func(t *testing.T) {
		net := &pipes{}
		ctx, cancel := context.WithCancel(t.Context())
		host := &slow{writes: 2, pause: func() { // after the challenge and the welcome
			cancel()
			time.Sleep(100 * time.Millisecond)
		}}
		failing, err := collective.Open(t.Context(), collective.PS, g, collective.WithNetwork(host.on(net), nowhere))
		require.NoError(t, err)
		g.Rank = 1
		c, err := collective.Open(t.Context(), collective.PS, g, net.option())
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			require.ErrorIs(t, oneCall(ctx, failing), context.Canceled)
			require.NoError(t, failing.Close(t.Context()))
		})
		var up *collective.GivenUpError
		require.ErrorAs(t, oneCall(t.Context(), c), &up)
		require.NoError(t, c.Close(t.Context()))
		wg.Wait()
	})
}

// on listens in a network.
func (s *slow) on(p *pipes) func(ctx context.Context, address string) (net.Listener, error) {
	return func(ctx context.Context, address string) (l net.Listener, err error) {
		s.Listener, err = p.listen(ctx, address)
		return s, err
	}
}

// altered is a network whose dialed or accepted connections are replaced.
func altered(p *pipes, dialed, accepted func(net.Conn) net.Conn) collective.Option {
	return collective.WithNetwork(func(ctx context.Context, address string) (net.Listener, error) {
		l, err := p.listen(ctx, address)
		return &alteredListener{l, accepted}, err
	}, func(ctx context.Context, address string) (net.Conn, error) {
		c, err := p.dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return dialed(c), nil
	})
}

type alteredListener struct {
	net.Listener
	accepted func(net.Conn) net.Conn
}

func (l *alteredListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.accepted(c), nil
}

// lateFarewell takes its time before the deadline of its farewell, its second one, as a writer on a busy machine.
type lateFarewell struct {
	net.Conn
	deadlines atomic.Int32
}

func (c *lateFarewell) SetWriteDeadline(at time.Time) error {
	if c.deadlines.Add(1) == 2 {
		after := time.Until(at)
		time.Sleep(3 * time.Second)
		at = time.Now().Add(after)
	}
	return c.Conn.SetWriteDeadline(at)
}

// lagging takes its time for what it reads, as a reader on a busy machine.
type lagging struct {
	net.Conn
	buffered *bufio.Reader // has what the other end has written, as a socket
	lag      *atomic.Int64 // nanoseconds from a read to its return
}

func (c *lagging) Read(b []byte) (int, error) {
	n, err := c.buffered.Read(b)
	time.Sleep(time.Duration(c.lag.Load()))
	return n, err
}

// breaking ends instead of an abort.
type breaking struct{ net.Conn }

func (c *breaking) Write(b []byte) (int, error) {
	if len(b) > collective.HeaderBytes && b[5] == byte(collective.KindAbort) {
		c.Conn.Close()
	}
	return c.Conn.Write(b)
}

// TestReasonIsLate: a member gives up, and writes that late; or its connection for data breaks, and the other
// member reads late why. The other one once named it as lost.
func TestReasonIsLate(t *testing.T) {
	var lag atomic.Int64
	same := func(c net.Conn) net.Conn { return c }
	late := func(c net.Conn) net.Conn { return &lateFarewell{Conn: c} }
	breaks := func(c net.Conn) net.Conn { return &breaking{c} }
	lags := func(c net.Conn) net.Conn { return &lagging{c, bufio.NewReader(c), &lag} }
	for name, opts := range map[string]func(p *pipes) [2]collective.Option{
		"written": func(p *pipes) [2]collective.Option { return [2]collective.Option{altered(p, late, late), p.option()} },
		"read": func(p *pipes) [2]collective.Option {
			return [2]collective.Option{altered(p, breaks, same), altered(p, lags, same)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			lag.Store(0)
			g := newGroup(t, 2)
			synctest.Test(t, func(t *testing.T) {
				opts := opts(&pipes{})
				errs := together(t, g, func(ctx context.Context, g collective.Group) (collective.Collective, error) {
					return collective.Open(ctx, collective.Ring, g, opts[g.Rank])
				}, func(ctx context.Context, c collective.Collective) error {
					if err := oneCall(ctx, c); err != nil || c.Group().Rank == 1 {
						<-c.Done()
						return cmp.Or(err, c.Err())
					}
					lag.Store(int64(3 * time.Second))
					over, cancel := context.WithCancel(ctx)
					cancel()
					return oneCall(over, c)
				})
				require.ErrorIs(t, errs[0], context.Canceled)
				var up *collective.GivenUpError
				require.ErrorAs(t, errs[1], &up)
				require.Equal(t, 0, up.Rank)
			})
		})
	}
}

// nowhere reaches nobody.
func nowhere(context.Context, string) (net.Conn, error) { return nil, errors.New("no route") }

// TestMoreThanTheCall: a member that has sent more than its part of a call does not keep another one from
// leaving.
func TestMoreThanTheCall(t *testing.T) {
	noLeak(t)
	g := newGroup(t, 2)
	c, err := collective.Open(t.Context(), collective.PS, g)
	require.NoError(t, err)
	conn, err := net.Dial("unix", g.Members[0].Address[5:])
	require.NoError(t, err)
	defer conn.Close()
	g.Rank = 1
	require.NoError(t, collective.Greet(&g, conn, 0))
	array := bytes.Repeat([]byte{1, 2, 3, 4}, 500)
	table := crc32.MakeTable(crc32.Castagnoli)
	h := collective.NewHeader(collective.BroadcastOp, wire.Int32, collective.PS, 7, 1, 500, 2000, crc32.Checksum(array, table)).Encode()
	h[9], h[12] = 1, 1 // phase, root
	binary.LittleEndian.PutUint32(h[60:], crc32.Checksum(h[:60], table))
	for range 2 {
		_, err = conn.Write(append(h, array...))
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := make([]byte, 2000)
	require.NoError(t, c.Broadcast(ctx, wire.Int32, got, 1))
	require.Equal(t, array, got)
	conn.Close()
	require.NoError(t, c.Close(ctx))
}

// cutting ends in the middle of data.
type cutting struct{ net.Conn }

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) > collective.HeaderBytes && b[5] == byte(collective.KindData) {
		n, _ := c.Conn.Write(b[:collective.HeaderBytes+1])
		c.Conn.Close()
		return n, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// TestUnsent: a call fails if data of it could not be sent, also if the member waits for nothing else. A broadcast to
// a member that never came once succeeded.
func TestUnsent(t *testing.T) {
	noLeak(t)
	root := func(ctx context.Context, c collective.Collective) error {
		return c.Broadcast(ctx, wire.Int32, make([]byte, 4), 0)
	}
	for _, a := range hosts {
		g := newGroup(t, 2)
		for range 50 { // it did so nearly always
			c, err := collective.Open(t.Context(), a, g, collective.WithConnectTime(0))
			require.NoError(t, err)
			err = root(t.Context(), c)
			require.NoError(t, c.Close(t.Context()))
			var lost *collective.LostError
			require.ErrorAs(t, err, &lost)
			require.True(t, lost.Timeout())
		}
		synctest.Test(t, func(t *testing.T) {
			p := &pipes{}
			cut := altered(p, func(c net.Conn) net.Conn { return &cutting{c} }, func(c net.Conn) net.Conn { return c })
			for _, err := range together(t, g, by(a, cut), root) {
				require.ErrorAs(t, err, new(*collective.LostError))
			}
		})
	}
}
