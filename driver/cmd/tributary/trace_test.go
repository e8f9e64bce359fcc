package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/transport"
)

// goldenCard is a folder by hwgen, relative to this package: a card with 4 lanes and 3 ports.
const goldenCard = "../../../hwgen/testdata/golden/l4_w3_stream"

// serveTraced replaces the program card_trace by the model, with a file in place of the waveform.
func serveTraced(dir string) {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	address, _ := strings.CutPrefix(os.Args[2], "unix:")
	listener, err := net.Listen("unix", address)
	check(err)
	fmt.Println("listening " + os.Args[2])
	conn, err := listener.Accept()
	check(err)
	card, err := transport.Open(context.Background(), "model:"+dir, transport.Needs{})
	check(err)
	go io.Copy(conn, card)
	io.Copy(card, conn)
	check(os.WriteFile(os.Args[len(os.Args)-1], []byte("waveform"), 0o666))
	if os.Getenv("TRIBUTARY_TEST_CARD_FAILS") != "" {
		check(fmt.Errorf("card: no room left"))
	}
}

// tracedCard makes a folder called made, of a card with waveforms, in the current folder.
func tracedCard(t *testing.T, golden string) {
	t.Helper()
	require.NoError(t, os.CopyFS("made", os.DirFS(golden)))
	require.NoError(t, os.MkdirAll("made/sim/build", 0o777))
	self, err := os.Executable()
	require.NoError(t, err)
	script := "#!/bin/sh\n" + asCard + "=made exec " + self + " \"$@\"\n"
	require.NoError(t, os.WriteFile("made/sim/build/card_trace", []byte(script), 0o777))
}

// TestTrace checks that the folder holds the waveform, the sum and the views. It compares the views
// with golden files, except for the reduction's start.
func TestTrace(t *testing.T) {
	card, err := filepath.Abs(goldenCard)
	require.NoError(t, err)
	goldens, err := filepath.Abs("testdata/trace")
	require.NoError(t, err)
	workFolder(t)
	tracedCard(t, card)
	before := files(t)
	s := tributary(context.Background(), "trace", "made")
	require.Equal(t, 0, s.status, s.errs)
	golden(t, filepath.Join(goldens, "said.txt"), transcript([]string{"trace", "made"}, s))
	require.ElementsMatch(t, append(before, "trace"), files(t))

	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("trace", name))
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, "waveform", read(waveFile))
	golden(t, filepath.Join(goldens, surferFile), read(surferFile))
	when := regexp.MustCompile(`(?m)^(\[timestart\] |\*)-?[\d.]+`)
	golden(t, filepath.Join(goldens, gtkwaveFile), when.ReplaceAllString(read(gtkwaveFile), "${1}N"))
	require.Len(t, readArray(t, "trace/sum.npy").Data, 4*2*2*32)
}

// TestTraceOfFiles checks that files are summed as by tributary reduce, and that a new trace
// replaces the folder of an earlier one.
func TestTraceOfFiles(t *testing.T) {
	card, err := filepath.Abs(goldenCard)
	require.NoError(t, err)
	workFolder(t)
	tracedCard(t, card)
	require.NoError(t, os.Mkdir("out", 0o777))
	for _, line := range []string{"-o out a0.npz a1.npz", "-o out/ w0.npy w1.npy", "-o out -json -record link.log -ports 0,2 w0.npy w1.npy"} {
		s := tributary(context.Background(), append([]string{"trace", "made"}, strings.Fields(line)...)...)
		require.Equal(t, 0, s.status, s.errs)
		var report traceReport
		if strings.Contains(line, "-json") {
			require.NoError(t, json.Unmarshal([]byte(s.out), &report))
			require.Equal(t, "out/sum.npy", report.Sum)
			require.Equal(t, "out/card.sucl", report.Surfer)
			require.Equal(t, 6, report.Reduction.Elements)
		}
	}
	require.Equal(t, float32s([]int{2, 3}, 11, 22, 33, 44, 55, 66), readArray(t, "out/sum.npy"))
	require.NoFileExists(t, "out/sum.npz")
	require.Equal(t, 0, tributary(context.Background(), "decode", "link.log").status)
}

// TestTraceLeavesNothing checks that a failure leaves no new file and keeps the existing ones.
func TestTraceLeavesNothing(t *testing.T) {
	card, err := filepath.Abs(goldenCard)
	require.NoError(t, err)
	workFolder(t)
	tracedCard(t, card)
	before := files(t)
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	s := tributary(stopped, "trace", "made")
	require.Equal(t, 1, s.status)
	require.Equal(t, "tributary trace: stopped, context canceled; no output file was written\n", s.errs)
	requireNoNewFiles(t, before)

	t.Setenv("TRIBUTARY_TEST_CARD_FAILS", "yes")
	s = tributary(context.Background(), "trace", "made")
	require.Equal(t, 1, s.status)
	require.Contains(t, s.errs, "card: no room left")
	requireNoNewFiles(t, before)

	for _, name := range []string{"notes.txt", sumFile + ".npy"} {
		mine := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(mine, name), []byte("mine"), 0o666))
		s := tributary(context.Background(), "trace", "made", "-o", mine)
		require.Equal(t, 1, s.status)
		require.Contains(t, s.errs, "; name another folder\n")
		entries, err := os.ReadDir(mine)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
}

// TestViewOfBundle checks that modules in a single file are found too.
func TestViewOfBundle(t *testing.T) {
	folder, err := openFolder(filepath.Join(filepath.Dir(goldenCard), "l1_w2_bundle"))
	require.NoError(t, err)
	groups, err := folder.view()
	require.NoError(t, err)
	for _, g := range groups {
		require.NotEmpty(t, g.signals, g.name)
	}
}
