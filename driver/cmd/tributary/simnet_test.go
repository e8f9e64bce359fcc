package main

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// TestSimOnTheNetwork checks that sim runs a card in software with its options on the network, that
// list shows it, and that Ctrl-C ends it with status 0.
func TestSimOnTheNetwork(t *testing.T) {
	for _, made := range []string{"model:workers=3", "model:workers=3,parent=true", "cpu:workers=3,format=bf16", "cpu:workers=3,parent=true"} {
		workFolder(t)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan said)
		go func() { ended <- tributary(ctx, "sim", made, "-listen", "udp:127.0.0.1:0") }()
		name := ""
		until(func() bool {
			for line := range strings.SplitSeq(tributary(context.Background(), "list").out, "\n") {
				if strings.Contains(line, "a card in software that runs on the network, made as "+made) {
					name = strings.Fields(line)[0]
				}
			}
			return name != ""
		})
		address, ok := strings.CutPrefix(name, "udp:")
		require.True(t, ok, name)
		require.EqualValues(t, 3, readPorts(t, address))

		stop()
		s := <-ended
		require.Equal(t, 0, s.status, s.errs)
		require.Equal(t, "listening "+name+"\n", s.out)
		require.NotContains(t, tributary(context.Background(), "list").out, name)
	}
}

// readPorts reads the register PORTS of the card at an address.
func readPorts(t *testing.T, address string) uint64 {
	t.Helper()
	conn, err := net.Dial("udp4", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(frame.AppendDatagram(nil, &frame.Header{Kind: wire.KindRegRead, VID: wire.RegPorts}, nil))
	require.NoError(t, err)
	reply := make([]byte, 100)
	n, err := conn.Read(reply)
	require.NoError(t, err)
	require.Equal(t, 26, n)
	return binary.LittleEndian.Uint64(reply[wire.BaseHeaderBytes:])
}
