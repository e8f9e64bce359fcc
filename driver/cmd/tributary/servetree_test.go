package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/udp"
)

// simTreeCard runs a card with an up port as a process. A card at an address starts there again.
func simTreeCard(t *testing.T, kind, address string) (s *served, name string) {
	t.Helper()
	s, ready := startReady(t, "sim", kind, "-listen", address)
	return s, strings.TrimSpace(strings.TrimPrefix(ready, "listening "))
}

// TestServeATree: processes sum through a daemon's tree of cards, two at once, and each compares the bits with
// the nested sum. When a card has died they learn its name, and when it is back they sum again.
func TestServeATree(t *testing.T) {
	workFolder(t)
	for rank, x := range []float32{0, 1e8, 5, 5, -1e8, 0} {
		writeArray(t, fmt.Sprintf("r%d.npy", rank), float32s([]int{1}, x))
	}
	_, root := simTreeCard(t, "model:parent=true,workers=3,jobs=2", "udp:"+udp.OwnLoopback()+":0")
	_, left := simTreeCard(t, "cpu:parent=true,workers=2,jobs=2", "udp:"+udp.OwnLoopback()+":0")
	_, middle := simTreeCard(t, "model:parent=true,workers=2,jobs=2", "udp:"+udp.OwnLoopback()+":0")
	below, leaf := simTreeCard(t, "cpu:parent=true,workers=2,jobs=2", "udp:"+udp.OwnLoopback()+":0")
	writeTree(t, `{"cards": [
		{"card": %q, "workers": 1},
		{"card": %q, "parent": %q, "workers": 2},
		{"card": %q, "parent": %q, "workers": 1},
		{"card": %q, "parent": %q, "inputs": ["r4.npy", "r5.npy"]}
	]}`, root, left, root, middle, root, leaf, middle)
	daemon, ready := startServe(t, "-tree", "tree.json", "-listen", "unix:s", "-wait", "10s")
	require.Equal(t, "serving at unix:s: tree0 (tree.json)\n", ready)

	sum := func(name string, args ...string) said {
		var out, errs bytes.Buffer
		inputs := []string{"r0.npy", "r1.npy", "r2.npy", "r3.npy", "r4.npy", "r5.npy"}
		command := exec.Command(os.Args[0], append(append([]string{"reduce", "-card", "serve:unix:s#tree0", "-verify", "-o", name}, args...), inputs...)...)
		command.Env, command.Stdout, command.Stderr = append(os.Environ(), asCommand+"=1"), &out, &errs
		_ = command.Run()
		return said{command.ProcessState.ExitCode(), out.String(), errs.String()}
	}
	var both sync.WaitGroup
	for _, name := range []string{"one.npy", "two.npy"} {
		both.Go(func() {
			assert.Equal(t, said{0, name + ": the sum of 6 workers' 1 elements, every bit of the sum as in the Go model\n", ""}, sum(name, "-window", "4"))
		})
	}
	both.Wait()
	for _, name := range []string{"one.npy", "two.npy"} { // the flat sum is 8
		sameArray(t, float32s([]int{1}, 16), readArray(t, name))
	}

	var info struct {
		Lanes, Ports, Jobs int
		Shell              string
	}
	read := tributary(context.Background(), "info", "-card", "serve:unix:s", "-json")
	require.NoError(t, json.Unmarshal([]byte(read.out), &info), read.errs)
	require.Equal(t, 6, info.Ports)
	require.Equal(t, 2, info.Jobs)
	listed := tributary(context.Background(), "list")
	require.Contains(t, listed.out, leaf+" ")
	fewer := tributary(context.Background(), "reduce", "-card", "serve:unix:s", "-o", "few.npy", "r0.npy", "r1.npy")
	require.Equal(t, said{2, "", "tributary reduce: workers: 2 workers, but the tree has 6\nSee: tributary reduce -h\n"}, fewer)

	tested := tributary(context.Background(), "selftest", "-card", "serve:unix:s")
	require.Contains(t, tested.errs, "serve:unix:s is a tree of cards, whose sums nest; test each of its cards")

	below.end(t, syscall.SIGKILL)
	lost := sum("three.npy")
	require.Equal(t, 1, lost.status, lost.errs)
	require.Contains(t, lost.errs, leaf)
	simTreeCard(t, "cpu:parent=true,workers=2,jobs=2", leaf)
	until(func() bool { return sum("four.npy").status == 0 }) // the daemon finds the card within a second
	sameArray(t, float32s([]int{1}, 16), readArray(t, "four.npy"))

	status, log := daemon.end(t, syscall.SIGTERM)
	require.Equal(t, 0, status, log)
	require.Regexp(t, `level=WARN msg="card is away" card=tree0 device=`+leaf+` why=`, log)
	require.Regexp(t, `level=INFO msg="card is back" card=tree0 device=`+leaf+`\n`, log)
}

// TestServeTreeErrors refuses files and flags before it opens a card.
func TestServeTreeErrors(t *testing.T) {
	workFolder(t)
	for text, want := range map[string]string{
		`{"cards": [`:                "-tree tree.json: line 1: unexpected EOF; tributary serve -h has an example",
		`{"cards": []}`:              `-tree tree.json: it has no workers; set "workers" of the cards that have some`,
		`{"cards": [{"card": "a"}]}`: "it has no workers",
		`{"cards": [{"card": "a", "workers": 1}, {"card": "b", "workers": 1}]}`: "cards a and b have no parent",
		`{"cards": [{"card": "a", "workers": 1, "inputs": ["x", "y"]}]}`:        "card a has 1 workers and 2 inputs; leave one of the two out",
	} {
		writeTree(t, "%s", text)
		s := tributary(context.Background(), "serve", "-tree", "tree.json", "-listen", "unix:s")
		assert.Equal(t, 2, s.status, text)
		assert.Contains(t, s.errs, want)
	}
	writeTree(t, `{"cards": [{"card": "udp:127.0.0.1", "workers": 1}]}`)
	for args, want := range map[string]string{
		"":                         "-card is missing; name the card to share, or the file of a tree with -tree",
		"-relay -tree tree.json":   "-relay: clients of a tree of cards pass arrays to serve, which sends the frames; leave it out",
		"-tree a=x.json -tree a=y": "-tree a=y: two cards are called a; name them NAME=y",
		"-card a=cpu: -tree a=x":   "two cards are called a",
		"-tree none.json":          "-tree open none.json: no such file",
	} {
		s := tributary(context.Background(), append([]string{"serve", "-listen", "unix:s"}, strings.Fields(args)...)...)
		assert.NotZero(t, s.status, args)
		assert.Contains(t, s.errs, want)
	}
	root, plain := serveTreeCard(t, "model:parent=true"), serveTreeCard(t, "model:")
	writeTree(t, `{"cards": [{"card": %q, "workers": 1}, {"card": %q, "parent": %[1]q, "workers": 1}]}`, root, plain)
	s := tributary(context.Background(), "serve", "-tree", "tree.json", "-listen", "unix:s")
	require.Equal(t, said{2, "", "tributary serve: -tree: card " + plain + " has no up port, which each card of a tree needs; generate it with -parent\nSee: tributary serve -h\n"}, s)
}
