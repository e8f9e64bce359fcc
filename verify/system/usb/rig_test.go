package usb

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/usbip"
	"tributary/verify/system/usb/rig"
	"tributary/verify/system/usb/testbed"
)

// Files that `make usb` has built.
const (
	program = "../../../bin/tributary"
	folder  = "../../../build/usb/card"
)

const workers = 4

// patience limits a command, so that it ends before the time limit of go test.
const patience = 8 * time.Minute

// machine returns a machine without USB devices.
func machine(t *testing.T) *testbed.Testbed {
	t.Helper()
	bed, err := testbed.New()
	require.NoError(t, err)
	t.Cleanup(bed.Close)
	return bed
}

// newCard serves the virtual card of `make usb`.
func newCard(t *testing.T, serial string) *rig.Card {
	t.Helper()
	return rig.NewCard(t, folder, serial)
}

// plug plugs the card into a machine. It retries, since a card that was just unplugged needs a
// moment.
func plug(t *testing.T, bed *testbed.Testbed, c *rig.Card) (d *testbed.Device) {
	t.Helper()
	for {
		conn, err := net.Dial("tcp", c.Addr)
		require.NoError(t, err)
		if d, err = bed.Plug(conn, usbip.BusID); err == nil {
			return d
		}
	}
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
	cmd.Env = append(append(os.Environ(), bed.Env()...), "XDG_RUNTIME_DIR="+bed.Dir()) // hides the hosts of other machines
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

// runs runs a program on a machine.
func runs(t *testing.T, bed *testbed.Testbed, name string, args ...string) ran {
	t.Helper()
	cmd, out, errs := command(t, bed, name, args...)
	require.NoError(t, cmd.Start())
	return ended(t, cmd, out, errs)
}

// tributary runs the command on a machine.
func tributary(t *testing.T, bed *testbed.Testbed, args ...string) ran {
	t.Helper()
	return runs(t, bed, program, args...)
}

// asNobody runs tributary on a machine as an unprivileged user, who may read the machine's
// folder.
func asNobody(t *testing.T, bed *testbed.Testbed, args ...string) ran {
	t.Helper()
	mine := filepath.Join(bed.Dir(), "tributary")
	// cp writes the copy, not this process. A child of another test could hold our file open for
	// a moment, and the kernel does not execute a file that is open for writing.
	require.NoError(t, exec.Command("cp", program, mine).Run())
	cmd, out, errs := command(t, bed, mine, args...)
	cmd.Dir = bed.Dir()
	if os.Getuid() == 0 { // root may open every file
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	require.NoError(t, cmd.Start())
	return ended(t, cmd, out, errs)
}

// works checks that a card is usable: a reduction's sum is right.
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
	return append(all, rig.Arrays(t, dir, workers, elements)...)
}

// words checks that a text contains all words.
func words(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		require.Contains(t, strings.Join(strings.Fields(text), " "), w)
	}
}
