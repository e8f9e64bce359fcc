package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/npy"
	"tributary/driver/reduction"
	"tributary/driver/wire"
)

// TestReduce sums small arrays; the expected sums were worked out by hand.
func TestReduce(t *testing.T) {
	workFolder(t)
	writeArray(t, "max.npy", float32s([]int{1}, math.MaxFloat32))
	for name, c := range map[string]struct {
		args []string
		want npy.Array
	}{
		"two":         {[]string{"w0.npy", "w1.npy"}, float32s([]int{2, 3}, 11, 22, 33, 44, 55, 66)},
		"mean":        {[]string{"-op", "mean", "w0.npy", "w1.npy"}, float32s([]int{2, 3}, 5.5, 11, 16.5, 22, 27.5, 33)},
		"mean of 3":   {[]string{"--op=mean", "number.npy", "number.npy", "number.npy"}, float32s([]int{}, 7)},
		"three":       {[]string{"w0.npy", "w1.npy", "w2.npy"}, float32s([]int{2, 3}, 11.5, 22, 30, 40, 1e30, 66)},
		"other ports": {[]string{"-ports", "1,3,6", "w0.npy", "w1.npy", "w2.npy"}, float32s([]int{2, 3}, 11.5, 22, 30, 40, 1e30, 66)},
		"one":         {[]string{"number.npy"}, float32s([]int{}, 7)},
		"small jobs":  {[]string{"--chunk", "16", "-window=1", "w1.npy", "w1.npy"}, float32s([]int{2, 3}, 20, 40, 60, 80, 100, 120)},
		"overflow":    {[]string{"max.npy", "max.npy"}, float32s([]int{1}, float32(math.Inf(1)))},
	} {
		t.Run(name, func(t *testing.T) {
			s := tributary(context.Background(), append([]string{"reduce", "-verify", "-o", "sum.npy"}, c.args...)...)
			require.Equal(t, 0, s.status, s.errs)
			if name != "overflow" {
				require.Empty(t, s.errs, "no progress bar where there is no terminal")
			}
			sameArray(t, c.want, readArray(t, "sum.npy"))
		})
	}
}

// sameArray compares shape, type and every bit.
func sameArray(t *testing.T, want, got npy.Array) {
	t.Helper()
	require.ElementsMatch(t, want.Shape, got.Shape)
	require.Equal(t, want.Type, got.Type)
	require.Equal(t, want.Data, got.Data)
}

// TestReduceArchives sums archives with differently ordered arrays.
func TestReduceArchives(t *testing.T) {
	workFolder(t)
	s := tributary(context.Background(), "reduce", "-o", "sum.npz", "a0.npz", "a1.npz")
	require.Equal(t, 0, s.status, s.errs)
	f, err := os.Open("sum.npz")
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	got, err := npy.ReadArchive(f, info.Size())
	require.NoError(t, err)
	require.Equal(t, []npy.Named{
		{Name: "b", Array: float32s(nil, 33)},
		{Name: "w", Array: float32s([]int{1, 2}, 11, 22)},
	}, got)
}

// TestReduceReports checks reduce's output and the counts of -stats: 6 elements in chunks of 16 are
// one chunk of one beat.
func TestReduceReports(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	workFolder(t)
	args := []string{"reduce", "-stats", "-chunk", "16", "-o", "sum.npy", "w0.npy", "w1.npy"}
	golden(t, filepath.Join(dir, "reduce.txt"), transcript(args, tributary(context.Background(), args...)))

	s := tributary(context.Background(), append(args, "-json")...)
	require.Equal(t, 0, s.status, s.errs)
	var report reduction.Report
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Equal(t, 2, report.Workers)
	require.Equal(t, 6, report.Elements)
	require.EqualValues(t, 1, report.Stats.Chunks)
	require.EqualValues(t, 1, report.Stats.Beats)
}

