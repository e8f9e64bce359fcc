//go:build linux

package pty

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tributary/driver/wire"
)

// cards receives the card's side of each opened link.
type cards chan net.Conn

func (c cards) dial() (net.Conn, error) {
	near, far := net.Pipe()
	c <- far
	return near, nil
}

// serve makes a port with a rate and links behind it.
func serve(t *testing.T, baud uint32) (port *Port, links cards) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tty")
	port, err := New(path, baud)
	require.NoError(t, err)
	links = make(cards, 10)
	served := make(chan error)
	go func() { served <- port.Serve(links.dial) }()
	t.Cleanup(func() {
		require.NoError(t, port.Close())
		require.ErrorIs(t, <-served, os.ErrClosed)
		_, err := os.Lstat(path)
		require.ErrorIs(t, err, os.ErrNotExist)
	})
	return port, links
}

// host opens a port with a rate.
func host(t *testing.T, path string, baud uint32) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	require.NoError(t, control(file, func(fd int) error {
		line, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
		require.NoError(t, err)
		line.Cflag = line.Cflag&^unix.CBAUD | unix.BOTHER
		line.Ispeed, line.Ospeed = baud, baud
		return unix.IoctlSetTermios(fd, unix.TCSETS2, line)
	}))
	t.Cleanup(func() { file.Close() })
	return file
}

// reads reads count bytes.
func reads(t *testing.T, from io.Reader, count int) string {
	t.Helper()
	got := make([]byte, count)
	_, err := io.ReadFull(from, got)
	require.NoError(t, err)
	return string(got)
}

// until waits for something that the port detects by itself.
func until(so func() bool) {
	for !so() {
		runtime.Gosched()
	}
}

// TestBothWays checks that bytes pass at or near the card's rate, and that bytes at other rates
// are lost.
func TestBothWays(t *testing.T) {
	port, links := serve(t, 1_000_000)
	card := <-links
	lost := func() int64 { return port.lost.Load() }
	for baud, passes := range map[uint32]bool{1_000_000: true, 1_020_000: true, 970_000: true, 115_200: false, 3_000_000: false} {
		const asks, answers = "\x00\x03\r\n\x11", "\n\x04answer"
		h, before := host(t, port.path, baud), lost()
		_, err := h.Write([]byte(asks))
		require.NoError(t, err)
		if passes {
			require.Equal(t, asks, reads(t, card, len(asks)), "%d", baud)
		} else {
			until(func() bool { return lost() == before+int64(len(asks)) })
		}
		_, err = card.Write([]byte(answers))
		require.NoError(t, err)
		if passes {
			require.Equal(t, answers, reads(t, h, len(answers)), "%d", baud)
			require.Equal(t, before, lost(), "%d", baud)
		} else {
			until(func() bool { return lost() == before+int64(len(asks)+len(answers)) })
		}
		require.NoError(t, h.Close())
	}
	// The lost bytes must not come later.
	h := host(t, port.path, 1_000_000)
	_, err := h.Write([]byte("now"))
	require.NoError(t, err)
	require.Equal(t, "now", reads(t, card, 3))
	_, err = card.Write([]byte("then"))
	require.NoError(t, err)
	require.Equal(t, "then", reads(t, h, 4))
}

// TestBreak checks that 4,096 zeros open a new link, and that further zeros belong to the
// break.
func TestBreak(t *testing.T) {
	port, links := serve(t, 3_000_000)
	first := <-links
	go func() { // up to its end
		for buf := make([]byte, 4096); ; {
			if _, err := first.Read(buf); err != nil {
				return
			}
		}
	}()
	h := host(t, port.path, 3_000_000)
	go h.Write(append(make([]byte, wire.SendZeros), "new"...))
	second := <-links
	require.Equal(t, "new", reads(t, second, 3))
	require.Empty(t, links)
}

// TestNobody checks that the card's bytes are lost while no host has the port open, and that
// the card is not blocked.
func TestNobody(t *testing.T) {
	port, links := serve(t, 3_000_000)
	card := <-links
	for n := range int64(2) {
		_, err := card.Write(make([]byte, 100_000))
		require.NoError(t, err)
		until(func() bool { return port.lost.Load() == (n+1)*100_000 })
		h := host(t, port.path, 3_000_000)
		_, err = h.Write([]byte("hello"))
		require.NoError(t, err)
		require.Equal(t, "hello", reads(t, card, 5))
		_, err = card.Write([]byte("you"))
		require.NoError(t, err)
		require.Equal(t, "you", reads(t, h, 3))
		require.NoError(t, h.Close())
		until(func() bool { return !port.used.Load() })
	}
}

// TestName checks that New replaces a link that an earlier port has left, but not a file.
func TestName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tty")
	require.NoError(t, os.Symlink("/dev/pts/nowhere", path))
	port, err := New(path, 9600)
	require.NoError(t, err)
	to, err := os.Readlink(path)
	require.NoError(t, err)
	require.Contains(t, to, "/dev/pts/")
	require.NoError(t, port.Close())
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err = New(path, 9600)
	require.ErrorIs(t, err, os.ErrExist)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}
