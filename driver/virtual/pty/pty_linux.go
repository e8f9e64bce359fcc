package pty

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// open makes a pseudo-terminal without processing of bytes. It returns the master side and the
// terminal's path.
func open() (master *os.File, terminal string, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	var number uint32
	err = control(master, func(fd int) (err error) {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		if number, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN); err != nil {
			return err
		}
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
		if err != nil {
			return err
		}
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		return unix.IoctlSetTermios(fd, unix.TCSETS2, t)
	})
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("no pseudo-terminal: %w", err), master.Close())
	}
	return master, fmt.Sprintf("/dev/pts/%d", number), nil
}

// rate returns the host's rate.
func rate(master *os.File) (baud uint32, err error) {
	err = control(master, func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
		if err == nil {
			baud = t.Ospeed
		}
		return err
	})
	return baud, err
}

// control calls do with the file's descriptor.
func control(file *os.File, do func(fd int) error) (err error) {
	raw, failed := file.SyscallConn()
	if failed == nil {
		failed = raw.Control(func(fd uintptr) { err = do(int(fd)) })
	}
	return errors.Join(failed, err)
}
