package frameport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// unixPort is a port at a Unix datagram socket.
type unixPort struct {
	conn   *net.UnixConn
	path   string
	peer   atomic.Pointer[net.UnixAddr] // heard last
	remove func() error
}

func openUnix(path string) (Port, error) {
	conn, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("unix:%s: %w", path, err)
	}
	return &unixPort{conn: conn, path: path, remove: sync.OnceValue(func() error { return os.Remove(path) })}, nil
}

// listen binds a socket. It replaces one that a program has left that was killed.
func listen(path string) (*net.UnixConn, error) {
	at := &net.UnixAddr{Name: path, Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", at)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return conn, err
	}
	probe, refused := net.DialUnix("unixgram", nil, at)
	if refused == nil {
		probe.Close()
		return nil, errors.New("another program listens there")
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return nil, errors.New("there is a file of that name, which is no socket")
	}
	if !errors.Is(refused, syscall.ECONNREFUSED) {
		return nil, refused
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return net.ListenUnixgram("unixgram", at)
}

func (p *unixPort) Name() string { return "unix:" + p.path }

func (p *unixPort) ReadFrame(frame []byte) (int, error) {
	for {
		n, _, _, from, err := p.conn.ReadMsgUnix(frame, nil)
		if err != nil {
			return 0, err
		}
		if from != nil && from.Name != "" {
			p.peer.Store(from)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// retry is the time between two attempts to write to a peer whose socket is full. A poller sees when one's
// own socket has room, and may miss that the peer's has.
const retry = time.Millisecond

// WriteFrame waits for a peer that does not read, until it does or ends: its unread frames take the port's
// own memory, so that no other peer could be served.
func (p *unixPort) WriteFrame(frame []byte) error {
	for {
		peer := p.peer.Load()
		if peer == nil {
			return nil
		}
		if err := p.conn.SetWriteDeadline(time.Now().Add(retry)); err != nil {
			return err
		}
		_, _, err := p.conn.WriteMsgUnix(frame, nil, peer)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case isGone(err):
			return nil
		default:
			return err
		}
	}
}

// isGone reports whether a peer did not take a frame because it has ended, or the system has no room.
func isGone(err error) bool {
	for _, gone := range []error{syscall.ECONNREFUSED, syscall.ENOENT, syscall.ECONNRESET, syscall.ENOTCONN, syscall.EPIPE, syscall.ENOBUFS, syscall.EPROTOTYPE} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// Close removes the socket.
func (p *unixPort) Close() error { return errors.Join(p.conn.Close(), p.remove()) }
