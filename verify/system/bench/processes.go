package main

// Processes of the rows of shared cards: the daemon, and members that this program plays itself in
// another role. Both end with this process: their standard input is closed, or they are killed.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// daemonProcess is a `tributary serve` with one card.
type daemonProcess struct {
	cmd    *exec.Cmd
	card   string // its name for clients
	folder string // of startLocal's sockets; stop removes it
}

// startLocal is startDaemon at a Unix socket in a folder of its own.
func startLocal(ctx context.Context, card string) (*daemonProcess, error) {
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	d, err := startDaemon(ctx, card, "unix:"+filepath.Join(folder, "card"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	d.folder = folder
	return d, nil
}

// startDaemon starts a daemon that shares a card at an address, and returns when clients can connect.
func startDaemon(ctx context.Context, card, listen string, flags ...string) (*daemonProcess, error) {
	d := &daemonProcess{cmd: exec.CommandContext(ctx, "bin/tributary", append([]string{"serve", "-card", card, "-listen", listen}, flags...)...)}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log strings.Builder
	d.cmd.Stderr = &log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, _, found := strings.Cut(strings.TrimPrefix(line, "serving at "), ": ")
	if err != nil || !found {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait() // before its log is read
		return nil, errors.Join(fmt.Errorf("tributary serve printed %q\n%s", line, log.String()), err)
	}
	d.card = "serve:" + strings.TrimPrefix(address, "tcp:")
	return d, nil
}

// stop ends the daemon. Its jobs have ended, or end now.
func (d *daemonProcess) stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(time.Second, func() { _ = d.cmd.Process.Signal(syscall.SIGTERM) })
	defer late.Stop()
	err := d.cmd.Wait()
	if d.folder != "" {
		err = errors.Join(err, os.RemoveAll(d.folder))
	}
	return err
}

// cpuTime returns the processor time that processes have taken, this one and those of pids.
func cpuTime(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range append(pids, os.Getpid()) {
		// Linux's clock of all threads of a process: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
			return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// The environment of a process that this program plays.
const (
	roleVariable     = "TRIBUTARY_BENCH_ROLE"
	settingsVariable = "TRIBUTARY_BENCH_SETTINGS" // JSON
)

// player is a process of this program in another role.
type player struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	reports *json.Decoder
}

// order is what a player is to do.
type order struct {
	Calls  int  `json:"calls,omitempty"`  // make so many calls, and report their time
	Repeat bool `json:"repeat,omitempty"` // make calls until the end
	Send   bool `json:"send,omitempty"`   // a rogue: send from now on; else stop
}

// report is a player's answer to an order; the first one comes when it is ready.
type report struct {
	Ticket  string  `json:"ticket,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Calls   int     `json:"calls,omitempty"` // complete so far
	Failure string  `json:"failure,omitempty"`
}

// startPlayer starts this program in a role.
func startPlayer(ctx context.Context, role string, settings any) (*player, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	p := &player{cmd: exec.CommandContext(ctx, program)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, settingsVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.orders, p.reports = json.NewEncoder(p.in), json.NewDecoder(out)
	return p, p.cmd.Start()
}

// tell gives the player an order.
func (p *player) tell(o order) error { return p.orders.Encode(o) }

// hear returns the player's next report.
func (p *player) hear() (report, error) {
	var r report
	if err := p.reports.Decode(&r); err != nil {
		return r, fmt.Errorf("a process of this program ended: %w", err)
	}
	if r.Failure != "" {
		return r, errors.New(r.Failure)
	}
	return r, nil
}

// ask is tell and hear.
func (p *player) ask(o order) (report, error) {
	if err := p.tell(o); err != nil {
		return report{}, err
	}
	return p.hear()
}

// kill ends the player at once.
func (p *player) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// players are processes of this program.
type players []*player

// kill ends all players at once.
func (all players) kill() {
	for _, p := range all {
		_ = p.cmd.Process.Kill()
	}
	for _, p := range all {
		_ = p.cmd.Wait()
	}
}

// askAll gives all players an order, and returns their reports.
func (all players) askAll(o order) ([]report, error) {
	for _, p := range all {
		if err := p.tell(o); err != nil {
			return nil, err
		}
	}
	var reports []report
	for _, p := range all {
		r, err := p.hear()
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// slowest returns the time of a call by the slowest of players that make calls.
func (all players) slowest(calls int) (float64, error) {
	reports, err := all.askAll(order{Calls: calls})
	most := 0.0
	for _, r := range reports {
		most = max(most, r.Seconds/float64(calls))
	}
	return most, err
}
