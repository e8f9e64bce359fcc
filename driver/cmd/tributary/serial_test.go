//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/transport/serial"
	"tributary/driver/virtual/pty"
	"tributary/driver/wire"
)

// onSerial is a model of a card on a serial port. It can run an action after a given number of
// bytes to the card. The card keeps its state when the port is unplugged.
type onSerial struct {
	path string // of the port
	card *model.Card
	baud uint32
	port *pty.Port

	serving sync.Mutex
	passed  atomic.Int64
	mu      sync.Mutex // guards the following fields
	at      int64
	do      func()
}

// newOnSerial returns a card with 4 ports, 4 lanes, chunks of 8 and a window of 2.
func newOnSerial(t *testing.T, baud uint32) *onSerial {
	t.Helper()
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: 4, Chunk: 8, Window: 2, Jobs: 1, Shell: wire.ShellStream, Link: 32})
	require.NoError(t, err)
	s := &onSerial{path: filepath.Join(t.TempDir(), "tty"), card: card, baud: baud}
	s.plug(t)
	t.Cleanup(func() { s.port.Close() })
	return s
}

func (s *onSerial) plug(t *testing.T) {
	t.Helper()
	port, err := pty.New(s.path, s.baud)
	require.NoError(t, err)
	s.port = port
	go port.Serve(s.link)
}

// link opens the card's byte stream. Its first bytes are garbage from an earlier host, and from a
// disturbed line.
func (s *onSerial) link() (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		s.serving.Lock() // the last link's end may still be in progress
		defer s.serving.Unlock()
		garbage := make([]byte, 500)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range garbage {
			garbage[i] = byte(rng.Uint32())
		}
		if _, err := far.Write(garbage); err != nil {
			far.Close()
			return
		}
		s.card.Serve(&counting{far, s})
	}()
	return near, nil
}

// after runs an action once that many more bytes have gone to the card.
func (s *onSerial) after(bytes int64, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.do = s.passed.Load()+bytes, do
}

// counting counts the bytes to the card.
type counting struct {
	net.Conn
	s *onSerial
}

func (p *counting) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	passed := p.s.passed.Add(int64(n))
	p.s.mu.Lock()
	do := p.s.do
	due := do != nil && passed >= p.s.at
	if due {
		p.s.do = nil
	}
	p.s.mu.Unlock()
	if due {
		do() // no more bytes pass until it is done
	}
	return n, err
}

// arrays writes four arrays of the given length, with elements of any magnitude, and returns their
// files.
func arrays(t *testing.T, elements int) (files []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	for w := range 4 {
		values := make([]float32, elements)
		for i := range values {
			values[i] = float32(rng.NormFloat64()) * float32(int64(1)<<rng.IntN(40))
		}
		name := filepath.Join(t.TempDir(), fmt.Sprintf("w%d.npy", w))
		writeArray(t, name, float32s([]int{elements}, values...))
		files = append(files, name)
	}
	return files
}

// TestSerialCommands checks that every command works over a serial port, one after another.
func TestSerialCommands(t *testing.T) {
	s := newOnSerial(t, serial.DefaultBaud)
	workFolder(t)
	for _, c := range []struct{ line, want string }{
		{"info -card serial:" + s.path, "lanes          4, fp32 into fp32, sum tree"},
		{"config -card serial:" + s.path + " -workers 3", "workers 3, on ports 0, 1, 2"},
		{"selftest -card serial:" + s.path, "ok    flips"},
		{"bench -card serial:" + s.path + "@3000000 -workers 2 -time 100ms", "workers"},
		{"top -card serial:" + s.path + " -count 1", "counter"},
		{"reset -card serial:" + s.path, "is reset"},
	} {
		said := tributary(t.Context(), strings.Fields(c.line)...)
		require.Equal(t, 0, said.status, "%s: %s", c.line, said.errs)
		require.Contains(t, strings.Join(strings.Fields(said.out), " "), strings.Join(strings.Fields(c.want), " "))
	}
}

// TestSerialSums checks that a sum has the same bits as on the same card without a serial port.
func TestSerialSums(t *testing.T) {
	s := newOnSerial(t, serial.DefaultBaud)
	files := arrays(t, 20_000)
	var sums [2][]byte
	for i, card := range []string{"serial:" + s.path, "model:lanes=4,workers=4,chunk=8,window=2"} {
		out := filepath.Join(t.TempDir(), "sum.npy")
		said := tributary(t.Context(), append([]string{"reduce", "-card", card, "-verify", "-o", out}, files...)...)
		require.Equal(t, 0, said.status, said.errs)
		var err error
		sums[i], err = os.ReadFile(out)
		require.NoError(t, err)
	}
	require.True(t, bytes.Equal(sums[1], sums[0]))
}

// TestSerialUnplugged checks a port that is pulled out in the middle of a reduction. The reduction
// ends with an error, or with -carry-on waits for the port, twice; no bit of its sum changes.
func TestSerialUnplugged(t *testing.T) {
	s := newOnSerial(t, serial.DefaultBaud)
	files := arrays(t, 20_000)
	const middle = 20_000 * 4 * 4 / 3
	out := filepath.Join(t.TempDir(), "sum.npy")
	args := append([]string{"reduce", "-card", "serial:" + s.path, "-verify", "-stats", "-o", out}, files...)

	replug := func(then func()) func() {
		return func() {
			s.port.Close()
			s.plug(t)
			then()
		}
	}
	back := make(chan bool, 1)
	s.after(middle, replug(func() { back <- true }))
	said := tributary(t.Context(), args...)
	require.Equal(t, 1, said.status)
	require.Contains(t, said.errs, "disconnected: its serial port was unplugged")
	<-back
	said = tributary(t.Context(), args...)
	require.Equal(t, 0, said.status, said.errs)

	s.after(middle, replug(func() { s.after(middle, replug(func() { back <- true })) }))
	said = tributary(t.Context(), append(args, "-carry-on", "30s")...)
	require.Equal(t, 0, said.status, said.errs)
	<-back
	require.Contains(t, said.out, "outages       2")
	require.Contains(t, said.out, "every bit of the sum as in the Go model")
}

