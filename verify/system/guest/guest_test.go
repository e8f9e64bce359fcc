package guest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// console returns a guest whose console shows lines, and then ends. What is typed goes to typed.
func console(typed *bytes.Buffer, lines ...string) *Guest {
	g := &Guest{said: make(chan string, len(lines)), typed: typed}
	for _, line := range lines {
		g.said <- line
	}
	close(g.said)
	return g
}

// TestRun: outputs and statuses are those of the commands, one after another.
func TestRun(t *testing.T) {
	var typed bytes.Buffer
	g := console(&typed, "one", "two@status 0", "@status 2", "@status what", "half")
	for _, want := range []Ran{{0, "one\ntwo"}, {2, ""}} {
		r, err := g.Run("command", time.Hour)
		require.NoError(t, err)
		assert.Equal(t, want, r)
	}
	_, err := g.Run("third", time.Hour)
	assert.EqualError(t, err, `third: the status "what"`)
	_, err = g.Run("fourth", time.Hour)
	assert.EqualError(t, err, "fourth: the guest has ended:\nhalf\n")
	assert.Equal(t, "command\ncommand\nthird\nfourth\n", typed.String())
}

// TestPatience: a command that does not end is an error, with what it has printed.
func TestPatience(t *testing.T) {
	var typed bytes.Buffer
	g := &Guest{said: make(chan string), typed: &typed}
	_, err := g.Run("sleep", time.Nanosecond)
	assert.ErrorContains(t, err, `sleep: no "@status " from the guest in 1ns`)
}

// TestListen: the console's carriage returns are no part of lines.
func TestListen(t *testing.T) {
	g := &Guest{said: make(chan string, 3)}
	g.listen(bytes.NewBufferString("a\r\nb\n"))
	var lines []string
	for line := range g.said {
		lines = append(lines, line)
	}
	assert.Equal(t, []string{"a", "b"}, lines)
}

// TestUntil: the text behind the mark is the kernel's version.
func TestUntil(t *testing.T) {
	before, rest, err := console(nil, "boot", "x@ready 6.1.0").until("@ready ", time.Hour)
	require.NoError(t, err)
	assert.Equal(t, "boot\nx 6.1.0", fmt.Sprintf("%s %s", before, rest))
}
