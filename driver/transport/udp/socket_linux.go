package udp

import (
	"encoding/binary"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// The buffers that a socket requests. The kernel counts a packet of 1 KiB as 2,304 bytes.
const (
	receiveBuffer = 8 << 20
	sendBuffer    = 1 << 20
)

// setUp sets a socket's options, before it has an address: packets leave with ECT(0), and do not
// fragment; received ones bring their ECN field along.
func setUp(_, _ string, raw syscall.RawConn) error {
	var err error
	failed := raw.Control(func(fd uintptr) {
		set := func(level, option, value int) {
			if err == nil {
				err = unix.SetsockoptInt(int(fd), level, option, value)
			}
		}
		set(unix.IPPROTO_IP, unix.IP_TOS, int(wire.ECT0))
		set(unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
		set(unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		set(unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
		set(unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
		if err == nil { // beyond net.core.rmem_max, if this process may
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
		}
	})
	return errors.Join(failed, err)
}

// limitsOf asks the kernel for the limits of a connected socket.
func limitsOf(socket *net.UDPConn) (limits transport.PacketLimits, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return limits, err
	}
	var mtu int
	failed := raw.Control(func(fd uintptr) {
		if mtu, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU); err == nil {
			limits.Unread, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		}
	})
	limits.Packet = mtu - headerBytes
	return limits, errors.Join(failed, err)
}

// markBytes is the room for the ancillary data of a packet: one message with a byte.
var markBytes = unix.CmsgSpace(1)

// ecnOf returns the ECN field in the ancillary data of a packet.
func ecnOf(data []byte) wire.ECN {
	if len(data) <= unix.SizeofCmsghdr {
		return wire.NotECT
	}
	// struct cmsghdr: length, level, type; the length is as long as a pointer.
	at := unix.SizeofCmsghdr - 8
	level, kind := binary.NativeEndian.Uint32(data[at:]), binary.NativeEndian.Uint32(data[at+4:])
	if level != unix.IPPROTO_IP || kind != unix.IP_TOS {
		return wire.NotECT
	}
	return wire.ECN(data[unix.SizeofCmsghdr]) & wire.FlagECN
}

// networkErrors are the errors that the network reports, with their remedies. The verbs are the
// card's address and port.
var networkErrors = []struct {
	err    error
	reason string
}{
	{unix.ECONNREFUSED, "connection refused: nothing listens on UDP port %[2]d of %[1]s; check that the card runs, and its port"},
	{unix.EHOSTUNREACH, "no route to host: nothing answers at %s; check the card's address, its cable and its power"},
	{unix.ENETUNREACH, "network is unreachable: this host has no route to %s; check the card's address and this host's network"},
	{unix.ENETDOWN, "network is down: the interface towards %s is down; bring it up"},
	{unix.EMSGSIZE, "message too long: the way to %s does not carry packets of this size; use a smaller chunk, or larger frames (MTU) on the whole way"},
	{unix.EPERM, "operation not permitted: a firewall of this host forbids packets to %s, UDP port %d; allow them"},
}

// isUnreachable reports whether no way leads to the card at the moment.
func isUnreachable(err error) bool {
	return errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EHOSTDOWN)
}

// isFull reports whether a queue of this host had no room for a packet.
func isFull(err error) bool { return errors.Is(err, unix.ENOBUFS) }
