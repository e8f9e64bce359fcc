// Package rig has hosts with Linux's Soft-RoCE in QEMU, and runs a card at their Ethernet cables.
package rig

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"tributary/verify/system/guest"
	"tributary/verify/system/roce/cable"
)

// Patience is how long a command may take in a guest that runs on a busy machine.
const Patience = 5 * time.Minute

// MTU is that of the hosts' Ethernet: a packet of RoCEv2 with 4,096 bytes fits.
const MTU = 4300

// Hosts are guests with an Ethernet interface eth0 and its RDMA device rxe0.
type Hosts struct {
	Guests   []*guest.Guest
	Channels []net.Conn // to the device Channel of each host
	folder   string
}

// Channel is a device in each host that leads to this process, besides the network.
const Channel = "/dev/channel"

// IP returns the address of a host.
func IP(host int) string { return fmt.Sprintf("192.168.84.%d", host+1) }

// MAC returns the MAC address of a host's interface.
func MAC(host int) string { return fmt.Sprintf("02:54:52:48:00:%02x", host) }

// setup runs in each guest. The interface is up before rdma_rxe makes its device, and IPv6 would
// send frames of its own.
const setup = `echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
ulimit -l unlimited
for port in /sys/class/virtio-ports/*; do ln -s "${port##*/}" ` + Channel + `; done`

// modules are what a guest loads: its network, and RDMA over it with the connection manager.
var modules = []string{"virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "rdma_ucm", "virtio_console"}

// Libraries that programs load themselves: libibverbs's provider for Soft-RoCE, which it finds by a
// file of its name, and what the C library needs to end a thread.
const (
	provider     = "/usr/lib/*/libibverbs/librxe-rdmav*.so"
	providerName = "/etc/libibverbs.d/rxe.driver"
	unwinder     = "/lib/*/libgcc_s.so.1"
)

// Boot boots hosts with these programs and with further files, from the path in the guest to the path here. The
// kernel and the script init are those of package guest. Sockets and images are in folder.
func Boot(kernel, init, folder string, hosts int, programs []string, files map[string]string) (h *Hosts, err error) {
	image := guest.Image{Kernel: kernel, Modules: modules, Programs: programs, Files: map[string]string{providerName: providerName}, Init: init, Setup: setup}
	for to, from := range files {
		image.Files[to] = from
	}
	for _, pattern := range []string{provider, unwinder} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, errors.Join(err, fmt.Errorf("%s does not exist", pattern))
		}
		image.Plugins = append(image.Plugins, found...)
	}
	archive := filepath.Join(folder, "initramfs")
	if err := image.Pack(filepath.Join(folder, "root"), archive); err != nil {
		return nil, err
	}
	h = &Hosts{Guests: make([]*guest.Guest, hosts), Channels: make([]net.Conn, hosts), folder: folder}
	if err := h.each(func(i int) (err error) {
		h.Guests[i], err = guest.Boot(kernel, archive, guest.Machine{CPUs: 1, Memory: 256, Flags: []string{
			"-netdev", cable.Netdev("cable", h.socket(i)),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=cable,mac=%s,host_mtu=%d", MAC(i), MTU),
			"-chardev", fmt.Sprintf("socket,id=channel,path=%s,server=on,wait=off", h.channel(i)),
			"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=channel,name=channel",
		}})
		if err != nil {
			return err
		}
		if h.Channels[i], err = net.Dial("unix", h.channel(i)); err != nil {
			return err
		}
		return h.address(i)
	}); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// address gives a host its address and its RDMA device.
func (h *Hosts) address(host int) error {
	for _, line := range []string{
		fmt.Sprintf("ip addr add %s/24 dev eth0", IP(host)),
		fmt.Sprintf("ip link set eth0 mtu %d up", MTU),
		"rdma link add rxe0 type rxe netdev eth0",
	} {
		if _, err := h.Run(host, line); err != nil {
			return err
		}
	}
	return nil
}

// socket is the path of the guest's end of a host's cable.
func (h *Hosts) socket(host int) string { return filepath.Join(h.folder, fmt.Sprintf("host%d", host)) }

// channel is the path of the socket of a host's Channel.
func (h *Hosts) channel(host int) string {
	return filepath.Join(h.folder, fmt.Sprintf("channel%d", host))
}

// each calls do for all hosts at the same time, and joins the errors.
func (h *Hosts) each(do func(host int) error) error {
	errs := make([]error, len(h.Guests))
	var running sync.WaitGroup
	for i := range h.Guests {
		running.Go(func() {
			if err := do(i); err != nil {
				errs[i] = fmt.Errorf("host %d: %w", i, err)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Run runs a command at a host. A status other than 0 is an error.
func (h *Hosts) Run(host int, line string) (out string, err error) {
	r, err := h.Guests[host].Run(line, Patience)
	if err == nil && r.Status != 0 {
		err = fmt.Errorf("%s: status %d: %s", line, r.Status, r.Out)
	}
	return r.Out, err
}

// Close switches the hosts off.
func (h *Hosts) Close() error {
	return h.each(func(i int) error {
		if h.Guests[i] == nil {
			return nil
		}
		if h.Channels[i] != nil {
			h.Channels[i].Close()
		}
		return h.Guests[i].Close()
	})
}
