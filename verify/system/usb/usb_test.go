package usb

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/usbip"
	"tributary/driver/wire"
	"tributary/verify/system/usb/rig"
	"tributary/verify/system/usb/testbed"
)

// long is an array that takes the virtual card a second or two, and some bytes on
// the way to a card that are in the middle of its data.
const (
	long   = 40_000
	middle = 300_000
)

// TestCommands: every command works over USB as over a socket.
func TestCommands(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	r := tributary(t, bed, "info", "-card", "usb:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "no device 1209:0001 is plugged in")

	plug(t, bed, newCard(t, "A1"))
	for _, c := range []struct{ line, want string }{
		{"list", "usb:1209:0001#A1 ready 4 lanes, 4 workers, fp32, sum tree, shell stream"},
		{"info -card usb:", "lanes 4, fp32 into fp32, sum tree"},
		{"info -card usb:1209:0001", "ports 4"},
		{"info -card usb:1209:0001#A1 -json", `"card": "usb:1209:0001#A1"`},
		{"config -card usb: -workers 3", "workers 3, on ports 0, 1, 2"},
		{"selftest -card usb:", "ok flips"},
		{"bench -card usb: -time 200ms", "workers window link"},
		{"top -card usb: -count 1", "counter value"},
		{"reset -card usb:", "card usb: is reset"},
	} {
		r := tributary(t, bed, strings.Fields(c.line)...)
		require.Equal(t, 0, r.status, "%s: %s", c.line, r.errs)
		words(t, r.out, c.want)
	}
	for line, want := range map[string]string{
		"info -card usb:1209:0002":    "no device 1209:0002 is plugged in",
		"info -card usb:1209:0001#B2": "no card with serial number B2 is plugged in; name one of these: usb:1209:0001#A1",
		"info -card usb:12":           "usb:12 is not a card's name",
	} {
		r := tributary(t, bed, strings.Fields(line)...)
		require.Equal(t, 3, r.status, line)
		words(t, r.errs, want)
	}
}

// TestSim: tributary sim -usbip serves a card as a USB device, and its sums equal those of the
// same card on a socket.
func TestSim(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	sim := exec.Command(program, "sim", folder, "-usbip", "127.0.0.1:0", "-serial", "SIM1")
	sim.Stderr = os.Stderr
	said, err := sim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, sim.Start())
	var addr string
	_, err = fmt.Fscanf(said, "usbip %s", &addr)
	require.NoError(t, err)
	go io.Copy(io.Discard, said)
	conn, err := net.Dial("tcp", strings.TrimSuffix(addr, ","))
	require.NoError(t, err)
	_, err = bed.Plug(conn, usbip.BusID)
	require.NoError(t, err)

	dir := t.TempDir()
	files := rig.Arrays(t, dir, workers, long)
	var sums [2][]byte
	for i, card := range []string{"usb:1209:0001#SIM1", "sim:" + folder} {
		out := filepath.Join(dir, fmt.Sprint("sum", i, ".npy"))
		r := tributary(t, bed, append([]string{"reduce", "-card", card, "-o", out}, files...)...)
		require.Equal(t, 0, r.status, r.errs)
		sums[i], err = os.ReadFile(out)
		require.NoError(t, err)
	}
	require.Equal(t, sums[1], sums[0])
	require.NoError(t, sim.Process.Signal(os.Interrupt))
	require.NoError(t, sim.Wait())
}

