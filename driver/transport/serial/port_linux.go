package serial

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tributary/driver/shell"
	"tributary/driver/transport"
)

// openPort opens a port exclusively, with its rate, 8 bits and no parity, and empties the
// kernel's buffers.
func openPort(n name) (*os.File, error) {
	file, err := os.OpenFile(n.path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, openError(n, err)
	}
	if err := control(file, func(fd int) error { return setUp(fd, n) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// control calls do with the file's descriptor.
func control(file *os.File, do func(fd int) error) (err error) {
	raw, failed := file.SyscallConn()
	if failed == nil {
		failed = raw.Control(func(fd uintptr) { err = do(int(fd)) })
	}
	return errors.Join(failed, err)
}

// setUp locks and configures an open port.
func setUp(fd int, n name) error {
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS2); err != nil {
		return fmt.Errorf("%s is not a serial port", n.path)
	}
	// The kernel applies TIOCEXCL to everyone but root. Programs that use serial ports check
	// for the flock.
	if err := errors.Join(unix.IoctlSetInt(fd, unix.TIOCEXCL, 0), unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return taken(n)
		}
		return fmt.Errorf("%s cannot be locked: %w", n.path, err)
	}
	if err := setLine(fd, n); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIOFLUSH); err != nil {
		return fmt.Errorf("%s: its buffers cannot be flushed: %w", n.path, err)
	}
	return nil
}

// setLine sets the rate and disables all processing of bytes.
func setLine(fd int, n name) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
	if err != nil {
		return fmt.Errorf("the rate of %s cannot be read: %w", n.path, err)
	}
	t.Iflag, t.Oflag, t.Lflag = unix.IGNBRK|unix.IGNPAR, 0, 0
	t.Cflag = unix.BOTHER | unix.CS8 | unix.CREAD | unix.CLOCAL
	t.Ispeed, t.Ospeed = n.baud, n.baud
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS2, t); err != nil {
		return fmt.Errorf("%s cannot be set to %s baud: %w", n.path, thousands(n.baud), err)
	}
	if t, err = unix.IoctlGetTermios(fd, unix.TCGETS2); err != nil {
		return fmt.Errorf("the rate of %s cannot be read: %w", n.path, err)
	}
	// Drivers return the actual rate of their chip here.
	if off := int64(t.Ospeed) - int64(n.baud); max(off, -off) > int64(n.baud)/100 {
		return fmt.Errorf("%s does not support %s baud; its nearest rate is %s", n.path, thousands(n.baud), thousands(t.Ospeed))
	}
	return nil
}

// dropOutput drops unsent bytes.
func dropOutput(file *os.File) {
	_ = control(file, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCOFLUSH) })
}

func taken(n name) error {
	return &transport.TakenError{Reason: "another program has opened " + n.path}
}

// openError returns why a port cannot be opened, with a remedy.
func openError(n name, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no %s; %s", n.path, known("/dev"))
	case errors.Is(err, unix.EBUSY):
		return taken(n)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("this user may not open %s; %s", n.path, permission(n.path))
	}
	return fmt.Errorf("%s cannot be opened: %w", n.path, errors.Unwrap(err))
}

// permission returns how a user gets permission to open a port.
func permission(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	say := ""
	if group := groupOf(path); group != "" && group != "root" {
		say = fmt.Sprintf("group %s may: `sudo usermod -aG %s $USER`, then log in again; or ", group, shell.Quote(group))
	}
	return say + fmt.Sprintf("add this line to /etc/udev/rules.d/70-tributary.rules, then plug it in again:\n    "+
		`SUBSYSTEM=="tty", KERNEL=="%s[0-9]*", MODE="0660", TAG+="uaccess"`, strings.TrimRight(filepath.Base(path), "0123456789"))
}

// groupOf returns the name of the group that may read and write a file, or "".
func groupOf(path string) string {
	const readWrite = 0o060
	info, err := os.Stat(path)
	if err != nil || info.Mode()&readWrite != readWrite {
		return ""
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	group, err := user.LookupGroupId(strconv.FormatUint(uint64(owner.Gid), 10))
	if err != nil {
		return ""
	}
	return group.Name
}
