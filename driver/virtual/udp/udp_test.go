package udp_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// start serves a model card until the test ends.
func start(t *testing.T) (card string) {
	t.Helper()
	socket, err := udp.Listen("127.0.0.1:0")
	require.NoError(t, err)
	endpoint, err := model.NewEndpoint(model.Config{Lanes: 4, Ports: 4, Window: 8, Shell: wire.ShellUDP, Link: 64}, socket.Address())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- socket.Serve(ctx, endpoint) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return socket.Name()[len("udp:"):]
}

// read returns the datagram of a register read.
func read(addr uint32, tag uint16) []byte {
	d := make([]byte, 14)
	d[0] = 2 | byte(wire.KindRegRead)<<4
	binary.LittleEndian.PutUint32(d[8:], addr)
	binary.LittleEndian.PutUint16(d[12:], tag)
	return binary.LittleEndian.AppendUint32(d, crc32.Checksum(d, crc32.MakeTable(crc32.Castagnoli)))
}

func TestAHostReadsItsAddress(t *testing.T) {
	conn, err := net.Dial("udp4", start(t))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(read(wire.RegSource, 0x1234))
	require.NoError(t, err)
	reply := make([]byte, 100)
	n, err := conn.Read(reply)
	require.NoError(t, err)
	require.Equal(t, 26, n)
	port := conn.LocalAddr().(*net.UDPAddr).Port
	assert.Equal(t, uint64(port)<<32|0x7f000001, binary.LittleEndian.Uint64(reply[14:]))
	assert.EqualValues(t, 0x1234, binary.LittleEndian.Uint16(reply[12:]))
}
