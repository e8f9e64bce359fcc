package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// wantError checks that err has type E and contains every word.
func wantError[E error](t *testing.T, err error, words ...string) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v, want a %T", err, err, e)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	return e
}

func openFails(t *testing.T, conn transport.Conn) error {
	t.Helper()
	start := time.Now()
	card, err := driver.OpenConn(testContext(t), "test", conn, driver.WithTimeout(300*time.Millisecond))
	if err == nil {
		card.Close()
		t.Fatal("it opened")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s to fail", took)
	}
	return err
}

func TestOpenWrongCard(t *testing.T) {
	t.Run("magic", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegMagic]++
		wantError[*driver.NoCardError](t, openFails(t, p.serve(t)), "test", "MAGIC", "5952545542495255")
	}))
	t.Run("version register", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegVersion] = 9
		e := wantError[*driver.VersionError](t, openFails(t, p.serve(t)), "version 9")
		if e.Got != 9 || e.Want != wire.Version {
			t.Errorf("%+v", e)
		}
	}))
	t.Run("packets of another version", bubble(func(t *testing.T) {
		p := newPeer()
		p.version = 3
		if e := wantError[*driver.VersionError](t, openFails(t, p.serve(t))); e.Got != 3 {
			t.Errorf("%+v", e)
		}
	}))
	t.Run("hash", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegConfigHash] ^= 1
		e := wantError[*driver.HashError](t, openFails(t, p.serve(t)), "identification block")
		if e.Got != e.Want^1 {
			t.Errorf("%+v", e)
		}
	}))
	for format, words := range map[uint64][]string{
		0x7f7f:              {"format 127", "is newer than this driver"},
		0x0001:              {"into format 0", "is newer than this driver"},
		0x0203:              {"is invalid", "fp16"}, // bf16 cards cannot have fp16 results
		0x0600 | 1:          {"is invalid", "fp32 into int32"},
		uint64(3)<<8 | 0x01: {"is invalid", "fp32 into fp16"},
	} {
		t.Run(fmt.Sprintf("format %#x", format), bubble(func(t *testing.T) {
			p := newPeer()
			p.registers[wire.RegFormat] = format
			p.hash()
			wantError[*driver.NoCardError](t, openFails(t, p.serve(t)), words...)
		}))
	}
	t.Run("fp32 that saturates", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegSum] = 0x101
		p.hash()
		wantError[*driver.NoCardError](t, openFails(t, p.serve(t)), "is invalid", "SUM is 257", "only int32 saturates")
	}))
	t.Run("a maximum that saturates", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegFormat] = uint64(wire.Int32)<<8 | uint64(wire.Int32)
		p.registers[wire.RegSum] = 0x100 | uint64(wire.SumMax)
		p.hash()
		wantError[*driver.NoCardError](t, openFails(t, p.serve(t)), "is invalid", "SUM is 260", "only a sum that adds saturates")
	}))
	t.Run("nonsense", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegLanes] = 0
		p.hash()
		wantError[*driver.NoCardError](t, openFails(t, p.serve(t)), "is invalid")
	}))
	for _, c := range []struct {
		addr  uint32
		value uint64
		words []string
	}{
		{wire.RegWindow, 1 << 24, []string{"is invalid", "WINDOW is 16777216", "a power of two from 1 to 1024"}},
		{wire.RegWindow, 1 << 40, []string{"is invalid", "WINDOW is 1099511627776", "a power of two from 1 to 1024"}},
		{wire.RegChunk, 1024, []string{"is invalid", "CHUNK is 1024", "4118 bytes", "4095"}},
		{wire.RegSum, 200, []string{"newer than this driver", "SUM is 200"}},
		{wire.RegShell, 9, []string{"newer than this driver", "SHELL is 9"}},
		{wire.RegLatency, 1 << 30, []string{"is invalid", "LATENCY is 1073741824", "from 0 to 65535"}},
	} {
		t.Run(fmt.Sprintf("register %#x holds %d", c.addr, c.value), bubble(func(t *testing.T) {
			p := newPeer()
			p.registers[c.addr] = c.value
			p.hash()
			wantError[*driver.NoCardError](t, openFails(t, p.serve(t)), c.words...)
		}))
	}
	t.Run("no shell and a chunk that no frame holds", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegShell], p.registers[wire.RegLink], p.registers[wire.RegChunk] = 0, 0, 1024
		p.hash()
		wantError[*driver.NoCardError](t, openFails(t, p.serve(t)), "CHUNK is 1024")
	}))
	t.Run("owner", bubble(func(t *testing.T) {
		p := newPeer()
		p.registers[wire.RegOwner] = 12345
		wantError[*driver.BusyError](t, openFails(t, p.serve(t)), "another host owns it")
	}))
}