// gradientFiles returns the files of the gradients of a real training step.
func gradientFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../../verify/reference/gradients/w?.npy")
	require.NoError(t, err)
	require.Len(t, paths, 4)
	for i := range paths {
		paths[i], err = filepath.Abs(paths[i])
		require.NoError(t, err)
	}
	return paths
}

// TestReduceIsNumPys compares the sum and the mean of real gradients with NumPy's, bit for bit.
func TestReduceIsNumPys(t *testing.T) {
	workers := gradientFiles(t)
	check := filepath.Join(filepath.Dir(workers[0]), "check.py")
	workFolder(t)
	for _, op := range []string{"sum", "mean"} {
		s := tributary(context.Background(), append([]string{"reduce", "-op", op, "-o", op + ".npy"}, workers...)...)
		require.Equal(t, 0, s.status, s.errs)
		out, err := exec.Command("python3", append([]string{check, "--op", op, op + ".npy"}, workers...)...).CombinedOutput()
		require.NoError(t, err, "python3 with NumPy is needed for this test: %s", out)
		require.Contains(t, string(out), "all 50826 elements are NumPy's")
	}
}

// TestReduceVerifies checks that one wrong bit is detected, and that nothing is written then.
func TestReduceVerifies(t *testing.T) {
	workFolder(t)
	before := files(t)
	card := newCard(t, nil, func(f *frame.Frame) bool {
		if f.Payload != nil {
			f.Payload[4] ^= 1
		}
		return true
	})
	s := tributary(context.Background(), "reduce", "-card", card, "-verify", "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Equal(t, 1, s.status)
	require.Contains(t, s.errs, "1 of 6 elements")
	require.Contains(t, s.errs, "element 1: 0x41b00001, the model has 0x41b00000")
	requireNoNewFiles(t, before)
}

// TestReduceTooManyWorkers checks that the card's ports limit the workers.
func TestReduceTooManyWorkers(t *testing.T) {
	workFolder(t)
	before := files(t)
	card := newCard(t, nil, straight)
	s := tributary(context.Background(), "reduce", "-card", card, "-o", "sum.npy", "w0.npy", "w0.npy", "w0.npy", "w0.npy", "w0.npy")
	require.Equal(t, 2, s.status)
	require.Contains(t, s.errs, "4 ports")
	requireNoNewFiles(t, before)
	s = tributary(context.Background(), "reduce", "-card", card, "-o", "sum.npy", "w0.npy", "w0.npy", "w0.npy", "w0.npy")
	require.Equal(t, 0, s.status, s.errs)
}

// TestReduceMissing checks that a rank whose data never arrives is named, with exit status 4, and
// that the card remains usable.
func TestReduceMissing(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.WriteFile("sum.npy", []byte("an older sum"), 0o666))
	before := files(t)
	lost := true
	card := newCard(t, func(f *frame.Frame) bool { return !lost || f.Kind != wire.KindData || f.Rank != 2 }, straight)
	args := []string{"reduce", "-card", card, "-o", "sum.npy", "w0.npy", "w1.npy", "w2.npy"}
	s := tributary(context.Background(), append(args, "-timeout", "2s")...)
	require.Equal(t, 4, s.status, s.errs)
	require.Contains(t, s.errs, "for rank 2")
	requireNoNewFiles(t, before)
	old, err := os.ReadFile("sum.npy")
	require.NoError(t, err)
	require.Equal(t, "an older sum", string(old))
	lost = false
	require.Equal(t, 0, tributary(context.Background(), args...).status)
}

