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

	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/usbip"
	"tributary/verify/system/usb/rig"
)

// bridge is a modelled chip, and its address on USB.
type bridge struct {
	chip, scheme string
	number       string // vendor and product
	out, in      uint8  // endpoints of the stream
}

const (
	ft232h  = "ft232h"
	ft2232h = "ft2232h"
	ft601   = "ft601"
	ft600   = "ft600"
)

// bridges has one chip of each kind.
var bridges = []bridge{
	{ft232h, "ftdi:", "0403:6014", 0x02, 0x81},
	{ft601, "ft60x:", "0403:601f", 0x02, 0x82},
}

// eachBridge runs a test with a chip of each kind.
func eachBridge(t *testing.T, test func(t *testing.T, b bridge)) {
	for _, b := range bridges {
		t.Run(b.chip, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// newBridged serves the virtual card of `make usb` behind a chip.
func newBridged(t *testing.T, chip, serial string) *rig.Card {
	t.Helper()
	return rig.NewBridged(t, folder, chip, serial)
}

// TestBridgeCommands: every command works over a bridge as over a socket, and alike over all chips.
func TestBridgeCommands(t *testing.T) {
	t.Parallel()
	none := map[string]string{ft232h: "0403:6014 or 0403:6010", ft601: "0403:601f or 0403:601e"}
	eachBridge(t, func(t *testing.T, b bridge) {
		bed := machine(t)
		r := tributary(t, bed, "info", "-card", b.scheme)
		require.Equal(t, 3, r.status)
		words(t, r.errs, "no device "+none[b.chip]+" is plugged in")

		plug(t, bed, newBridged(t, b.chip, "A1"))
		card := b.scheme + b.number
		lines := [][2]string{
			{"list", card + "#A1 - a bridge; that a card is behind it shows when it is opened"},
			{"info -card " + b.scheme, "lanes 4, fp32 into fp32, sum tree"},
			{"info -card " + card + "#A1 -json", `"card": "` + card + `#A1"`},
			{"bench -card " + card + " -time 200ms", "workers window link"},
		}
		if b.chip == ft232h {
			lines = append(lines, [][2]string{
				{"config -card ftdi: -workers 3", "workers 3, on ports 0, 1, 2"},
				{"top -card ftdi: -count 1", "counter value"},
				{"reset -card ftdi:", "card ftdi: is reset"},
			}...)
		}
		for _, l := range lines {
			r := tributary(t, bed, strings.Fields(l[0])...)
			require.Equal(t, 0, r.status, "%s: %s", l[0], r.errs)
			words(t, r.out, l[1])
		}
		for line, want := range map[string]string{
			"info -card " + b.scheme + "0403:6010": "no device 0403:6010 is plugged in",
			"info -card " + card + "#B2":           "no chip with serial number B2 is plugged in; name one of these: " + card + "#A1",
			"info -card " + b.scheme + "12":        b.scheme + "12 is not a card's name; use " + b.scheme + " or " + b.scheme + "VENDOR:PRODUCT",
			"info -card usb:":                      "no device 1209:0001 is plugged in",
		} {
			r := tributary(t, bed, strings.Fields(line)...)
			require.Equal(t, 3, r.status, line)
			words(t, r.errs, want)
		}
	})
}

// TestBridgeSelftest: the selftest finds damage in the stream behind a bridge, too.
func TestBridgeSelftest(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	plug(t, bed, newBridged(t, ft232h, "A1"))
	r := tributary(t, bed, "selftest", "-card", "ftdi:")
	require.Equal(t, 0, r.status, r.errs)
	words(t, r.out, "ok flips")
}

// TestBridgeSim: tributary sim -bridge serves such a chip, and the sums equal those of the same
// card on a socket.
func TestBridgeSim(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	dir := t.TempDir()
	files := rig.Arrays(t, dir, workers, long)
	sum := func(card string) []byte {
		out := filepath.Join(dir, "sum.npy")
		r := tributary(t, bed, append([]string{"reduce", "-card", card, "-o", out}, files...)...)
		require.Equal(t, 0, r.status, r.errs)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		return text
	}
	want := sum("sim:" + folder)
	for chip, card := range map[string]string{ft2232h: "ftdi:0403:6010#SIM1", ft600: "ft60x:0403:601e#SIM1"} {
		sim := exec.Command(program, "sim", folder, "-usbip", "127.0.0.1:0", "-bridge", chip, "-serial", "SIM1")
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
		require.Equal(t, want, sum(card), chip)
		require.NoError(t, sim.Process.Signal(os.Interrupt))
		require.NoError(t, sim.Wait())
	}
}

// TestTwoBridges: serial numbers distinguish two chips. An ambiguous name touches neither,
// because another device may be behind a chip.
func TestTwoBridges(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	a := newBridged(t, ft232h, "A1")
	plug(t, bed, a)
	other := rig.NewBridgedFake(t, ft2232h, "B2", func(conn net.Conn) { io.Copy(io.Discard, conn) })
	plug(t, bed, other)
	r := tributary(t, bed, "info", "-card", "ftdi:")
	require.Equal(t, 3, r.status)
	words(t, r.errs, "2 chips are plugged in; name one of them:", "ftdi:0403:6014#A1", "ftdi:0403:6010#B2")
	require.Zero(t, a.Passed())
	require.Zero(t, other.Passed())
	works(t, bed, "ftdi:0403:6014#A1")
	require.Zero(t, other.Passed())
}

// TestBridgeWithoutCard: the error for a chip without a card says so.
func TestBridgeWithoutCard(t *testing.T) {
	t.Parallel()
	eachBridge(t, func(t *testing.T, b bridge) {
		for name, serve := range map[string]func(net.Conn){
			"mute": func(conn net.Conn) { io.Copy(io.Discard, conn) },
			"echo": rig.Echo(4096),
			"full": func(conn net.Conn) { <-t.Context().Done(); conn.Close() },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bed := machine(t)
				plug(t, bed, rig.NewBridgedFake(t, b.chip, "A1", serve))
				r := tributary(t, bed, "info", "-card", b.scheme)
				require.Equal(t, 3, r.status)
				words(t, r.errs, b.scheme+b.number+"#A1 cannot be claimed: no card replies behind the chip; check that its FPGA is configured")
			})
		}
	})
}

// TestBridgeStops: Ctrl-C does not wait for a card that does not answer.
func TestBridgeStops(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := rig.NewBridgedFake(t, ft232h, "A1", func(conn net.Conn) { io.Copy(io.Discard, conn) })
	plug(t, bed, c)
	asked := make(chan bool, 1)
	cmd, out, errs := command(t, bed, program, "info", "-card", "ftdi:")
	c.After(1, func() { asked <- true })
	require.NoError(t, cmd.Start())
	<-asked
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	r := ended(t, cmd, out, errs)
	require.Equal(t, 1, r.status)
	words(t, r.errs, "stopped")
}

// TestBridgeClaimed: the error for a chip in use by another program says so, and that program
// continues.
func TestBridgeClaimed(t *testing.T) {
	t.Parallel()
	eachBridge(t, func(t *testing.T, b bridge) {
		bed := machine(t)
		c := newBridged(t, b.chip, "A1")
		plug(t, bed, c)
		begun := make(chan bool)
		c.After(middle, func() { close(begun) })
		cmd, out, errs := command(t, bed, program, "bench", "-card", b.scheme, "-time", "1h")
		require.NoError(t, cmd.Start())
		<-begun
		r := tributary(t, bed, "reset", "-card", b.scheme)
		require.Equal(t, 1, r.status)
		words(t, r.errs, "card "+b.scheme+" is busy: another program has claimed "+b.scheme+b.number+"#A1")
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		words(t, ended(t, cmd, out, errs).errs, "stopped")
		works(t, bed, b.scheme)
	})
}

// TestBridgeNoPermission: the error shows the udev rule to install.
func TestBridgeNoPermission(t *testing.T) {
	t.Parallel()
	eachBridge(t, func(t *testing.T, b bridge) {
		bed := machine(t)
		d := plug(t, bed, newBridged(t, b.chip, "A1"))
		require.NoError(t, errors.Join(os.Chmod(d.Node(), 0), os.Chmod(bed.Dir(), 0o777)))
		r := asNobody(t, bed, "info", "-card", b.scheme)
		require.Equal(t, 3, r.status)
		_, product, _ := strings.Cut(b.number, ":")
		words(t, r.errs, "this user may not open it", "/etc/udev/rules.d/70-tributary.rules",
			`SUBSYSTEM=="usb", ATTR{idVendor}=="0403", ATTR{idProduct}=="`+product+`", MODE="0660", TAG+="uaccess"`)
	})
}

// TestBridgeFaults: each fault ends a reduction with a clear error, and the card works
// afterwards. The card does not notice the fault: it still has half a frame, an owner and a job.
func TestBridgeFaults(t *testing.T) {
	t.Parallel()
	eachBridge(t, func(t *testing.T, b bridge) {
		faults := []fault{
			{"stall in", halt(b.in), false, "it halted an endpoint"},
			{"stall out", halt(b.out), false, "it halted an endpoint"},
			{"unplug", unplug, true, "it was unplugged"},
		}
		if b.chip == ft601 {
			faults = append(faults, fault{"stall commands", halt(0x01), false, "it halted an endpoint"})
		}
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				bed := machine(t)
				c := newBridged(t, b.chip, "A1")
				d := plug(t, bed, c)
				over := f.strikes(t, c, bed, d, middle, 1)
				r := reduce(t, bed, long, "-card", b.scheme)
				require.Equal(t, 1, r.status, r.errs)
				words(t, r.errs, "card "+b.scheme+" disconnected: "+f.says)
				<-over
				works(t, bed, b.scheme)
			})
		}
	})
}