// TestTwoCards: serial numbers distinguish two cards, which work at the same time.
func TestTwoCards(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	plug(t, bed, newCard(t, "A1"))
	plug(t, bed, newCard(t, "B2"))
	r := tributary(t, bed, "info", "-card", "usb:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "2 cards are plugged in; name one of them:", "usb:1209:0001#A1", "usb:1209:0001#B2")
	sums := make(chan ran, 2)
	for _, serial := range []string{"A1", "B2"} {
		line := reduceArgs(t, long/2, "-card", "usb:1209:0001#"+serial)
		go func() { sums <- tributary(t, bed, line...) }()
	}
	for range 2 {
		r := <-sums
		require.Equal(t, 0, r.status, r.errs)
	}
}

// TestClaimed: the error for a card in use by another program says so, and that program
// continues.
func TestClaimed(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := newCard(t, "A1")
	plug(t, bed, c)
	begun := make(chan bool)
	c.After(middle, func() { close(begun) })
	cmd, out, errs := command(t, bed, program, "bench", "-card", "usb:", "-time", "1h")
	require.NoError(t, cmd.Start())
	<-begun
	r := tributary(t, bed, "reset", "-card", "usb:")
	require.Equal(t, 1, r.status)
	words(t, r.errs, "card usb: is busy: another program has claimed usb:1209:0001#A1")
	words(t, tributary(t, bed, "list").out, "usb:1209:0001#A1 ready")
	words(t, tributary(t, bed, "top", "-card", "usb:", "-count", "1").out, "through tributary bench")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	words(t, ended(t, cmd, out, errs).errs, "stopped")
	works(t, bed, "usb:")
}

// TestNoPermission: the error shows the udev rule to install.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	d := plug(t, bed, newCard(t, "A1"))
	require.NoError(t, errors.Join(os.Chmod(d.Node(), 0), os.Chmod(bed.Dir(), 0o777)))
	r := asNobody(t, bed, "info", "-card", "usb:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "this user may not open it", "/etc/udev/rules.d/70-tributary.rules",
		`SUBSYSTEM=="usb", ATTR{idVendor}=="1209", ATTR{idProduct}=="0001", MODE="0660", TAG+="uaccess"`)
}

// fault is a fault of a card in the middle of a reduction.
type fault struct {
	name    string
	do      func(c *rig.Card, d *testbed.Device)
	unplugs bool   // the test plugs the card in again
	says    string // part of the reduction's error
}

var faults = []fault{
	{"stall in", halt(wire.USBIn), false, "card usb: disconnected: it halted an endpoint"},
	{"stall out", halt(wire.USBOut), false, "card usb: disconnected: it halted an endpoint"},
	{"unplug", unplug, true, "card usb: disconnected: it was unplugged"},
}

// halt returns a fault that halts an endpoint.
func halt(endpoint uint8) func(*rig.Card, *testbed.Device) {
	return func(c *rig.Card, _ *testbed.Device) { c.Halt(endpoint) }
}

// unplug is the fault that unplugs the card.
func unplug(_ *rig.Card, d *testbed.Device) { d.Unplug() }

// strikes makes a fault happen a number of times, each time after some more bytes to a card. It
// closes over when the card is plugged in again after the last time.
func (f fault) strikes(t *testing.T, c *rig.Card, bed *testbed.Testbed, d *testbed.Device, bytes int64, times int) (over chan bool) {
	over = make(chan bool)
	plugged := make(chan *testbed.Device, 1)
	plugged <- d
	var strike func()
	strike = func() {
		d := <-plugged
		f.do(c, d)
		times--
		last := times == 0
		if !last { // before the card gets more bytes
			c.After(bytes, strike)
		}
		go func() {
			if f.unplugs {
				d = plug(t, bed, c)
			}
			plugged <- d
			if last {
				close(over)
			}
		}()
	}
	c.After(bytes, strike)
	return over
}

// TestFaults: each fault ends a reduction with a clear error, and the card works afterwards.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			bed := machine(t)
			c := newCard(t, "A1")
			d := plug(t, bed, c)
			over := f.strikes(t, c, bed, d, middle, 1)
			r := reduce(t, bed, long, "-card", "usb:")
			require.Equal(t, 1, r.status, r.errs)
			words(t, r.errs, f.says)
			<-over
			works(t, bed, "usb:")
		})
	}
}

// TestCarryOn: with -carry-on a reduction survives each fault several times; its sum has every
// contribution once.
func TestCarryOn(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			bed := machine(t)
			c := newCard(t, "A1")
			d := plug(t, bed, c)
			const times = 3
			over := f.strikes(t, c, bed, d, middle/3, times)
			r := reduce(t, bed, long, "-card", "usb:", "-carry-on", patience.String(), "-stats")
			require.Equal(t, 0, r.status, r.errs)
			<-over
			words(t, r.out, fmt.Sprintf("outages %d", times))
			words(t, r.errs, "the card disconnected", "the card is back")
		})
	}
}