func TestOpenNoCard(t *testing.T) {
	t.Run("garbage", bubble(func(t *testing.T) {
		host, end := pipe.New(1 << 10)
		var others sync.WaitGroup
		defer others.Wait()
		defer end.Close()
		others.Go(func() { _, _ = io.Copy(io.Discard, end) })
		others.Go(func() {
			for {
				time.Sleep(time.Millisecond)
				if _, err := end.Write(bytes.Repeat([]byte("HTTP/1.1 400 Bad Request\r\n\xa5TRB"), 3)); err != nil {
					return
				}
			}
		})
		wantError[*driver.NoCardError](t, openFails(t, host), "not a Tributary card", "no frame")
	}))
	t.Run("silence", bubble(func(t *testing.T) {
		host, end := pipe.New(1 << 10)
		defer end.Close()
		err := wantError[*driver.NoCardError](t, openFails(t, host), "no card replies")
		if n := strings.Count(err.Error(), "set a longer timeout"); n != 1 {
			t.Errorf("%q says %d times what to do", err, n)
		}
	}))
	t.Run("a link that takes nothing", bubble(func(t *testing.T) {
		host, end := pipe.New(1)
		defer end.Close()
		wantError[*driver.NoCardError](t, openFails(t, host), "no card replies")
	}))
	t.Run("closed after some bytes", bubble(func(t *testing.T) {
		host, end := pipe.New(1 << 10)
		end.Write([]byte("bye"))
		end.Close()
		wantError[*driver.NoCardError](t, openFails(t, host), "disconnected")
	}))
	t.Run("closed without a byte", bubble(func(t *testing.T) {
		host, end := pipe.New(1 << 10)
		end.Close()
		wantError[*driver.BusyError](t, openFails(t, host), "without a byte", "not a card")
	}))
	for name, words := range map[string][]string{
		"model":          {"SCHEME", "model:"},
		"nope:1":         {"nope:1", "names begin with ", "model:, ", "sim:, tcp:, udp:, unix:"},
		"tcp:here":       {"HOST:PORT"},
		"tcp:[::1]:1":    {"listens there"},
		"unix:":          {"path"},
		"unix:/nowhere":  {"/nowhere", "listens there"},
		"sim:/nowhere":   {"/nowhere", "hwgen -o"},
		"model:/nowhere": {"/nowhere", "hwgen -o"},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			_, err := driver.Open(testContext(t), name)
			if name == "model" {
				words = []string{`"model"`, "model:"}
			}
			wantError[*driver.NoCardError](t, err, words...)
		}))
	}
	t.Run("canceled", bubble(func(t *testing.T) {
		host, end := pipe.New(1 << 10)
		defer end.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		defer cancel()
		if _, err := driver.OpenConn(ctx, "test", host); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}))
}

// TestSecondHost uses real sockets, where a connection closed with unread bytes is reset.
func TestSecondHost(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			card, err := model.NewCard(small)
			if err != nil {
				t.Fatal(err)
			}
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "card")
			}
			listener, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go card.Serve(conn)
				}
			}()
			name := network + ":" + listener.Addr().String()
			first, err := driver.Open(testContext(t), name)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				_, err = driver.Open(testContext(t), name)
				wantError[*driver.BusyError](t, err, name, "another host uses it")
			}
			for range 2 {
				if err := first.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for { // the card notices the close a little later
				third, err := driver.Open(testContext(t), name)
				if err == nil {
					third.Close()
					break
				}
				wantError[*driver.BusyError](t, err)
			}
		})
	}
}

