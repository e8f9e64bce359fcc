package selftest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// TestGoodCardOnANetwork asks a card over real datagrams: every question of a byte stream, and the
// one about strangers.
func TestGoodCardOnANetwork(t *testing.T) {
	socket, err := udp.Listen("127.0.0.1:0")
	require.NoError(t, err)
	card, err := model.NewEndpoint(model.Config{Lanes: 4, Ports: 3, Chunk: 32, Window: 4, Shell: wire.ShellUDP, Link: 64}, socket.Address())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- socket.Serve(ctx, card) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	outcomes := ask(t, socket.Name(), time.Minute)
	require.Len(t, outcomes, 16)
	for name, err := range outcomes {
		require.NoError(t, err, name)
	}
}
