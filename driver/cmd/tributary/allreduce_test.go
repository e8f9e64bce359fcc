package main

// Ranks in processes of their own, through tributary serve: over frames, and over RDMA connections.

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/npy"
	"tributary/driver/roce"
	"tributary/driver/virtual/rc"
	"tributary/driver/virtual/rc/stack"
	"tributary/verify/system/frames"
)

// asRDMAHost in the environment gives the test binary an RDMA host in software, at this Ethernet port of the
// card in the same folder.
const asRDMAHost = "TRIBUTARY_TEST_AS_RDMA_HOST"

// portPath is the socket of an Ethernet port of the card.
func portPath(port int) string { return fmt.Sprintf("port%d", port) }

// useHost makes the scheme roce: use a host in software.
func useHost(port string) {
	n, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	at := rc.Address{MAC: [6]byte{2, 0, 0, 0, 1, byte(n)}, IP: netip.AddrFrom4([4]byte{192, 168, 84, byte(1 + n)})}
	s, _, err := stack.Attach(context.Background(), at, "host"+port, portPath(n))
	if err != nil {
		panic(err)
	}
	s.Port = n
	roce.Use(s)
}

// rank is a process of tributary allreduce.
type rank struct {
	served
}

// startRank starts a process, at an Ethernet port of the card, or nowhere with port -1.
func startRank(t *testing.T, port int, args ...string) *rank {
	t.Helper()
	s := exec.Command(os.Args[0], append([]string{"allreduce"}, args...)...)
	s.Env = append(os.Environ(), asCommand+"=1")
	if port >= 0 {
		s.Env = append(s.Env, asRDMAHost+"="+strconv.Itoa(port))
	}
	r := &rank{served: served{Cmd: s}}
	r.begin(t)
	return r
}

// createJob starts the process that creates a job, and returns its ticket.
func createJob(t *testing.T, port int, args ...string) (r *rank, ticket string) {
	t.Helper()
	r = startRank(t, port, args...)
	line, err := r.out.ReadString('\n')
	if err != nil {
		require.Fail(t, "no ticket", "%+v", r.ended(t))
	}
	ticket, ok := strings.CutPrefix(strings.TrimSpace(line), "ticket ")
	require.True(t, ok, line)
	return r, ticket
}

// ended waits for the end of a process, and returns its outcome.
func (r *rank) ended(t *testing.T) said {
	t.Helper()
	var out bytes.Buffer
	_, err := out.ReadFrom(r.out)
	require.NoError(t, err)
	_ = r.Wait()
	return said{r.ProcessState.ExitCode(), out.String(), r.errs.String()}
}

// integers writes a file of int32 for each rank, and returns their sum.
func integers(t *testing.T, ranks, elements int) (sum []byte) {
	t.Helper()
	sum = make([]byte, 4*elements)
	for n := range ranks {
		rng := rand.New(rand.NewPCG(7, uint64(n)))
		a := npy.Array{Shape: []int{elements}, Type: npy.Int32, Data: make([]byte, 4*elements)}
		for i := 0; i < len(sum); i += 4 {
			x := rng.Uint32()
			binary.LittleEndian.PutUint32(a.Data[i:], x)
			binary.LittleEndian.PutUint32(sum[i:], binary.LittleEndian.Uint32(sum[i:])+x)
		}
		writeArray(t, inputOf(n), a)
	}
	return sum
}

func inputOf(rank int) string  { return fmt.Sprintf("i%d.npy", rank) }
func outputOf(rank int) string { return fmt.Sprintf("sum%d.npy", rank) }

// sums runs a job of all ranks at the card, rank r at port r, and checks every bit on each.
func sums(t *testing.T, card string, ranks int, want []byte) {
	t.Helper()
	creator, ticket := createJob(t, 0, "-card", card, "-workers", strconv.Itoa(ranks), "-o", outputOf(0), inputOf(0))
	all := []*rank{creator}
	for n := 1; n < ranks; n++ {
		all = append(all, startRank(t, n, "-join", ticket, "-rank", strconv.Itoa(n), "-o", outputOf(n), inputOf(n)))
	}
	for n, r := range all {
		s := r.ended(t)
		require.Zero(t, s.status, "rank %d: %s", n, s.errs)
		require.Equal(t, fmt.Sprintf("%s: the sum of %d workers' %d elements; this was rank %d\n", outputOf(n), ranks, len(want)/4, n), s.out)
		require.True(t, bytes.Equal(want, readArray(t, outputOf(n)).Data), "rank %d", n)
		require.NoError(t, os.Remove(outputOf(n)))
	}
}

// Of the owner of the card under RoCEv2.
var (
	ownerMAC = net.HardwareAddr{0x02, 0x54, 0x52, 0x4f, 0, 1}
	ownerIP  = net.IPv4(192, 168, 84, 99)
)

