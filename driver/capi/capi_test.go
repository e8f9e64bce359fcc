package main_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// built is the folder into which `make libtributary` builds.
const built = "../../build/capi"

// patience limits a command, so that it ends before the time limit of go test. Some compile a library.
const patience = 8 * time.Minute

// command returns a command that ends with the test, or after patience.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = &bytes.Buffer{}
	return c
}

// output returns the standard output of a command that succeeds.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := command(t, name, args...)
	out, err := c.Output()
	require.NoError(t, err, "%s %s\n%s%s", name, args, out, c.Stderr)
	return string(out)
}

// library returns the path of libtributary.so.
func library(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(built, "libtributary.so"))
	require.NoError(t, err)
	require.FileExists(t, path, "make libtributary builds it")
	return path
}

// compile compiles testdata/NAME.c with the system's compiler, and returns the program's path.
func compile(t *testing.T, name string, linked bool) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	path := filepath.Join(t.TempDir(), name)
	args := []string{"-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread", "-I.", "-o", path, "testdata/" + name + ".c"}
	if linked {
		args = append(args, library(t), "-Wl,-rpath,"+filepath.Dir(library(t)))
	}
	output(t, cc, append(args, "-ldl")...)
	return path
}

// TestPrograms runs programs that check themselves.
func TestPrograms(t *testing.T) {
	for _, name := range []string{"basics", "formats", "forked", "threads"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "done\n", output(t, compile(t, name, true)))
		})
	}
}

// TestSignals: the program's handlers run, and SIGINT ends a program that has none.
func TestSignals(t *testing.T) {
	t.Parallel()
	c := command(t, compile(t, "signals", true))
	out, err := c.Output()
	require.Error(t, err)
	assert.Equal(t, "ready\n", string(out), c.Stderr)
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	assert.True(t, status.Signaled() && status.Signal() == syscall.SIGINT, c.ProcessState)
}

// TestSubnormals: a program that flushes subnormals to zero does not change sums. A library that leaves
// the processor's mode as it is shows that the program would: its threads inherit the mode.
func TestSubnormals(t *testing.T) {
	t.Parallel()
	program := compile(t, "subnormals", false)
	assert.Equal(t, "done\n", output(t, program, library(t)))
	if runtime.GOARCH != "amd64" {
		return // the program changes the mode on amd64 alone
	}
	unguarded := filepath.Join(t.TempDir(), "unguarded.so")
	output(t, "go", "build", "-buildmode=c-shared", "-trimpath", "-tags", "keepmode", "-o", unguarded, ".")
	out, err := command(t, program, unguarded).Output()
	require.Error(t, err)
	assert.Contains(t, string(out), "cpu:sum=tree, op 0: 4096 of 4096 elements are wrong\n")
}

// TestTwoLibraries: another library with a Go runtime works in the same process.
func TestTwoLibraries(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other.so")
	output(t, "go", "build", "-buildmode=c-shared", "-trimpath", "-o", other, "./testdata/other")
	assert.Equal(t, "done\n", output(t, compile(t, "two_libraries", true), other))
}

// TestProcesses: a member in another process joins through a daemon.
func TestProcesses(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	serve := command(t, "../../bin/tributary", "serve", "-card", "model:lanes=4,workers=4,chunk=16,window=4,jobs=2", "-listen", "unix:"+socket)
	firstLine(t, serve, true)
	program := compile(t, "processes", true)
	creator := command(t, program, "serve:unix:"+socket)
	ticket, rest := firstLine(t, creator, false)
	assert.Equal(t, "done\n", output(t, program, ticket))
	require.True(t, rest.Scan(), creator.Stderr)
	assert.Equal(t, "done", rest.Text())
	assert.NoError(t, creator.Wait(), creator.Stderr)
}

// TestServe: a program serves a card to itself and to other processes.
func TestServe(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "done\n", output(t, compile(t, "serve", true), t.TempDir()))
}

// firstLine starts a command and returns the first line that it prints. With stays, the command goes on
// until the test ends, and then stops in order.
func firstLine(t *testing.T, c *exec.Cmd, stays bool) (string, *bufio.Scanner) {
	t.Helper()
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	if stays {
		t.Cleanup(func() {
			assert.NoError(t, c.Process.Signal(syscall.SIGTERM))
			assert.NoError(t, c.Wait(), c.Stderr)
		})
	}
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "%s printed nothing: %s", c, c.Stderr)
	return lines.Text(), lines
}

// TestHeader: the header is C++ as well, and declares what the library exports, and nothing else.
func TestHeader(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "header.cc")
	require.NoError(t, os.WriteFile(source, []byte("#include \"tributary.h\"\nint main() { return tributary_wait(0, 0); }\n"), 0o644))
	output(t, "c++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I.", "-fsyntax-only", source)

	header, err := os.ReadFile("tributary.h")
	require.NoError(t, err)
	declared := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^TRIBUTARY_API .*?(tributary_\w+)\(`).FindAllSubmatch(header, -1) {
		declared[string(found[1])] = true
	}
	exported := map[string]bool{}
	for line := range strings.Lines(output(t, "nm", "-D", "--defined-only", library(t))) {
		fields := strings.Fields(line)
		if fields[1] != "A" { // the name of the version
			exported[strings.Split(fields[2], "@")[0]] = true
		}
	}
	assert.Equal(t, declared, exported)
	assert.Greater(t, len(declared), 20)
}