// reuse checks that the card sums correctly after a failure.
func reuse(t *testing.T, card *driver.Card) {
	t.Helper()
	job := configure(t, card, driver.JobConfig{})
	in := arrays(3, 4, 200)
	dst := make([]float32, 200)
	if err := job.Reduce(testContext(t), dst, in); err != nil {
		t.Fatalf("the card is not usable afterwards: %v", err)
	}
	sameBits(t, "sum afterwards", dst, treeSum(in, firstPorts(4), 4))
	if err := job.Close(testContext(t)); err != nil {
		t.Fatalf("the card is not usable afterwards: %v", err)
	}
}

func TestMissingRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t, driver.WithTimeout(400*time.Millisecond))
		job := configure(t, card, driver.JobConfig{})
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for r := range 4 {
			if r == 2 {
				continue
			}
			wg.Go(func() { errs[r] = job.Member(r).AllReduce(testContext(t), make([]float32, 500)) })
		}
		wg.Wait()
		for r, err := range errs {
			if r == 2 {
				continue
			}
			e := wantError[*driver.MissingError](t, err, "rank 2", "chunk 0")
			if !slices.Equal(e.Ranks, []int{2}) || e.VID != 0 || e.Waited < 300*time.Millisecond {
				t.Errorf("rank %d: %+v", r, e)
			}
		}
		wantError[*driver.EndedError](t, job.Member(2).AllReduce(testContext(t), make([]float32, 500)), "configure a new job")
		reuse(t, card)
	})
}

// TestShorterArray checks that the others learn which member they wait for when its array is
// shorter.
func TestShorterArray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t, driver.WithTimeout(300*time.Millisecond))
		job := configure(t, card, driver.JobConfig{Workers: 2})
		errs := allReduce(testContext(t), job, [][]float32{make([]float32, 100), make([]float32, 50)})
		if errs[1] != nil {
			t.Errorf("the shorter one: %v", errs[1])
		}
		if e := wantError[*driver.MissingError](t, errs[0], "same length"); !slices.Equal(e.Ranks, []int{1}) || e.VID != 4 {
			t.Errorf("%+v", e)
		}
	})
}

// TestOtherLengthInOneChunk checks that a member whose array ends elsewhere in the last chunk
// gets an error. It can then call again with the right array.
func TestOtherLengthInOneChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{Workers: 2})
		in := arrays(1, 2, 100)
		want := treeSum(in, firstPorts(2), 4)
		waits := make(chan error)
		go func() { waits <- job.Member(0).AllReduce(testContext(t), in[0]) }()
		synctest.Wait()
		wantError[*driver.InputError](t, job.Member(1).AllReduce(testContext(t), in[1][:99]), "rank 1", "99 elements", "rank 0 100")
		if err := errors.Join(job.Member(1).AllReduce(testContext(t), in[1]), <-waits); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "sum", in[1], want)
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := faults.New(serve(t, small, 1000), faults.Rates{Pause: time.Millisecond}, new(faults.Counts))
		link.On.Store(true)
		card := open(t, link)
		for range 5 {
			job := configure(t, card, driver.JobConfig{})
			ctx, cancel := context.WithCancel(testContext(t))
			in := arrays(1, 4, 100_000)
			err := job.Reduce(ctx, in[0], in, driver.WithProgress(func(done, total int) {
				if done > 0 {
					cancel()
				}
			}))
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			clear(in[0]) // the race detector checks that nobody uses the arrays
			err = job.Reduce(testContext(t), in[0], in)
			wantError[*driver.GivenUpError](t, err, "the call of all ranks was canceled", "stopped after", "context canceled")
			if wantError[*driver.EndedError](t, err); errors.Is(err, context.Canceled) {
				t.Errorf("%v is the error of a context that has not ended", err)
			}
			if v, err := card.ReadRegister(testContext(t), wire.RegJobState); err != nil || v&1 != 0 {
				t.Errorf("the card's job is still set up: %#x, %v", v, err)
			}
		}
		link.On.Store(false)
		reuse(t, card)
	})
}

