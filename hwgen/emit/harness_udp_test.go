package emit_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/config"
	"tributary/hwgen/emit"
	"tributary/hwgen/plan"
	"tributary/rtl"
)

// networkCard writes a small card on Ethernet, checks it as its users do, and builds its virtual card.
// It returns the folder.
func networkCard(t *testing.T) string {
	t.Helper()
	options, err := config.Parse(strings.Fields("-shell udp -lanes 2 -workers 2 -chunk 8 -window 1 -ip 10.0.0.9"), plan.Known())
	require.NoError(t, err)
	p, err := plan.Build(options.Config)
	require.NoError(t, err)
	files, err := emit.Files(p, rtl.Files)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "card")
	require.NoError(t, emit.Write(context.Background(), dir, files, false))
	output, err := exec.Command("make", "-s", "-C", filepath.Join(dir, "sim"), "all", "test").CombinedOutput()
	require.NoError(t, err, string(output))
	return dir
}

// pipeCard is a running virtual card on Ethernet.
type pipeCard struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func startPipe(t *testing.T, dir string) *pipeCard {
	t.Helper()
	c := &pipeCard{cmd: exec.Command(filepath.Join(dir, "sim", "build", "card"))}
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.out = bufio.NewReader(out)
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// put sends a record for Ethernet port 0.
func (c *pipeCard) put(t *testing.T, kind byte, data []byte) {
	t.Helper()
	record := binary.LittleEndian.AppendUint16([]byte{kind, 0}, uint16(len(data)))
	_, err := c.in.Write(append(record, data...))
	require.NoError(t, err)
}

// get returns the next record, which must be of Ethernet port 0.
func (c *pipeCard) get(t *testing.T) (kind byte, data []byte) {
	t.Helper()
	head := make([]byte, 4)
	_, err := io.ReadFull(c.out, head)
	require.NoError(t, err)
	require.Zero(t, head[1], "the card has one Ethernet port")
	data = make([]byte, binary.LittleEndian.Uint16(head[2:]))
	_, err = io.ReadFull(c.out, data)
	require.NoError(t, err)
	return head[0], data
}

// rest lets the card run until nothing moves. It returns the frames that left, without FCS, and the
// cycles of its clock.
func (c *pipeCard) rest(t *testing.T) (frames []string, cycles uint64) {
	t.Helper()
	c.put(t, 'I', nil)
	for {
		kind, data := c.get(t)
		if kind == 'I' {
			return frames, binary.LittleEndian.Uint64(data)
		}
		require.Equal(t, byte('F'), kind)
		frame, fcs := data[:len(data)-4], data[len(data)-4:]
		assert.Equal(t, crc32.ChecksumIEEE(frame), binary.LittleEndian.Uint32(fcs), "the FCS")
		frames = append(frames, hex.EncodeToString(frame))
	}
}

// until lets the card run until its clock has had so many cycles. It returns those that it has had.
func (c *pipeCard) until(t *testing.T, cycles uint64) uint64 {
	t.Helper()
	c.put(t, 'A', binary.LittleEndian.AppendUint64(nil, cycles))
	kind, data := c.get(t)
	require.Equal(t, byte('I'), kind)
	return binary.LittleEndian.Uint64(data)
}

func withFCS(frame []byte) []byte {
	return binary.LittleEndian.AppendUint32(frame[:len(frame):len(frame)], crc32.ChecksumIEEE(frame))
}

// request and response are ARP between 10.0.0.1 and the card, byte by byte.
const (
	padding  = "000000000000000000000000000000000000"
	request  = "ffffffffffff" + "0a0000000001" + "0806" + "0001080006040001" + "0a0000000001" + "0a000001" + "000000000000" + "0a000009" + padding
	response = "0a0000000001" + "025452420001" + "0806" + "0001080006040002" + "025452420001" + "0a000009" + "0a0000000001" + "0a000001" + padding
)

func TestNetworkHarness(t *testing.T) {
	dir := networkCard(t)
	ask, err := hex.DecodeString(request)
	require.NoError(t, err)

	t.Run("a frame with a good FCS is answered, others are not", func(t *testing.T) {
		c := startPipe(t, dir)
		c.put(t, 'F', withFCS(ask))
		frames, _ := c.rest(t)
		assert.Equal(t, []string{response}, frames)

		bad := withFCS(ask)
		bad[len(bad)-1] ^= 1
		for _, damaged := range [][]byte{bad, ask[:4], nil} {
			c.put(t, 'F', damaged)
			frames, _ = c.rest(t)
			assert.Empty(t, frames)
		}
		c.put(t, 'F', withFCS(ask))
		frames, _ = c.rest(t)
		assert.Equal(t, []string{response}, frames)
	})

	t.Run("its clock goes as far as it is told, and stops at rest", func(t *testing.T) {
		c := startPipe(t, dir)
		_, rested := c.rest(t)
		_, again := c.rest(t)
		assert.Equal(t, rested+4096, again, "the cycles in which nothing moves")
		assert.EqualValues(t, 100_000, c.until(t, 100_000))
		assert.EqualValues(t, 100_000, c.until(t, 99_000), "this was earlier")
		assert.EqualValues(t, 100_001, c.until(t, 100_001))
	})

	t.Run("it ends with its standard input", func(t *testing.T) {
		c := startPipe(t, dir)
		require.NoError(t, c.in.Close())
		rest, err := io.ReadAll(c.out)
		require.NoError(t, err)
		assert.Empty(t, rest)
		assert.NoError(t, c.cmd.Wait())
	})

	t.Run("invalid records and arguments are reported", func(t *testing.T) {
		for record, want := range map[string]string{
			"X\x00\x00\x00":  "a record that no card knows",
			"I\x00\x01\x00.": "a record that no card knows",
			"F\x01\x00\x00":  "a frame for Ethernet port 1, which the card lacks",
		} {
			cmd := exec.Command(filepath.Join(dir, "sim", "build", "card"))
			cmd.Stdin = strings.NewReader(record)
			output, err := cmd.CombinedOutput()
			assert.Error(t, err, "%q", record)
			assert.Equal(t, "card: "+want+"\n", string(output), "%q", record)
		}
		output, err := exec.Command(filepath.Join(dir, "sim", "build", "card"), "--listen").CombinedOutput()
		assert.Error(t, err)
		assert.Contains(t, string(output), "usage: card")
	})

	t.Run("the datasheet's first job", func(t *testing.T) { firstJob(t, dir) })
}

// step matches a line of the datasheet's first job.
var step = regexp.MustCompile(`(?m)^(send   |receive) ([0-9a-f]+)  # `)

// firstJob sends the frames of the datasheet's first job to the virtual card, and expects those that
// the datasheet expects, in its order.
func firstJob(t *testing.T, dir string) {
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	steps := step.FindAllStringSubmatch(string(page), -1)
	require.Len(t, steps, 2*(1+7+4)+4+4, "ARP, registers, addresses, data and results, finishes")
	c := startPipe(t, dir)
	var sent, want []string
	check := func() {
		got, _ := c.rest(t)
		require.Equal(t, want, got, "after %s", sent)
		sent, want = nil, nil
	}
	for _, s := range steps {
		if s[1] == "receive" {
			want = append(want, s[2])
			continue
		}
		if len(want) > 0 {
			check()
		}
		frame, err := hex.DecodeString(s[2])
		require.NoError(t, err)
		c.put(t, 'F', withFCS(frame))
		sent = append(sent, s[2])
	}
	check()
}