// TestBridgeCarryOn: with -carry-on a reduction survives several unpluggings of the chip; its sum
// has every contribution once.
func TestBridgeCarryOn(t *testing.T) {
	t.Parallel()
	bed := machine(t)
	c := newBridged(t, ft601, "A1")
	d := plug(t, bed, c)
	const times = 3
	over := fault{do: unplug, unplugs: true}.strikes(t, c, bed, d, middle/3, times)
	r := reduce(t, bed, long, "-card", "ft60x:", "-carry-on", patience.String(), "-stats")
	require.Equal(t, 0, r.status, r.errs)
	<-over
	words(t, r.out, fmt.Sprintf("outages %d", times))
}

// TestBridgeCancel: after Ctrl-C, and after a killed program, the card works, though it is not
// notified of either.
func TestBridgeCancel(t *testing.T) {
	t.Parallel()
	eachBridge(t, func(t *testing.T, b bridge) {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			t.Run(signal.String(), func(t *testing.T) {
				t.Parallel()
				bed := machine(t)
				c := newBridged(t, b.chip, "A1")
				plug(t, bed, c)
				line := reduceArgs(t, long, "-card", b.scheme)
				for range 2 {
					cmd, out, errs := command(t, bed, program, line...)
					startAndSignal(t, cmd, c, signal)
					r := ended(t, cmd, out, errs)
					require.NotEqual(t, 0, r.status)
					if signal == syscall.SIGINT {
						words(t, r.errs, "stopped")
					}
					works(t, bed, b.scheme)
				}
			})
		}
	})
}

// TestBridgeStreams: bytes pass both ways at once, unchanged and in order, whatever the chip's
// packets: with status bytes or requested lengths, mostly short, some full.
func TestBridgeStreams(t *testing.T) {
	t.Parallel()
	loop := buildLoop(t)
	sizes := map[string][]int{
		ft232h: {1, 509, 510, 511, 1020, 128 * 510, 200_000},
		ft601:  {1, 511, 512, 513, 1024, 200_000},
	}
	eachBridge(t, func(t *testing.T, b bridge) {
		for _, size := range sizes[b.chip] {
			t.Run(fmt.Sprint(size), func(t *testing.T) {
				t.Parallel()
				bed := machine(t)
				plug(t, bed, rig.NewBridgedFake(t, b.chip, "ECHO", rig.Answering(rig.Echo(size))))
				bytes := min(1<<18, 250*size)
				for _, write := range []int{64 << 10, 2047} {
					r := runs(t, bed, loop, "-card", b.scheme, "-bytes", fmt.Sprint(bytes), "-write", fmt.Sprint(write))
					require.Equal(t, 0, r.status, r.errs)
				}
			})
		}
	})
}