// TestAbortReleasesTheBuffer aborts a job while the writer reads a call's buffer. The call must
// return only after the writer has finished, which the race detector checks.
func TestAbortReleasesTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int32 // data frames until the abort
		abort := func() {}
		big := model.Config{Lanes: 16, Ports: 1, Chunk: 1008, Window: 64, Shell: small.Shell, Link: 32}
		card := open(t, &watched{Conn: serve(t, big, 1<<20), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
			out: func(f *frame.Frame) bool {
				if f.Kind == wire.KindData && left.Add(-1) == 0 {
					abort()
				}
				return true
			},
			in: func(*frame.Frame) (pass, ends bool) { return true, false }})
		buf := make([]float32, 64*1008)
		for i := range 64 {
			job := configure(t, card, driver.JobConfig{})
			aborted := make(chan error, 1)
			abort = func() { go func() { aborted <- job.Abort(testContext(t)) }() }
			left.Store(int32(1 + i))
			_ = job.Member(0).AllReduce(testContext(t), buf)
			for k := range buf {
				buf[k] = float32(i)
			}
			if err := <-aborted; err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestDeadlineNamesMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{Workers: 3})
		ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
		defer cancel()
		err := job.Member(0).AllReduce(ctx, make([]float32, 20))
		if e := wantError[*driver.MissingError](t, err, "ranks 1, 2"); !slices.Equal(e.Ranks, []int{1, 2}) {
			t.Errorf("%+v", e)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v hides the context's error", err)
		}
	})
}

// dying is a link that breaks after a number of bytes were read from it.
type dying struct {
	transport.Conn
	left int
	err  error
}

func (d *dying) Read(p []byte) (int, error) {
	if d.left <= 0 {
		return 0, d.err
	}
	n, err := d.Conn.Read(p[:min(len(p), d.left)])
	d.left -= n
	return n, err
}

func TestCardDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, &dying{serve(t, small, 4000), 3000, errors.New("the dog ate the cable")})
		job := configure(t, card, driver.JobConfig{})
		in := arrays(1, 4, 100_000)
		err := job.Reduce(testContext(t), in[0], in)
		wantError[*driver.DiedError](t, err, "card test disconnected", "the dog ate the cable")
		wantError[*driver.DiedError](t, job.Reduce(testContext(t), in[0], in))
		_, err = card.Configure(testContext(t), driver.JobConfig{})
		wantError[*driver.DiedError](t, err)
		wantError[*driver.DiedError](t, card.Err())
		select {
		case <-card.Done():
		default:
			t.Error("Done is open")
		}
		start := time.Now()
		if err := card.Close(); err != nil || time.Since(start) > time.Second {
			t.Errorf("close: %v after %s", err, time.Since(start))
		}
	})
}

// TestLinkBreaks checks that the error has the system's text for a socket without its
// addresses.
func TestLinkBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, &dying{serve(t, small, 4000), 3000,
			&net.OpError{Op: "read", Net: "unix", Addr: &net.UnixAddr{Name: "/tmp/x", Net: "unix"}, Err: os.NewSyscallError("read", syscall.ECONNRESET)}})
		in := arrays(1, 4, 100_000)
		err := configure(t, card, driver.JobConfig{}).Reduce(testContext(t), in[0], in)
		wantError[*driver.DiedError](t, err)
		if want := "card test disconnected: connection reset by peer; start it and open it again"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Error("the cause cannot be asked for")
		}
	})
}

// stalling is a link whose other side stops reading and replying.
type stalling struct {
	transport.Conn
	writes int // writes that it accepts
	closed chan struct{}
	once   sync.Once
}

