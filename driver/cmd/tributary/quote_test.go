package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/usbip"
)

// awkward is the name of a file or folder that a shell would split.
const awkward = `my $HOME's card`

// pasted returns a shell's words of a command.
func pasted(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+command).Output()
	require.NoError(t, err, command)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// behind returns the part of text after a mark, up to the end or to another mark.
func behind(t *testing.T, text, mark, end string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, mark)
	require.True(t, ok, text)
	rest, _, ok = strings.Cut(rest, end)
	require.True(t, ok, text)
	return rest
}

// TestPastedTrace checks that the commands that show a waveform can be pasted.
func TestPastedTrace(t *testing.T) {
	card, err := filepath.Abs(goldenCard)
	require.NoError(t, err)
	workFolder(t)
	tracedCard(t, card)
	s := tributary(context.Background(), "trace", "made", "-o", awkward)
	require.Equal(t, 0, s.status, s.errs)
	require.Equal(t, []string{awkward + "/card.fst", awkward + "/card.gtkw"}, pasted(t, behind(t, s.out, "  gtkwave ", "\n")))
	require.Equal(t, []string{"--command-file", awkward + "/card.sucl", awkward + "/card.fst"}, pasted(t, behind(t, s.out, "  surfer ", "\n")))
}

// TestPastedBuild checks that the printed build commands and card names can be pasted.
func TestPastedBuild(t *testing.T) {
	manifest := cardManifest(t)
	workFolder(t)
	require.NoError(t, os.Mkdir(awkward, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(awkward, "manifest.json"), []byte(manifest), 0o666))
	folder := awkward + "/sim"
	for _, c := range []struct {
		args      []string
		mark, end string
		want      []string
	}{
		{[]string{"sim", awkward}, "make ", "\n", []string{"-C", folder}},
		{[]string{"sim", awkward, "-trace", "x.fst"}, "make ", "\n", []string{"-C", folder, "trace"}},
		{[]string{"info", "-card", "sim:" + awkward}, "`make ", "`", []string{"-C", folder}},
		{[]string{"trace", awkward}, "`make ", "`", []string{"-C", folder, "trace"}},
		{[]string{"list"}, "make ", "\n", []string{"-C", folder}},
		{[]string{"info", "-card", "unix:" + awkward + "/none"}, "DIR -listen ", "` starts", []string{"unix:" + awkward + "/none"}},
	} {
		s := tributary(context.Background(), c.args...)
		require.Equal(t, c.want, pasted(t, behind(t, s.out+s.errs, c.mark, c.end)), c.args)
	}
	listed := tributary(context.Background(), "list").out
	require.Equal(t, []string{"sim:" + awkward}, pasted(t, behind(t, listed, "the Go model of a card, the reference\n", "  -  ")))
}

// TestPastedPort checks the same for the name of a card on a serial port.
func TestPastedPort(t *testing.T) {
	var out bytes.Buffer
	p := &portCard{name: "serial:" + awkward}
	p.announce(&out)
	require.Equal(t, []string{"serial:" + awkward}, pasted(t, behind(t, out.String(), "tributary info -card ", "\n")))
}

// TestPastedAttach checks the same for the command that attaches a USB card.
func TestPastedAttach(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	u := &usbCard{listener: listener}
	require.Equal(t, []string{"attach", "-r", "127.0.0.1", "-b", usbip.BusID}, pasted(t, behind(t, u.attachCommand()+"\n", " ", "\n"))[2:])
}
