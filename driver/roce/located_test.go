package roce_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/roce"
	"tributary/driver/transport/rdma"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// atPort5 is a card whose SOURCE_MAC has Ethernet port 5 for hosts at 127.0.0.9.
type atPort5 struct{ driver.NetworkCard }

func (c atPort5) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	if uint32(from.Station) == 0x7f000009 {
		from.MAC |= 5 << 48
	}
	c.NetworkCard.Receive(datagram, from, mark)
}

// sole is a stack with one address.
type sole struct {
	rdma.Stack
	rdma.QueuePairs
	end    *protocol.Connection
	closed bool
}

func (s *sole) Open(context.Context, rdma.Job) (rdma.QueuePairs, error) { return s, nil }
func (s *sole) Connection() *protocol.Connection                        { return s.end }
func (s *sole) Close() error {
	s.closed = true
	return nil
}

// TestEthernetPorts: a connection has the Ethernet port at which the card sees its address, not another one of
// the machine.
func TestEthernetPorts(t *testing.T) {
	socket, err := udp.Listen("127.0.0.1:0")
	require.NoError(t, err)
	card, err := driver.NewNetworkCard("model:workers=2", socket.Address(), 1)
	require.NoError(t, err)
	ctx, off := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- socket.Serve(ctx, atPort5{card}) }()
	for ip, port := range map[uint32]uint64{0x7f000001: 0, 0x7f000009: 5} {
		s := &sole{end: &protocol.Connection{Ip: ip, Mac: 0x02_0000_0001_00}}
		_, err := roce.Located(s, socket.Name()).Open(t.Context(), rdma.Job{})
		require.NoError(t, err)
		assert.Equal(t, port<<48|0x02_0000_0001_00, s.end.Mac)
	}
	off()
	require.NoError(t, errors.Join(<-ended))
	s := &sole{end: &protocol.Connection{Ip: 0x01020304}} // no address of this machine
	_, err = roce.Located(s, socket.Name()).Open(t.Context(), rdma.Job{})
	require.Error(t, err)
	assert.True(t, s.closed)
}
