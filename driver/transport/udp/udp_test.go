//go:build linux

package udp

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/ipv4"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

func TestNames(t *testing.T) {
	for address, want := range map[string]name{
		"192.0.2.7":       {"192.0.2.7", 0x5442},
		"card.example":    {"card.example", 0x5442},
		"card.example:17": {"card.example", 17},
		"127.0.0.1:65535": {"127.0.0.1", 65535},
	} {
		got, err := parse(address)
		require.NoError(t, err, address)
		require.Equal(t, want, got, address)
	}
	for _, address := range []string{"", ":17", "host:", "host:0", "host:65536", "host:-1", "::1", "[::1]:17"} {
		_, err := parse(address)
		require.Error(t, err, address)
	}
}

// TestRuns compares the packets of a message with those that the kernel can cut: all of one size, and
// a shorter last one, at most 64, and 65,507 bytes.
func TestRuns(t *testing.T) {
	ends := func(sizes ...int) (ends []int) {
		end := 100
		for _, n := range sizes {
			end += n
			ends = append(ends, end)
		}
		return ends
	}
	for _, c := range []struct {
		sizes []int
		want  int
	}{
		{[]int{18}, 1},
		{[]int{18, 18, 18}, 3},
		{[]int{18, 26}, 1},
		{[]int{26, 18, 26}, 2},
		{[]int{26, 18, 18}, 2},
		{slices.Repeat([]int{30}, 80), 64},
		{slices.Repeat([]int{8000}, 20), 8},
		{[]int{60_000, 5_507}, 2},
		{[]int{60_000, 5_508}, 1},
	} {
		require.Equal(t, c.want, run(100, ends(c.sizes...)), "%v", c.sizes)
	}
}

// peer is the other end of a socket under test.
func peer(t *testing.T) (*net.UDPConn, *conn) {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { socket.Close() })
	link, err := Open(context.Background(), transport.Request{Address: socket.LocalAddr().String()})
	require.NoError(t, err)
	t.Cleanup(func() { link.Close() })
	return socket, link.(*conn)
}

// TestPacketsKeepTheirBorders sends packets of many sizes at once, with segmentation and without, and
// compares what arrives. All leave with ECT(0).
func TestPacketsKeepTheirBorders(t *testing.T) {
	var buf []byte
	var ends []int
	for i, n := range []int{18, 18, 1042, 1042, 1042, 500, 8226, 8226, 18, 26, 1} {
		buf = append(buf, bytes.Repeat([]byte{byte(i + 1)}, n)...)
		ends = append(ends, len(buf))
	}
	for _, whole := range []bool{false, true} {
		card, link := peer(t)
		link.whole = whole
		require.NoError(t, link.WritePackets(buf, ends))
		start, got := 0, make([]byte, 1<<16)
		for _, end := range ends {
			n, err := card.Read(got)
			require.NoError(t, err)
			require.Equal(t, buf[start:end], got[:n])
			start = end
		}
	}
}

// TestReadsBatchesAndMarks: packets come in batches, each with the mark of its IP header.
func TestReadsBatchesAndMarks(t *testing.T) {
	card, link := peer(t)
	require.NoError(t, link.WritePackets([]byte("hello"), []int{5}))
	buf := make([]byte, 100)
	_, from, err := card.ReadFromUDPAddrPort(buf)
	require.NoError(t, err)
	marks := []wire.ECN{wire.CE, wire.NotECT, wire.ECT1, wire.ECT0, wire.CE}
	for i, mark := range marks {
		require.NoError(t, ipv4.NewConn(card).SetTOS(int(mark)))
		_, err := card.WriteToUDPAddrPort(bytes.Repeat([]byte{byte(i)}, i), from)
		require.NoError(t, err)
	}
	batch := make([]transport.Packet, 8)
	for i := range batch {
		batch[i].Bytes = make([]byte, 100)
	}
	for n := 0; n < len(marks); {
		more, err := link.ReadPackets(batch[n:])
		require.NoError(t, err)
		n += more
	}
	for i, mark := range marks {
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, i), append([]byte{}, batch[i].Bytes...))
		require.Equal(t, mark, batch[i].ECN, "packet %d", i)
	}
}

// TestOptions asks the kernel what a socket does: packets leave with ECT(0) and do not fragment, and
// each link has a port of its own.
func TestOptions(t *testing.T) {
	card, link := peer(t)
	raw := func(option int) int {
		value, err := optionOf(link.socket, option)
		require.NoError(t, err)
		return value
	}
	require.Equal(t, int(wire.ECT0), raw(optionTOS))
	require.Equal(t, optionDoNotFragment, raw(optionDiscover))
	limits := link.Limits()
	require.Greater(t, limits.Packet, 8226, "the loopback network")
	require.Greater(t, limits.Unread, 200_000)
	other, err := Open(context.Background(), transport.Request{Address: card.LocalAddr().String()})
	require.NoError(t, err)
	defer other.Close()
	require.NotEqual(t, link.socket.LocalAddr().String(), other.(*conn).socket.LocalAddr().String())
}

// TestRefused: a closed port is an error of both directions, with its remedy.
func TestRefused(t *testing.T) {
	// A connected socket does not hear others, and nobody else can open its port meanwhile.
	closed, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 9})
	require.NoError(t, err)
	defer closed.Close()
	link, err := Open(t.Context(), transport.Request{Address: closed.LocalAddr().String()})
	require.NoError(t, err)
	defer link.Close()
	require.NoError(t, link.WritePackets([]byte("hello"), []int{5}))
	_, err = link.ReadPackets([]transport.Packet{{Bytes: make([]byte, 100)}})
	var network *NetworkError
	require.ErrorAs(t, err, &network)
	require.Contains(t, err.Error(), "nothing listens on UDP port")
}

// TestTooLong: a packet that the way does not carry is an error, also where segmentation hides it at
// first.
func TestTooLong(t *testing.T) {
	_, link := peer(t)
	const size = 32_760
	for _, ends := range [][]int{{1 << 16}, {size, 2 * size, 1<<16 + 2*size}} {
		err := link.WritePackets(make([]byte, ends[len(ends)-1]), ends)
		require.ErrorContains(t, err, "use a smaller chunk")
	}
}

// TestCloseEndsReads: Close ends a read in progress.
func TestCloseEndsReads(t *testing.T) {
	_, link := peer(t)
	ended := make(chan error)
	go func() {
		_, err := link.ReadPackets([]transport.Packet{{Bytes: make([]byte, 100)}})
		ended <- err
	}()
	require.NoError(t, link.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}
