package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// behaviour is the environment variable with this binary's behaviour as a virtual card.
const behaviour = "TRIBUTARY_TEST_CARD"

// orphanNote is the environment variable with the file in which a card records its start and
// the end of its standard input.
const orphanNote = "TRIBUTARY_TEST_ORPHAN"

func TestMain(m *testing.M) {
	switch how := os.Getenv(behaviour); how {
	case "":
	case "host":
		_, err := transport.Open(context.Background(), "sim:"+os.Args[1], transport.Needs{})
		fmt.Fprintln(os.Stderr, err) // a kill comes first
		return
	default:
		virtualCard(how)
		return
	}
	os.Exit(m.Run())
}

// virtualCard behaves like the program of a virtual card. It sends back what it receives.
func virtualCard(how string) {
	if how == "broken" {
		fmt.Fprintln(os.Stderr, "card: cannot\nfind itself")
		os.Exit(3)
	}
	if traces := strings.HasPrefix(how, "traces"); traces && len(os.Args) == 7 && os.Args[5] == "--trace" {
		defer traceEnd(how, os.Args[6])
	} else if traces || len(os.Args) != 5 {
		fmt.Fprintf(os.Stderr, "called with %q", os.Args[1:])
		os.Exit(4)
	}
	if os.Args[1] != "--listen" || os.Args[3] != "--once" || os.Args[4] != "--end-with-stdin" {
		fmt.Fprintf(os.Stderr, "called with %q", os.Args[1:])
		os.Exit(4)
	}
	switch how {
	case "silent":
		select {}
	case "orphan": // never listens; records the end of its standard input
		note("started")
		_, err := io.Copy(io.Discard, os.Stdin)
		note(fmt.Sprint("input ended: ", err))
		return
	}
	address, _ := strings.CutPrefix(os.Args[2], "unix:")
	listener, err := net.Listen("unix", address)
	if err != nil {
		fmt.Fprint(os.Stderr, err)
		os.Exit(5)
	}
	fmt.Println("listening " + os.Args[2])
	conn, err := listener.Accept()
	if err != nil {
		os.Exit(6)
	}
	switch how {
	case "echo", "traces", "traces badly":
		io.Copy(conn, conn)
		fmt.Println("cycles=1 beats=2 rx_bytes=3 tx_bytes=4")
	case "dies":
		io.ReadFull(conn, make([]byte, 2))
		fmt.Fprintln(os.Stderr, "card: out of cheese")
		os.Exit(7)
	case "stubborn": // neither the link's end nor SIGTERM ends it
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(conn, os.Getpid())
		select {}
	}
}

// traceEnd writes a waveform, or fails.
func traceEnd(how, file string) {
	if how == "traces badly" {
		fmt.Fprintln(os.Stderr, "card: no room left")
		os.Exit(8)
	}
	time.Sleep(10 * time.Millisecond) // without waiting, the host finds no file
	if err := os.WriteFile(file, []byte("waveform"), 0o644); err != nil {
		panic(err)
	}
}

// note writes an orphan's record to the test's pipe.
func note(text string) {
	if err := os.WriteFile(os.Getenv(orphanNote), []byte(text+"\n"), 0); err != nil {
		panic(err)
	}
}

// goodManifest is hwgen's manifest of a card with 4 lanes and 3 ports.
var goodManifest = func() string {
	text, err := os.ReadFile("../../hwgen/testdata/golden/l4_w3_stream/manifest.json")
	if err != nil {
		panic(err)
	}
	return string(text)
}()

// changed returns goodManifest with old replaced by new.
func changed(t *testing.T, old, new string) string {
	t.Helper()
	if strings.Count(goodManifest, old) != 1 {
		t.Fatalf("the manifest holds %q %d times", old, strings.Count(goodManifest, old))
	}
	return strings.Replace(goodManifest, old, new, 1)
}