func (s *stalling) Write(p []byte) (int, error) {
	if s.writes--; s.writes < 0 {
		<-s.closed
		return 0, io.ErrClosedPipe
	}
	return s.Conn.Write(p)
}

func (s *stalling) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// TestCardHangs checks a link that is open but takes no more bytes.
func TestCardHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, &stalling{Conn: serve(t, small, 4000), writes: 50, closed: make(chan struct{})}, driver.WithTimeout(300*time.Millisecond))
		job := configure(t, card, driver.JobConfig{})
		in := arrays(1, 4, 1_000_000)
		start := time.Now()
		wantError[*driver.TimeoutError](t, job.Reduce(testContext(t), in[0], in), "no reply", "chunk")
		card.Close()
		// The call, its abort and the write in progress; no RELEASE.
		if took := time.Since(start); took > 2200*time.Millisecond {
			t.Errorf("giving up took %s", took)
		}
	})
}

func TestCloseAndAbort(t *testing.T) {
	t.Run("abort", bubble(func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{})
		waits := make(chan error)
		go func() { waits <- job.Member(0).AllReduce(testContext(t), make([]float32, 100)) }()
		synctest.Wait()
		wantError[*driver.InputError](t, job.Member(0).AllReduce(testContext(t), make([]float32, 1)), "in a call already")
		wantError[*driver.InputError](t, job.Reduce(testContext(t), make([]float32, 1), make([][]float32, 4)))
		wantError[*driver.InputError](t, job.Close(testContext(t)), "rank 0 is in a call")
		if err := job.Abort(testContext(t)); err != nil {
			t.Fatal(err)
		}
		wantError[*driver.EndedError](t, <-waits, "aborted")
		wantError[*driver.EndedError](t, job.Close(testContext(t)), "aborted")
		if err := job.Abort(testContext(t)); err != nil {
			t.Errorf("the second time: %v", err)
		}
		reuse(t, card)
	}))
	t.Run("reset", bubble(func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{})
		if err := card.Reset(testContext(t)); err != nil {
			t.Fatal(err)
		}
		wantError[*driver.EndedError](t, job.Close(testContext(t)), "reset")
		reuse(t, card)
	}))
	t.Run("another job", bubble(func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{})
		next := configure(t, card, driver.JobConfig{})
		if next.Epoch() != job.Epoch()+1 {
			t.Errorf("epoch %d follows %d", next.Epoch(), job.Epoch())
		}
		wantError[*driver.EndedError](t, job.Close(testContext(t)), "another job")
		if err := job.Abort(testContext(t)); err != nil {
			t.Error(err)
		}
		if err := next.Close(testContext(t)); err != nil {
			t.Error(err)
		}
		if err := next.Close(testContext(t)); err != nil {
			t.Errorf("the second time: %v", err)
		}
	}))
	t.Run("card", bubble(func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{})
		waits := make(chan error)
		go func() { waits <- job.Member(1).AllReduce(testContext(t), make([]float32, 100)) }()
		synctest.Wait()
		if err := card.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-waits; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if _, err := card.ReadRegister(testContext(t), 0); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := card.Close(); err != nil {
			t.Errorf("the second time: %v", err)
		}
	}))
}

