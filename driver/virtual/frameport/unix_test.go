package frameport

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openPort opens a port at a path until the test ends.
func openPort(t *testing.T, path string) Port {
	t.Helper()
	p, err := Open("unix:" + path)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// peer is a socket of its own that sends to a port.
func peer(t *testing.T, name, port string) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"}, &net.UnixAddr{Name: port, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// read returns the next frame of a port.
func read(t *testing.T, p Port) []byte {
	t.Helper()
	frame := make([]byte, 100)
	n, err := p.ReadFrame(frame)
	require.NoError(t, err)
	return frame[:n]
}

// gets returns the next frame that a peer gets.
func gets(t *testing.T, conn *net.UnixConn) []byte {
	t.Helper()
	frame := make([]byte, 100)
	n, err := conn.Read(frame)
	require.NoError(t, err)
	return frame[:n]
}

// TestPeers: a port sends to the peer that it heard last.
func TestPeers(t *testing.T) {
	t.Chdir(t.TempDir())
	p := openPort(t, "port")
	assert.Equal(t, "unix:port", p.Name())
	require.NoError(t, p.WriteFrame([]byte("to nobody")))

	a, b := peer(t, "a", "port"), peer(t, "b", "port")
	say := func(conn *net.UnixConn, text string) {
		_, err := conn.Write([]byte(text))
		require.NoError(t, err)
	}
	say(a, "")
	say(a, "from a")
	assert.Equal(t, "from a", string(read(t, p)), "an empty datagram is no frame")
	require.NoError(t, p.WriteFrame([]byte("to a")))
	assert.Equal(t, "to a", string(gets(t, a)))

	say(b, "from b")
	assert.Equal(t, "from b", string(read(t, p)))
	require.NoError(t, p.WriteFrame([]byte("to b")))
	assert.Equal(t, "to b", string(gets(t, b)))

	// One without a name can get nothing, and takes nobody's place.
	nameless, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: "port", Net: "unixgram"})
	require.NoError(t, err)
	defer nameless.Close()
	say(nameless, "from nowhere")
	read(t, p)
	require.NoError(t, p.WriteFrame([]byte("to b again")))
	assert.Equal(t, "to b again", string(gets(t, b)))

	// A peer that has gone is no error.
	require.NoError(t, b.Close())
	require.NoError(t, p.WriteFrame([]byte("lost")))
	require.NoError(t, os.Remove("b"))
	require.NoError(t, p.WriteFrame([]byte("lost")))
}

// TestAPeerThatReadsLate gets every frame in its order, whether its socket is connected or not: the two
// have queues of different lengths.
func TestAPeerThatReadsLate(t *testing.T) {
	t.Chdir(t.TempDir())
	p := openPort(t, "port")
	unconnected, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "b", Net: "unixgram"})
	require.NoError(t, err)
	defer unconnected.Close()
	for _, conn := range []*net.UnixConn{peer(t, "a", "port"), unconnected} {
		if conn == unconnected {
			_, err = conn.WriteTo([]byte("hello"), &net.UnixAddr{Name: "port", Net: "unixgram"})
		} else {
			_, err = conn.Write([]byte("hello"))
		}
		require.NoError(t, err)
		read(t, p)
		const frames = 1000 // more than a socket takes
		ended := make(chan error, 1)
		go func() { ended <- writeNumbers(p, frames) }()
		for n := range frames {
			require.Equal(t, []byte{byte(n), byte(n >> 8)}, gets(t, conn))
		}
		require.NoError(t, <-ended)
	}
}

// writeNumbers writes that many frames to a port.
func writeNumbers(p Port, frames int) error {
	for n := range frames {
		if err := p.WriteFrame([]byte{byte(n), byte(n >> 8)}); err != nil {
			return err
		}
	}
	return nil
}

// TestAPeerThatEndsUnread blocks the port no longer.
func TestAPeerThatEndsUnread(t *testing.T) {
	t.Chdir(t.TempDir())
	p := openPort(t, "port")
	a := peer(t, "a", "port")
	_, err := a.Write([]byte("hello"))
	require.NoError(t, err)
	read(t, p)
	ended := make(chan error, 1)
	go func() { ended <- writeNumbers(p, 1000) }()
	for range 10 {
		gets(t, a)
	}
	require.NoError(t, a.Close())
	require.NoError(t, <-ended)
}

// TestAPortThatEnds leaves nothing, and ends a call in progress.
func TestAPortThatEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "port")
	p := openPort(t, path)
	ended := make(chan error)
	go func() {
		_, err := p.ReadFrame(make([]byte, 100))
		ended <- err
	}()
	require.NoError(t, p.Close())
	assert.ErrorIs(t, <-ended, net.ErrClosed)
	assert.NoFileExists(t, path)
}

// TestPathsInUse: a socket that a killed program has left is replaced; nothing else is.
func TestPathsInUse(t *testing.T) {
	t.Chdir(t.TempDir())
	left, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "left", Net: "unixgram"})
	require.NoError(t, err)
	_, err = Open("unix:left")
	assert.EqualError(t, err, "unix:left: another program listens there")
	require.NoError(t, left.Close())
	require.FileExists(t, "left")
	openPort(t, "left")

	require.NoError(t, os.WriteFile("file", []byte("text"), 0o666))
	_, err = Open("unix:file")
	assert.EqualError(t, err, "unix:file: there is a file of that name, which is no socket")
	text, err := os.ReadFile("file")
	require.NoError(t, err)
	assert.Equal(t, "text", string(text))

	_, err = Open("unix:nowhere/port")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestNames: a name has one of two schemes and a place.
func TestNames(t *testing.T) {
	for _, name := range []string{"", "unix:", "tap:", "tcp:x", "port"} {
		_, err := Open(name)
		assert.EqualError(t, err, `"`+name+`" must be unix:PATH or tap:NAME`)
	}
	_, err := Open("tap:a name that is too long")
	assert.Error(t, err)
}
