package main

// What USB costs: the transport beside a loop that uses gousb and nothing else, and
// how full the driver keeps the link of a virtual card that is a USB device. Both
// run under umockdev.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tributary/driver/virtual/usbip"
	"tributary/driver/wire"
	"tributary/verify/system/usb/testbed"
)

// loopBytes is the number of bytes sent around the loop, in whole transfers.
const loopBytes = 96 << 20

func usbRows(ctx context.Context) ([]Row, error) {
	loop, err := loopRow(ctx)
	if err != nil {
		return nil, err
	}
	link, err := usbLinkRow(ctx)
	return []Row{loop, link}, err
}

// loopRow sends bytes through a device that echoes them.
func loopRow(ctx context.Context) (row Row, err error) {
	progress("sending bytes around over USB")
	program := filepath.Join(folder, "loop")
	if _, err := output(ctx, "go", "build", "-o", program, "./verify/system/usb/loop"); err != nil {
		return row, err
	}
	device, address, err := newEcho()
	if err != nil {
		return row, err
	}
	defer device.Close()
	bed, err := plug(address)
	if err != nil {
		return row, err
	}
	defer bed.Close()
	var speeds []pair
	for range rounds {
		var both [2]float64
		for i, flags := range [][]string{nil, {"-bare"}} {
			text, err := onMachine(ctx, bed, program, append(flags, "-bytes", fmt.Sprint(loopBytes))...)
			if err != nil {
				return row, err
			}
			if _, err := fmt.Sscanf(text, "%f MB/s", &both[i]); err != nil {
				return row, fmt.Errorf("%s printed %q: %w", program, text, err)
			}
		}
		speeds = append(speeds, pair{both[0], both[1]})
	}
	speed := median(speeds)
	return Row{Name: "USB: bytes each way through the driver's transport", Value: speed.value, Unit: "MB/s"}.
		beside("a loop of gousb alone", speed.peer).
		must("at least 0.9", speed.value >= 0.9*speed.peer), nil
}

// usbLinkRow reduces through a virtual card on USB.
func usbLinkRow(ctx context.Context) (row Row, err error) {
	dir, err := generate(ctx, "l16_w4_link32", "-lanes", "16", "-workers", "4", "-link", "32")
	if err != nil {
		return row, err
	}
	if err := compile(ctx, dir, "build/card"); err != nil {
		return row, err
	}
	progress("reducing through a link over USB/IP")
	sim, address, err := startSim(ctx, dir)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, sim()) }()
	bed, err := plug(address)
	if err != nil {
		return row, err
	}
	defer bed.Close()
	var shares []pair
	for range linkRounds {
		text, err := onMachine(ctx, bed, "bin/tributary", "bench", "-card", "usb:", "-json", "-elements", fmt.Sprint(linkChunks*256))
		if err != nil {
			return row, err
		}
		var report struct {
			Runs []struct {
				LinkShare float64 `json:"link_share"`
			} `json:"runs"`
		}
		if err := json.Unmarshal([]byte(text), &report); err != nil || len(report.Runs) != 1 {
			return row, fmt.Errorf("tributary bench printed %q: %w", text, err)
		}
		shares = append(shares, pair{report.Runs[0].LinkShare, 1})
	}
	share := median(shares)
	return Row{Name: "frames' share of a 32-bit link over USB/IP, 4 workers", Value: share.value, Unit: "of all"}.
		beside("what frames leave", 1).
		must("at least 0.95", share.value >= 0.95), nil
}

// onMachine runs a program on a machine with a device plugged in.
func onMachine(ctx context.Context, bed *testbed.Testbed, name string, args ...string) (string, error) {
	return output(ctx, "env", append(append(bed.Env(), name), args...)...)
}

// plug returns a machine with the device from a server's address plugged in.
func plug(address string) (*testbed.Testbed, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	bed, err := testbed.New()
	if err != nil {
		conn.Close()
		return nil, err
	}
	if _, err := bed.Plug(conn, usbip.BusID); err != nil {
		bed.Close()
		return nil, err
	}
	return bed, nil
}

// startSim runs tributary sim with a card as a USB device. end stops it.
func startSim(ctx context.Context, dir string) (end func() error, address string, err error) {
	sim := exec.CommandContext(ctx, "bin/tributary", "sim", dir, "-usbip", "127.0.0.1:0")
	sim.Stderr = os.Stderr
	said, err := sim.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := sim.Start(); err != nil {
		return nil, "", err
	}
	lines := bufio.NewReader(said)
	line, err := lines.ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) < 2 || fields[0] != "usbip" {
		return nil, "", errors.Join(fmt.Errorf("tributary sim printed %q", line), err, sim.Process.Kill())
	}
	go io.Copy(io.Discard, lines)
	return func() error { return errors.Join(sim.Process.Signal(os.Interrupt), sim.Wait()) }, strings.TrimSuffix(fields[1], ","), nil
}

// newEcho serves a device that echoes all bytes.
func newEcho() (device io.Closer, address string, err error) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 256<<10))
			}()
		}
	}()
	ident := usbip.Ident(func(addr uint32) uint64 {
		if addr == wire.RegMagic {
			return wire.Magic
		}
		return 0
	})
	server, err := usbip.NewServer(usbip.Card{Ident: ident, Serial: "ECHO", Link: func() (net.Conn, error) { return net.Dial("tcp", echo.Addr().String()) }})
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	go server.Serve(l)
	return closers{l, echo}, l.Addr().String(), nil
}

// closers closes several things.
type closers []io.Closer

func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}
