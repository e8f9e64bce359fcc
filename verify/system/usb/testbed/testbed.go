// Package testbed simulates a Linux machine's USB, as libusb sees it, for programs that
// run under umockdev's preloaded library. The library redirects their calls to /sys and
// /dev/bus/usb to a folder, and ioctls on a device's node to a socket here. The attached
// devices come over USB/IP. An unmodified program therefore works with a virtual card,
// without rights and without a kernel module.
//
// The testbed does what usbfs does in Linux: claims, pending transfers, and the cleanup
// after a program.
package testbed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"tributary/verify/system/usb/attach"
)

// preload is umockdev's library.
const preload = "libumockdev-preload.so.0"

// Testbed is a simulated machine.
type Testbed struct {
	dir string

	mu      sync.Mutex
	number  int // of the last plugged device
	devices map[*Device]bool
}

// New makes a machine with an empty bus, in its own folder.
func New() (*Testbed, error) {
	// The length of a socket's path is limited.
	dir, err := os.MkdirTemp("/tmp", "usb")
	if err != nil {
		return nil, err
	}
	t := &Testbed{dir: dir, number: 1, devices: map[*Device]bool{}} // 1 is the bus's own hub
	err = os.Chmod(dir, 0o755)
	for _, d := range []string{devNodes, ioctls + devNodes, sysDevices, sysBus} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return t, nil
}

// Paths in the folder.
const (
	devNodes   = "/dev/bus/usb/001"
	ioctls     = "/ioctl"
	sysDevices = "/sys/devices/pci0000:00/usb1"
	sysBus     = "/sys/bus/usb/devices"
)

// The kernel's driver ftdi_sio claims devices of this vendor.
const serialVendor = 0x0403

var serialProducts = map[uint16]bool{0x6010: true, 0x6014: true}

// Dir returns the folder; programs may use files in it.
func (t *Testbed) Dir() string { return t.dir }

// Env returns the environment variables of programs on the machine.
func (t *Testbed) Env() []string {
	return []string{"LD_PRELOAD=" + preload, "UMOCKDEV_DIR=" + t.dir}
}

// Close unplugs everything and removes the machine.
func (t *Testbed) Close() {
	t.mu.Lock()
	var all []*Device
	for d := range t.devices {
		all = append(all, d)
	}
	t.mu.Unlock()
	for _, d := range all {
		d.Unplug()
	}
	os.RemoveAll(t.dir)
}

// Plug plugs in the device that a USB/IP server offers under a name. The server unplugs it by
// ending the connection.
func (t *Testbed) Plug(conn net.Conn, name string) (*Device, error) {
	host, err := attach.Import(conn, name)
	if err != nil {
		conn.Close()
		return nil, err
	}
	t.mu.Lock()
	t.number++
	d := &Device{
		bed: t, host: host, number: t.number,
		interfaces: map[uint8]uint32{}, programs: map[*program]bool{}, claimant: map[uint32]*program{},
	}
	t.devices[d] = true
	t.mu.Unlock()
	if err := d.enumerate(); err != nil {
		d.Unplug()
		return nil, err
	}
	go func() {
		<-host.Gone()
		d.Unplug()
	}()
	return d, nil
}

// Device is a plugged device.
type Device struct {
	bed      *Testbed
	host     *attach.Host
	number   int
	node     *os.File // a pipe that replaces the device's node; see showReady
	listener net.Listener
	once     sync.Once

	interfaces map[uint8]uint32 // by endpoint address

	mu       sync.Mutex
	gone     bool
	programs map[*program]bool   // with the node open
	driver   bool                // a kernel driver has interface 0
	claimant map[uint32]*program // by interface
	setting  uint32              // alternate setting of interface 0
	isReady  bool                // the state that the node shows
}

func (d *Device) busName() string  { return fmt.Sprintf("1-%d", d.number) }
func (d *Device) nodeName() string { return fmt.Sprintf("%s/%03d", devNodes, d.number) }

// Node returns the path of the device's node, for tests that forbid it.
func (d *Device) Node() string { return d.bed.dir + d.nodeName() }