// TestRefusals checks that the error for a refusal has its code and place.
func TestRefusals(t *testing.T) {
	t.Run("commit", bubble(func(t *testing.T) {
		p := newPeer()
		p.refuse[wire.RegJobCommit] = wire.CodeBusy
		card := open(t, p.serve(t))
		_, err := card.Configure(testContext(t), driver.JobConfig{})
		if e := wantError[*driver.RefusedError](t, err, "JOB_COMMIT", "another host owns the card"); e.Code != wire.CodeBusy {
			t.Errorf("%+v", e)
		}
	}))
	t.Run("register", bubble(func(t *testing.T) {
		card := openSmall(t)
		_, err := card.ReadRegister(testContext(t), 0xffff8)
		if e := wantError[*driver.RefusedError](t, err, "refused read register 0xffff8: bad_address"); e.Code != wire.CodeBadAddress {
			t.Errorf("%+v", e)
		}
		_, err = card.WriteRegister(testContext(t), wire.RegLanes, 5)
		if e := wantError[*driver.RefusedError](t, err, "refused write LANES (0x5): read_only"); e.Code != wire.CodeReadOnly {
			t.Errorf("%+v", e)
		}
	}))
	for code, ends := range map[wire.Code]bool{
		wire.CodeBadEpoch: true, wire.CodeBadJob: true, wire.CodeBadLength: true, wire.CodeEvicted: true,
		wire.CodeLate: false, wire.CodeEarly: false, wire.CodeNotReady: false, wire.CodeDuplicate: false,
	} {
		t.Run(code.String(), bubble(func(t *testing.T) {
			p := newPeer()
			p.other = func(f *frame.Frame) []frame.Header {
				if f.Kind != wire.KindData {
					return nil
				}
				return []frame.Header{{Kind: wire.KindStatus, Epoch: f.Epoch, Rank: f.Rank, VID: f.VID, Code: code}}
			}
			card := open(t, p.serve(t), driver.WithTimeout(300*time.Millisecond))
			job := configure(t, card, driver.JobConfig{})
			err := job.Reduce(testContext(t), make([]float32, 9), [][]float32{make([]float32, 9), make([]float32, 9)})
			if !ends {
				wantError[*driver.TimeoutError](t, err)
				if job.Stats().Refused == 0 {
					t.Error("not counted")
				}
				return
			}
			if e := wantError[*driver.RefusedError](t, err, "refused chunk 0 of rank 0: "+code.String()); e.Code != code {
				t.Errorf("%+v", e)
			}
			wantError[*driver.EndedError](t, job.Close(testContext(t)))
		}))
	}
}

// TestForeignResults checks that the driver ignores results that cannot be this job's, and
// takes the right one.
func TestForeignResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		answered := false
		p.other = func(f *frame.Frame) []frame.Header {
			if f.Kind != wire.KindData || f.Rank != 1 || answered {
				return nil
			}
			answered = true
			right := frame.Header{Kind: wire.KindResult, Format: wire.FP32, Epoch: f.Epoch, VID: f.VID, Length: f.Length, Mask: 3, Receivers: 3}
			var all []frame.Header
			for _, change := range []func(*frame.Header){
				func(h *frame.Header) { h.Epoch-- },
				func(h *frame.Header) { h.Job = 1 },
				func(h *frame.Header) { h.VID++ },
				func(h *frame.Header) { h.VID-- },
				func(h *frame.Header) { h.Length = 4 },
				func(h *frame.Header) { h.Mask = 1 },
				func(h *frame.Header) { h.Receivers = 4 },
				func(h *frame.Header) { h.Flags = wire.FlagPartial },
				func(h *frame.Header) { h.Format = wire.Int32 },
			} {
				wrong := right
				change(&wrong)
				all = append(all, wrong)
			}
			return append(all, right, right)
		}
		p.payload = func(n int) byte { return byte(n) } // the n-th result consists of bytes n
		card := open(t, p.serve(t))
		job := configure(t, card, driver.JobConfig{})
		dst := make([]float32, 16)
		if err := job.Reduce(testContext(t), dst, [][]float32{make([]float32, 16), make([]float32, 16)}); err != nil {
			t.Fatal(err)
		}
		for i, x := range dst {
			if got := math.Float32bits(x); got != 0x09090909 {
				t.Fatalf("element %d is %08x: the wrong result was taken", i, got)
			}
		}
	})
}

