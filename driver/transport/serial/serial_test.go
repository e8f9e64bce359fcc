//go:build linux

package serial

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tributary/driver/transport"
	"tributary/driver/virtual/pty"
)

func TestParse(t *testing.T) {
	for address, want := range map[string]name{
		"/dev/ttyUSB1":          {"/dev/ttyUSB1", 3_000_000},
		"/dev/ttyUSB1@115200":   {"/dev/ttyUSB1", 115_200},
		"a@b@9600":              {"a@b", 9600},
		"/dev/serial/by-id/x-y": {"/dev/serial/by-id/x-y", 3_000_000},
	} {
		got, err := parse(address)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for address, want := range map[string]string{
		"":                          "serial: lacks a port; use serial:PORT or serial:PORT@BAUD, as in serial:/dev/ttyUSB1@1000000",
		"@9600":                     "serial:@9600 lacks a port",
		"/dev/ttyUSB1@":             `serial:/dev/ttyUSB1@: "" is not a rate in baud, as in serial:/dev/ttyUSB1@1000000`,
		"/dev/ttyUSB1@fast":         `"fast" is not a rate in baud`,
		"/dev/ttyUSB1@0":            `"0" is not a rate in baud`,
		"/dev/ttyUSB1@-9":           `"-9" is not a rate in baud`,
		"/dev/ttyUSB1@999999999999": "is not a rate in baud",
	} {
		_, err := parse(address)
		require.ErrorContains(t, err, want)
	}
}

// card makes a port with a byte stream behind it.
func card(t *testing.T) (path string, port *pty.Port, far net.Conn) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tty")
	port, err := pty.New(path, DefaultBaud)
	require.NoError(t, err)
	near, far := net.Pipe()
	go port.Serve(func() (net.Conn, error) { return near, nil })
	t.Cleanup(func() { port.Close(); far.Close() })
	return path, port, far
}

// TestBytes checks that every byte passes unchanged in both directions, including the
// terminal's control characters.
func TestBytes(t *testing.T) {
	path, _, far := card(t)
	file, err := openPort(name{path, DefaultBaud})
	require.NoError(t, err)
	c := &conn{file: file, left: []byte("left")}
	defer c.Close()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	got := make([]byte, len(all))
	n, err := c.Read(got)
	require.NoError(t, err)
	require.Equal(t, "left", string(got[:n]))
	_, err = c.Write(all)
	require.NoError(t, err)
	readAll(t, far, got)
	require.Equal(t, all, got)
	_, err = far.Write(all)
	require.NoError(t, err)
	clear(got)
	readAll(t, c, got)
	require.Equal(t, all, got)
}

func readAll(t *testing.T, from interface{ Read([]byte) (int, error) }, to []byte) {
	t.Helper()
	for len(to) > 0 {
		n, err := from.Read(to)
		require.NoError(t, err)
		to = to[n:]
	}
}

// TestRate checks that the port gets the rate in the name.
func TestRate(t *testing.T) {
	path, _, _ := card(t)
	file, err := openPort(name{path, 1_234_567})
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, control(file, func(fd int) error {
		line, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
		require.EqualValues(t, 1_234_567, line.Ospeed)
		require.EqualValues(t, 1_234_567, line.Ispeed)
		return err
	}))
}

// TestTaken checks that only one program can open a port.
func TestTaken(t *testing.T) {
	path, _, _ := card(t)
	file, err := openPort(name{path, DefaultBaud})
	require.NoError(t, err)
	_, err = Open(t.Context(), path, 0)
	var taken *transport.TakenError
	require.ErrorAs(t, err, &taken)
	require.EqualError(t, taken, "another program has opened "+path)
	require.NoError(t, file.Close())
	file, err = openPort(name{path, DefaultBaud})
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.ErrorAs(t, openError(name{path: path}, &fs.PathError{Err: unix.EBUSY}), &taken)
}

