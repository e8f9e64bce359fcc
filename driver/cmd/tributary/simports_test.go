package main

// Cards at Ethernet ports: tributary sim -port and tributary pcap.

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// asSimulator in the environment makes the test binary act as the simulator of a card with two Ethernet
// ports.
const asSimulator = "TRIBUTARY_TEST_AS_SIMULATOR"

// pcapCard is the card of the goldens of package capture.
const pcapCard = "workers=4,lanes=4,chunk=64,window=4"

// startSim acts as the simulator.
func startSim() {
	endpoint, err := driver.NewNetworkCard("model:"+pcapCard, frames.CardAddress, 2)
	if err != nil {
		panic(err)
	}
	card, err := ethernet.New(endpoint, 2)
	if err != nil {
		panic(err)
	}
	if err := frames.Simulate(os.Stdin, os.Stdout, card); err != nil {
		panic(err)
	}
}

// builtCard makes a folder as of a built card with shell udp and two Ethernet ports. Its simulator is the
// test binary.
func builtCard(t *testing.T, dir, manifest string) {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(manifest), &m))
	m["shell"], m["ethernet"] = wire.ShellUDP.String(), 2
	at := map[string]uint64{"SHELL": uint64(wire.ShellUDP), "LINK": 64}
	text := map[uint64]string{1: "0x1", 2: "0x2", 3: "0x3", 64: "0x40"}
	for _, r := range m["registers"].([]any) {
		register := r.(map[string]any)
		if value, ok := at[register["name"].(string)]; ok {
			register["value"] = text[value]
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sim", "build"), 0o777))
	program, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(program, filepath.Join(dir, "sim", "build", "card")))
	write := func() {
		changed, err := json.Marshal(m)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), changed, 0o666))
	}
	write()
	if _, err := transport.ReadManifest(dir); err != nil { // its registers have changed, so has their hash
		_, hash, _ := strings.Cut(err.Error(), "the registers there give ")
		require.Len(t, hash[:16], 16, err)
		m["config_hash"] = hash[:16]
		write()
	}
	_, err = transport.ReadManifest(dir)
	require.NoError(t, err)
	t.Setenv(asSimulator, "1")
}

// TestSimAtPorts runs a card in software and a built one at two ports. A host at one of them pings it, and
// sends a frame to a host at the other one. Ctrl-C leaves nothing.
func TestSimAtPorts(t *testing.T) {
	manifest := cardManifest(t)
	for name, address := range map[string]string{
		"model:":        "card 192.168.84.66:21570 at 02:54:52:42:00:01\n",
		"cpu:workers=8": "card 192.168.84.66:21570 at 02:54:52:42:00:01\n",
		"made":          "",
	} {
		workFolder(t)
		builtCard(t, "made", manifest)
		before := files(t)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan said)
		go func() { ended <- tributary(ctx, "sim", name, "-port", "unix:a.port", "-port", "unix:b.port") }()
		until(func() bool { return exists("a.port") && exists("b.port") })
		a, err := frames.Attach("a.port", frames.HostMAC, frames.HostIP)
		require.NoError(t, err)
		b, err := frames.Attach("b.port", net.HardwareAddr{6, 0, 0, 0, 0, 2}, net.IPv4(192, 168, 84, 2))
		require.NoError(t, err)
		for _, host := range []*frames.Host{a, b} { // the card knows both when it has answered
			mac, err := host.Resolve(ctx, cardIP)
			require.NoError(t, err)
			require.Equal(t, frames.CardMAC, mac)
		}
		require.NoError(t, a.Send(frames.EchoRequest(0, []byte("hello"))))
		require.Contains(t, string(<-a.Others), "hello")
		frame := frames.Strange(a.MAC, b.MAC, 1, 2, 3)
		require.NoError(t, a.Send(frame))
		require.Equal(t, frame, <-b.Others)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		stop()
		s := <-ended
		require.Equal(t, 0, s.status, s.errs)
		require.Equal(t, address+"port 0 is unix:a.port\nport 1 is unix:b.port\n", s.out)
		require.ElementsMatch(t, before, files(t))
	}
}

// TestTooManyPorts: a built card has the Ethernet ports of its manifest.
func TestTooManyPorts(t *testing.T) {
	manifest := cardManifest(t)
	workFolder(t)
	builtCard(t, "made", manifest)
	s := tributary(context.Background(), "sim", "made", "-port", "unix:a", "-port", "unix:b", "-port", "unix:c")
	require.Equal(t, 3, s.status)
	require.Equal(t, "tributary sim: no card at sim:made: 3 Ethernet ports are needed; it has 2\n", s.errs)
}

