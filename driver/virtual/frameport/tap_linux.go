package frameport

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tributary/driver/virtual/ethernet"
)

// tapPort is a port at a TAP device.
type tapPort struct {
	device *os.File
	name   string
}

// tunDevice makes TUN and TAP devices.
const tunDevice = "/dev/net/tun"

func openTAP(name string) (Port, error) {
	device, err := attach(name)
	if err != nil {
		return nil, fmt.Errorf("tap:%s: %w", name, err)
	}
	return &tapPort{device, name}, nil
}

// attach makes a TAP device, or takes one that is there and that nobody uses.
func attach(name string) (*os.File, error) {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, fmt.Errorf("the name of a network interface has 1 to %d bytes", unix.IFNAMSIZ-1)
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("%s: %w; run as root, or let root open it to all users: chmod 0666 %[1]s", tunDevice, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; load the kernel's module tun", tunDevice, err)
	}
	// The device must have its name before Go's poller sees it.
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w; run as root, or let root make it: ip tuntap add %s mode tap user $USER", err, name)
		}
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), tunDevice), nil
}

func (p *tapPort) Name() string { return "tap:" + p.name }

func (p *tapPort) ReadFrame(frame []byte) (int, error) {
	n, err := p.device.Read(frame[:len(frame)-ethernet.FCSBytes-ethernet.Shortest])
	if err != nil {
		return 0, err
	}
	return len(ethernet.AppendFCS(ethernet.Pad(frame[:n]))), nil
}

func (p *tapPort) WriteFrame(frame []byte) error {
	body, ok := ethernet.CutFCS(frame)
	if !ok {
		return nil
	}
	_, err := p.device.Write(body)
	// A device that is down takes nothing, and none takes a frame that is no frame for it.
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// Close removes the device, unless it is a permanent one.
func (p *tapPort) Close() error { return p.device.Close() }
