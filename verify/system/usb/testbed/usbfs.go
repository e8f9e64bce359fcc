package testbed

// The ioctls of usbfs. The preloaded library sends each as three words over a
// socket. It then follows the replies: to read or write bytes at an address
// in the program, and to return.

import (
	"encoding/binary"
	"io"
	"net"
	"syscall"

	"tributary/driver/virtual/usbip"
	"tributary/verify/system/usb/attach"
)

// First words of messages from and to the preloaded library.
const (
	askIoctl    = 1
	tellReturn  = 3
	tellGive    = 5 // bytes of the program's memory
	tellTake    = 6
	messageSize = 24
)

// Numbers of the ioctls.
const (
	ioSetInterface     = 0x80085504
	ioSetConfiguration = 0x80045505
	ioSubmit           = 0x8038550a
	ioDiscard          = 0x550b
	ioReapNow          = 0x4008550d
	ioClaim            = 0x8004550f
	ioRelease          = 0x80045510
	ioReset            = 0x5514
	ioClearHalt        = 0x80045515
	ioCapabilities     = 0x8004551a
	ioOfDriver         = 0xc0105512 // passes an ioctl to the interface's driver
	ioTakeClaim        = 0x8108551b // takes an interface from its driver and claims it
)

// capabilities are those of a controller like vhci-hcd: transfers of any length in one piece, and
// reaping after the device is gone.
const capabilities = 0x1f

// Offsets in struct usbdevfs_urb on 64-bit machines.
const (
	urbSize     = 56
	urbEndpoint = 1
	urbStatus   = 4
	urbBuffer   = 16
	urbLength   = 24
	urbActual   = 28
)

const setupBytes = 8 // before the data of a control transfer

// program is a program with the node open.
type program struct {
	device *Device
	conn   net.Conn

	// Guarded by device.mu.
	pending map[uint64]*urb // by address
	ended   []*urb          // to be reaped in this order
}

// urb is a transfer of a program.
type urb struct {
	address  uint64 // of the struct in the program
	buffer   uint64 // of its data
	transfer attach.Transfer
	discard  bool
}

// serve answers ioctls until the program closes the node or ends.
func (p *program) serve() {
	defer p.leave()
	var b [messageSize]byte
	for {
		if _, err := io.ReadFull(p.conn, b[:]); err != nil {
			return
		}
		word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
		errno := syscall.EOPNOTSUPP
		if word(0) == askIoctl {
			errno = p.ioctl(uint32(word(1)), word(2))
		}
		result := uint64(0)
		if errno != 0 {
			result = ^uint64(0)
		}
		if p.tell(tellReturn, result, uint64(errno)) != nil {
			return
		}
	}
}

func (p *program) ioctl(number uint32, arg uint64) syscall.Errno {
	if p.device.isGone() && number != ioReapNow && number != ioDiscard {
		return syscall.ENODEV
	}
	switch number {
	case ioCapabilities:
		return p.take(arg, binary.NativeEndian.AppendUint32(nil, capabilities))
	case ioSubmit:
		return p.submit(arg)
	case ioReapNow:
		return p.reap(arg)
	case ioDiscard:
		return p.discard(arg)
	case ioReset:
		return p.control(0x00, 9, configuration, 0) // after a reset the kernel restores the configuration
	case ioOfDriver:
		return 0 // reconnects the driver, for which no program here waits
	}
	word, errno := p.words(arg, number>>16&0x3fff)
	if errno != 0 {
		return errno
	}
	switch number {
	case ioTakeClaim:
		p.device.evict(word[0])
		return p.claim(word[0])
	case ioClaim:
		return p.claim(word[0])
	case ioRelease:
		return p.release(word[0])
	case ioSetInterface:
		return p.selectSetting(word[0], word[1])
	case ioSetConfiguration:
		return p.control(0x00, 9, uint16(word[0]), 0)
	case ioClearHalt:
		return p.control(0x02, 1, 0, uint16(word[0]))
	}
	return syscall.ENOTTY
}

func (d *Device) isGone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}

