package ring

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawOf returns the socket of a connection.
func rawOf(conn net.Conn) (syscall.RawConn, error) {
	plain, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("the data connection is %T, and rings need a Unix socket", conn)
	}
	return plain.SyscallConn()
}

// The system calls of strike and hear do not wait: Go's sockets are non-blocking. They are raw, because
// Go's scheduler prepares for a long one otherwise, and starts its monitor's thread for that: a tenth of
// the processor time of a daemon that works for one client.

// strike writes a bell. A socket that is full has bells that have not been heard.
func strike(fd uintptr) {
	bell := [1]byte{}
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&bell)), 1)
}

// hear takes bells. It returns false if there are none, and io.EOF after the last one.
func hear(fd uintptr) (bool, error) {
	var rung [mostBells]byte
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&rung)), mostBells)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return false, nil
		case errno != 0:
			return false, errno
		case n == 0:
			return false, io.EOF
		default:
			return true, nil
		}
	}
}
