package udp

import (
	"encoding/binary"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"tributary/driver/wire"
)

// markBytes is the size of a mark in a control message: the int that Linux takes for IP_TOS.
const markBytes = 4

// ControlBytes has room for the control messages of a datagram: its IP_TOS alone.
var ControlBytes = unix.CmsgSpace(markBytes)

// SetUp has the socket show the ECN field of received datagrams, and set "don't fragment".
func SetUp(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
		if failed == nil {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// ReceivedMark returns the ECN field of a received datagram.
func ReceivedMark(control []byte) wire.ECN {
	for len(control) >= unix.CmsgLen(0) {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			break
		}
		if header.Level == unix.IPPROTO_IP && header.Type == unix.IP_TOS && len(data) > 0 {
			return wire.ECN(data[0] & wire.FlagECN)
		}
		control = rest
	}
	return wire.NotECT
}

// AppendMark appends the control message that sets the ECN field of a datagram.
func AppendMark(control []byte, mark wire.ECN) []byte {
	at := len(control)
	control = append(control, make([]byte, unix.CmsgSpace(markBytes))...)
	message := control[at:]
	header := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(message)))
	header.Level, header.Type = unix.IPPROTO_IP, unix.IP_TOS
	header.SetLen(unix.CmsgLen(markBytes))
	binary.NativeEndian.PutUint32(message[unix.CmsgLen(0):], uint32(mark))
	return control
}
