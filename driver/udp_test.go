package driver_test

import (
	"context"
	"sync"
	"testing"

	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// smallUDP is the card small, on a network.
var smallUDP = model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4, Shell: wire.ShellUDP, Link: 64, Latency: 9}

// serveUDP puts a model card on the loopback network, and returns its name.
func serveUDP(t testing.TB, cfg model.Config) string {
	name, _ := startUDP(t, cfg)
	return name
}

// startUDP is serveUDP, for tests that stop the card.
func startUDP(t testing.TB, cfg model.Config) (name string, stop func()) {
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
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return socket.Name(), stop
}

// onNetwork returns a card of the same sizes on a network.
func onNetwork(cfg model.Config) model.Config {
	cfg.Shell, cfg.Link = wire.ShellUDP, 64
	return cfg
}

// TestOverUDP runs the tests of a card on one that is reached over the loopback network. These cannot
// run there:
//
//   - those that damage, delay or record a byte stream, imitate a card or look at its frames, such as
//     TestCancel, TestJobsSideBySide, TestEndOfOneJobDoesNotAffectOthers and TestStallsAtRandom.
//     TestFaultyNetwork damages datagrams;
//   - TestDetachInTheMiddle, whose arrays are too long for the race detector and real sockets;
//   - those whose time must pass in a bubble, because they sleep or compare times, such as those of
//     deadlines. TestOnPackets runs them on packets in memory.
func TestOverUDP(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"Reduce":                  TestReduce,
		"ReduceSpecialValues":     TestReduceSpecialValues,
		"VIDWraps":                TestVIDWraps,
		"InputErrors":             TestInputErrors,
		"EveryFormat":             TestEveryFormat,
		"TypedArrays":             TestTypedArrays,
		"ByteArrayErrors":         TestByteArrayErrors,
		"Exceptions":              TestExceptions,
		"ExceptionsOfEachJob":     TestExceptionsOfEachJob,
		"ConfigureBesideCounters": TestConfigureBesideCounters,
		"ConfigureSideBySide":     TestConfigureSideBySide,
		"ResetBesideConfigure":    TestResetBesideConfigure,
		"JobsHaveNumbersAndSlots": TestJobsHaveNumbersAndSlots,
		"NoFreeSlots":             TestNoFreeSlots,
		"ACardOfOneJobReplacesIt": TestACardOfOneJobReplacesIt,
		"Pending":                 TestPending,
		"PendingFails":            TestPendingFails,
	} {
		t.Run(name, test)
	}
}
