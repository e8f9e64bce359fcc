package emit_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/config"
	"tributary/hwgen/emit"
	"tributary/hwgen/plan"
	"tributary/rtl"
)

// buildHarness builds the virtual card of an emitted folder around a top that echoes its
// input, and returns the program. The harness's handling of bytes and connections needs no
// gateware.
func buildHarness(t *testing.T) string {
	t.Helper()
	_, err := exec.LookPath("verilator")
	require.NoError(t, err, `make setup installs it, eval "$(make env)" puts it on PATH`)
	options, err := config.Parse([]string{"-lanes", "1", "-workers", "1"}, plan.Known())
	require.NoError(t, err)
	p, err := plan.Build(options.Config)
	require.NoError(t, err)
	files, err := emit.Files(p, rtl.Files)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "card")
	require.NoError(t, emit.Write(context.Background(), dir, files, false))
	loopback, err := filepath.Abs("testdata/loopback.v")
	require.NoError(t, err)
	make := exec.Command("make", "-s", "-C", filepath.Join(dir, "sim"), "SOURCES="+loopback)
	output, err := make.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Empty(t, string(output), "make -s speaks of what is wrong alone")
	return filepath.Join(dir, "sim", "build", "card")
}

// process is a running virtual card.
type process struct {
	*exec.Cmd
	network, address string
	out              *bufio.Reader
	in               io.Closer // its standard input
}

// start runs the card and waits until it listens.
func start(t *testing.T, program, listen string, args ...string) *process {
	t.Helper()
	c := &process{Cmd: exec.Command(program, append([]string{"--listen", listen}, args...)...)}
	pipe, err := c.StdoutPipe()
	require.NoError(t, err)
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	c.out = bufio.NewReader(pipe)
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscanf(line, "listening %s", &c.address)
	require.NoError(t, err, line)
	c.network, c.address, _ = strings.Cut(c.address, ":")
	return c
}

// patience is how long a test waits: longer than any machine is busy.
const patience = 2 * time.Minute

func (c *process) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial(c.network, c.address)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// end waits for the card to exit and returns its last line.
func (c *process) end(t *testing.T) string {
	t.Helper()
	rest, err := io.ReadAll(c.out)
	require.NoError(t, err)
	require.NoError(t, c.Wait())
	return string(rest)
}

// cpu returns how much processor time the card has used.
func (c *process) cpu(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
	require.NoError(t, err)
	fields := strings.Fields(string(text))
	return fields[13] + "+" + fields[14]
}

// echo sends bytes and expects them back.
func echo(t *testing.T, conn net.Conn, data []byte) {
	t.Helper()
	go func() { _, _ = conn.Write(data) }()
	got := make([]byte, len(data))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
}

