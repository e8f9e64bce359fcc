//go:build !linux

package udp

import (
	"errors"
	"net"
	"syscall"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

var errOnlyLinux = errors.New("cards on a network work only on Linux")

func setUp(_, _ string, _ syscall.RawConn) error { return errOnlyLinux }

func limitsOf(*net.UDPConn) (transport.PacketLimits, error) {
	return transport.PacketLimits{}, errOnlyLinux
}

const (
	markBytes    = 1
	segmentBytes = 1
)

var networkErrors []struct {
	err    error
	reason string
}

func ecnOf([]byte) wire.ECN        { return wire.NotECT }
func isUnreachable(error) bool     { return false }
func isFull(error) bool            { return false }
func run(int, []int) (packets int) { return 1 }
func putSegments([]byte, int)      {}
func cannotSegment(error) bool     { return false }
