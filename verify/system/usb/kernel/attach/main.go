// Command attach attaches the USB device that a USB/IP server offers to the kernel,
// as `usbip attach` does, and does so again whenever it was unplugged.
//
//	attach HOST:PORT VHCIPORT
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"tributary/driver/virtual/usbip"
	"tributary/verify/system/usb/attach"
)

// The files of vhci-hcd's first controller.
const vhci = "/sys/devices/platform/vhci_hcd.0/"

const pause = 50 * time.Millisecond

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: attach HOST:PORT VHCIPORT")
		os.Exit(2)
	}
	for ; ; time.Sleep(pause) {
		var busy *attach.BusyError
		err := hand(os.Args[1], os.Args[2])
		if err != nil && !errors.As(err, &busy) { // busy: the server has not noticed the unplugging yet
			fmt.Fprintln(os.Stderr, "attach:", err)
		}
	}
}

// hand imports the device, passes its connection to the kernel, and waits until the kernel
// detaches it.
func hand(address, port string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	info, err := attach.Request(conn, usbip.BusID)
	if err != nil {
		return err
	}
	socket, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s %d %d %d", port, socket.Fd(), info.Bus<<16|info.Device, info.Speed)
	err = errors.Join(os.WriteFile(vhci+"attach", []byte(line), 0), socket.Close(), conn.Close())
	for err == nil && !free(port) {
		time.Sleep(pause)
	}
	return err
}

// free reports whether a port has no device.
func free(port string) bool {
	status, err := os.ReadFile(vhci + "status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		const empty = "004"
		if f := strings.Fields(line); len(f) > 2 && f[0] == "hs" && strings.TrimLeft(f[1], "0") == strings.TrimLeft(port, "0") {
			return f[2] == empty
		}
	}
	return false
}
