package roce

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/verify/system/roce/rig"
)

// Cards are command lines, without quotes.
var (
	kernel   = flag.String("kernel", "../../../.tools/kernel", "the `folder` that verify/system/guest/setup.sh has filled")
	worker   = flag.String("worker", "../../../build/roce/tributary-roce-worker", "the `program`")
	losses   = flag.Int("losses", 2000, "how many packets TestLossBothWays loses")
	plain    = flag.String("plain", "../../../bin/tributary sim model:", "`command` of a card that passes all frames")
	summing  = flag.String("summing", "../../../bin/tributary sim model:shell=roce,lanes=4,workers=4,format=int32,chunk=1024,window=512", "`command` of a card with shell roce and a window of 512")
	oneArmed = flag.String("one-armed", "../../../bin/tributary sim model:shell=roce,lanes=4,workers=4,format=int32,chunk=1024,window=16", "`command` of a card with shell roce and one Ethernet port")
	record   = flag.String("record", "", "keep a pcapng of each test's frames in this `folder`")
)

// hosts are booted once for all tests.
var hosts *rig.Hosts

// programs are Debian's.
var programs = []string{"ibv_rc_pingpong", "ib_send_bw", "ib_write_bw", "rping", "rdma"}

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := boot(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// boot runs the tests with hosts.
func boot(m *testing.M) (status int, err error) {
	folder, err := os.MkdirTemp("", "tributary-roce")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	paths := []string{*worker}
	for _, p := range programs {
		paths = append(paths, filepath.Join("/usr/bin", p))
	}
	began := time.Now()
	hosts, err = rig.Boot(*kernel, "../guest/init", folder, 3, paths, nil)
	if err != nil {
		return 1, err
	}
	fmt.Printf("%d hosts with Linux %s are ready after %.0f s\n", len(hosts.Guests), hosts.Guests[0].Version, time.Since(began).Seconds())
	status = m.Run()
	return status, hosts.Close()
}

// connect runs a card until the test ends.
func connect(t *testing.T, command string) *rig.Card {
	t.Helper()
	c, err := hosts.Connect(strings.Fields(command))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// run runs a command at a host.
func run(t *testing.T, host int, line string) string {
	t.Helper()
	out, err := hosts.Run(host, line)
	require.NoError(t, err)
	return out
}