// serveRoCE runs a card under RoCEv2 with an Ethernet port for each host and one for its owner, and a daemon
// that shares it at unix:s. Both are processes.
func serveRoCE(t *testing.T, hosts int) {
	t.Helper()
	args := []string{"sim", "model:shell=roce,format=int32,lanes=4,workers=4,jobs=2,window=64"}
	for port := range hosts + 1 {
		args = append(args, "-port", "unix:"+portPath(port))
	}
	startReady(t, args...)
	owner, err := frames.Attach(portPath(hosts), ownerMAC, ownerIP)
	require.NoError(t, err)
	go func() { // the card floods frames to unknown hosts
		for range owner.Others {
		}
	}()
	gateway, err := frames.OpenGateway(netip.AddrPortFrom(cardIP, 21570), owner)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, gateway.Close())
		require.NoError(t, owner.Close())
		close(owner.Others)
	})
	startServe(t, "-card", gateway.Name(), "-listen", "unix:s")
}

// TestRDMA: processes sum over RDMA connections through a card that tributary serve shares, two and three at
// once. Every bit is right on each rank.
func TestRDMA(t *testing.T) {
	workFolder(t)
	serveRoCE(t, 3)
	for _, ranks := range []int{2, 3} {
		sums(t, "roce:unix:s", ranks, integers(t, ranks, 50_001))
	}
}

// TestRDMAKilled: a process that is killed in the middle of a call ends it on all ranks, with its rank. None
// writes a file, and the next job runs.
func TestRDMAKilled(t *testing.T) {
	workFolder(t)
	serveRoCE(t, 3)
	const long = 4 << 20 // elements; the killed rank stops long before
	integers(t, 3, long)
	creator, ticket := createJob(t, 0, "-card", "roce:unix:s", "-workers", "3", "-o", outputOf(0), inputOf(0))
	killed := startRank(t, 1, "-join", ticket, "-rank", "1", "-o", outputOf(1), inputOf(1))
	last := startRank(t, 2, "-join", ticket, "-rank", "2", "-o", outputOf(2), inputOf(2))

	card, err := driver.Open(t.Context(), "serve:unix:s")
	require.NoError(t, err)
	results := func() int {
		counters, err := card.Counters(t.Context())
		require.NoError(t, err)
		for _, c := range counters {
			if c.Name == "results" {
				return int(c.Value)
			}
		}
		require.Fail(t, "no counter of results")
		return 0
	}
	until(func() bool { return results() > 0 })
	require.NoError(t, killed.Process.Signal(syscall.SIGSTOP))
	require.Less(t, results(), 3*4*long/4096, "the call was over")
	require.NoError(t, card.Close())
	require.NoError(t, killed.Process.Kill())
	for _, r := range []*rank{creator, last} {
		s := r.ended(t)
		require.Equal(t, 1, s.status, s.errs)
		require.Contains(t, s.errs, "the connection of rank 1 has ended; check its process")
	}
	for n := range 3 {
		require.NoFileExists(t, outputOf(n))
	}
	sums(t, "roce:unix:s", 3, integers(t, 3, 1000))
}

// TestAllReduce: processes sum through a card of another shell that tributary serve shares. The creator may be
// any rank, and a rank may reach the daemon by another name than the ticket's.
func TestAllReduce(t *testing.T) {
	workFolder(t)
	startServe(t, "-card", "model:lanes=4", "-listen", "unix:s")
	creator, ticket := createJob(t, -1, "-card", "serve:unix:s", "-workers", "3", "-rank", "1", "-op", "mean", "-o", "m0.npy", "w0.npy")
	require.Regexp(t, regexp.MustCompile(`^serve:unix:/.*/s#card0\?job=[0-9a-f]{16}$`), ticket)
	second := startRank(t, -1, "-json", "-join", strings.Replace(ticket, "/s#", "/nowhere#", 1), "-card", "serve:unix:s", "-op", "mean", "-o", "m1.npy", "w1.npy")
	third := startRank(t, -1, "-join", ticket, "-rank", "2", "-op", "mean", "-o", "m2.npy", "w0.npy")
	s := creator.ended(t)
	require.Equal(t, said{0, "m0.npy: the mean of 3 workers' 6 elements; this was rank 1\n", ""}, s)
	s = second.ended(t)
	require.Zero(t, s.status, s.errs)
	var report struct {
		Output, Op              string
		Rank, Workers, Elements int
	}
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Equal(t, "m1.npy mean 0 3 6", fmt.Sprint(report.Output, " ", report.Op, " ", report.Rank, " ", report.Workers, " ", report.Elements))
	s = third.ended(t)
	require.Zero(t, s.status, s.errs)
	for _, file := range []string{"m0.npy", "m1.npy", "m2.npy"} {
		sameArray(t, float32s([]int{2, 3}, 4, 8, 12, 16, 20, 24), readArray(t, file))
	}
}

