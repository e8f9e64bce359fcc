//go:build linux

package pty

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tributary/driver/wire"
)

// cards is the card's side: each link that is opened.
type cards chan net.Conn

func (c cards) dial() (net.Conn, error) {
	near, far := net.Pipe()
	c <- far
	return near, nil
}

// serve makes a port of a rate with links behind it.
func serve(t *testing.T, baud uint32) (path string, links cards) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tty")
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
	return path, links
}

// host opens a port at a rate.
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

// reads reads so many bytes, or what has come when nothing more does.
func reads(t *testing.T, from interface {
	Read([]byte) (int, error)
	SetReadDeadline(time.Time) error
}, count int) string {
	t.Helper()
	got := make([]byte, count)
	for n := 0; n < count; {
		require.NoError(t, from.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
		more, err := from.Read(got[n:])
		if n += more; err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			return string(got[:n])
		}
	}
	return string(got)
}

// TestBothWays: bytes pass at the card's rate alone, or near it.
func TestBothWays(t *testing.T) {
	path, links := serve(t, 1_000_000)
	card := <-links
	for baud, passes := range map[uint32]bool{1_000_000: true, 1_020_000: true, 970_000: true, 115_200: false, 3_000_000: false} {
		h := host(t, path, baud)
		_, err := h.Write([]byte("\x00\x03\r\n\x11"))
		require.NoError(t, err)
		want, answer := "", ""
		if passes {
			want, answer = "\x00\x03\r\n\x11", "\n\x04answer"
		}
		require.Equal(t, want, reads(t, card, 5), "%d", baud)
		_, err = card.Write([]byte("\n\x04answer"))
		require.NoError(t, err)
		require.Equal(t, answer, reads(t, h, 8), "%d", baud)
		require.NoError(t, h.Close())
	}
}

// TestBreak: 4,096 zeros open the link anew, and those behind them are part of the break.
func TestBreak(t *testing.T) {
	path, links := serve(t, 3_000_000)
	first := <-links
	go func() { // up to its end
		for buf := make([]byte, 4096); ; {
			if _, err := first.Read(buf); err != nil {
				return
			}
		}
	}()
	h := host(t, path, 3_000_000)
	go h.Write(append(make([]byte, wire.SendZeros), "new"...))
	second := <-links
	require.Equal(t, "new", reads(t, second, 3))
	require.Empty(t, links)
}

// TestNobody: what the card says while no host has the port open is lost, and does not hold it up.
func TestNobody(t *testing.T) {
	path, links := serve(t, 3_000_000)
	card := <-links
	for range 2 {
		_, err := card.Write(make([]byte, 100_000))
		require.NoError(t, err)
		h := host(t, path, 3_000_000)
		_, err = h.Write([]byte("hello"))
		require.NoError(t, err)
		require.Equal(t, "hello", reads(t, card, 5))
		_, err = card.Write([]byte("you"))
		require.NoError(t, err)
		require.Equal(t, "you", reads(t, h, 3))
		require.NoError(t, h.Close())
		time.Sleep(10 * vacant) // until it is seen
	}
}

// TestName: one that a port has left behind is taken, and a file is not.
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
