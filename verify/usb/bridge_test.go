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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/usbip"
	"tributary/verify/usb/rig"
	"tributary/verify/usb/testbed"
)

// Bridges, and the endpoints of their channel A.
const (
	ft232h  = "ft232h"
	ft2232h = "ft2232h"

	chipOut = 0x02
	chipIn  = 0x81
)

// newBridged offers the virtual card of make usb behind an FT232H.
func newBridged(t *testing.T, serial string) *rig.Card {
	t.Helper()
	return rig.NewBridged(t, folder, ft232h, serial)
}

// TestBridgeCommands: every command works over a bridge as over a socket.
func TestBridgeCommands(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	r := tributary(t, bed, "info", "-card", "ftdi:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "no device 0403:6014 or 0403:6010 is plugged in")

	plug(t, bed, newBridged(t, "A1"))
	for _, c := range []struct{ line, want string }{
		{"list", "ftdi:0403:6014#A1 - a bridge; that a card is behind it shows when it is opened"},
		{"info -card ftdi:", "lanes 4, fp32 into fp32, sum tree"},
		{"info -card ftdi:0403:6014", "ports 4"},
		{"info -card ftdi:0403:6014#A1 -json", `"card": "ftdi:0403:6014#A1"`},
		{"config -card ftdi: -workers 3", "workers 3, on ports 0, 1, 2"},
		{"selftest -card ftdi:", "ok flips"},
		{"bench -card ftdi: -time 200ms", "workers window link"},
		{"top -card ftdi: -count 1", "counter value"},
		{"reset -card ftdi:", "card ftdi: is reset"},
	} {
		r := tributary(t, bed, strings.Fields(c.line)...)
		require.Equal(t, 0, r.status, "%s: %s", c.line, r.errs)
		words(t, r.out, c.want)
	}
	for line, want := range map[string]string{
		"info -card ftdi:0403:6010":    "no device 0403:6010 is plugged in",
		"info -card ftdi:0403:6014#B2": "no chip with serial number B2 is plugged in; there is ftdi:0403:6014#A1",
		"info -card ftdi:12":           "ftdi:12 is no card's name; it is ftdi: or ftdi:VENDOR:PRODUCT",
		"info -card usb:":              "no device 1209:0001 is plugged in",
	} {
		r := tributary(t, bed, strings.Fields(line)...)
		require.Equal(t, 3, r.status, line)
		words(t, r.errs, want)
	}
}

// TestBridgeSim: what tributary sim -bridge offers is such a chip, and the sums are
// those of the same card on a socket.
func TestBridgeSim(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	sim := exec.Command(program, "sim", folder, "-usbip", "127.0.0.1:0", "-bridge", ft2232h, "-serial", "SIM1")
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
	for i, card := range []string{"ftdi:0403:6010#SIM1", "sim:" + folder} {
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

// TestTwoBridges: they are told apart by their serial numbers; neither is touched when
// a name does not say which, as a chip may be anything.
func TestTwoBridges(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	a := newBridged(t, "A1")
	plug(t, bed, a)
	other := rig.NewBridgedFake(t, ft2232h, "B2", func(conn net.Conn) { io.Copy(io.Discard, conn) })
	plug(t, bed, other)
	r := tributary(t, bed, "info", "-card", "ftdi:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "2 chips are plugged in; say which:", "ftdi:0403:6014#A1", "ftdi:0403:6010#B2")
	require.Zero(t, a.Passed())
	require.Zero(t, other.Passed())
	works(t, bed, "ftdi:0403:6014#A1")
	require.Zero(t, other.Passed())
}

// TestBridgeWithoutCard: a chip behind which no card answers is named as such.
func TestBridgeWithoutCard(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(net.Conn){
		"mute": func(conn net.Conn) { io.Copy(io.Discard, conn) },
		"echo": rig.Echo(4096),
		"full": func(conn net.Conn) { <-t.Context().Done(); conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := machine(t)
			plug(t, bed, rig.NewBridgedFake(t, ft232h, "A1", serve))
			r := tributary(t, bed, "info", "-card", "ftdi:")
			require.Equal(t, 3, r.status)
			words(t, r.errs, "ftdi:0403:6014#A1 cannot be claimed: no card answers behind the chip: see that its FPGA is loaded")
		})
	}
}

// TestBridgeStops: Ctrl-C does not wait for a card that does not answer.
func TestBridgeStops(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := rig.NewBridgedFake(t, ft232h, "A1", func(conn net.Conn) { io.Copy(io.Discard, conn) })
	plug(t, bed, c)
	asked := make(chan time.Time, 1)
	cmd, out, errs := command(t, bed, program, "info", "-card", "ftdi:")
	c.After(1, func() { asked <- time.Now() })
	require.NoError(t, cmd.Start())
	at := <-asked
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	r := ended(t, cmd, out, errs)
	require.Less(t, time.Since(at), 8*time.Second)
	require.Equal(t, 1, r.status)
	words(t, r.errs, "stopped")
}

// TestBridgeClaimed: a chip that another program has is named as such, and is not
// disturbed.
func TestBridgeClaimed(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := newBridged(t, "A1")
	plug(t, bed, c)
	begun := make(chan bool)
	c.After(middle, func() { close(begun) })
	cmd, out, errs := command(t, bed, program, "bench", "-card", "ftdi:", "-time", "1m")
	require.NoError(t, cmd.Start())
	<-begun
	r := tributary(t, bed, "reset", "-card", "ftdi:")
	require.Equal(t, 1, r.status)
	words(t, r.errs, "card ftdi: is busy: another program has claimed ftdi:0403:6014#A1")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	words(t, ended(t, cmd, out, errs).errs, "stopped")
	works(t, bed, "ftdi:")
}

// TestBridgeNoPermission: the rule to install is printed.
func TestBridgeNoPermission(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	d := plug(t, bed, newBridged(t, "A1"))
	require.NoError(t, errors.Join(os.Chmod(d.Node(), 0), os.Chmod(bed.Dir(), 0o777)))
	r := asNobody(t, bed, "info", "-card", "ftdi:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "this user may not open it", "/etc/udev/rules.d/70-tributary.rules",
		`SUBSYSTEM=="usb", ATTR{idVendor}=="0403", ATTR{idProduct}=="6014", MODE="0660", TAG+="uaccess"`)
}

var bridgeFaults = []fault{
	{"stall in", func(_ *testing.T, c *rig.Card, _ *testbed.Testbed, _ *testbed.Device) { c.Halt(chipIn) },
		"card ftdi: is gone: it halted an endpoint"},
	{"stall out", func(_ *testing.T, c *rig.Card, _ *testbed.Testbed, _ *testbed.Device) { c.Halt(chipOut) },
		"card ftdi: is gone: it halted an endpoint"},
	{"unplug", func(t *testing.T, c *rig.Card, bed *testbed.Testbed, d *testbed.Device) {
		d.Unplug()
		time.Sleep(200 * time.Millisecond)
		plug(t, bed, c)
	}, "card ftdi: is gone: it was unplugged"},
}

// TestBridgeFaults: each ends a reduction with a clear error, and leaves a card that
// works, though it has noticed nothing: it holds half a frame, an owner and a job.
func TestBridgeFaults(t *testing.T) {
	t.Parallel()
	for _, f := range bridgeFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			bed := machine(t)
			c := newBridged(t, "A1")
			d := plug(t, bed, c)
			over := make(chan bool)
			c.After(middle, func() { f.do(t, c, bed, d); close(over) })
			r := reduce(t, bed, long, "-card", "ftdi:")
			require.Equal(t, 1, r.status, r.errs)
			words(t, r.errs, f.says)
			<-over
			works(t, bed, "ftdi:")
		})
	}
}

