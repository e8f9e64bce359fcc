package main

// The commands on a card on a network, over real sockets.

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/transport/record"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// networkCard puts a model card on the loopback network, and returns its name.
func networkCard(t *testing.T) string {
	t.Helper()
	return serveModel(t, model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4, Shell: wire.ShellUDP, Link: 64})
}

// serveModel is networkCard for any configuration.
func serveModel(t *testing.T, cfg model.Config) string {
	t.Helper()
	socket, err := udp.Listen("127.0.0.1:0")
	require.NoError(t, err)
	card, err := model.NewEndpoint(cfg, socket.Address())
	require.NoError(t, err)
	return serveAt(t, socket, card)
}

// serveAt runs a card behind a socket until the test ends, and returns its name.
func serveAt(t *testing.T, socket *udp.Socket, card udp.Card) string {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- socket.Serve(ctx, card) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return socket.Name()
}

// TestCommandsOnANetwork runs each command with a card on a network: alone, and those that read beside
// the card's owner.
func TestCommandsOnANetwork(t *testing.T) {
	workFolder(t)
	card := networkCard(t)
	does := func(words string, line ...string) {
		t.Helper()
		s := tributary(context.Background(), append(line, "-card", card)...)
		require.Equal(t, 0, s.status, s.errs)
		require.Regexp(t, words, s.out)
	}
	does(`flipped bits +caught in 0 datagrams`, "reduce", "-verify", "-stats", "-record", "link.log", "-o", "sum.npy", "w0.npy", "w1.npy", "w2.npy")
	does(`(?s)shell +udp.*stored +3 .*stranger +0 .*dropped +0 `, "info")
	does(`takes this job`, "config", "-workers", "3")
	does(`ok +strangers`, "selftest")
	does(`workers +window`, "bench", "-workers", "2", "-time", "20ms")
	does(`nobody drives the card`, "top", "-count", "1")
	does(`is reset`, "reset")

	s := tributary(context.Background(), "decode", "link.log")
	require.Equal(t, 0, s.status, s.errs)
	require.Regexp(t, `(?s)-> regwrite OWNER.*-> regwrite MEMBER_ADDRESS of port 0 = 0x[0-9a-f]+7f000001.*-> regwrite JOB_COMMIT.*-> data .* rank 2 vid 0.*<- result .* of ranks 0-2, for ranks 0-2.*-> regwrite RELEASE`, s.out)

	owner, err := driver.Open(context.Background(), card)
	require.NoError(t, err)
	defer owner.Close()
	does(`COUNT|stored`, "info")
	does(`beside the host that owns the card`, "top", "-count", "1")
	s = tributary(context.Background(), "reduce", "-card", card, "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Equal(t, 1, s.status)
	require.Contains(t, s.errs, "another host owns it")
}

// TestCongestedNetwork: -stats and bench show what marks did to the window, unless it is fixed.
func TestCongestedNetwork(t *testing.T) {
	workFolder(t)
	proxy, err := faults.NewProxy(strings.TrimPrefix(networkCard(t), "udp:"), faults.Rates{}, new(faults.Counts))
	require.NoError(t, err)
	defer proxy.Close()
	proxy.Mark(wire.CE, wire.ECT0)
	for words, flags := range map[string][]string{
		`congestion +[1-9]\d* results marked, window cut [1-9]\d* times and halved \d+ times; [123]\.\d chunks`: nil,
		`congestion +[1-9]\d* results marked, window cut 0 times and halved 0 times; 4\.0 chunks`:               {"-fixed-window"},
		`"congestion": \{\s+"marked": [1-9]\d*,\s+"cuts": 0,\s+"halvings": 0,\s+"mean_window": 4\s+\}`:          {"-fixed-window", "-json"},
	} {
		line := append([]string{"reduce", "-card", proxy.Name(), "-verify", "-stats", "-o", "sum.npy", "w0.npy", "w1.npy"}, flags...)
		s := tributary(context.Background(), line...)
		require.Equal(t, 0, s.status, s.errs)
		require.Regexp(t, words, s.out)
	}
	for words, flags := range map[string][]string{
		`mean window\n2 +4 +[1-9]\d* +[1-9]\d* +\d+ +[123]\.\d\n$`:                                     nil,
		`"congestion": \{\s+"marked": [1-9]\d*,\s+"cuts": 0,\s+"halvings": 0,\s+"mean_window": 4\s+\}`: {"-fixed-window", "-json"},
	} {
		line := append([]string{"bench", "-card", proxy.Name(), "-workers", "2", "-elements", "320", "-time", "50ms"}, flags...)
		s := tributary(context.Background(), line...)
		require.Equal(t, 0, s.status, s.errs)
		require.Regexp(t, words, s.out)
	}
	for _, line := range [][]string{{"reduce", "-stats", "-o", "sum.npy", "w0.npy", "w1.npy"}, {"bench", "-elements", "320", "-time", "50ms", "-json"}} {
		s := tributary(context.Background(), append(line, "-card", "model:")...)
		require.Equal(t, 0, s.status, s.errs)
		require.NotContains(t, s.out, "congestion")
	}
}

// TestCommandsOnACardWithAnUpPort: info names the up port and its counters, and ordinary jobs run.
func TestCommandsOnACardWithAnUpPort(t *testing.T) {
	workFolder(t)
	card := serveModel(t, model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4, Shell: wire.ShellUDP, Link: 64, Parent: true})
	does := func(words string, line ...string) {
		t.Helper()
		s := tributary(context.Background(), append(line, "-card", card)...)
		require.Equal(t, 0, s.status, s.errs)
		require.Regexp(t, words, s.out)
	}
	does(`0 datagrams`, "reduce", "-verify", "-stats", "-o", "sum.npy", "w0.npy", "w1.npy", "w2.npy")
	does(`(?s)shell +udp.* up port +for a parent.* stored +3 .* udp_port +0 .* up_sent +0 .* up_refused +0 `, "info")
	does(`(?s)"parent": true.*"name": "up_taken"`, "info", "-json")
	s := tributary(context.Background(), "info", "-card", networkCard(t))
	require.Equal(t, 0, s.status, s.errs)
	require.NotContains(t, s.out, "up port")
	require.NotContains(t, s.out, "up_sent")
}