// tell sends a message to the preloaded library.
func (p *program) tell(what, first, second uint64) error {
	var b []byte
	for _, w := range []uint64{what, first, second} {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	_, err := p.conn.Write(b)
	return err
}

// give reads the program's memory.
func (p *program) give(address uint64, n int) ([]byte, syscall.Errno) {
	b := make([]byte, n)
	if n == 0 {
		return b, 0
	}
	err := p.tell(tellGive, address, uint64(n))
	if err == nil {
		_, err = io.ReadFull(p.conn, b)
	}
	if err != nil {
		return nil, syscall.EFAULT
	}
	return b, 0
}

// take writes the program's memory.
func (p *program) take(address uint64, b []byte) syscall.Errno {
	if len(b) == 0 {
		return 0
	}
	err := p.tell(tellTake, address, uint64(len(b)))
	if err == nil {
		_, err = p.conn.Write(b)
	}
	if err != nil {
		return syscall.EFAULT
	}
	return 0
}

// words reads the argument of an ioctl.
func (p *program) words(address uint64, size uint32) (words [2]uint32, errno syscall.Errno) {
	b, errno := p.give(address, int(min(size, 8)))
	for i := 0; errno == 0 && 4*i+4 <= len(b); i++ {
		words[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	return words, errno
}

// submit starts a transfer.
func (p *program) submit(address uint64) syscall.Errno {
	raw, errno := p.give(address, urbSize)
	if errno != 0 {
		return errno
	}
	u := &urb{address: address, buffer: binary.NativeEndian.Uint64(raw[urbBuffer:])}
	length := int(int32(binary.NativeEndian.Uint32(raw[urbLength:])))
	if length < 0 || length > usbip.MaxTransfer {
		return syscall.EINVAL
	}
	t := &u.transfer
	t.Endpoint = raw[urbEndpoint]
	if t.Endpoint&0x7f == 0 {
		errno = p.fillControl(u, length)
	} else if t.Endpoint&0x80 != 0 {
		t.Data = make([]byte, length)
	} else {
		t.Data, errno = p.give(u.buffer, length)
	}
	if errno != 0 {
		return errno
	}
	t.Done = func(*attach.Transfer) { p.done(u) }
	p.device.mu.Lock()
	p.pending[address] = u
	p.device.mu.Unlock()
	p.device.host.Submit(t)
	return 0
}

// fillControl reads the setup bytes of a control transfer, which precede its data.
func (p *program) fillControl(u *urb, length int) syscall.Errno {
	if length < setupBytes {
		return syscall.EINVAL
	}
	b, errno := p.give(u.buffer, length)
	if errno != 0 {
		return errno
	}
	copy(u.transfer.Setup[:], b)
	if errno := p.mayAsk(b); errno != 0 {
		return errno
	}
	u.buffer += setupBytes
	u.transfer.Data = b[setupBytes:]
	u.transfer.Endpoint = u.transfer.Setup[0] & 0x80
	return 0
}

// mayAsk refuses a request to an interface, or its endpoints, that another program has claimed.
// Like the kernel, it claims an unclaimed interface for the program, and does not check vendor
// requests.
func (p *program) mayAsk(setup []byte) syscall.Errno {
	const types, vendors = 0x60, 0x40
	const recipients, toInterface, toEndpoint = 0x1f, 1, 2
	recipient := setup[0] & recipients
	concerns := recipient == toInterface || recipient == toEndpoint && setup[4]&0x7f != 0
	if setup[0]&types == vendors || !concerns {
		return 0
	}
	if recipient == toInterface {
		return p.claim(uint32(setup[4]))
	}
	at, ok := p.device.interfaces[setup[4]]
	if !ok {
		return syscall.ENOENT
	}
	return p.claim(at)
}

// done queues an ended transfer for reaping.
func (p *program) done(u *urb) {
	p.device.mu.Lock()
	defer p.device.mu.Unlock()
	if p.pending[u.address] != u {
		return // the program is gone
	}
	delete(p.pending, u.address)
	p.ended = append(p.ended, u)
	p.device.showReady()
}

// reap gives the program an ended transfer.
func (p *program) reap(arg uint64) syscall.Errno {
	d := p.device
	d.mu.Lock()
	if len(p.ended) == 0 {
		gone := d.gone
		d.mu.Unlock()
		if gone {
			return syscall.ENODEV
		}
		return syscall.EAGAIN
	}
	u := p.ended[0]
	p.ended = p.ended[1:]
	d.showReady()
	d.mu.Unlock()

	t := &u.transfer
	status := t.Status
	if u.discard && status == usbip.StatusUnlinked {
		status = -int32(syscall.ENOENT)
	}
	if t.Endpoint&0x80 != 0 {
		if errno := p.take(u.buffer, t.Data[:t.Actual]); errno != 0 {
			return errno
		}
	}
	for address, word := range map[uint64]uint32{u.address + urbStatus: uint32(status), u.address + urbActual: uint32(t.Actual)} {
		if errno := p.take(address, binary.NativeEndian.AppendUint32(nil, word)); errno != 0 {
			return errno
		}
	}
	return p.take(arg, binary.NativeEndian.AppendUint64(nil, u.address))
}

// discard cancels a transfer; the program reaps it when it has ended.
func (p *program) discard(address uint64) syscall.Errno {
	p.device.mu.Lock()
	u := p.pending[address]
	if u != nil {
		u.discard = true
	}
	p.device.mu.Unlock()
	if u == nil {
		return syscall.EINVAL
	}
	p.device.host.Unlink(&u.transfer)
	return 0
}

// configuration is the only configuration of the devices here.
const configuration = 1

// evict disconnects the kernel's driver from an interface.
func (d *Device) evict(number uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.driver = d.driver && number != 0
}

// claim takes an interface for the program.
func (p *program) claim(number uint32) syscall.Errno {
	p.device.mu.Lock()
	defer p.device.mu.Unlock()
	if p.device.driver && number == 0 {
		return syscall.EBUSY
	}
	if c := p.device.claimant[number]; c != nil && c != p {
		return syscall.EBUSY
	}
	p.device.claimant[number] = p
	return 0
}

// release releases an interface, cancels its transfers, and selects alternate setting 0.
func (p *program) release(number uint32) syscall.Errno {
	p.device.mu.Lock()
	claimed, setting := p.device.claimant[number] == p, p.device.setting
	p.device.mu.Unlock()
	if !claimed {
		return syscall.EINVAL
	}
	if setting != 0 && number == 0 {
		p.selectSetting(number, 0)
	}
	p.device.mu.Lock()
	delete(p.device.claimant, number)
	p.device.mu.Unlock()
	return 0
}

// selectSetting selects an alternate setting of an interface. It cancels transfers at the
// endpoints that disappear.
func (p *program) selectSetting(number, setting uint32) syscall.Errno {
	p.device.mu.Lock()
	claimed := p.device.claimant[number] == p
	var bulk []*urb
	for _, u := range p.pending {
		if at, ok := p.device.interfaces[u.transfer.Endpoint]; ok && at == number {
			bulk = append(bulk, u)
		}
	}
	p.device.mu.Unlock()
	if !claimed {
		return syscall.EINVAL
	}
	for _, u := range bulk {
		p.device.host.Unlink(&u.transfer)
	}
	errno := p.control(0x01, 11, uint16(setting), uint16(number))
	if errno == 0 && number == 0 {
		p.device.mu.Lock()
		p.device.setting = setting
		p.device.mu.Unlock()
	}
	return errno
}

// control makes a request without data.
func (p *program) control(kind, request byte, value, index uint16) syscall.Errno {
	status, _ := p.device.host.Control(kind, request, value, index, nil)
	return syscall.Errno(-status)
}

// leave cancels the program's transfers and releases its interfaces, as the kernel does when a
// program closes the node or ends.
func (p *program) leave() {
	d := p.device
	d.mu.Lock()
	left := p.pending
	p.pending, p.ended = map[uint64]*urb{}, nil
	delete(d.programs, p)
	var mine []uint32
	for number, c := range d.claimant {
		if c == p {
			mine = append(mine, number)
		}
	}
	d.showReady()
	d.mu.Unlock()
	for _, u := range left {
		d.host.Unlink(&u.transfer)
	}
	for _, number := range mine {
		p.release(number)
	}
	p.conn.Close()
}
