package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/transport/scratch"
)

// endsWithInput is a program that starts and ends like a virtual card. It opens the FIFO alive,
// which closes when it ends, and writes to it whether its input is a pipe, and its arguments.
const endsWithInput = `#!/bin/sh
exec 3> alive
if [ -p /dev/stdin ]; then echo "pipe $*" >&3; else echo "no pipe $*" >&3; fi
echo "listening $2"
cat > /dev/null
`

// never is the same program, but never listens.
const never = `#!/bin/sh
exec 3> alive
if [ -p /dev/stdin ]; then echo "pipe $*" >&3; else echo "no pipe $*" >&3; fi
cat > /dev/null
`

// killable makes a work folder with a card, and an otherwise empty folder for temporary files.
func killable(t *testing.T, program string) {
	t.Helper()
	manifest := cardManifest(t)
	workFolder(t)
	t.Setenv("TMPDIR", t.TempDir())
	require.NoError(t, os.MkdirAll("made/sim/build", 0o777))
	require.NoError(t, os.WriteFile("made/manifest.json", []byte(manifest), 0o666))
	require.NoError(t, os.WriteFile("made/sim/build/card", []byte(program), 0o777))
	require.NoError(t, syscall.Mkfifo("alive", 0o600))
}

// killed starts a command, waits until its card runs and the command has printed any expected line,
// kills it, and waits until the card has ended.
func killed(t *testing.T, prints bool, args ...string) {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asCommand+"=1")
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	alive, err := os.Open("alive")
	require.NoError(t, err)
	defer alive.Close()
	card := bufio.NewReader(alive)
	begins, err := card.ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^pipe .*--end-with-stdin`, begins)
	if prints {
		_, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, command.Process.Kill())
	_, err = io.ReadAll(card)
	require.NoError(t, err)
	command.Wait()
	require.Equal(t, syscall.SIGKILL, command.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

// temporary lists the contents of the folders for temporary files and for notes.
func temporary(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{os.TempDir(), notesDir()} {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		all = append(all, found...)
	}
	return all
}

// TestSimIsKilled checks that a card ends when its tributary sim is killed in any way, and that the
// next command removes the remains.
func TestSimIsKilled(t *testing.T) {
	for name, args := range map[string][]string{
		"socket": nil,
		"pty":    {"-pty", "card.tty"},
		"usbip":  {"-usbip", "127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			killable(t, endsWithInput)
			killed(t, true, append([]string{"sim", "made"}, args...)...)
			require.Equal(t, 0, tributary(context.Background(), "list").status)
			next, err := scratch.New()
			require.NoError(t, err)
			require.NoError(t, next.Remove())
			require.Empty(t, temporary(t))
		})
	}
}

// TestReduceIsKilled checks the same for a card that a command starts; the next command removes its
// folder.
func TestReduceIsKilled(t *testing.T) {
	killable(t, never)
	killed(t, false, "reduce", "-card", "sim:made", "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Len(t, temporary(t), 1)
	require.NoError(t, os.WriteFile("made/sim/build/card", []byte("#!/bin/sh\nexit 3\n"), 0o777))
	require.Equal(t, 3, tributary(context.Background(), "info", "-card", "sim:made").status)
	require.Empty(t, temporary(t))
}

// TestNotesOfKilledProcesses checks that a new note removes the notes and sockets of dead writers,
// published or not, and keeps the valid ones.
func TestNotesOfKilledProcesses(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.MkdirAll(notesDir(), 0o700))
	for _, name := range []string{"card-1.json", "card-1.sock", "host-2.new", "host-2.sock"} {
		require.NoError(t, os.WriteFile(filepath.Join(notesDir(), name), []byte("{}"), 0o600))
	}
	first, err := newNote(hostNotes)
	require.NoError(t, err)
	defer first.remove()
	second, err := newNote(cardNotes)
	require.NoError(t, err)
	defer second.remove()
	require.NoError(t, second.publish(runningCard{Card: "unix:/x"}))
	found, err := filepath.Glob(filepath.Join(notesDir(), "*"))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{first.file.Name(), second.path}, found)
}

// TestNotesLeaveNoFolder checks that notes among temporary files leave nothing behind.
func TestNotesLeaveNoFolder(t *testing.T) {
	workFolder(t)
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", t.TempDir())
	s := tributary(context.Background(), "reduce", "-o", "sum.npy", "w0.npy")
	require.Equal(t, 0, s.status, s.errs)
	require.Empty(t, temporary(t))
}
