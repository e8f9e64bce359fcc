package udp

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tributary/driver/wire"
)

// stay is an echo at an address.
type stay struct {
	echo
	own wire.Address
}

func (s *stay) Own() wire.Address { return s.own }

// serveEcho serves an echo at a socket, and returns a host's socket that is connected to it.
func serveEcho(t *testing.T) (host *net.UDPConn) {
	t.Helper()
	socket, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- socket.Serve(ctx, &stay{own: socket.Address()}) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(socket.address))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// option sets an option of IP on a socket.
func option(t *testing.T, conn *net.UDPConn, name, value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, name, value) }))
	require.NoError(t, err)
}

// TestMarksOfIP: the card sees the mark of each datagram, and sets that of each.
func TestMarksOfIP(t *testing.T) {
	host := serveEcho(t)
	option(t, host, unix.IP_RECVTOS, 1)
	for mark := range wire.ECN(4) {
		option(t, host, unix.IP_TOS, int(mark)|0x28) // with a service class
		_, err := host.Write([]byte{1, 2, 3})
		require.NoError(t, err)
		buffer, control := make([]byte, 10), make([]byte, 100)
		n, nn, _, _, err := host.ReadMsgUDP(buffer, control)
		require.NoError(t, err)
		assert.Equal(t, []byte{1, 2, 3}, buffer[:n])
		messages, err := unix.ParseSocketControlMessage(control[:nn])
		require.NoError(t, err)
		require.Len(t, messages, 1)
		assert.EqualValues(t, (mark+1)%4, messages[0].Data[0], "the echo of mark %d", mark)
	}
}

// TestLongestDatagrams: the longest datagram of a card passes whole, many of them in a row.
func TestLongestDatagrams(t *testing.T) {
	host := serveEcho(t)
	longest := wire.MaxHeaderBytes + wire.MaxDatagramPayload + wire.DatagramCRCBytes
	buffer := make([]byte, longest+1)
	for i := range 3 * batch {
		sent := bytes.Repeat([]byte{byte(i)}, longest-i)
		_, err := host.Write(sent)
		require.NoError(t, err)
		n, err := host.Read(buffer)
		require.NoError(t, err)
		require.Equal(t, sent, buffer[:n])
	}
}

// TestNoDatagramIsFragmented: the system sets "don't fragment".
func TestNoDatagramIsFragmented(t *testing.T) {
	socket, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer socket.Close()
	raw, err := socket.conn.SyscallConn()
	require.NoError(t, err)
	got := 0
	require.NoError(t, raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER) }))
	require.NoError(t, err)
	assert.Equal(t, unix.IP_PMTUDISC_DO, got)
}
