package driver_test

import (
	"context"
	"testing"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// smallUDP is the card small, on a network.
var smallUDP = model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4, Shell: wire.ShellUDP, Link: 64, Latency: 9}

// serveUDP puts a model card on the loopback network, and returns its name.
func serveUDP(t testing.TB, cfg model.Config) string {
	t.Helper()
	socket, err := udp.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	card, err := model.NewEndpoint(cfg, socket.Address())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- socket.Serve(ctx, card) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket.Name()
}

func TestUDPReduces(t *testing.T) {
	card := openName(t, serveUDP(t, smallUDP))
	job := configure(t, card, driver.JobConfig{})
	in := arrays(3, 4, 5000)
	dst := make([]float32, 5000)
	if err := job.Reduce(testContext(t), dst, in); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "sum", dst, treeSum(in, firstPorts(4), 4))
	t.Logf("%+v", job.Stats())
	if err := job.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
}
