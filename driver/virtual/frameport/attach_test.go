package frameport

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttach: both ends of a cable send at once, whichever has heard the other.
func TestAttach(t *testing.T) {
	t.Chdir(t.TempDir())
	card := openPort(t, "card")
	host, err := Attach("host", "card")
	require.NoError(t, err)
	defer host.Close()
	require.NoError(t, host.WriteFrame([]byte("to the card")))
	assert.Equal(t, "to the card", string(read(t, card)))
	require.NoError(t, card.WriteFrame([]byte("to the host")))
	assert.Equal(t, "to the host", string(read(t, host)))
}

// TestAttachMakesKnown: the card knows the host before the host has sent a frame.
func TestAttachMakesKnown(t *testing.T) {
	t.Chdir(t.TempDir())
	card := openPort(t, "card")
	host, err := Attach("host", "card")
	require.NoError(t, err)
	defer host.Close()
	nameless, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: "card", Net: "unixgram"})
	require.NoError(t, err)
	defer nameless.Close()
	_, err = nameless.Write([]byte("from nowhere"))
	require.NoError(t, err)
	assert.Equal(t, "from nowhere", string(read(t, card))) // and what precedes it
	require.NoError(t, card.WriteFrame([]byte("to the host")))
	assert.Equal(t, "to the host", string(read(t, host)))
}

// TestAttachToNothing: without a card there is no cable, and no socket is left.
func TestAttachToNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Attach("host", "card")
	require.Error(t, err)
	assert.Contains(t, err.Error(), "unix:card")
	_, err = os.Stat("host")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
