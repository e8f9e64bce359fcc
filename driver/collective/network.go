package collective

// How members listen and dial.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"tributary/driver/transport"
)

// network reaches addresses of members. WithDialer replaces half of it, and tests have another one.
type network struct {
	listen func(ctx context.Context, address string) (net.Listener, error)
	dial   func(ctx context.Context, address string) (net.Conn, error)
}

var sockets = network{listen: listenSocket, dial: dialSocket}

// listenSocket listens at tcp:HOST:PORT or unix:PATH. It replaces a Unix socket at which nobody listens.
func listenSocket(ctx context.Context, address string) (net.Listener, error) {
	scheme, at, _ := strings.Cut(address, ":")
	if scheme == "unix" {
		if err := transport.CheckSocket(at); err != nil {
			return nil, err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, scheme, at)
	if err == nil || scheme != "unix" || !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if conn, err := new(net.Dialer).DialContext(ctx, scheme, at); err == nil {
		conn.Close()
		return nil, fmt.Errorf("another program listens at %s; stop it, or use another address", address)
	} else if !errors.Is(err, syscall.ECONNREFUSED) {
		return nil, err
	}
	if err := os.Remove(at); err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, scheme, at)
}

func dialSocket(ctx context.Context, address string) (net.Conn, error) {
	scheme, at, _ := strings.Cut(address, ":")
	return new(net.Dialer).DialContext(ctx, scheme, at)
}

// closeWrite ends this direction of a connection, where the connection can.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other end may be gone
	}
}
