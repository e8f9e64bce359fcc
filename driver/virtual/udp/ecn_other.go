//go:build !linux

package udp

import (
	"net"

	"tributary/driver/wire"
)

// Only Linux shows and sets the ECN field here.
const controlBytes = 0

func setUp(*net.UDPConn) error { return nil }

func receivedMark([]byte) wire.ECN { return wire.NotECT }

func appendMark(control []byte, _ wire.ECN) []byte { return control }
