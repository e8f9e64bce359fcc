package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Machine is the hardware of a guest.
type Machine struct {
	CPUs   int
	Memory int      // in MiB
	Flags  []string // further flags of QEMU, such as those of its network
}

// Guest is a running guest. Its methods may be called from several goroutines; commands run one
// after another.
type Guest struct {
	Version string // of its kernel

	stop context.CancelFunc
	qemu *exec.Cmd
	said chan string

	mu    sync.Mutex // held while a command runs
	typed io.Writer  // its console
}

// Ran is a command that has ended.
type Ran struct {
	Status int
	Out    string // standard output and standard error
}

// bootTime is how long a guest may take until its first command.
const bootTime = 5 * time.Minute

// Boot boots an archive that Image.Pack wrote, and waits until the guest takes commands.
func Boot(kernel, archive string, m Machine) (*Guest, error) {
	ctx, stop := context.WithCancel(context.Background())
	// A busy machine fails the kernel's check of the timer.
	options := "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check mitigations=off"
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", append([]string{
		"-accel", "tcg", "-cpu", "max", "-smp", strconv.Itoa(m.CPUs), "-m", strconv.Itoa(m.Memory),
		"-kernel", filepath.Join(kernel, "vmlinuz"), "-initrd", archive, "-append", options,
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot"}, m.Flags...)...)
	qemu.Stderr = os.Stderr
	typed, err := qemu.StdinPipe()
	if err != nil {
		stop()
		return nil, err
	}
	console, err := qemu.StdoutPipe()
	if err != nil {
		stop()
		return nil, err
	}
	if err := qemu.Start(); err != nil {
		stop()
		return nil, err
	}
	g := &Guest{stop: stop, qemu: qemu, said: make(chan string, 1024), typed: typed}
	go g.listen(console)
	if _, g.Version, err = g.until("@ready ", bootTime); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// listen reads the console until the guest ends.
func (g *Guest) listen(console io.Reader) {
	defer close(g.said)
	for lines := bufio.NewScanner(console); lines.Scan(); {
		g.said <- strings.TrimRight(lines.Text(), "\r")
	}
}

// Close switches the guest off.
func (g *Guest) Close() error {
	g.stop()
	for range g.said {
	}
	if err := g.qemu.Wait(); err != nil && g.qemu.ProcessState.Exited() {
		return fmt.Errorf("qemu: %w", err)
	}
	return nil // killed
}

// until reads the console up to a line that has mark. It returns the text before the mark, and the
// rest of its line.
func (g *Guest) until(mark string, patience time.Duration) (before, rest string, err error) {
	var text strings.Builder
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		select {
		case line, ok := <-g.said:
			if !ok {
				return "", "", fmt.Errorf("the guest has ended:\n%s", text.String())
			}
			if i := strings.Index(line, mark); i >= 0 {
				return text.String() + line[:i], line[i+len(mark):], nil
			}
			fmt.Fprintln(&text, line)
		case <-over.C:
			return "", "", fmt.Errorf("no %q from the guest in %s:\n%s", mark, patience, text.String())
		}
	}
}

// Run runs a shell command, and waits until it ends. After an error, the guest takes no further
// command.
func (g *Guest) Run(line string, patience time.Duration) (r Ran, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := fmt.Fprintln(g.typed, line); err != nil {
		return r, fmt.Errorf("%s: %w", line, err)
	}
	out, status, err := g.until("@status ", patience)
	if err != nil {
		return r, fmt.Errorf("%s: %w", line, err)
	}
	r.Out = out
	if r.Status, err = strconv.Atoi(strings.TrimSpace(status)); err != nil {
		return r, fmt.Errorf("%s: the status %q", line, status)
	}
	return r, nil
}