// TestGoneForGood: with -carry-on a reduction reports that its card did not return.
func TestGoneForGood(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := newCard(t, "A1")
	d := plug(t, bed, c)
	c.After(middle, d.Unplug)
	r := reduce(t, bed, long, "-card", "usb:", "-carry-on", "1s")
	require.Equal(t, 3, r.status, r.errs)
	// A busy machine says later how long it waited.
	words(t, r.errs, "card usb: disconnected (it was unplugged) and did not return within ", "s: no device 1209:0001 is plugged in")
}

// TestTimeout: the driver gives up a card that stops answering in time, and can use it again
// later.
func TestTimeout(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := newCard(t, "A1")
	plug(t, bed, c)
	c.After(middle, func() { c.Stop() })
	r := reduce(t, bed, long, "-card", "usb:", "-timeout", "5s") // the card may take some of them to open
	require.Equal(t, 4, r.status, r.errs)
	c.Continue()
	works(t, bed, "usb:")
}

// TestCancel: after Ctrl-C, and after a killed program, the card works, though it has taken part
// of the data.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			bed := machine(t)
			c := newCard(t, "A1")
			plug(t, bed, c)
			line := reduceArgs(t, long, "-card", "usb:")
			for range 3 {
				cmd, out, errs := command(t, bed, program, line...)
				startAndSignal(t, cmd, c, signal)
				r := ended(t, cmd, out, errs)
				require.NotEqual(t, 0, r.status)
				if signal == syscall.SIGINT {
					require.Equal(t, 1, r.status, r.errs)
					words(t, r.errs, "stopped")
				}
				_, err := os.Stat(line[3])
				require.ErrorIs(t, err, os.ErrNotExist)
				works(t, bed, "usb:")
			}
		})
	}
}

// startAndSignal starts a command, and sends it a signal in the middle of its data.
func startAndSignal(t *testing.T, cmd *exec.Cmd, c *rig.Card, signal os.Signal) {
	t.Helper()
	started := make(chan *os.Process, 1)
	c.After(middle, func() { (<-started).Signal(signal) })
	require.NoError(t, cmd.Start())
	started <- cmd.Process
}

// buildLoop builds the command loop.
func buildLoop(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loop")
	out, err := exec.Command("go", "build", "-o", path, "./loop").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// TestStreams: bytes pass in both directions at once, unchanged and in order, for all kinds of
// bursts and sizes of writes. Bursts are many short packets, whole packets with an empty packet
// at the end, and whole transfers.
func TestStreams(t *testing.T) {
	t.Parallel()
	loop := buildLoop(t)
	for _, size := range []int{1, 511, 512, 513, 1024, 64 << 10, 200_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			bed := machine(t)
			plug(t, bed, rig.NewFake(t, "ECHO", rig.Echo(size)))
			bytes := min(4<<20, 10_000*size)
			for _, write := range []int{64 << 10, 2047} {
				r := runs(t, bed, loop, "-bytes", fmt.Sprint(bytes), "-write", fmt.Sprint(write))
				require.Equal(t, 0, r.status, r.errs)
			}
		})
	}
}

// TestStuck: Close ends a write that the device does not take, with the number of bytes taken;
// the device is usable afterwards.
func TestStuck(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	var links atomic.Int32
	plug(t, bed, rig.NewFake(t, "STUCK", func(conn net.Conn) {
		if links.Add(1) == 1 {
			<-t.Context().Done()
		}
		rig.Echo(4096)(conn)
	}))
	loop := buildLoop(t)
	for _, args := range [][]string{{"-stuck"}, {"-bytes", "100000"}} {
		r := runs(t, bed, loop, args...)
		require.Equal(t, 0, r.status, r.errs)
	}
}

// TestStranger: the driver refuses a device that has a card's vendor and product but is no card.
func TestStranger(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	plug(t, bed, rig.NewStranger(t))
	r := tributary(t, bed, "info", "-card", "usb:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "device 1209:0001 is no Tributary card")
	require.NotContains(t, tributary(t, bed, "list").out, "usb:")
}

// TestWithoutLibusb: a build without cgo reports that it lacks libusb.
func TestWithoutLibusb(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "tributary")
	build := exec.Command("go", "build", "-o", plain, "../../../driver/cmd/tributary")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	bed := machine(t)
	r := runs(t, bed, plain, "info", "-card", "usb:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "no card at usb: this tributary was built without libusb", "apt install libusb-1.0-0-dev pkg-config")
}
