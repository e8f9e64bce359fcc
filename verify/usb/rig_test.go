package usb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/transport"
	"tributary/driver/usbip"
	"tributary/verify/usb/testbed"
)

// What `make usb` has built.
const (
	program = "../../bin/tributary"
	folder  = "../../build/usb/card"
)

// patience is for what a busy machine may take.
const patience = time.Minute

// machine returns a machine without USB devices.
func machine(t *testing.T) *testbed.Testbed {
	t.Helper()
	bed, err := testbed.New()
	require.NoError(t, err)
	t.Cleanup(bed.Close)
	return bed
}

// card is a virtual card whose USB side is this test's.
type card struct {
	t      *testing.T
	server *usbip.Server
	addr   string
	cmd    *exec.Cmd // the Verilated card

	passed atomic.Int64 // bytes to the card
	mu     sync.Mutex
	at     int64 // when so many have passed,
	do     func()
}

// newCard starts the virtual card of make usb and offers it.
func newCard(t *testing.T, serial string) *card {
	t.Helper()
	c := &card{t: t}
	manifest, err := transport.ReadManifest(folder)
	require.NoError(t, err)
	socket := filepath.Join(t.TempDir(), "card")
	c.start(socket)
	c.offer(usbip.Ident(manifest.Constant), serial, func() (net.Conn, error) { return net.Dial("unix", socket) })
	return c
}

// newFake offers a card that is a function of its end of the link.
func newFake(t *testing.T, serve func(net.Conn)) *card {
	t.Helper()
	manifest, err := transport.ReadManifest(folder)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	c := &card{t: t}
	c.offer(usbip.Ident(manifest.Constant), "FAKE", func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	return c
}

// start starts the Verilated card.
func (c *card) start(socket string) {
	c.t.Helper()
	c.cmd = exec.Command(filepath.Join(folder, "sim", "build", "card"), "--listen", "unix:"+socket)
	c.cmd.Stderr = os.Stderr
	said, err := c.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, c.cmd.Start())
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(c.t, err)
	require.Contains(c.t, line, "listening")
	c.t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	})
}

// offer serves the card over USB/IP.
func (c *card) offer(ident []byte, serial string, link func() (net.Conn, error)) {
	c.t.Helper()
	var err error
	c.server, err = usbip.NewServer(usbip.Card{Ident: ident, Serial: serial, Link: func() (net.Conn, error) {
		conn, err := link()
		if err != nil {
			return nil, err
		}
		return &counted{conn, c}, nil
	}})
	require.NoError(c.t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	c.addr = l.Addr().String()
	go c.server.Serve(l)
	c.t.Cleanup(func() {
		l.Close()
		c.server.Close()
	})
}

// plug plugs the card into a machine. A card that was just unplugged may take a
// moment until it can be.
func (c *card) plug(bed *testbed.Testbed) (d *testbed.Device) {
	require.Eventually(c.t, func() bool {
		conn, err := net.Dial("tcp", c.addr)
		if err == nil {
			d, err = bed.Plug(conn, usbip.BusID)
		}
		return err == nil
	}, patience, 20*time.Millisecond)
	return d
}

// counted is a link that counts what goes to the card.
type counted struct {
	net.Conn
	card *card
}

func (l *counted) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	c := l.card
	passed := c.passed.Add(int64(n))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.do != nil && passed >= c.at {
		go c.do()
		c.do = nil
	}
	return n, err
}

// after has something done when so many more bytes have gone to the card.
func (c *card) after(bytes int64, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.do = c.passed.Load()+bytes, do
}

// ran is a command that has ended.
type ran struct {
	status    int
	out, errs string
}

// command returns a command on a machine, not yet started.
func command(t *testing.T, bed *testbed.Testbed, name string, args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), bed.Env()...)
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	return cmd, out, errs
}

// ended waits for a command.
func ended(t *testing.T, cmd *exec.Cmd, out, errs *bytes.Buffer) ran {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// tributary runs the command on a machine.
func tributary(t *testing.T, bed *testbed.Testbed, args ...string) ran {
	t.Helper()
	cmd, out, errs := command(t, bed, program, args...)
	require.NoError(t, cmd.Start())
	return ended(t, cmd, out, errs)
}

// works checks that a card can be used: that a reduction's sum is right.
func works(t *testing.T, bed *testbed.Testbed, name string) {
	t.Helper()
	r := reduce(t, bed, 1000, "-card", name)
	require.Equal(t, 0, r.status, r.errs)
}

// reduce sums the arrays of four workers and compares every bit.
func reduce(t *testing.T, bed *testbed.Testbed, elements int, args ...string) ran {
	t.Helper()
	r := tributary(t, bed, reduceArgs(t, elements, args...)...)
	if r.status == 0 {
		require.Contains(t, r.out, "every bit of the sum as in the Go model")
	}
	return r
}

// reduceArgs returns the command line that does it.
func reduceArgs(t *testing.T, elements int, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	all := append([]string{"reduce", "-verify", "-o", filepath.Join(dir, "sum.npy")}, args...)
	return append(all, arrays(t, dir, elements)...)
}

// words checks that a text has words in it.
func words(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		require.Contains(t, strings.Join(strings.Fields(text), " "), w)
	}
}
