package daemon

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostOffered is the most frames of one system call (Linux's IOV_MAX).
const mostOffered = 1024

// newOffer returns the offer of a connection; nil if it is no plain socket.
func newOffer(conn net.Conn) offer {
	plain, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil
	}
	return func(frames [][]byte) (n int) {
		// An error shows again in the writer, which gets what was not taken.
		_ = raw.Write(func(fd uintptr) bool {
			n, _ = unix.Writev(int(fd), frames[:min(len(frames), mostOffered)])
			return true
		})
		return max(n, 0)
	}
}