// cardIP is the card's default IPv4 address.
var cardIP = ipOf(wire.NetworkIP)

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestOwnAddress: a card in software has the address of the flags.
func TestOwnAddress(t *testing.T) {
	workFolder(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan int)
	go func() {
		ended <- tributary(ctx, "sim", "model:", "-port", "unix:port", "-ip", "192.168.84.7:9", "-mac", "06:01:02:03:04:05").status
	}()
	until(func() bool { return exists("port") })
	h, err := frames.Attach("port", frames.HostMAC, frames.HostIP)
	require.NoError(t, err)
	mac, err := h.Resolve(ctx, ipOf(0xc0a85407))
	require.NoError(t, err)
	require.Equal(t, net.HardwareAddr{6, 1, 2, 3, 4, 5}, mac)
	require.NoError(t, h.Close())
	stop()
	require.Zero(t, <-ended)
}

// TestPcap: the command writes the goldens of package capture, with a card in software and with a built
// one, and prints what it has counted.
func TestPcap(t *testing.T) {
	manifest := cardManifest(t)
	goldens, err := filepath.Abs("../../virtual/capture/testdata")
	require.NoError(t, err)
	workFolder(t)
	builtCard(t, "made", manifest)
	before := files(t)
	in := filepath.Join(goldens, "faults2.pcapng")
	want, err := os.ReadFile(filepath.Join(goldens, "faults2.out.pcapng"))
	require.NoError(t, err)
	for _, card := range []string{"model:" + pcapCard, "cpu:" + pcapCard, "made"} {
		s := tributary(context.Background(), "pcap", in, "-o", "out.pcapng", "-card", card)
		require.Equal(t, 0, s.status, s.errs)
		require.Equal(t, "out.pcapng: 48 frames, 25 frames of the card, at 2 ports\n", s.out)
		got, err := os.ReadFile("out.pcapng")
		require.NoError(t, err)
		require.Equal(t, want, got, card)
		require.NoError(t, os.Remove("out.pcapng"))

		s = tributary(context.Background(), "pcap", "-json", in, "-o", "out.pcapng", "-card", card)
		require.Equal(t, 0, s.status, s.errs)
		require.NoError(t, os.Remove("out.pcapng"))
		var report struct {
			Out      string
			Ports    []struct{ In, Out int }
			Counters map[string]int
		}
		require.NoError(t, json.Unmarshal([]byte(s.out), &report))
		require.Equal(t, []struct{ In, Out int }{{24, 12}, {24, 13}}, report.Ports)
		if card != "made" {
			require.Equal(t, 2, report.Counters["checksum"])
			require.Equal(t, 24, report.Counters["frames"])
		} else {
			require.Nil(t, report.Counters)
		}
	}
	require.ElementsMatch(t, before, files(t))
}

// TestPcapOfFewerPorts: a card may have more Ethernet ports than the capture has interfaces.
func TestPcapOfFewerPorts(t *testing.T) {
	manifest := cardManifest(t)
	goldens, err := filepath.Abs("../../virtual/capture/testdata")
	require.NoError(t, err)
	workFolder(t)
	builtCard(t, "made", manifest)
	s := tributary(context.Background(), "pcap", filepath.Join(goldens, "faults.pcapng"), "-o", "out.pcapng", "-card", "made")
	require.Equal(t, 0, s.status, s.errs)
	got, err := os.ReadFile("out.pcapng")
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(goldens, "faults.out.pcapng"))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestPcapLeavesNothing: a capture that fails leaves no file, and keeps the one that is there.
func TestPcapLeavesNothing(t *testing.T) {
	goldens, err := filepath.Abs("../../virtual/capture/testdata")
	require.NoError(t, err)
	workFolder(t)
	in, err := os.ReadFile(filepath.Join(goldens, "answers.pcapng"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("cut.pcapng", in[:len(in)-50], 0o666))
	require.NoError(t, os.WriteFile("out.pcapng", []byte("kept"), 0o666))
	before := files(t)
	for _, line := range []string{"cut.pcapng", "missing.pcapng", "w0.npy"} {
		s := tributary(context.Background(), "pcap", line, "-o", "out.pcapng")
		require.Equal(t, 1, s.status, line)
		require.Contains(t, s.errs, line)
		require.Empty(t, s.out)
	}
	require.ElementsMatch(t, before, files(t))
	kept, err := os.ReadFile("out.pcapng")
	require.NoError(t, err)
	require.Equal(t, "kept", string(kept))
}
