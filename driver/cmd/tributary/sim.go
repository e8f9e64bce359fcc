package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/transport/serial"
	"tributary/driver/virtual/usbip"
)

// simFlags is the command line of tributary sim.
type simFlags struct {
	listen string
	usbip  string
	serial string
	bridge string
	pty    string
	baud   uint32
	trace  string
	once   bool

	ports   []string
	station stationFlags
}

func newSim() *cobra.Command {
	f := &simFlags{}
	cmd := &cobra.Command{
		Use:   "sim CARD",
		Short: "Run a virtual card",
		Long: `Runs a virtual card until Ctrl-C, and prints its address. CARD is the folder of a
card built there, or a card in software: model:, cpu:, with the options that
their names take.

Hosts use a built card one after another. At its end it prints its cycles, beats
and bytes.

With -usbip the card is a USB device that any Linux machine can attach (modprobe
vhci-hcd; sim prints the command). Programs there open it like any USB device,
tributary as usb:. USB/IP has no password: use 127.0.0.1 or a network that you
trust. With -bridge the device is an FTDI chip with the card behind it: FT232H
or FT2232H (ftdi:), FT601 or FT600 (ft60x:).

With -pty the card serves on a pseudo-terminal (serial:).

Build it first: make -C CARD/sim (with -trace: make -C CARD/sim trace)

A card in software is on the network, where several hosts use it at once (udp:).
It believes what source addresses say: use 127.0.0.1 or a network that you trust.
With parent=true, the card has an up port, for a parent in a tree of cards.

With -port the card has Ethernet ports, and answers ARP and ping. -port again adds
the next one; a card with several passes other frames on, as a switch does. A port is
  tap:NAME   a network interface of this machine (Linux; give it an address of the
             card's network: ip addr add 192.168.84.1/24 dev NAME)
  unix:PATH  a Unix datagram socket with a frame and its FCS in each datagram; the
             card sends to the peer that it heard last
A built card has the shell udp or roce then. model:shell=roce and cards built with
that shell sum what RDMA connections carry; tributary serve owns them.`,
		Example: `  tributary sim tributary_l16_w4_fp32_tree
  tributary sim tributary_l16_w4_fp32_tree -listen tcp:127.0.0.1:7000
  tributary sim tributary_l16_w4_fp32_tree -usbip 127.0.0.1:3240
  tributary sim tributary_l16_w4_fp32_tree -pty card.tty
  tributary sim tributary_l16_w4_fp32_tree -once -trace card.fst
  tributary sim model:workers=4
  tributary sim cpu:workers=8,format=bf16 -listen udp:192.0.2.7
  tributary sim cpu:workers=4,parent=true -listen udp:192.0.2.8
  tributary sim model:workers=4 -port tap:trib0
  tributary sim cpu: -ip 10.0.0.7 -port unix:a.port -port unix:b.port
  tributary sim model:shell=roce,format=int32 -port unix:a.port -port unix:b.port`,
		Args: exactly("CARD, the card's folder or a card in software,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.ports) > 0 {
				return f.runAtPorts(cmd, args[0])
			}
			if set := f.station.set(cmd); set != nil {
				return usagef("-%s: only a card with Ethernet ports has one of its own; add -port", set.Name)
			}
			if driver.IsSoftware(args[0]) {
				return f.runOnNetwork(cmd, args[0])
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "listen at this `ADDRESS`: unix:PATH or tcp:HOST:PORT (default unix:CARD/sim/build/card.sock); udp:HOST[:PORT] for a card in software (default udp:127.0.0.1:21570)")
	cmd.Flags().StringVar(&f.usbip, "usbip", "", "serve a USB device over USB/IP at `HOST:PORT` instead of a socket")
	cmd.Flags().StringVar(&f.serial, "serial", "", "set the USB device's serial `NUMBER` (default derived from the folder)")
	cmd.Flags().StringVar(&f.bridge, "bridge", "", "put a FIFO bridge between the card and USB: `CHIP` is "+chips())
	cmd.Flags().StringVar(&f.pty, "pty", "", "serve on a pseudo-terminal at `PATH` instead of a socket")
	cmd.Flags().Uint32Var(&f.baud, "baud", serial.DefaultBaud, "talk to hosts that set the serial port to this `RATE`")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write a waveform to `FILE`, in FST, for GTKWave or Surfer")
	cmd.Flags().BoolVar(&f.once, "once", false, "end with the first host")
	cmd.Flags().StringArrayVar(&f.ports, "port", nil, "run at an Ethernet `PORT`: tap:NAME or unix:PATH; may be given several times")
	f.station.add(cmd)
	return cmd
}

// chips names the modelled chips.
func chips() string {
	all := usbip.Bridges()
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// stopGrace is the time for a stopping card to print its summary and exit.
const stopGrace = 5 * time.Second

// check refuses invalid addresses.
func (f *simFlags) check() error {
	scheme, address, _ := strings.Cut(f.listen, ":")
	if f.listen != "" && (scheme != "unix" || address == "") && (scheme != "tcp" || !hasPort(address)) {
		return usagef("-listen %s: it must be unix:PATH or tcp:HOST:PORT", f.listen)
	}
	if f.usbip == "" && f.serial != "" {
		return usagef("-serial: only a USB device has one; add -usbip HOST:PORT")
	}
	if f.usbip == "" && f.bridge != "" {
		return usagef("-bridge: only a USB device has one; add -usbip HOST:PORT")
	}
	if f.bridge != "" && !slices.Contains(usbip.Bridges(), f.bridge) {
		return usagef("-bridge %s: it must be %s", f.bridge, chips())
	}
	if f.pty != "" && (f.usbip != "" || f.listen != "") {
		return usagef("-pty, -usbip and -listen: a card has one host; use only one of the three")
	}
	if f.pty == "" && f.baud != serial.DefaultBaud {
		return usagef("-baud: only a serial port has one; add -pty PATH")
	}
	if f.baud == 0 {
		return usagef("-baud 0: it must be at least 1")
	}
	if f.usbip == "" {
		return nil
	}
	if f.listen != "" {
		return usagef("-usbip and -listen: a card has one host; use only one of the two")
	}
	if _, _, err := net.SplitHostPort(f.usbip); err != nil {
		return usagef("-usbip %s: it must be HOST:PORT", f.usbip)
	}
	if f.serial != "" {
		if err := usbip.CheckSerial(f.serial); err != nil {
			return usagef("-serial: %w", err)
		}
	}
	return nil
}

// hasPort reports whether an address ends with a TCP port, by number or name.
func hasPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

func (f *simFlags) run(ctx context.Context, dir string, out, errs io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	folder, err := f.open(dir)
	if err != nil {
		return &driver.NoCardError{Name: "sim:" + dir, Err: err}
	}
	if f.pty != "" {
		port, err := newPortCard(f.pty, f.baud)
		if err != nil {
			return err
		}
		defer port.close()
		return f.keepUp(ctx, folder, "unix:"+port.socket, port.serve(out, errs), out, errs)
	}
	if f.usbip == "" {
		return f.runOnSocket(ctx, folder, out, errs)
	}
	usb, err := newUSBCard(folder, f.usbip, f.serial, f.bridge)
	if err != nil {
		return err
	}
	defer usb.close()
	return f.keepUp(ctx, folder, "unix:"+usb.socket, usb.serve(out, errs), out, errs)
}

// runOnSocket runs the card on a socket for any host.
func (f *simFlags) runOnSocket(ctx context.Context, folder cardFolder, out, errs io.Writer) error {
	listen := f.listen
	if listen == "" {
		listen = "unix:" + filepath.Join(folder.dir, "sim", "build", "card.sock")
	}
	return f.keepUp(ctx, folder, listen, func(name string) (stop func()) {
		stop = showBuilt(name, folder.dir, errs)
		fmt.Fprintln(out, "listening", name) // list shows it by now
		return stop
	}, out, errs)
}

// listener receives the address on which a card listens; the returned function is called when the
// card has ended.
type listener func(name string) (stop func())

// keepUp runs the card until it ends or ctx does.
func (f *simFlags) keepUp(ctx context.Context, folder cardFolder, listen string, listens listener, out, errs io.Writer) error {
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		if err := transport.CheckSocket(path); err != nil {
			return err
		}
	}
	card := exec.CommandContext(ctx, folder.program(f.programName()), f.arguments(listen)...)
	card.Cancel = func() error { return card.Process.Signal(syscall.SIGTERM) }
	card.WaitDelay = stopGrace
	card.Stderr = errs
	said, err := card.StdoutPipe()
	if err != nil {
		return err
	}
	// The card ends with this pipe, even if this program is killed.
	if _, err := card.StdinPipe(); err != nil {
		return err
	}
	if err := card.Start(); err != nil {
		return &driver.NoCardError{Name: "sim:" + folder.dir, Err: err}
	}
	follow(said, out, listens)
	err = card.Wait()
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	if err != nil {
		return fmt.Errorf("the card in %s ended: %w", folder.dir, err)
	}
	return nil
}

// open opens the card's folder, or describes how to build the program to start.
func (f *simFlags) open(dir string) (cardFolder, error) {
	folder, err := openFolder(dir)
	if err != nil {
		return folder, err
	}
	if err := folder.CheckLink(); err != nil {
		return folder, err
	}
	if !folder.built(f.programName()) {
		target := ""
		if f.trace != "" {
			target = "trace"
		}
		return folder, fmt.Errorf("it is not built; build it with: %s", folder.buildCommand(target))
	}
	return folder, nil
}

// programName returns the folder's program to start.
func (f *simFlags) programName() string {
	if f.trace != "" {
		return "card_trace"
	}
	return "card"
}

func (f *simFlags) arguments(listen string) []string {
	args := []string{"--listen", listen, "--end-with-stdin"}
	if f.once {
		args = append(args, "--once")
	}
	if f.trace != "" {
		args = append(args, "--trace", f.trace)
	}
	return args
}

// follow forwards a card's output until it ends.
func follow(said io.Reader, out io.Writer, listens listener) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "listening "); ok {
			defer listens(name)()
		} else {
			fmt.Fprintln(out, lines.Text())
		}
	}
}

// showBuilt notes a card that was built in dir for tributary list until the returned function is
// called.
func showBuilt(name, dir string, errs io.Writer) (stop func()) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return showRunning(runningCard{Card: absoluteCard(name), Dir: dir}, errs)
}

// showRunning notes a card for tributary list until the returned function is called.
func showRunning(card runningCard, errs io.Writer) (stop func()) {
	remove, err := noteRunning(card)
	if err != nil {
		fmt.Fprintf(errs, "tributary list will not show this card: %v\n", err)
		return func() {}
	}
	return remove
}
