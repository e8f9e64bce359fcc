package kernel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/verify/system/usb/rig"
)

// Files that `make test-usb-kernel` has made.
const (
	program = "../../../../bin/tributary"
	folder  = "../../../../build/usb/card"
	kernel  = "../../../../.tools/kernel"
	usbip   = "/usr/sbin/usbip" // Debian's
)

const (
	bootTime = 5 * time.Minute
	patience = 2 * time.Minute
)

// guest is a machine in QEMU.
type guest struct {
	t       *testing.T
	version string    // of its kernel
	typed   io.Writer // its console
	said    chan string
}

// ran is a command that has ended.
type ran struct {
	status int
	out    string // standard output and standard error
}

// boot starts a machine with tributary, the command loop, and files in /tmp.
func boot(t *testing.T, files []string) *guest {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"loop", "kernel/attach"} {
		build := exec.Command("go", "build", "-o", filepath.Join(root, "bin", filepath.Base(name)), "./"+name)
		build.Dir = ".."
		if strings.HasSuffix(name, "attach") {
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
		}
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	fill(t, root, files)
	archive := filepath.Join(t.TempDir(), "initramfs")
	pack := exec.Command("sh", "-c", "find . | /bin/busybox cpio -o -H newc >"+archive)
	pack.Dir = root
	out, err := pack.CombinedOutput()
	require.NoError(t, err, string(out))
	return start(t, archive)
}

// fill writes the guest's file system.
func fill(t *testing.T, root string, files []string) {
	t.Helper()
	place := func(to string, from ...string) {
		for _, f := range from {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			path := filepath.Join(root, to, filepath.Base(f))
			require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o755)))
		}
	}
	place("", "init")
	place("bin", "/bin/busybox", program, usbip)
	place("tmp", files...)
	modules, err := filepath.Glob(filepath.Join(kernel, "*.ko"))
	require.NoError(t, err)
	require.Len(t, modules, 5, "make test-usb-kernel gets them")
	place("modules", modules...)
	for _, p := range []string{program, usbip} {
		libraries, err := exec.Command("ldd", p).Output()
		require.NoError(t, err)
		for _, word := range strings.Fields(string(libraries)) {
			if strings.HasPrefix(word, "/") {
				place(filepath.Dir(word), word)
			}
		}
	}
}

// start boots the machine.
func start(t *testing.T, archive string) *guest {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "768",
		"-kernel", filepath.Join(kernel, "vmlinuz"), "-initrd", archive, "-append", "console=ttyS0 quiet loglevel=1 panic=-1",
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-nic", "user,model=e1000")
	qemu.Stderr = os.Stderr
	typed, err := qemu.StdinPipe()
	require.NoError(t, err)
	console, err := qemu.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, qemu.Start())
	g := &guest{t: t, typed: typed, said: make(chan string, 1024)}
	go func() {
		defer close(g.said)
		for lines := bufio.NewScanner(console); lines.Scan(); {
			g.said <- strings.TrimRight(lines.Text(), "\r")
		}
	}()
	t.Cleanup(func() {
		cancel()
		for range g.said {
		}
		qemu.Wait()
	})
	_, g.version = g.until("@ready ", bootTime)
	return g
}

// until reads the console up to a line that begins with mark. It returns the text before that
// line, and the rest of the line.
func (g *guest) until(mark string, patience time.Duration) (before, rest string) {
	g.t.Helper()
	var text strings.Builder
	over := time.After(patience)
	for {
		select {
		case line, ok := <-g.said:
			if !ok {
				g.t.Fatalf("the guest has ended:\n%s", text.String())
			}
			if i := strings.Index(line, mark); i >= 0 {
				return text.String() + line[:i], line[i+len(mark):]
			}
			fmt.Fprintln(&text, line)
		case <-over:
			g.t.Fatalf("no %q in %s:\n%s", mark, patience, text.String())
		}
	}
}

// run runs a shell command.
func (g *guest) run(line string) (r ran) {
	g.t.Helper()
	_, err := fmt.Fprintln(g.typed, line)
	require.NoError(g.t, err)
	var status string
	r.out, status = g.until("@status ", patience)
	_, err = fmt.Sscan(status, &r.status)
	require.NoError(g.t, err)
	return r
}

// plug attaches a card to a port of the guest, again after every unplugging.
func (g *guest) plug(c *rig.Card, port int) {
	g.t.Helper()
	require.Zero(g.t, g.run(fmt.Sprintf("attach 10.0.2.2:%s %d &", number(g.t, c), port)).status)
}

// attach attaches a card with the commands that a user types.
func (g *guest) attach(c *rig.Card) {
	g.t.Helper()
	for _, verb := range []string{"list -r 10.0.2.2", "attach -r 10.0.2.2 -b 1-1"} {
		r := g.run(fmt.Sprintf("usbip --tcp-port %s %s", number(g.t, c), verb))
		require.Zero(g.t, r.status, r.out)
	}
}

// number returns the TCP port of a card's server.
func number(t *testing.T, c *rig.Card) string {
	_, port, err := net.SplitHostPort(c.Addr)
	require.NoError(t, err)
	return port
}