// folder writes a card's folder with this test binary as its virtual card.
func folder(t *testing.T, manifest, how string) string {
	t.Helper()
	dir := t.TempDir()
	if manifest != "" {
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if how == "" {
		return dir
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	build := filepath.Join(dir, "sim", "build")
	program := "card"
	if strings.HasPrefix(how, "traces") {
		program = "card_trace"
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=%q exec %s \"$@\"\n", behaviour, how, self)
	if err := errors.Join(os.MkdirAll(build, 0o755), os.WriteFile(filepath.Join(build, program), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openSim(t *testing.T, dir string) (transport.Conn, error) {
	return transport.Open(context.Background(), "sim:"+dir, transport.Needs{})
}

// leftovers lists what virtual cards have left in the test's folder for temporary files.
func leftovers(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestTraced checks that the waveform is complete after Close, and that a failure to write it
// is an error.
func TestTraced(t *testing.T) {
	ctx := context.Background()
	wave := filepath.Join(t.TempDir(), "card.fst")
	conn, err := transport.OpenTraced(ctx, folder(t, goodManifest, "traces"), wave)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(wave); string(text) != "waveform" {
		t.Errorf("the waveform is %q, %v", text, err)
	}

	conn, err = transport.OpenTraced(ctx, folder(t, goodManifest, "traces badly"), wave)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err == nil || !strings.Contains(err.Error(), "card: no room left") {
		t.Errorf("a card that could not write: %v", err)
	}

	dir := folder(t, goodManifest, "echo")
	_, err = transport.OpenTraced(ctx, dir, wave)
	if err == nil || !strings.HasSuffix(err.Error(), "`make -C "+dir+"/sim trace` builds it") {
		t.Errorf("a card that is built without waveforms: %v", err)
	}
}

func TestSim(t *testing.T) {
	dir := folder(t, goodManifest, "echo")
	t.Setenv("TMPDIR", t.TempDir())
	conn, err := openSim(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("a host that is killed now leaves behind: %q", left)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
	hash, from := conn.(interface{ ExpectedHash() (uint64, string) }).ExpectedHash()
	if !strings.Contains(goodManifest, fmt.Sprintf(`"config_hash": "%016x"`, hash)) || from != filepath.Join(dir, "manifest.json") {
		t.Errorf("expects hash %x from %s", hash, from)
	}
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSimDies checks that the error has the card's last words.
func TestSimDies(t *testing.T) {
	t.Cleanup(transport.SetSimBlameTime(time.Minute)) // a busy machine ends a process late
	t.Setenv("TMPDIR", t.TempDir())
	conn, err := openSim(t, folder(t, goodManifest, "dies"))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "xx")
	_, err = conn.Read(make([]byte, 1))
	if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("read: %v", err)
	}
	conn.Close()
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestSimStubborn checks that a card that does not end is killed.
func TestSimStubborn(t *testing.T) {
	t.Cleanup(transport.SetSimEndTime(10 * time.Millisecond))
	conn, err := openSim(t, folder(t, goodManifest, "stubborn"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanln(conn, &pid); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

// TestSimHostIsKilled checks that a card whose host dies before it connects sees the end of its
// standard input.
func TestSimHostIsKilled(t *testing.T) {
	note := filepath.Join(t.TempDir(), "note")
	if err := syscall.Mkfifo(note, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(note, os.O_RDWR, 0) // a reader alone would wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	notes := bufio.NewReader(pipe)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self, folder(t, goodManifest, "orphan"))
	host.Env = append(os.Environ(), behaviour+"=host", orphanNote+"="+note, "TMPDIR="+t.TempDir())
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor := func(want string) {
		t.Helper()
		if text, err := notes.ReadString('\n'); err != nil || text != want+"\n" {
			t.Errorf("the card has noted %q, not %q: %v", text, want, err)
		}
	}
	waitFor("started")
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	waitFor("input ended: <nil>")
}

func TestSimCannotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, c := range map[string]struct {
		manifest, how string
		words         []string
	}{
		"no folder":     {"", "", []string{"not a card's folder", "hwgen -o"}},
		"not built":     {goodManifest, "", []string{"not built", "make -C"}},
		"broken":        {goodManifest, "broken", []string{"exit status 3", "cannot find itself"}},
		"no JSON":       {"{", "echo", []string{"cannot be read"}},
		"someone's":     {`{"generator": "x"}`, "echo", []string{"not a manifest of hwgen"}},
		"schema":        {changed(t, `"schema": 1`, `"schema": 2`), "echo", []string{"schema 2", "reads schema 1", "generate the card again"}},
		"older card":    {changed(t, `"protocol": 2`, `"protocol": 1`), "echo", []string{"protocol version 1, this program version 2; generate the card again"}},
		"newer card":    {changed(t, `"protocol": 2`, `"protocol": 3`), "echo", []string{"protocol version 3, this program version 2; use a newer program"}},
		"no hash":       {changed(t, `"config_hash"`, `"hash"`), "echo", []string{"config_hash"}},
		"no number":     {changed(t, `"value": "0x4"`, `"value": "four"`), "echo", []string{"LANES", `"four"`}},
		"no lanes":      {changed(t, `"value": "0x4"`, `"v": "0x4"`), "echo", []string{"manifest.json lacks the value of register LANES", "generate the card again"}},
		"other lanes":   {changed(t, `"value": "0x4"`, `"value": "0x8"`), "echo", []string{"config_hash", "was changed", "generate the card again"}},
		"without link":  {changed(t, `"shell": "stream"`, `"shell": "none"`), "echo", []string{"-shell stream"}},
		"never listens": {goodManifest, "silent", []string{"deadline"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			if c.how == "silent" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			_, err := transport.Open(ctx, "sim:"+folder(t, c.manifest, c.how), transport.Needs{})
			if err == nil {
				t.Fatal("it opened")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestRegister checks that a registered scheme gets its address and the number of workers.
func TestRegister(t *testing.T) {
	mine := fmt.Sprint("mine", len(transport.Schemes())) // unique when the test runs again
	var got transport.Request
	transport.Register(mine, func(_ context.Context, r transport.Request) (transport.Conn, error) {
		got = r
		return nil, nil
	})
	needs := transport.Needs{Workers: 7, Format: wire.BF16}
	if _, err := transport.Open(context.Background(), mine+":a:b", needs); err != nil || got != (transport.Request{Address: "a:b", Needs: needs}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if !slices.Contains(transport.Schemes(), mine) {
		t.Errorf("schemes %q", transport.Schemes())
	}
	defer func() {
		if recover() == nil {
			t.Error("registered twice without a panic")
		}
	}()
	transport.Register(mine, nil)
}