// enumerate configures a new device as the kernel does, and shows it to programs.
func (d *Device) enumerate() error {
	device, configuration := make([]byte, 18), make([]byte, 255)
	status, n := d.host.Control(0x80, 6, 0x0100, 0, device)
	if status != 0 || n != len(device) {
		return fmt.Errorf("no device descriptor: status %d", status)
	}
	status, n = d.host.Control(0x80, 6, 0x0200, 0, configuration)
	if status != 0 {
		return fmt.Errorf("no configuration descriptor: status %d", status)
	}
	if status, _ := d.host.Control(0x00, 9, uint16(configuration[5]), 0, nil); status != 0 {
		return fmt.Errorf("cannot be configured: status %d", status)
	}
	d.driver = d.host.Info.Vendor == serialVendor && serialProducts[d.host.Info.Product]
	d.readInterfaces(configuration[:n])
	if err := d.makeNode(); err != nil {
		return err
	}
	return d.makeFiles(append(device, configuration[:n]...), configuration[5])
}

// readInterfaces records the interfaces of a configuration's endpoints.
func (d *Device) readInterfaces(descriptors []byte) {
	const interfaceKind, endpointKind = 4, 5
	var at uint32
	for b := descriptors; len(b) > 2 && int(b[0]) <= len(b); b = b[b[0]:] {
		switch b[1] {
		case interfaceKind:
			at = uint32(b[2])
		case endpointKind:
			d.interfaces[b[2]] = at
		}
	}
}

// makeNode makes the device's node and starts to answer ioctls on it.
func (d *Device) makeNode() (err error) {
	if err := syscall.Mkfifo(d.Node(), 0o666); err != nil {
		return err
	}
	if d.node, err = os.OpenFile(d.Node(), os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil {
		return err
	}
	const setPipeSize = 1031 // F_SETPIPE_SZ
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, d.node.Fd(), setPipeSize, 1); errno != 0 {
		return errno
	}
	if err := syscall.SetNonblock(int(d.node.Fd()), true); err != nil {
		return err
	}
	if _, err := d.node.Write([]byte{0}); err != nil {
		return err
	}
	path := d.bed.dir + ioctls + d.nodeName()
	if d.listener, err = net.Listen("unix", path); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(d.Node(), 0o666), os.Chmod(path, 0o777)); err != nil {
		return err
	}
	go d.accept()
	return nil
}

// makeFiles writes the device's files in /sys.
func (d *Device) makeFiles(descriptors []byte, configuration byte) error {
	folder := filepath.Join(d.bed.dir, sysDevices, d.busName())
	err := os.Mkdir(folder, 0o755)
	for name, text := range map[string]string{
		"busnum":              "1",
		"devnum":              strconv.Itoa(d.number),
		"speed":               "480",
		"bConfigurationValue": strconv.Itoa(int(configuration)),
		"descriptors":         string(descriptors),
		"uevent": fmt.Sprintf("DEVNAME=bus/usb/001/%03d\nDEVTYPE=usb_device\nMAJOR=189\nMINOR=%d\nSUBSYSTEM=usb\nBUSNUM=001\nDEVNUM=%03d\n",
			d.number, d.number-1, d.number),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	return errors.Join(err,
		os.Symlink("../../../../bus/usb", filepath.Join(folder, "subsystem")),
		os.Symlink("../../../devices/pci0000:00/usb1/"+d.busName(), filepath.Join(d.bed.dir, sysBus, d.busName())))
}

// Unplug unplugs the device, even if programs have it open.
func (d *Device) Unplug() {
	d.once.Do(func() {
		os.Remove(filepath.Join(d.bed.dir, sysBus, d.busName()))
		os.RemoveAll(filepath.Join(d.bed.dir, sysDevices, d.busName()))
		os.Remove(d.Node())
		d.mu.Lock()
		d.gone = true
		d.mu.Unlock()
		if d.listener != nil {
			d.listener.Close()
		}
		d.host.Detach() // ends all transfers
		d.bed.mu.Lock()
		delete(d.bed.devices, d)
		d.bed.mu.Unlock()
	})
}

// accept serves programs that open the node.
func (d *Device) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		p := &program{device: d, conn: conn, pending: map[uint64]*urb{}}
		d.mu.Lock()
		d.programs[p] = true
		d.mu.Unlock()
		go p.serve()
	}
}

// showReady makes poll on the node show whether a program has transfers to reap. The node is a
// pipe of one page, which is writable only while it is empty. The caller holds mu.
func (d *Device) showReady() {
	ready := false
	for p := range d.programs {
		ready = ready || len(p.ended) > 0
	}
	if ready == d.isReady {
		return
	}
	d.isReady = ready
	var b [1]byte
	if ready {
		_, _ = d.node.Read(b[:])
	} else {
		_, _ = d.node.Write(b[:])
	}
}