func randomBytes(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func TestHarness(t *testing.T) {
	program := buildHarness(t)

	t.Run("bytes of any number pass unchanged, and are counted", func(t *testing.T) {
		c := start(t, program, "tcp:127.0.0.1:0", "--once")
		conn := c.connect(t)
		total := 0
		for _, n := range []int{1, 2, 3, 4, 5, 100_001} {
			echo(t, conn, randomBytes(n))
			total += n
		}
		require.NoError(t, conn.Close())
		var cycles, beats, rx, tx int
		_, err := fmt.Sscanf(c.end(t), "cycles=%d beats=%d rx_bytes=%d tx_bytes=%d\n", &cycles, &beats, &rx, &tx)
		require.NoError(t, err)
		assert.Equal(t, []int{total, total}, []int{rx, tx})
		assert.GreaterOrEqual(t, beats, total/4)
		assert.Greater(t, cycles, beats)
	})

	t.Run("one host at a time; the next is served when it leaves", func(t *testing.T) {
		c := start(t, program, "unix:"+filepath.Join(t.TempDir(), "s"))
		first := c.connect(t)
		echo(t, first, []byte("hello"))
		n, err := c.connect(t).Read(make([]byte, 1))
		assert.Zero(t, n)
		assert.ErrorIs(t, err, io.EOF, "closed at once, without a byte")
		for range 20 {
			_, _ = first.Write(randomBytes(5000)) // it does not wait for these
			require.NoError(t, first.Close())
			first = c.connect(t)
			echo(t, first, []byte("again"))
		}
	})

	t.Run("a host that only sends no more still gets its bytes", func(t *testing.T) {
		c := start(t, program, "unix:"+filepath.Join(t.TempDir(), "s"))
		conn := c.connect(t).(*net.UnixConn)
		_, err := conn.Write([]byte("last words"))
		require.NoError(t, err)
		require.NoError(t, conn.CloseWrite())
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Equal(t, "last words", string(got))
	})

	t.Run("an idle card sleeps, also with a host that does not read", func(t *testing.T) {
		c := start(t, program, "unix:"+filepath.Join(t.TempDir(), "s"))
		conn := c.connect(t)
		echo(t, conn, []byte("hello"))
		require.NoError(t, conn.SetWriteDeadline(time.Now().Add(time.Second)))
		for err := error(nil); err == nil; {
			_, err = conn.Write(make([]byte, 1<<16)) // until everything between us is full
		}
		before, looks := "", 0
		for now := c.cpu(t); now != before; now = c.cpu(t) { // what it got may take it a while
			before = now
			looks++
			require.Less(t, looks, 60, "it never sleeps")
			time.Sleep(500 * time.Millisecond)
		}
	})

	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run("it ends in order on "+signal.String(), func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			c := start(t, program, "unix:"+socket)
			echo(t, c.connect(t), []byte("hello"))
			require.NoError(t, c.Process.Signal(signal))
			assert.Contains(t, c.end(t), "rx_bytes=5 tx_bytes=5")
			assert.NoFileExists(t, socket)
		})
	}

	for name, connect := range map[string]bool{"without a host": false, "with a host": true} {
		t.Run("asked to, it ends with its standard input, "+name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			c := start(t, program, "unix:"+socket, "--once", "--end-with-stdin")
			want := "rx_bytes=0 "
			if connect {
				echo(t, c.connect(t), []byte("hello"))
				want = "rx_bytes=5 "
			}
			require.NoError(t, c.in.Close())
			assert.Contains(t, c.end(t), want)
			assert.NoFileExists(t, socket)
		})
	}

	t.Run("not asked to, it outlives its standard input", func(t *testing.T) {
		c := start(t, program, "unix:"+filepath.Join(t.TempDir(), "s"))
		require.NoError(t, c.in.Close())
		echo(t, c.connect(t), []byte("hello"))
	})

	t.Run("a socket that a killed card left behind is taken over, a living one is not", func(t *testing.T) {
		socket := "unix:" + filepath.Join(t.TempDir(), "s")
		first := start(t, program, socket)
		require.NoError(t, first.Process.Kill())
		_ = first.Wait()
		c := start(t, program, socket)
		output, err := exec.Command(program, "--listen", socket).CombinedOutput()
		assert.Error(t, err)
		assert.Contains(t, string(output), "Address already in use; stop the program that listens there, or use another address")
		echo(t, c.connect(t), []byte("hello"))
	})

	t.Run("invalid arguments are reported", func(t *testing.T) {
		for args, want := range map[string]string{
			"":                                       "usage: card --listen",
			"--listen":                               "invalid argument --listen",
			"--listen pigeon:1":                      "must be unix:PATH or tcp:HOST:PORT",
			"--listen tcp:80":                        "must be tcp:HOST:PORT",
			"--listen unix:/no/such/folder":          "No such file or directory",
			"--listen unix:/tmp/x --trace trace.fst": "use card_trace",
		} {
			output, err := exec.Command(program, strings.Fields(args)...).CombinedOutput()
			assert.Error(t, err, args)
			assert.Contains(t, string(output), want, args)
		}
	})
}