// TestNamesOfTreeRegisters: a log names the registers of trees of cards.
func TestNamesOfTreeRegisters(t *testing.T) {
	for addr, want := range map[uint32]string{
		0x150: "PARENT_ADDRESS", 0x238: "JOB_PARENT", 0x248: "TREE_RANKS", 0xc18: "MEMBER_RANKS of port 3", 0x610: "COUNT_UP_TAKEN",
	} {
		name, job := jobsRegister(addr)
		require.Equal(t, want, name)
		require.Nil(t, job, want)
	}
	for addr, want := range map[uint32]string{0x1158: "JOB_UP", 0x1168: "JOB_UP_REFUSAL", 0x44218: "JOB_RANKS of port 3"} {
		name, job := jobsRegister(addr)
		require.Equal(t, want, name)
		require.NotNil(t, job, want)
		require.EqualValues(t, 1, *job)
	}
}

// TestNoCardOnTheNetwork: the commands end with exit status 3 and a remedy.
func TestNoCardOnTheNetwork(t *testing.T) {
	workFolder(t)
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer free.Close()
	// A connected socket does not hear others, and nobody else can open its port meanwhile.
	closed, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 9})
	require.NoError(t, err)
	defer closed.Close()
	const refused = "check that the card runs"
	for card, words := range map[string]string{
		"udp:" + closed.LocalAddr().String(): refused,
		"udp:" + free.LocalAddr().String():   "check the card's address",
		"udp:":                               "use udp:HOST or udp:HOST:PORT",
		"udp:card.invalid":                   "check the card's name",
	} {
		for _, line := range []string{"info", "reset", "config", "top -count 1", "selftest", "bench"} {
			args := append(strings.Fields(line), "-card", card)
			if words != refused { // which may come late
				args = append(args, "-timeout", "200ms")
			}
			s := tributary(context.Background(), args...)
			require.Equal(t, 3, s.status, "%s -card %s: %s", line, card, s.errs)
			require.Contains(t, s.errs, words, "%s -card %s", line, card)
		}
	}
}

// TestDecodePackets prints a log of datagrams, good and bad.
func TestDecodePackets(t *testing.T) {
	ask := frame.AppendDatagram(nil, &frame.Header{Kind: wire.KindAsk, Epoch: 9, Rank: 1, VID: 5}, nil)
	data := frame.AppendPaddedDatagram(nil, &frame.Header{Kind: wire.KindData, Epoch: 9, VID: 5, Format: wire.FP32, Length: 4}, nil)
	result := frame.AppendDatagram(nil, &frame.Header{Kind: wire.KindResult, Epoch: 9, VID: 4, Format: wire.FP32, Length: 1, Mask: 3, Receivers: 2, Flags: uint8(wire.CE)}, make([]byte, 4))
	entry := frame.AppendDatagram(nil, &frame.Header{Kind: wire.KindReply, VID: wire.TableAddr(wire.RegJobAddress, 1, 2), Length: 7, Mask: 12}, nil)
	damaged := bytes.Clone(data)
	damaged[15] ^= 1
	version := frame.AppendDatagram(nil, &frame.Header{Kind: wire.KindAsk, Version: 1}, nil)

	var log bytes.Buffer
	conn := record.NewRecorder(&log, true).RecordPackets(&queued{came: []transport.Packet{
		{Bytes: result, ECN: wire.CE}, {Bytes: entry, ECN: wire.ECT0}, {Bytes: result[:10]}, {Bytes: ask}}})
	for _, b := range [][]byte{ask, data, damaged, version} {
		require.NoError(t, conn.WritePackets(b, []int{len(b)}))
	}
	_, err := conn.ReadPackets(make([]transport.Packet, 4))
	require.NoError(t, err)

	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	workFolder(t)
	require.NoError(t, os.WriteFile("link.log", log.Bytes(), 0o666))
	for name, line := range map[string]string{"decode-packets": "decode link.log", "decode-packets-json": "decode -json link.log"} {
		args := strings.Fields(line)
		text := transcript(args, tributary(context.Background(), args...))
		golden(t, filepath.Join(dir, name+".txt"), withoutTimes(text))
	}
}

// queued is a link of packets that takes all packets, and has some to read.
type queued struct{ came []transport.Packet }

func (q *queued) ReadPackets(batch []transport.Packet) (int, error) { return copy(batch, q.came), nil }
func (q *queued) WritePackets([]byte, []int) error                  { return nil }
func (q *queued) Limits() transport.PacketLimits                    { return transport.PacketLimits{} }
func (q *queued) Close() error                                      { return nil }

// TestServeANetworkCard has `tributary serve` share a card on a network: members in other processes
// sum through it.
func TestServeANetworkCard(t *testing.T) {
	workFolder(t)
	startServe(t, "-card", networkCard(t), "-listen", "unix:s")
	for range 2 {
		s := tributary(context.Background(), "reduce", "-card", "serve:unix:s", "-verify", "-o", "sum.npy", "w0.npy", "w1.npy", "w2.npy")
		require.Equal(t, 0, s.status, s.errs)
	}
}
