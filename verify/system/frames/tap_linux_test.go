package frames_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"tributary/driver"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/verify/system/frames"
)

// The environment of the tests with TAP devices.
const (
	inside  = "TRIBUTARY_TEST_IN_NAMESPACE"    // this process is in a network of its own
	without = "TRIBUTARY_WITHOUT_NAMESPACES=1" // leave these tests out
)

// inNamespace runs a test again in a process that is root of a network of its own, in which it may make
// devices. In that process it returns true.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	if os.Getenv("TRIBUTARY_WITHOUT_NAMESPACES") != "" {
		t.Skip(without + ": no test has used a TAP device")
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), inside+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := again.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatalf("%v: this system lets no user make a network of its own; allow user namespaces, or leave this test out: %s", err, without)
	}
	assert.NoError(t, err, "%s", out)
	return false
}

// TestKernelAtATAP: the kernel's IP stack pings a card at a TAP device, and the driver reduces through
// sockets of the kernel.
func TestKernelAtATAP(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, name := range cards {
		stop := atTAP(t, name, "tributary0")
		up(t, "tributary0", net.IPv4(192, 168, 84, 1))
		ping(t)
		card, err := driver.Open(t.Context(), "udp:192.168.84.66")
		require.NoError(t, err)
		job, err := card.Configure(t.Context(), driver.JobConfig{Workers: 4})
		require.NoError(t, err)
		in, want := random(1, 4, 10_000)
		got := make([]float32, len(want))
		require.NoError(t, job.Reduce(t.Context(), got, in))
		assert.Equal(t, want, got)
		require.NoError(t, job.Close(t.Context()))
		require.NoError(t, card.Close())
		stop()
		_, err = net.InterfaceByName("tributary0")
		assert.Error(t, err, "the device stays")
	}
}

// atTAP runs a card at a TAP device until the returned function is called.
func atTAP(t *testing.T, name, device string) (stop func()) {
	t.Helper()
	endpoint, err := driver.NewNetworkCard(name, frames.CardAddress, 1)
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, 1)
	require.NoError(t, err)
	port, err := frameport.Open("tap:" + device)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- frameport.Serve(ctx, card, clock.Start(card), []frameport.Port{port}) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// up gives a device an IPv4 address in a network of 256, and switches it on.
func up(t *testing.T, device string, ip net.IP) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	set := ifreq(t, device)
	require.NoError(t, set.SetInet4Addr(ip.To4()))
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFADDR, set))
	require.NoError(t, set.SetInet4Addr([]byte{255, 255, 255, 0}))
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFNETMASK, set))
	set = ifreq(t, device)
	set.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, set))
}

// ifreq returns a request for a device.
func ifreq(t *testing.T, device string) *unix.Ifreq {
	t.Helper()
	r, err := unix.NewIfreq(device)
	require.NoError(t, err)
	return r
}

// ping sends an echo request of the kernel to the card, and waits for the answer.
func ping(t *testing.T) {
	t.Helper()
	conn, err := icmp.ListenPacket("ip4:icmp", "192.168.84.1")
	require.NoError(t, err)
	defer conn.Close()
	data := []byte("is it there?")
	request, err := (&icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: 7, Seq: 9, Data: data}}).Marshal(nil)
	require.NoError(t, err)
	_, err = conn.WriteTo(request, &net.IPAddr{IP: net.IP(cardAt.Addr().AsSlice())})
	require.NoError(t, err)
	buffer := make([]byte, 2000)
	n, _, err := conn.ReadFrom(buffer)
	require.NoError(t, err)
	reply, err := icmp.ParseMessage(1, buffer[:n])
	require.NoError(t, err)
	require.Equal(t, ipv4.ICMPTypeEchoReply, reply.Type)
	require.Equal(t, &icmp.Echo{ID: 7, Seq: 9, Data: data}, reply.Body)
}
