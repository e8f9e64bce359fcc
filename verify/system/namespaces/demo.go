//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"tributary/driver"
)

// demo is what the flags choose.
type demo struct {
	screen
	card      string
	tributary string
	elements  int
	pings     int
}

// run shows the networks one after another.
func (d *demo) run(ctx context.Context) error {
	for _, n := range networks {
		if err := d.show(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// site is a network with its processes.
type site struct {
	*demo
	network
	folder   string
	programs []*program
	workers  []*program // one in each host's namespace
}

// show runs one network. In the end all its processes are dead, and its devices are gone with them.
func (d *demo) show(ctx context.Context, n network) (err error) {
	folder, err := os.MkdirTemp("", "tributary-net")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	ctx, stop := context.WithCancel(ctx)
	s := &site{demo: d, network: n, folder: folder}
	defer s.bury()
	defer stop()
	d.say("== %s", n.title)
	if err := s.build(ctx); err != nil {
		return err
	}
	return s.use(ctx)
}

// bury waits for the processes, whose context has ended.
func (s *site) bury() {
	for _, p := range append(s.programs, s.workers...) {
		_ = p.cmd.Wait() // killed
	}
}

// build starts the card and the hosts, joins them, and starts the daemon at host 0.
func (s *site) build(ctx context.Context) error {
	if err := s.startCard(ctx); err != nil {
		return err
	}
	if err := s.startHosts(ctx); err != nil {
		return err
	}
	if err := runAll(ctx, s.join(s.pids())); err != nil {
		return err
	}
	for host, pid := range s.pids() {
		for _, words := range address(host) {
			if err := runAll(ctx, [][]string{within(pid, words)}); err != nil {
				return err
			}
		}
		s.say("host %d     %s, worker process %d in a network namespace of its own", host, hostIP(host), pid)
	}
	return s.startDaemon(ctx)
}

// startCard runs the card at TAP devices.
func (s *site) startCard(ctx context.Context) error {
	card := s.card
	if card == "" {
		card = filepath.Join("build", "net", fmt.Sprint(s.ports), "card")
	}
	words := []string{s.tributary, "sim", card}
	var taps []string
	for port := range s.ports {
		taps = append(taps, "tap:"+tap(port))
		words = append(words, "-port", taps[port])
	}
	if err := s.launch("the card", command(ctx, words), fmt.Sprintf("port %d is", s.ports-1)); err != nil {
		return err
	}
	kind := "gateware, Verilated"
	if driver.IsSoftware(card) {
		kind = "in software"
	}
	s.say("card       %s, %s (%s) at %s", cardIP, card, kind, strings.Join(taps, ", "))
	return nil
}

// startHosts starts the workers, each in a new network namespace.
func (s *site) startHosts(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	for host := range hosts {
		cmd := command(ctx, []string{program})
		cmd.Env = append(os.Environ(), roleVariable+"=worker")
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
		p, err := start(fmt.Sprintf("worker %d", host), cmd)
		if err != nil {
			return err
		}
		s.workers = append(s.workers, p)
	}
	return nil
}

// pids returns a process in each host's namespace.
func (s *site) pids() (pids []int) {
	for _, w := range s.workers {
		pids = append(pids, w.cmd.Process.Pid)
	}
	return pids
}

// socket is the daemon's address. A Unix socket is in no network namespace, so workers reach it from
// everywhere; their data goes to the card.
func (s *site) socket() string { return "unix:" + filepath.Join(s.folder, "cards.sock") }

// startDaemon runs the owner of the card at host 0.
func (s *site) startDaemon(ctx context.Context) error {
	words := []string{s.tributary, "serve", "-card", "udp:" + cardIP, "-listen", s.socket()}
	return s.launch("the daemon", command(ctx, within(s.pids()[0], words)), "serving at")
}

// launch starts a program and waits until a line of its output begins with ready.
func (s *site) launch(name string, cmd *exec.Cmd, ready string) error {
	p, err := start(name, cmd)
	if err != nil {
		return err
	}
	s.programs = append(s.programs, p)
	return p.await(ready)
}
