package serve

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// sharesMemory reports whether this system shares memory with a daemon.
const sharesMemory = true

// receiveMemory receives the descriptor of the daemon's memory over a data connection, and maps it.
func receiveMemory(ctx context.Context, conn net.Conn, size int) ([]byte, error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("the daemon shares memory over a connection that is not a Unix socket")
	}
	stop := context.AfterFunc(ctx, func() { u.Close() })
	defer stop()
	var bell [1]byte
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := u.ReadMsgUnix(bell[:], rights)
	if err != nil {
		return nil, fmt.Errorf("the daemon's memory has not come: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errNoDescriptor
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errNoDescriptor
	}
	defer unix.Close(fds[0])
	memory, err := unix.Mmap(fds[0], 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("the daemon's memory: %w", err)
	}
	return memory, nil
}

// isOpen reports whether the other end of a connection is open. It reads nothing.
func isOpen(conn net.Conn) bool {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	var n int
	var failed error
	err = raw.Control(func(fd uintptr) {
		n, _, failed = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && (n > 0 || errors.Is(failed, unix.EAGAIN))
}

func unmap(memory []byte) { _ = unix.Munmap(memory) }
