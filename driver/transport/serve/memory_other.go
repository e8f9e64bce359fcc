//go:build !linux

package serve

import (
	"context"
	"errors"
	"net"
)

// sharesMemory reports whether this system shares memory with a daemon.
const sharesMemory = false

func receiveMemory(context.Context, net.Conn, int) ([]byte, error) {
	return nil, errors.New("the daemon shares memory, which this system cannot")
}

func isOpen(net.Conn) bool { return false }

func unmap([]byte) {}