// TestSerialLeft checks that a host which dies does not affect the next one. It leaves half a frame
// at the card, its own token as the owner, and bytes in transit.
func TestSerialLeft(t *testing.T) {
	s := newOnSerial(t, serial.DefaultBaud)
	files := arrays(t, 2_000)
	for range 3 {
		conn, err := serial.Open(t.Context(), s.path, 0)
		require.NoError(t, err)
		owner := frame.Append(nil, &frame.Header{Kind: wire.KindRegWrite, VID: wire.RegOwner, Mask: 77}, nil)
		_, err = conn.Write(append(owner, "\xa5TRB\x12\x00\x00"...))
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1)) // of the reply; the rest is still in transit
		require.NoError(t, err)
		require.NoError(t, conn.Close()) // without a message to the card
		said := tributary(t.Context(), append([]string{"reduce", "-card", "serial:" + s.path, "-verify", "-o",
			filepath.Join(t.TempDir(), "sum.npy")}, files...)...)
		require.Equal(t, 0, said.status, said.errs)
	}
}

// TestSerialRates checks that a card works only at its own rate, and that the error names another
// rate.
func TestSerialRates(t *testing.T) {
	s := newOnSerial(t, 1_000_000)
	said := tributary(t.Context(), "info", "-card", "serial:"+s.path, "-timeout", "1s")
	require.Equal(t, 3, said.status)
	require.Contains(t, said.errs, "no card replies at 3,000,000 baud on "+s.path)
	said = tributary(t.Context(), "info", "-card", "serial:"+s.path+"@1000000")
	require.Equal(t, 0, said.status, said.errs)
}

// TestTimeoutIsTheCards checks that a card is asked for as long as -timeout allows. Behind a serial port, that
// is otherwise as long as a board may take.
func TestTimeoutIsTheCards(t *testing.T) {
	workFolder(t)
	said := tributary(t.Context(), "info", "-card", newCard(t, nil, straight), "-timeout", "7s")
	require.Equal(t, 0, said.status, said.errs)
	require.EqualValues(t, 7*time.Second, patience.Load())
}

// TestSerialBusy checks that a port in use by another program is reported as such, and not
// disturbed.
func TestSerialBusy(t *testing.T) {
	s := newOnSerial(t, serial.DefaultBaud)
	conn, err := serial.Open(t.Context(), s.path, 0)
	require.NoError(t, err)
	defer conn.Close()
	before := s.passed.Load()
	said := tributary(t.Context(), "reset", "-card", "serial:"+s.path)
	require.Equal(t, 1, said.status)
	require.Contains(t, said.errs, "is busy: another program has opened "+s.path)
	require.Equal(t, before, s.passed.Load())
}

// serveHosts replaces the program card by the model; each host gets a new model.
func serveHosts(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	address, _ := strings.CutPrefix(os.Args[2], "unix:")
	listener, err := net.Listen("unix", address)
	fail(err)
	fmt.Println("listening " + os.Args[2])
	for {
		conn, err := listener.Accept()
		fail(err)
		card, err := transport.Open(context.Background(), "model:"+dir, transport.Needs{})
		fail(err)
		go io.Copy(conn, card)
		go func() {
			io.Copy(card, conn)
			conn.Close()
		}()
	}
}

// TestListSerial checks that ports are listed without being opened.
func TestListSerial(t *testing.T) {
	workFolder(t)
	old := listPorts
	defer func() { listPorts = old }()
	listPorts = func() []serial.Port {
		return []serial.Port{{Name: "serial:/dev/ttyUSB0"}, {Name: "serial:/dev/ttyUSB1", Title: "usb-Lattice-if01-port0"}}
	}
	require.Equal(t, `cpu:                 ready  a card in software, of the arrays' format, with as many ports
model:               ready  the Go model of a card, the reference
serial:/dev/ttyUSB0  -      a serial port; that a card is behind it shows when it is opened
serial:/dev/ttyUSB1  -      a serial port, usb-Lattice-if01-port0; that a card is behind it shows when it is opened
`, tributary(t.Context(), "list").out)
}

// TestSimSerial checks that tributary sim -pty provides such a port for as long as it runs.
func TestSimSerial(t *testing.T) {
	golden, err := filepath.Abs(goldenCard)
	require.NoError(t, err)
	workFolder(t)
	tracedCard(t, golden)
	require.NoError(t, os.Rename("made/sim/build/card_trace", "made/sim/build/card"))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan said)
	go func() {
		ended <- tributary(ctx, "sim", "made", "-pty", "card.tty", "-baud", "500000")
	}()
	until(func() bool {
		f, err := os.OpenFile("card.tty", os.O_RDWR|unix.O_NOCTTY, 0)
		if err == nil {
			f.Close()
		}
		return err == nil
	})
	s := tributary(t.Context(), "info", "-card", "serial:card.tty@500000")
	require.Equal(t, 0, s.status, s.errs)
	stop()
	s = <-ended
	require.Equal(t, 0, s.status, s.errs)
	require.Contains(t, s.out, "serial port; try it: tributary info -card serial:card.tty@500000\n")
	require.NoFileExists(t, "card.tty")
}