// TestBridgeCarryOn: a reduction that is to carry on does, over chips that are
// unplugged several times; its sum has every contribution once.
func TestBridgeCarryOn(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := newBridged(t, "A1")
	d := plug(t, bed, c)
	unplug := bridgeFaults[2].do
	const times = 3
	left, over := times, make(chan bool)
	var again func()
	again = func() {
		unplug(t, c, bed, d)
		if d = bed.Newest(); left > 1 {
			left--
			c.After(middle/3, again)
		} else {
			close(over)
		}
	}
	c.After(middle/3, again)
	r := reduce(t, bed, long, "-card", "ftdi:", "-carry-on", "30s", "-stats")
	require.Equal(t, 0, r.status, r.errs)
	<-over
	words(t, r.out, fmt.Sprintf("outages %d", times))
}

// TestBridgeCancel: Ctrl-C, and a program that is killed, leave a card that works,
// though it was told of neither.
func TestBridgeCancel(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			bed := machine(t)
			c := newBridged(t, "A1")
			plug(t, bed, c)
			line := reduceArgs(t, long, "-card", "ftdi:")
			for range 3 {
				cmd, out, errs := command(t, bed, program, line...)
				require.NoError(t, cmd.Start())
				c.After(middle, func() { cmd.Process.Signal(signal) })
				r := ended(t, cmd, out, errs)
				require.NotEqual(t, 0, r.status)
				if signal == syscall.SIGINT {
					words(t, r.errs, "stopped")
				}
				works(t, bed, "ftdi:")
			}
		})
	}
}

// TestBridgeStreams: bytes pass both ways at once, unchanged and in order, whatever
// the chip's packets are: each has its status, many are short, some are full.
func TestBridgeStreams(t *testing.T) {
	t.Parallel()
	loop := buildLoop(t)
	for _, size := range []int{1, 509, 510, 511, 1020, 128 * 510, 200_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			bed := machine(t)
			plug(t, bed, rig.NewBridgedFake(t, ft232h, "ECHO", rig.Answering(rig.Echo(size))))
			bytes := min(1<<20, 1_000*size)
			for _, write := range []int{64 << 10, 2047} {
				r := runs(t, bed, loop, "-card", "ftdi:", "-bytes", fmt.Sprint(bytes), "-write", fmt.Sprint(write))
				require.Equal(t, 0, r.status, r.errs)
			}
		})
	}
}
