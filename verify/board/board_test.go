// Package board tests the USB device of a card on a board at the pins of its PHY
// (`make board`): by itself, in the cases of pins/device_bench.cpp, and in front of a
// card, with the unmodified tributary at the other end of the cable.
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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/transport"
	"tributary/driver/usbip"
	"tributary/verify/usb/rig"
	"tributary/verify/usb/testbed"
)

// What `make board` has built.
const (
	program = "../../bin/tributary"
	bench   = "../../build/board/device_bench"
	card    = "../../build/board/usbip_card"
	device  = "../../build/board/agg_usb_device.v"
	folder  = "../../build/board/card"
	serial  = "BENCH-1"
)

const workers = 4

// patience is for what a busy machine may take.
const patience = 2 * time.Minute

// TestDevice: the device by itself does what SPEC.md, section 9, says.
func TestDevice(t *testing.T) {
	t.Parallel()
	manifest, err := transport.ReadManifest(folder)
	require.NoError(t, err)
	names, err := exec.Command(bench, "--list").Output()
	require.NoError(t, err)
	cases := strings.Fields(string(names))
	require.NotEmpty(t, cases)
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(bench, fmt.Sprintf("%016x", manifest.ConfigHash), serial,
				hex.EncodeToString(usbip.Ident(manifest.Constant)), name).CombinedOutput()
			require.NoError(t, err, string(out))
			t.Log(strings.TrimSpace(string(out)))
		})
	}
}

// TestPins: a card's folder asks for the packages with which the tests run.
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
	require.Subset(t, pins("../tools/requirements.txt"), pins("../../hwgen/emit/board/requirements.txt"))
}

// TestWriter: the same command line writes the same bytes, and one that cannot be is
// refused before anything is written.
func TestWriter(t *testing.T) {
	t.Parallel()
	writes := func(path string, args ...string) (string, error) {
		args = append([]string{"../../hwgen/emit/board/usb_device.py", "--top", "agg_usb_device", "-o", path}, args...)
		out, err := exec.Command("python", args...).CombinedOutput()
		return string(out), err
	}
	manifest := filepath.Join(folder, "manifest.json")
	path := filepath.Join(t.TempDir(), "device.v")
	for _, c := range []struct{ manifest, serial, says string }{
		{manifest, "", "is no serial number"},
		{manifest, "with blank", "is no serial number"},
		{manifest, strings.Repeat("9", 33), "is no serial number"},
		{filepath.Join(folder, "agg.f"), "1", "error"},
		{"nowhere.json", "1", "nowhere.json"},
	} {
		out, err := writes(path, "--manifest", c.manifest, "--serial", c.serial)
		require.Error(t, err)
		require.Contains(t, out, c.says)
		require.NotContains(t, out, "Traceback")
		require.NoFileExists(t, path)
	}
	out, err := writes(path, "--manifest", manifest, "--serial", serial)
	require.NoError(t, err, out)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	first, err := os.ReadFile(device)
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, again), "another run wrote other bytes")
}

// plug plugs the card, behind its pins, into a machine.
func plug(t *testing.T, args ...string) *testbed.Testbed {
	t.Helper()
	bed, err := testbed.New()
	require.NoError(t, err)
	t.Cleanup(bed.Close)
	cmd := exec.Command(card, args...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	said, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(said)
	t.Cleanup(func() {
		input.Close()
		rest, _ := io.ReadAll(lines)
		t.Log(strings.TrimSpace(string(rest)))
		if err := cmd.Wait(); err != nil {
			t.Errorf("the card: %v", err)
		}
	})
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	conn, err := net.Dial("tcp", strings.TrimSpace(strings.TrimPrefix(line, "listening ")))
	require.NoError(t, err)
	_, err = bed.Plug(conn, usbip.BusID)
	require.NoError(t, err)
	return bed
}

// tributary runs the command on a machine, to its end.
func tributary(t *testing.T, bed *testbed.Testbed, args ...string) (status int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), bed.Env()...), "XDG_RUNTIME_DIR="+bed.Dir())
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}

// sums reduces arrays of so many elements, and compares every bit with the model.
func sums(t *testing.T, bed *testbed.Testbed, elements int) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"reduce", "-verify", "-card", "usb:", "-o", filepath.Join(dir, "sum.npy")}
	status, out := tributary(t, bed, append(args, rig.Arrays(t, dir, workers, elements)...)...)
	require.Equal(t, 0, status, out)
	require.Contains(t, out, "every bit of the sum as in the Go model")
}

// TestCard: tributary finds the card, reads what it is, and sums through it, again and
// again, as each command claims the card anew.
func TestCard(t *testing.T) {
	t.Parallel()
	bed := plug(t)
	for line, want := range map[string]string{
		"list":                         "usb:1209:0001#" + serial,
		"info -card usb:":              "lanes 4, fp32 into fp32, sum tree",
		"selftest -card usb:":          "ok",
		"config -card usb: -workers 3": "workers 3, on ports 0, 1, 2",
		"reset -card usb:":             "card usb: is reset",
	} {
		status, out := tributary(t, bed, strings.Fields(line)...)
		require.Equal(t, 0, status, "%s: %s", line, out)
		require.Contains(t, strings.Join(strings.Fields(out), " "), want)
	}
	for range 3 {
		sums(t, bed, 1000)
	}
	sums(t, bed, 10_000)
}

// TestWire: packets are damaged and lost on the wire; no bit of a sum changes.
func TestWire(t *testing.T) {
	t.Parallel()
	bed := plug(t, "--faults", "10")
	sums(t, bed, 30_000)
}
