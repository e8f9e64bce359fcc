package ring

import (
	"fmt"
	"net"
	"syscall"

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

// ring writes a bell without a wait. A socket that is full has bells that have not been heard.
func ring(raw syscall.RawConn) {
	_ = raw.Write(func(fd uintptr) bool { // an error shows in who listens
		_, _ = unix.Write(int(fd), []byte{1})
		return true
	})
}