// TestAllReduceArchive: the arrays of an archive count as one, and keep names and shapes.
func TestAllReduceArchive(t *testing.T) {
	workFolder(t)
	startServe(t, "-card", "cpu:workers=2,format=fp16,result=fp32", "-listen", "unix:s")
	one := []int{2}
	writeNamed(t, "h.npz", []npy.Named{
		{Name: "w", Array: elements(npy.Float16, one, 0x3c00, 0x4000)}, {Name: "b", Array: elements(npy.Float16, []int{}, 0xc000)}})
	creator, ticket := createJob(t, -1, "-card", "serve:unix:s", "-workers", "2", "-o", "sum0.npz", "h.npz")
	other := startRank(t, -1, "-join", ticket, "-o", "sum1.npz", "h.npz")
	for n, r := range []*rank{creator, other} {
		s := r.ended(t)
		require.Zero(t, s.status, s.errs)
		f, err := os.Open(fmt.Sprintf("sum%d.npz", n))
		require.NoError(t, err)
		defer f.Close()
		info, err := f.Stat()
		require.NoError(t, err)
		named, err := npy.ReadArchive(f, info.Size())
		require.NoError(t, err)
		require.Equal(t, []npy.Named{{Name: "b", Array: float32s(nil, -4)}, {Name: "w", Array: float32s(one, 2, 4)}}, named)
	}
}

// TestAllReduceErrors prints what is wrong with a command line.
func TestAllReduceErrors(t *testing.T) {
	goldenFile, err := filepath.Abs("testdata/errors/allreduce.txt")
	require.NoError(t, err)
	workFolder(t)
	startServe(t, "-card", "model:lanes=4,workers=2", "-listen", "unix:s")
	before := files(t)
	var all strings.Builder
	for _, line := range []string{
		"allreduce w0.npy",
		"allreduce -workers 2 -join x -card serve:unix:s -o sum.npy w0.npy",
		"allreduce -workers 2 -o sum.npy w0.npy",
		"allreduce -workers 2 -card serve:unix:s w0.npy",
		"allreduce -workers 2 -card serve:unix:s -o sum.npy",
		"allreduce -workers 2 -card serve:unix:s -o sum.npz w0.npy",
		"allreduce -workers 2 -rank 2 -card serve:unix:s -o sum.npy w0.npy",
		"allreduce -workers 65 -card serve:unix:s -o sum.npy w0.npy",
		"allreduce -workers 2 -op max -card serve:unix:s -o sum.npy w0.npy",
		"allreduce -workers 2 -wait -1s -card serve:unix:s -o sum.npy w0.npy",
		"allreduce -join x -wait 1s -o sum.npy w0.npy",
		"allreduce -join x -o sum.npy w0.npy",
		"allreduce -join serve:unix:s#card0?job=0123456789abcdef -o sum.npy w0.npy",
		"allreduce -workers 2 -card cpu: -o sum.npy w0.npy",
		"allreduce -workers 3 -card serve:unix:s -o sum.npy w0.npy",
		"allreduce -workers 2 -card serve:unix:s -o sum.npy nothing.npy",
	} {
		args := strings.Fields(line)
		s := tributary(t.Context(), args...)
		require.NotEqual(t, 0, s.status, line)
		require.Empty(t, s.out, line)
		requireNoNewFiles(t, before)
		all.WriteString(transcript(args, s) + "\n")
	}
	golden(t, goldenFile, all.String())
}

// TestAllReduceOtherFormat: a rank whose array the card does not sum ends the job on all.
func TestAllReduceOtherFormat(t *testing.T) {
	workFolder(t)
	formatFiles(t)
	startServe(t, "-card", "model:lanes=4,workers=2", "-listen", "unix:s")
	creator, ticket := createJob(t, -1, "-card", "serve:unix:s", "-workers", "2", "-o", "sum0.npy", "w0.npy")
	s := startRank(t, -1, "-join", ticket, "-o", "sum1.npy", "i0.npy").ended(t)
	require.Equal(t, 1, s.status)
	require.Regexp(t, `^tributary allreduce: i0.npy holds int32; card serve:unix:/.*/s#card0 sums fp32, in arrays of float32\n$`, s.errs)
	s = creator.ended(t)
	require.Equal(t, 1, s.status)
	require.Regexp(t, `ranks \[1\] aborted|the connection of rank 1 has ended`, s.errs)
	require.NoFileExists(t, "sum0.npy")
}