// TestClose checks that Close ends a read in progress.
func TestClose(t *testing.T) {
	path, _, _ := card(t)
	file, err := openPort(name{path, DefaultBaud})
	require.NoError(t, err)
	c := &conn{file: file}
	begun, read := make(chan struct{}), make(chan error)
	go func() {
		close(begun)
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	<-begun
	for range 2 {
		require.NoError(t, c.Close())
	}
	require.ErrorIs(t, <-read, net.ErrClosed)
	_, err = c.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestUnplugged checks that unplugging a port ends reads and writes, with the reason.
func TestUnplugged(t *testing.T) {
	path, port, _ := card(t)
	file, err := openPort(name{path, DefaultBaud})
	require.NoError(t, err)
	c := &conn{file: file}
	defer c.Close()
	begun, read := make(chan struct{}), make(chan error)
	go func() {
		close(begun)
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	<-begun
	require.NoError(t, port.Close())
	require.Equal(t, errUnplugged, <-read)
	_, err = c.Write([]byte("x"))
	require.Equal(t, errUnplugged, err)
}

// TestStops checks that the context ends Open, is in the error, and leaves nothing open.
func TestStops(t *testing.T) {
	path, _, far := card(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() { // a card that never replies
		for buf := make([]byte, 4096); ; stop() {
			if _, err := far.Read(buf); err != nil {
				return
			}
		}
	}()
	_, err := Open(ctx, path, 0)
	require.ErrorIs(t, err, context.Canceled)
	file, err := openPort(name{path, DefaultBaud})
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ttyX12")
	require.NoError(t, os.WriteFile(file, nil, 0o660))
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "there is no ",
		file:                               file + " is not a serial port",
		"/dev/null":                        "/dev/null is not a serial port",
		t.TempDir():                        "is a directory",
	} {
		_, err := Open(t.Context(), path, 0)
		require.ErrorContains(t, err, want)
	}
	require.EqualError(t, name{"/dev/ttyUSB1", 3_000_000}.mute(),
		"no card replies at 3,000,000 baud on /dev/ttyUSB1; check that its FPGA is configured, that this is its port, and that its link has this rate (serial:/dev/ttyUSB1@BAUD sets another)")

	// The error names the group, if one has access, and the rule that gives the user access.
	denied := openError(name{path: file}, &fs.PathError{Err: unix.EACCES})
	require.ErrorContains(t, denied, "this user may not open "+file+"; ")
	require.ErrorContains(t, denied, "add this line to /etc/udev/rules.d/70-tributary.rules, then plug it in again:\n"+
		`    SUBSYSTEM=="tty", KERNEL=="ttyX[0-9]*", MODE="0660", TAG+="uaccess"`)
	dialout, err := user.LookupGroup("dialout")
	if os.Getuid() != 0 || err != nil {
		return
	}
	gid, err := strconv.Atoi(dialout.Gid)
	require.NoError(t, err)
	require.NoError(t, errors.Join(os.Chown(file, 0, gid), os.Chmod(file, 0o660)))
	denied = openError(name{path: file}, &fs.PathError{Err: unix.EACCES})
	require.ErrorContains(t, denied, "group dialout may: `sudo usermod -aG dialout $USER`, then log in again; or add this line")
	require.NoError(t, os.Chmod(file, 0o600))
	require.NotContains(t, openError(name{path: file}, &fs.PathError{Err: unix.EACCES}).Error(), "dialout")
}

func TestList(t *testing.T) {
	dev := t.TempDir()
	require.Empty(t, list(dev))
	require.Equal(t, "no serial port is plugged in by USB", known(dev))
	for _, file := range []string{"ttyUSB10", "ttyUSB2", "ttyACM0", "ttyS0", "tty1"} {
		require.NoError(t, os.WriteFile(filepath.Join(dev, file), nil, 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dev, "serial", "by-id"), 0o700))
	require.NoError(t, errors.Join(
		os.Symlink("../../ttyUSB2", filepath.Join(dev, "serial", "by-id", "usb-Lattice-if01-port0")),
		os.Symlink("../../ttyUSB9", filepath.Join(dev, "serial", "by-id", "gone"))))
	name := func(file string) string { return "serial:" + filepath.Join(dev, file) }
	require.Equal(t, []Port{
		{Name: name("ttyUSB2"), Title: "usb-Lattice-if01-port0"},
		{Name: name("ttyUSB10")},
		{Name: name("ttyACM0")},
	}, list(dev))
	require.Equal(t, "there is "+name("ttyUSB2")+", "+name("ttyUSB10")+", "+name("ttyACM0"), known(dev))
}