// TestSendIsActedUponOnce has a card, or a link, repeat the request to send data again. The
// driver must send the data once per ask, and none without an ask.
func TestSendIsActedUponOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.other = func(f *frame.Frame) []frame.Header {
			send := frame.Header{Kind: wire.KindStatus, Epoch: f.Epoch, Rank: f.Rank, VID: f.VID, Code: wire.CodeSend, Mask: 1}
			switch f.Kind {
			case wire.KindData: // unasked
				return []frame.Header{send}
			case wire.KindAsk:
				return []frame.Header{send, send, send}
			}
			return nil
		}
		card := open(t, p.serve(t), driver.WithTimeout(500*time.Millisecond))
		job := configure(t, card, driver.JobConfig{})
		err := job.Reduce(testContext(t), make([]float32, 9), [][]float32{make([]float32, 9), make([]float32, 9)})
		if e := wantError[*driver.MissingError](t, err); !slices.Equal(e.Ranks, []int{0}) {
			t.Errorf("%+v", e)
		}
		if s := job.Stats(); s.Asked == 0 || s.Resent != s.Asked || job.Member(1).Stats().Resent != 0 {
			t.Errorf("%+v: want one chunk sent again for every ask, by rank 0", s)
		}
	})
}

// TestRegisterUnanswered checks that an access without a reply fails, and that the next one is
// not affected.
func TestRegisterUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.deaf[wire.RegCycles] = true
		card := open(t, p.serve(t), driver.WithTimeout(300*time.Millisecond))
		start := time.Now()
		_, err := card.ReadRegister(testContext(t), wire.RegCycles)
		wantError[*driver.TimeoutError](t, err, "read CYCLES")
		if took := time.Since(start); took < 250*time.Millisecond || took > 3*time.Second {
			t.Errorf("gave up after %s", took)
		}
		if _, err := card.ReadRegister(testContext(t), wire.RegLanes); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestLateCopyWhileTheJobIsClosed has a late copy of data arrive after all members have
// finished on the card. The confirmation of one finish was lost. The card refuses the copy,
// because the job is gone. Close must still succeed. Fault injection found this.
func TestLateCopyWhileTheJobIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.payload = func(int) byte { return 0 }
		finishes := map[uint8]int{}
		p.other = func(f *frame.Frame) []frame.Header {
			answer := frame.Header{Kind: wire.KindStatus, Epoch: f.Epoch, VID: f.VID, Rank: f.Rank, Code: wire.CodeDone}
			switch {
			case f.Kind == wire.KindData && f.Rank == 1:
				return []frame.Header{{Kind: wire.KindResult, Format: wire.FP32, Epoch: f.Epoch, VID: f.VID, Length: f.Length, Mask: 3, Receivers: 3}}
			case f.Kind != wire.KindFinish:
				return nil
			}
			if finishes[f.Rank]++; f.Rank == 1 && finishes[1] == 1 {
				answer.VID--
				answer.Code = wire.CodeBadJob
			}
			return []frame.Header{answer}
		}
		job := configure(t, open(t, p.serve(t)), driver.JobConfig{})
		if err := job.Reduce(testContext(t), make([]float32, 40), arrays(1, 2, 40)); err != nil {
			t.Fatal(err)
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Error(err)
		}
		if n, refused := finishes[1], job.Stats().Refused; n != 2 || refused != 1 {
			t.Errorf("rank 1 finished %d times, %d packets were refused", n, refused)
		}
	})
}

// TestRefusedFinish checks that a refusal of the finish itself is an error.
func TestRefusedFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.other = func(f *frame.Frame) []frame.Header {
			return []frame.Header{{Kind: wire.KindStatus, Epoch: f.Epoch, VID: f.VID, Rank: f.Rank, Code: wire.CodeBadJob}}
		}
		job := configure(t, open(t, p.serve(t)), driver.JobConfig{})
		wantError[*driver.RefusedError](t, job.Close(testContext(t)), "bad_job")
	})
}

