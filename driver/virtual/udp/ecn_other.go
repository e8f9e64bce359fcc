//go:build !linux

package udp

import (
	"net"

	"tributary/driver/wire"
)

// ControlBytes is 0: only Linux shows and sets the ECN field here.
const ControlBytes = 0

// SetUp does nothing.
func SetUp(*net.UDPConn) error { return nil }

// ReceivedMark returns NotECT.
func ReceivedMark([]byte) wire.ECN { return wire.NotECT }

// AppendMark appends nothing.
func AppendMark(control []byte, _ wire.ECN) []byte { return control }
