package cable_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/verify/system/roce/cable"
)

// patience is for what certainly comes.
const patience = time.Minute

// ends is a cable with a test in place of QEMU at one end, and a card's port at the other.
type ends struct {
	*cable.Cable
	folder string
	qemu   *net.UnixConn
	card   frameport.Port
	wrong  chan struct{} // closed when a frame with a wrong FCS has entered
}

// open opens a cable that loses frames whose last byte is 0xee.
func open(t *testing.T) *ends {
	t.Helper()
	folder := t.TempDir()
	host := filepath.Join(folder, "host")
	var local string
	for _, option := range strings.Split(cable.Netdev("a", host), ",") {
		if path, ok := strings.CutPrefix(option, "local.path="); ok {
			local = path
		}
	}
	qemu, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: local, Net: "unixgram"})
	require.NoError(t, err)
	require.NoError(t, qemu.SetReadDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { qemu.Close() })
	card, err := frameport.Open("unix:" + filepath.Join(folder, "card"))
	require.NoError(t, err)
	t.Cleanup(func() { card.Close() })
	wrong := make(chan struct{})
	c, err := cable.Open(host, filepath.Join(folder, "card"), func(_ frame.Direction, bytes []byte) bool {
		body, ok := ethernet.CutFCS(bytes)
		if !ok {
			close(wrong)
		}
		return !ok || body[len(body)-1] != 0xee
	})
	require.NoError(t, err)
	return &ends{c, folder, qemu, card, wrong}
}

// fromQEMU sends a frame without FCS, as QEMU does.
func (e *ends) fromQEMU(t *testing.T, body []byte) {
	t.Helper()
	_, err := e.qemu.WriteToUnix(body, &net.UnixAddr{Name: filepath.Join(e.folder, "host"), Net: "unixgram"})
	require.NoError(t, err)
}

// ending returns 100 bytes with a last one.
func ending(last byte) []byte {
	b := make([]byte, 100)
	b[99] = last
	return b
}

// TestCable: QEMU's frames get padding and an FCS, and the card's lose theirs. Lost frames do not arrive.
func TestCable(t *testing.T) {
	e := open(t)
	buffer := make([]byte, 2000)
	for _, body := range [][]byte{ending(0xee), ending(1), {1, 2, 3}} {
		e.fromQEMU(t, body)
	}
	for _, want := range [][]byte{ending(1), append([]byte{1, 2, 3}, make([]byte, 57)...)} {
		n, err := e.card.ReadFrame(buffer)
		require.NoError(t, err)
		assert.Equal(t, ethernet.AppendFCS(want), buffer[:n])
	}
	for _, body := range [][]byte{ending(0xee), ending(2)} {
		require.NoError(t, e.card.WriteFrame(ethernet.AppendFCS(body)))
	}
	n, err := e.qemu.Read(buffer)
	require.NoError(t, err)
	assert.Equal(t, ending(2), buffer[:n])
	require.NoError(t, e.Close())
	left, err := os.ReadDir(e.folder)
	require.NoError(t, err)
	assert.Len(t, left, 2, "QEMU's socket and the card's port: %v", left)
}

// TestAWrongFCS of the card ends the cable, and Close returns that.
func TestAWrongFCS(t *testing.T) {
	e := open(t)
	e.fromQEMU(t, ending(1))
	_, err := e.card.ReadFrame(make([]byte, 2000)) // the port now knows the cable
	require.NoError(t, err)
	require.NoError(t, e.card.WriteFrame(make([]byte, 64)))
	<-e.wrong
	assert.ErrorContains(t, e.Close(), "a frame of 64 bytes from the card has a wrong FCS")
}

// TestNobody: an end where nobody listens is an error, and no socket of the cable is left.
func TestNobody(t *testing.T) {
	folder := t.TempDir()
	host, card := filepath.Join(folder, "host"), filepath.Join(folder, "card")
	left := func() int {
		_, err := cable.Open(host, card, nil)
		require.Error(t, err)
		all, err := os.ReadDir(folder)
		require.NoError(t, err)
		return len(all)
	}
	assert.Zero(t, left())
	qemu, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: host + ".qemu", Net: "unixgram"})
	require.NoError(t, err)
	defer qemu.Close()
	assert.Equal(t, 1, left(), "QEMU's")
}