// TestReduceFlippedBits checks that flipped bits cost only time, and that info and -stats show
// them.
func TestReduceFlippedBits(t *testing.T) {
	workFolder(t)
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: 4, Chunk: 8, Window: 2, Shell: wire.ShellStream, Link: 32})
	require.NoError(t, err)
	done := make(chan struct{}, 1)
	done <- struct{}{}
	flips := 0
	name := newLink(func() net.Conn {
		<-done
		host, end := net.Pipe()
		go func() { card.Serve(end); done <- struct{}{} }()
		return &flipping{Conn: host, flips: &flips}
	})
	s := tributary(context.Background(), "reduce", "-card", name, "-stats", "-json", "-verify", "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Equal(t, 0, s.status, s.errs)
	require.Equal(t, 2, flips)
	var report reduction.Report
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.EqualValues(t, 1, report.Stats.HeaderCRC)
	require.EqualValues(t, 1, report.Stats.PayloadCRC)
	s = tributary(context.Background(), "info", "-card", name)
	require.Equal(t, 0, s.status, s.errs)
	require.Regexp(t, `header_crc +1 `, s.out)
	require.Regexp(t, `payload_crc +1 `, s.out)
}

// flipping flips a bit in the header of the first data frame and one in the payload of the second.
type flipping struct {
	net.Conn
	flips *int
}

func (c *flipping) Write(b []byte) (int, error) {
	scan := frame.NewScanner(frame.ToCard, 0)
	scan.Feed(b)
	var f frame.Frame
	var send []byte
	for scan.Next(&f) {
		raw := append([]byte(nil), f.Raw...)
		if f.Kind == wire.KindData && *c.flips < 2 {
			raw[[]int{wire.SyncBytes + 9, len(raw) - 10}[*c.flips]] ^= 8
			*c.flips++
		}
		send = append(send, raw...)
	}
	_, err := c.Conn.Write(send)
	return len(b), err
}

// TestReduceCarriesOn checks that a card whose link breaks is opened again, with a message. The sum
// is the same, and the card's statistics are omitted.
func TestReduceCarriesOn(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	workFolder(t)
	newDyingCard(t)
	newCard(t, nil, straight)
	cards, opened := links[len(links)-2:], 0
	name := newLink(func() net.Conn {
		open := cards[min(opened, 1)]
		opened++
		return open()
	})
	args := []string{"reduce", "-card", name, "-carry-on", "10s", "-verify", "-stats", "-o", "sum.npy", "w0.npy", "w1.npy"}
	said := strings.NewReplacer(name, "lab").Replace(transcript(args, tributary(context.Background(), args...)))
	golden(t, filepath.Join(dir, "reduce-carry-on.txt"), said)
	sameArray(t, float32s([]int{2, 3}, 11, 22, 33, 44, 55, 66), readArray(t, "sum.npy"))

	opened = 0
	s := tributary(context.Background(), append(args, "-json", "-record", "link")...)
	require.Equal(t, 0, s.status, s.errs)
	var report reduction.Report
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Len(t, report.Outages, 1)
	require.Equal(t, 1, report.Stats.Outages)
	require.Equal(t, 0, tributary(context.Background(), "decode", "link").status)
}

// TestReduceDeadCards checks a card that dies, is busy, sends nonsense, sends nothing, or has
// another version.
func TestReduceDeadCards(t *testing.T) {
	workFolder(t)
	before := files(t)
	pipe := func(card func(net.Conn)) string {
		return newLink(func() net.Conn {
			host, end := net.Pipe()
			go card(end)
			return host
		})
	}
	drain := func(c net.Conn) {
		b := make([]byte, 1024)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	}
	const silent = "no card at"
	for name, c := range map[string]struct {
		card   string
		status int
		says   string
	}{
		"dies":   {newDyingCard(t), 1, "disconnected"},
		"busy":   {pipe(func(c net.Conn) { c.Close() }), 1, "busy"},
		"silent": {pipe(drain), 3, silent},
		"nonsense": {pipe(func(c net.Conn) {
			go drain(c)
			for {
				if _, err := c.Write([]byte("HTTP/1.1 400 Bad Request\r\n")); err != nil {
					return
				}
			}
		}), 3, silent},
		"version": {newCard(t, nil, func(f *frame.Frame) bool {
			if f.Kind == wire.KindReply && f.VID == wire.RegVersion {
				f.Mask = 9
			}
			return true
		}), 3, "protocol version 9"},
		"hash": {newCard(t, nil, func(f *frame.Frame) bool {
			if f.Kind == wire.KindReply && f.VID == wire.RegLanes {
				f.Mask = 8
			}
			return true
		}), 3, "configuration hash"},
		"owned": {newCard(t, nil, func(f *frame.Frame) bool {
			if f.Kind == wire.KindReply && f.VID == wire.RegOwner {
				f.Mask = 1
			}
			return true
		}), 1, "busy"},
		"refuses": {newCard(t, nil, func(f *frame.Frame) bool {
			if f.Kind == wire.KindReply && f.VID == wire.RegJobCommit {
				f.Code = wire.CodeBadWindow
			}
			return true
		}), 1, "bad_window"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"reduce", "-card", c.card, "-o", "sum.npy", "w0.npy", "w1.npy"}
			if c.says == silent { // only here is the timeout awaited
				args = append(args, "-timeout", "500ms")
			}
			s := tributary(context.Background(), args...)
			require.Equal(t, c.status, s.status, s.errs)
			require.Contains(t, s.errs, c.says)
			require.Empty(t, s.out)
			requireNoNewFiles(t, before)
		})
	}
}

