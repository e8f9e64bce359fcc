package driver_test

import (
	"context"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"tributary/driver"
	"tributary/driver/cpu"
	"tributary/driver/daemon"
	"tributary/driver/model"
	"tributary/driver/transport"
	shared "tributary/driver/transport/serve"
)

// TestServed runs the tests of a card on a card that a daemon shares. These cannot run there:
//
//   - those that damage, delay or record the link to the card, imitate a card or look at its frames,
//     such as TestCancel, TestStallsAtRandom, TestJobsSideBySide and TestConfigureStorm: the daemon is
//     between. The tests of package daemon have faults of their own.
//   - TestResetBesideConfigure and TestCloseAndAbort: only the owner resets a card.
//   - TestJobsHaveNumbersAndSlots, TestNoFreeSlots, TestACardOfOneJobReplacesIt and
//     TestConfigureSideBySide: the daemon chooses numbers, and replaces no jobs of other sessions.
//   - TestShorterArray and TestRefusedCallHasNoPartials: the daemon refuses calls that differ.
func TestServed(t *testing.T) {
	runServed(t)
	t.Run("PendingLeaves", TestPendingLeaves)
	t.Run("Exceptions", TestExceptions)
}

// TestServedCPU is TestServed on a card in software, which takes arrays. TestPendingLeaves cannot run
// there, as a block that the daemon has is in the sums, and TestExceptions neither, as the blocks of
// members come in any order.
func TestServedCPU(t *testing.T) { runServed(t) }

// TestServedNetwork is TestServed on a card on a network: the daemon makes frames of datagrams, and
// datagrams of frames.
func TestServedNetwork(t *testing.T) {
	runServed(t)
	t.Run("PendingLeaves", TestPendingLeaves)
	t.Run("Exceptions", TestExceptions)
}

// TestSumsOfAnEndedDaemon: a daemon that ends frees the memory that it shares, and a member may hear of sums
// there after that. It does not take zeros for sums.
func TestSumsOfAnEndedDaemon(t *testing.T) {
	ctx := testContext(t)
	behind, err := driver.Open(ctx, "cpu:workers=2")
	require.NoError(t, err)
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.New(map[string]daemon.Card{"card": behind}, daemon.Options{}).Serve(serving, listener, 0)
	}()
	card, err := driver.Open(ctx, "serve:unix:"+listener.Addr().String())
	require.NoError(t, err)
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{Here: []int{0}})
	require.NoError(t, err)
	other, err := driver.Join(ctx, job.Ticket(), 1)
	require.NoError(t, err)
	defer other.Close(ctx)

	const n = 5 * 1024
	var calls []*driver.Pending
	var arrays [][]float32
	for range 10 {
		a := slices.Repeat([]float32{1}, n)
		p, err := job.Member(0).StartAllReduce(ctx, a)
		require.NoError(t, err)
		calls, arrays = append(calls, p), append(arrays, a)
	}
	chunk := job.Config().Chunk
	for all := uint64(10 * ((n + chunk - 1) / chunk)); job.Member(0).Stats().Sent < all; {
		require.NoError(t, ctx.Err())
		runtime.Gosched()
	}
	release := sync.OnceFunc(card.Hold())
	defer release() // or the card could not be closed after a failure
	for range 10 {
		require.NoError(t, other.AllReduce(ctx, slices.Repeat([]float32{2}, n)))
	}
	stop()
	require.NoError(t, <-ended)
	release()
	for i, p := range calls {
		if p.Wait(ctx) == nil {
			require.Equal(t, slices.Repeat([]float32{3}, n), arrays[i], "call %d", i)
		}
	}
}

// TestServedMarks: marks in the IP headers of results reach members behind a daemon, which keeps no window.
func TestServedMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, serveShared(t, "TestServedMarks", wide, 64<<10))
		job := configure(t, card, driver.JobConfig{Window: 64})
		sums(t, job, 2, 300*16)
		if got := job.Congestion(); got.Marked != 300 || got.Cuts < 6 || got.MeanWindow > 16 {
			t.Errorf("%+v", got)
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Error(err)
		}
	})
}

func runServed(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"Reduce":                           TestReduce,
		"ReduceSpecialValues":              TestReduceSpecialValues,
		"VIDWraps":                         TestVIDWraps,
		"AllReduce":                        TestAllReduce,
		"InputErrors":                      TestInputErrors,
		"EveryFormat":                      TestEveryFormat,
		"TypedArrays":                      TestTypedArrays,
		"ByteArrayErrors":                  TestByteArrayErrors,
		"ConfigureBesideCounters":          TestConfigureBesideCounters,
		"DeadlineReportsMissingRanks":      TestDeadlineReportsMissingRanks,
		"LateMember":                       TestLateMember,
		"DeadMember":                       TestDeadMember,
		"Leaves":                           TestLeaves,
		"LastMemberLeaves":                 TestLastMemberLeaves,
		"DeadlineOfOneJobIsNotTheNextOnes": TestDeadlineOfOneJobIsNotTheNextOnes,
		"Lags":                             TestLags,
		"PartialInTime":                    TestPartialInTime,
		"MissingRank":                      TestMissingRank,
		"OtherLengthInOneChunk":            TestOtherLengthInOneChunk,
		"DeadlineNamesMissing":             TestDeadlineNamesMissing,
		"ExceptionsOfEachJob":              TestExceptionsOfEachJob,
		"Pending":                          TestPending,
		"PendingFails":                     TestPendingFails,
		"Detach":                           TestDetach,
		"DetachInTheMiddle":                TestDetachInTheMiddle,
	} {
		t.Run(name, test)
	}
}

// local is a listener in this process.
type local struct{ *bufconn.Listener }

func (l local) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		err = net.ErrClosed // bufconn has no other
	}
	return conn, err
}

func (local) Addr() net.Addr { return &net.UnixAddr{Name: "daemon", Net: "unix"} }

// openBehind opens the card that the daemon of a suite shares.
func openBehind(t testing.TB, suite string, cfg model.Config, capacity int) (*driver.Card, error) {
	var behind transport.Conn
	switch suite {
	case "TestServedMarks":
		link := &congested{PacketConn: serveInMemory(t, onNetwork(cfg)), marks: always, sent: map[uint32]bool{}, came: map[uint32]bool{}}
		return driver.OpenPackets(testContext(t), "behind", link)
	case "TestServedNetwork":
		return driver.OpenPackets(testContext(t), "behind", serveInMemory(t, onNetwork(cfg)))
	case "TestServedCPU":
		conn, err := driver.ServeCPU(cpu.Config(cfg))
		if err != nil {
			return nil, err
		}
		behind = conn
	default:
		card, err := model.NewCard(cfg)
		if err != nil {
			return nil, err
		}
		behind = connect(t, card, capacity)
	}
	return driver.OpenConn(testContext(t), "behind", behind)
}

// serveShared starts a daemon with a card, and returns a session with it.
func serveShared(t testing.TB, suite string, cfg model.Config, capacity int) transport.Conn {
	t.Helper()
	ctx := testContext(t)
	card, err := openBehind(t, suite, cfg, capacity)
	if err != nil {
		t.Fatal(err)
	}
	listener := local{bufconn.Listen(capacity)}
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- daemon.New(map[string]daemon.Card{"card": card}, daemon.Options{}).Serve(serving, listener, 0)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	conn, err := shared.Over(ctx, "daemon", func(ctx context.Context) (net.Conn, error) { return listener.DialContext(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
