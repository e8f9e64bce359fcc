package transport

// The schemes tcp and unix: running cards.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"tributary/driver/shell"
)

func openTCP(ctx context.Context, r Request) (Conn, error) {
	if _, _, err := net.SplitHostPort(r.Address); err != nil {
		return nil, fmt.Errorf("%q is not HOST:PORT", r.Address)
	}
	return dial(ctx, "tcp", r.Address)
}

func openUnix(ctx context.Context, r Request) (Conn, error) {
	if r.Address == "" {
		return nil, errors.New("the name lacks the path of the card's socket, as in unix:PATH")
	}
	if err := CheckSocket(r.Address); err != nil {
		return nil, err
	}
	return dial(ctx, "unix", r.Address)
}

// maxSocketPath is the longest path of a Unix socket in bytes; the kernel's field ends with a
// zero.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// CheckSocket rejects a path that is too long for a Unix socket.
func CheckSocket(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("the socket's path %s has %d bytes, but the system allows %d; use a shorter one, or a relative one", path, len(path), maxSocketPath)
	}
	return nil
}

func dial(ctx context.Context, network, address string) (Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%w; check that a card listens there (`tributary sim DIR -listen %s` starts one)", err, shell.Quote(network+":"+address))
	}
	return conn, nil
}