// newDyingCard returns a card whose link breaks with the first contribution.
func newDyingCard(t *testing.T) string {
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: 4, Chunk: 8, Window: 2, Shell: wire.ShellStream, Link: 32})
	require.NoError(t, err)
	return newLink(func() net.Conn {
		host, end := net.Pipe()
		go card.Serve(end)
		return &twisted{
			Conn: host, in: frame.NewScanner(frame.FromCard, 0), out: frame.NewScanner(frame.ToCard, 0), twistIn: straight,
			twistTo: func(f *frame.Frame) bool {
				if f.Kind == wire.KindData {
					end.Close()
				}
				return true
			},
		}
	})
}

// TestReduceInterrupted sends the command a SIGINT in the middle of a reduction: it must end at
// once with status 1 and no output file, and the card must serve the next host.
func TestReduceInterrupted(t *testing.T) {
	workFolder(t)
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: 4, Chunk: 8, Window: 2, Shell: wire.ShellStream, Link: 32})
	require.NoError(t, err)
	listener, err := net.Listen("unix", "card.sock")
	require.NoError(t, err)
	defer listener.Close()
	dataSeen := make(chan struct{}, 1)
	var loseData atomic.Bool
	loseData.Store(true)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			card.Serve(&halfDeaf{Conn: conn, scan: frame.NewScanner(frame.ToCard, 0), lose: &loseData, seen: dataSeen})
		}
	}()
	before := files(t)
	args := []string{"reduce", "-card", "unix:card.sock", "-o", "sum.npy", "w0.npy", "w1.npy"}

	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asCommand+"=1")
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	<-dataSeen
	require.NoError(t, command.Process.Signal(syscall.SIGINT))
	text, err := io.ReadAll(stderr)
	require.NoError(t, err)
	command.Wait()
	require.Equal(t, 1, command.ProcessState.ExitCode())
	require.Regexp(t, `stopped, .*interrupt.*; no output file was written\n$`, string(text))
	requireNoNewFiles(t, before)

	loseData.Store(false)
	s := tributary(context.Background(), args...)
	require.Equal(t, 0, s.status, s.errs)
}

// halfDeaf is the card's end of a link that loses the data of rank 1.
type halfDeaf struct {
	net.Conn
	scan   *frame.Scanner
	lose   *atomic.Bool
	seen   chan<- struct{} // receives a value when data was lost
	unread []byte
}

func (c *halfDeaf) Read(b []byte) (int, error) {
	var f frame.Frame
	for len(c.unread) == 0 {
		if !c.scan.Next(&f) {
			if _, err := c.scan.Fill(c.Conn); err != nil {
				return 0, err
			}
			continue
		}
		if c.lose.Load() && f.Kind == wire.KindData && f.Rank == 1 {
			select {
			case c.seen <- struct{}{}:
			default:
			}
			continue
		}
		c.unread = append(c.unread, f.Raw...)
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}