// TestOnlyTheCallOfAContextAnswersIt ends the context of one call. The calls of other members,
// later calls and those of other jobs must not return that context's error.
func TestOnlyTheCallOfAContextAnswersIt(t *testing.T) {
	for name, c := range map[string]struct {
		end   error
		words string
	}{
		"canceled": {context.Canceled, "the call of rank 0 was canceled: reduction stopped after 0 of 100 elements: context canceled"},
		"overdue":  {context.DeadlineExceeded, "the call of rank 0 was canceled: "},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			card := openHolding(t, 2)
			job, beside := configure(t, card, driver.JobConfig{Workers: 3}), configure(t, card, driver.JobConfig{Workers: 2})
			ctx, cancel := context.WithCancel(testContext(t))
			if c.end == context.DeadlineExceeded {
				ctx, cancel = context.WithDeadline(testContext(t), time.Now())
			}
			defer cancel()
			calls := func(j *driver.Job) chan error {
				ended := make(chan error, 1)
				go func() { ended <- j.Member(1).AllReduce(testContext(t), make([]float32, 100)) }()
				synctest.Wait() // it has sent what it can
				return ended
			}
			other, apart := calls(job), calls(beside)
			cancel()
			err := job.Member(0).AllReduce(ctx, make([]float32, 100))
			if !errors.Is(err, c.end) {
				t.Errorf("its own call answers %v", err)
			}
			for what, err := range map[string]error{
				"another call": <-other,
				"the next one": job.Member(0).AllReduce(testContext(t), make([]float32, 100)),
				"the close":    job.Close(testContext(t)),
			} {
				wantError[*driver.EndedError](t, err)
				wantError[*driver.GivenUpError](t, err, c.words)
				if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s answers %v", what, err)
				}
			}
			if err := errors.Join(beside.Member(0).AllReduce(testContext(t), make([]float32, 100)), <-apart); err != nil {
				t.Errorf("the other job: %v", err)
			}
		}))
	}
}

// TestCloseCanceled checks that the next call does not return the context's error.
func TestCloseCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := configure(t, open(t, newPeer().serve(t)), driver.JobConfig{}) // it confirms no finish
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		if err := job.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the close answers %v", err)
		}
		err := job.Close(testContext(t))
		wantError[*driver.GivenUpError](t, err, "the close of the job was canceled")
		if errors.Is(err, context.Canceled) {
			t.Errorf("the next one answers %v", err)
		}
	})
}

// TestOtherFramesGiveAnAccessNoTime checks a card that sends valid frames without end but no
// replies. Open and later calls must give it up.
func TestOtherFramesGiveAnAccessNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.deaf[wire.RegChunk] = true
		wantError[*driver.NoCardError](t, openFails(t, p.babble(t)), "frames, but no reply to read CHUNK")

		p = newPeer()
		p.deaf[wire.RegCycles] = true
		card := open(t, p.babble(t), driver.WithTimeout(300*time.Millisecond))
		_, err := card.ReadRegister(testContext(t), wire.RegCycles)
		wantError[*driver.TimeoutError](t, err, "read CYCLES")
		if _, err := card.ReadRegister(testContext(t), wire.RegLanes); err != nil {
			t.Errorf("the next access: %v", err)
		}
	})
}

// TestCardDiesAtTheAbort ends the link as soon as the driver aborts a job on the card, because all
// members have finished or left. The end of the link has ended the job, but Close returned a
// DiedError.
func TestCardDiesAtTheAbort(t *testing.T) {
	for name, end := range map[string]func(*driver.Job, context.Context) error{"close": (*driver.Job).Close, "abort": (*driver.Job).Abort} {
		t.Run(name, bubble(func(t *testing.T) {
			conn := &watched{Conn: serve(t, small, 64<<10), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
				in: func(*frame.Frame) (pass, ends bool) { return true, false }}
			aborts := 0
			conn.out = func(f *frame.Frame) bool {
				if f.Kind == wire.KindRegWrite && f.VID == wire.RegJobAbort {
					aborts++
					conn.Close()
				}
				return true
			}
			card := open(t, conn)
			job := configure(t, card, driver.JobConfig{DeadlineCycles: soon, Partial: true})
			ctx, cancel := context.WithCancel(testContext(t))
			cancel()
			if err := job.Member(1).AllReduce(ctx, make([]float32, 200)); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err := end(job, testContext(t)); err != nil || aborts != 1 {
				t.Errorf("%d aborts, %v", aborts, err)
			}
		}))
	}
}
