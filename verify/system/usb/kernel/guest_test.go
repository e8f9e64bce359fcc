package kernel

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/verify/system/guest"
	"tributary/verify/system/usb/rig"
)

// Files that `make test-usb-kernel` has made.
const (
	program = "../../../../bin/tributary"
	folder  = "../../../../build/usb/card"
	usbip   = "/usr/sbin/usbip" // Debian's
)

var kernel = flag.String("kernel", "../../../../.tools/kernel", "the `folder` that verify/system/guest/setup.sh has filled")

const patience = 2 * time.Minute

// machine is a guest with tributary, usbip and the commands loop and attach.
type machine struct {
	t *testing.T
	*guest.Guest
}

const network = `ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up`

// boot starts the machine, with files in /tmp.
func boot(t *testing.T, files []string) *machine {
	t.Helper()
	tools := t.TempDir()
	for _, name := range []string{"loop", "kernel/attach"} {
		build := exec.Command("go", "build", "-o", filepath.Join(tools, filepath.Base(name)), "./"+name)
		build.Dir = ".."
		if strings.HasSuffix(name, "attach") {
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
		}
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	image := guest.Image{
		Kernel: *kernel, Modules: []string{"vhci-hcd", "e1000"}, Init: "../../guest/init", Setup: network,
		Programs: []string{program, usbip, filepath.Join(tools, "loop"), filepath.Join(tools, "attach")},
		Files:    map[string]string{},
	}
	for _, f := range files {
		image.Files["/tmp/"+filepath.Base(f)] = f
	}
	archive := filepath.Join(t.TempDir(), "initramfs")
	require.NoError(t, image.Pack(t.TempDir(), archive))
	g, err := guest.Boot(*kernel, archive, guest.Machine{CPUs: 2, Memory: 768, Flags: []string{"-nic", "user,model=e1000"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return &machine{t, g}
}

// run runs a shell command.
func (m *machine) run(line string) guest.Ran {
	m.t.Helper()
	r, err := m.Run(line, patience)
	require.NoError(m.t, err)
	return r
}

// plug attaches a card to a port of the guest, again after every unplugging.
func (m *machine) plug(c *rig.Card, port int) {
	m.t.Helper()
	require.Zero(m.t, m.run(fmt.Sprintf("attach 10.0.2.2:%s %d &", number(m.t, c), port)).Status)
}

// attach attaches a card with the commands that a user types.
func (m *machine) attach(c *rig.Card) {
	m.t.Helper()
	for _, verb := range []string{"list -r 10.0.2.2", "attach -r 10.0.2.2 -b 1-1"} {
		r := m.run(fmt.Sprintf("usbip --tcp-port %s %s", number(m.t, c), verb))
		require.Zero(m.t, r.Status, r.Out)
	}
}

// number returns the TCP port of a card's server.
func number(t *testing.T, c *rig.Card) string {
	_, port, err := net.SplitHostPort(c.Addr)
	require.NoError(t, err)
	return port
}
