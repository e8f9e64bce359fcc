package udp

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

const (
	optionTOS           = unix.IP_TOS
	optionDiscover      = unix.IP_MTU_DISCOVER
	optionDoNotFragment = unix.IP_PMTUDISC_DO
)

// optionOf returns an option of IP.
func optionOf(socket *net.UDPConn, option int) (value int, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, option) })
	return value, errors.Join(failed, err)
}
