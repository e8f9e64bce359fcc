package ranks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/npy"
	"tributary/verify/system/roce/cable"
	"tributary/verify/system/roce/rig"
)

var (
	kernel  = flag.String("kernel", "../../../../.tools/kernel", "the `folder` that verify/system/guest/setup.sh has filled")
	program = flag.String("tributary", "../../../../build/roce/tributary", "tributary, built with -tags roce")
	card    = flag.String("card", "../../../../bin/tributary sim model:shell=roce,lanes=4,workers=4,format=int32,chunk=1024,window=64,jobs=2", "`command` of the card, without quotes")
)

// Elements of the arrays, by the name of their files.
var lengths = map[string]int{"small": 20_001, "long": 2 << 20}

// hosts are booted once.
var (
	hosts *rig.Hosts
	want  map[string]string // SHA-256 of the sum's file, by the name of the arrays
)

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := boot(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// boot runs the tests with hosts.
func boot(m *testing.M) (status int, err error) {
	folder, err := os.MkdirTemp("", "tributary-ranks")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	files := map[string]string{}
	for _, name := range []string{"cert.pem", "key.pem", "token"} {
		files["/etc/tributary/"+name] = filepath.Join(folder, name)
	}
	if err := writeCertificate(folder, rig.IP(0)); err != nil {
		return 1, err
	}
	if want, err = writeArrays(folder, files); err != nil {
		return 1, err
	}
	began := time.Now()
	hosts, err = rig.Boot(*kernel, "../../guest/init", folder, 2, []string{*program, "/usr/bin/rdma"}, files)
	if err != nil {
		return 1, err
	}
	fmt.Printf("%d hosts with Linux %s are ready after %.0f s\n", len(hosts.Guests), hosts.Guests[0].Version, time.Since(began).Seconds())
	status = m.Run()
	return status, hosts.Close()
}

// writeArrays writes the small arrays of both ranks, and adds them to the files of the guests. It returns the
// hash of the sum's file.
func writeArrays(folder string, files map[string]string) (want map[string]string, err error) {
	elements := lengths["small"]
	sum := npy.Array{Shape: []int{elements}, Type: npy.Int32, Data: make([]byte, 4*elements)}
	for rank := range 2 {
		a := npy.Array{Shape: sum.Shape, Type: sum.Type, Data: make([]byte, len(sum.Data))}
		rng := rand.New(rand.NewPCG(21, uint64(rank)))
		for i := 0; i < len(sum.Data); i += 4 {
			x := rng.Uint32()
			binary.LittleEndian.PutUint32(a.Data[i:], x)
			binary.LittleEndian.PutUint32(sum.Data[i:], binary.LittleEndian.Uint32(sum.Data[i:])+x)
		}
		name := fmt.Sprintf("small%d.npy", rank)
		files["/arrays/"+name] = filepath.Join(folder, name)
		if err := writeArray(filepath.Join(folder, name), a); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	if err := npy.Write(&b, sum); err != nil {
		return nil, err
	}
	hash := sha256.Sum256(b.Bytes())
	return map[string]string{"small": hex.EncodeToString(hash[:])}, nil
}

func writeArray(path string, a npy.Array) error {
	var b bytes.Buffer
	if err := npy.Write(&b, a); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// environment is that of all commands of a guest.
const environment = "export TRIBUTARY_TOKEN_FILE=/etc/tributary/token TRIBUTARY_TLS_CA=/etc/tributary/cert.pem; "

// daemon is where it listens, in guest 0.
var daemon = rig.IP(0) + ":7420"

// run runs a command at a host.
func run(t *testing.T, host int, line string) string {
	t.Helper()
	out, err := hosts.Run(host, environment+line)
	require.NoError(t, err)
	return out
}

// start runs a command at a host in the background. Its output is in the file NAME.out, and its status
// follows in NAME.status.
func start(t *testing.T, host int, name, line string) {
	t.Helper()
	run(t, host, fmt.Sprintf("rm -f %[1]s.*; (%[2]s; echo $? >%[1]s.status) >%[1]s.out 2>&1 &", name, line))
}

// await waits at a host until a command of sh succeeds.
func await(t *testing.T, host int, so string) {
	t.Helper()
	run(t, host, "until "+so+"; do sleep 0.1; done")
}

// ended waits for the end of a command of start, and returns its status and its output.
func ended(t *testing.T, host int, name string) (status, out string) {
	t.Helper()
	await(t, host, fmt.Sprintf("[ -s %s.status ]", name))
	return strings.TrimSpace(run(t, host, fmt.Sprintf("cat %s.status", name))), run(t, host, fmt.Sprintf("cat %s.out", name))
}

// serve runs a card, and a daemon in guest 0, until the test ends.
func serve(t *testing.T) *rig.Card {
	t.Helper()
	c, err := hosts.Connect(strings.Fields(*card))
	require.NoError(t, err)
	start(t, 0, "serve", "tributary serve -timeout 5m -card udp:192.168.84.66 -listen tcp:"+daemon+
		" -tls-cert /etc/tributary/cert.pem -tls-key /etc/tributary/key.pem -token-file /etc/tributary/token")
	t.Cleanup(func() {
		run(t, 0, "killall -INT tributary")
		await(t, 0, "! pidof tributary")
		t.Logf("the daemon: %s", run(t, 0, "cat serve.out"))
		require.NoError(t, c.Close())
	})
	await(t, 0, "grep -q 'serving at' serve.out || [ -s serve.status ]")
	require.NotContains(t, run(t, 0, "cat serve.out"), "tributary serve:")
	return c
}

// startRank starts a rank. On a busy machine, the daemon may close its connection before it has opened a session:
// then the rank has found no card, and tries again.
func startRank(t *testing.T, rank int, flags string) {
	t.Helper()
	const noCard = 3
	start(t, rank, fmt.Sprintf("rank%d", rank), fmt.Sprintf("n=%[1]d; while [ $n = %[1]d ]; do tributary allreduce -timeout 5m %[2]s; n=$?; done; (exit $n)", noCard, flags))
}

// create starts rank 0 in guest 0, and returns its job's ticket.
func create(t *testing.T, input string) string {
	t.Helper()
	startRank(t, 0, "-card roce:"+daemon+" -workers 2 -wait 5m -deadline 5m -o sum0.npy "+input)
	await(t, 0, "grep -q '^ticket ' rank0.out || [ -s rank0.status ]")
	_, ticket, ok := strings.Cut(run(t, 0, "cat rank0.out"), "ticket ")
	require.True(t, ok, ticket)
	return strings.TrimSpace(ticket)
}

// sums runs a job of small arrays. Every bit must be right on each rank.
func sums(t *testing.T) {
	t.Helper()
	began := time.Now()
	ticket := create(t, "/arrays/small0.npy")
	startRank(t, 1, fmt.Sprintf("-join '%s' -o sum1.npy /arrays/small1.npy", ticket))
	for rank := range 2 {
		status, out := ended(t, rank, fmt.Sprintf("rank%d", rank))
		require.Equal(t, "0", status, out)
		require.Contains(t, out, fmt.Sprintf("the sum of 2 workers' %d elements; this was rank %d", lengths["small"], rank))
		require.Contains(t, run(t, rank, fmt.Sprintf("sha256sum sum%d.npy; rm sum%[1]d.npy", rank)), want["small"])
	}
	t.Logf("a job of %d elements: %.1f s", lengths["small"], time.Since(began).Seconds())
}

// TestSums: two ranks sum through libibverbs, the kernel and the card, in two jobs one after another.
func TestSums(t *testing.T) {
	serve(t)
	for range 2 {
		sums(t)
	}
}

// long is how many packets a rank has sent when it is in the middle of a long array. The last of them is lost.
const long = 50

// TestKilled: a rank that is killed in the middle of a call ends it on the other one, which prints its rank.
// The next job is right.
func TestKilled(t *testing.T) {
	c := serve(t)
	for host := range 2 {
		run(t, host, longArray)
	}
	sent, middle := 0, make(chan struct{})
	c.Losses.Once(func(at cable.Place, p cable.Packet) bool {
		if at.Port == 1 && at.Direction == frame.ToCard && p.IsData() {
			sent++
		}
		if sent == long {
			close(middle)
		}
		return sent == long
	})
	ticket := create(t, "long.npy")
	startRank(t, 1, fmt.Sprintf("-join '%s' -o sum1.npy long.npy", ticket))
	select {
	case <-middle:
	case <-time.After(rig.Patience):
		_, out := ended(t, 1, "rank1")
		require.Fail(t, "no packets", out)
	}
	run(t, 1, "killall -KILL tributary")
	status, out := ended(t, 0, "rank0")
	require.Equal(t, "1", status, out)
	require.Contains(t, out, "the connection of rank 1 has ended; check its process")
	run(t, 0, "[ ! -e sum0.npy ]")
	sums(t)
}

// longArray writes long.npy, of zeros, at a host.
var longArray = fmt.Sprintf(`[ -e long.npy ] || { printf '\223NUMPY\001\000\166\000%%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }"; dd if=/dev/zero bs=4M count=%d 2>/dev/null; } >long.npy`, lengths["long"], lengths["long"]*4>>22)

// TestNoDevice: the program names the device that it does not find, and how to list those that there are.
func TestNoDevice(t *testing.T) {
	r, err := hosts.Guests[1].Run("TRIBUTARY_ROCE_DEVICE=mlx5_9 tributary allreduce -card roce:"+daemon+" -workers 2 -o sum.npy /arrays/small1.npy", rig.Patience)
	require.NoError(t, err)
	require.Equal(t, 3, r.Status, r.Out)
	require.Contains(t, r.Out, "no RDMA device mlx5_9 with an IPv4 address for RoCEv2; `ibv_devices` and `rdma link` list devices")
}
