package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tributary/driver"
	"tributary/driver/collective/membership"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/protocol/rpc"
)

// served is a tributary serve, or another command that prints a line when it is ready, as a process.
type served struct {
	*exec.Cmd
	out  *bufio.Reader
	errs bytes.Buffer
}

// startServe starts the command and returns it with its first line: it is ready then.
func startServe(t *testing.T, args ...string) (s *served, ready string) {
	t.Helper()
	return startReady(t, append([]string{"serve"}, args...)...)
}

// startReady is startServe for any command.
func startReady(t *testing.T, args ...string) (s *served, ready string) {
	t.Helper()
	s = &served{Cmd: exec.Command(os.Args[0], args...)}
	s.Env = append(os.Environ(), asCommand+"=1")
	s.begin(t)
	ready, err := s.out.ReadString('\n')
	require.NoError(t, err)
	return s, ready
}

// begin starts the process. It is killed at the end of the test.
func (s *served) begin(t *testing.T) {
	t.Helper()
	s.Stderr = &s.errs
	out, err := s.StdoutPipe()
	require.NoError(t, err)
	s.out = bufio.NewReader(out)
	require.NoError(t, s.Start())
	t.Cleanup(func() { s.Process.Kill(); s.Wait() })
}

// end sends a signal and returns the exit status and the log.
func (s *served) end(t *testing.T, signal os.Signal) (status int, log string) {
	t.Helper()
	require.NoError(t, s.Process.Signal(signal))
	rest, err := io.ReadAll(s.out)
	require.NoError(t, err)
	require.Empty(t, string(rest))
	s.Wait()
	return s.ProcessState.ExitCode(), s.errs.String()
}

// TestServe runs a daemon with two cards until each of the signals.
func TestServe(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		workFolder(t)
		s, ready := startServe(t, "-card", "left=model:lanes=4", "-card", "model:", "-listen", "unix:s")
		require.Equal(t, "serving at unix:s: left (model:lanes=4), card0 (model:)\n", ready)
		info, err := os.Stat("s")
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		status, log := s.end(t, signal)
		require.Equal(t, 0, status, log)
		require.Regexp(t, `(?m)^time=\S+ level=INFO msg=stopping why="[a-z]+ signal received" grace=30s\n.*level=INFO msg=stopped\n$`, log)
		require.NoFileExists(t, "s")
	}
}

// TestServeResets resets cards of a daemon, also one on a network, whose data pass the daemon by: with -admin
// they are reset, otherwise the error names the flag.
func TestServeResets(t *testing.T) {
	for _, x := range []struct {
		flags []string
		want  string
	}{
		{nil, `^tributary reset: card serve:unix:s#card\d refused write RESET \(0x[0-9a-f]+\): busy: .* -admin\n$`},
		{[]string{"-admin"}, `^card serve:unix:s#card\d is reset\n$`},
	} {
		workFolder(t)
		_, listening := startReady(t, "sim", "cpu:workers=4", "-listen", "udp:127.0.0.1:0")
		network := strings.TrimPrefix(strings.TrimSuffix(listening, "\n"), "listening ")
		s, _ := startServe(t, append(x.flags, "-card", "model:lanes=4", "-card", network, "-listen", "unix:s")...)
		for _, card := range []string{"serve:unix:s#card0", "serve:unix:s#card1"} {
			have := tributary(context.Background(), "reset", "-card", card)
			require.Regexp(t, x.want, have.out+have.errs)
			require.Equal(t, x.flags == nil, have.status != 0)
		}
		s.end(t, syscall.SIGTERM)
	}
}

// TestSelftestOfASharedCard is refused: it writes registers that belong to the daemon.
func TestSelftestOfASharedCard(t *testing.T) {
	workFolder(t)
	startServe(t, "-card", "model:lanes=1,workers=1,chunk=16,window=1", "-listen", "unix:s")
	require.Equal(t, said{1, "", "tributary selftest: card: tributary serve shares serve:unix:s, and the self-test needs a card to itself; " +
		"end tributary serve, and name the card itself\n"},
		tributary(context.Background(), "selftest", "-card", "serve:unix:s"))
}

// TestServeDefault checks the default address, and that a second daemon there is refused while the first
// one lives, and replaces the socket that it leaves when it is killed.
func TestServeDefault(t *testing.T) {
	workFolder(t)
	path := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "tributary.sock")
	s, ready := startServe(t, "-card", "model:")
	require.Equal(t, "serving at unix:"+path+": card0 (model:)\n", ready)
	second := tributary(context.Background(), "serve", "-card", "model:")
	require.Equal(t, said{1, "", "tributary serve: -listen unix:" + path + ": another program listens at " + path + "; stop it, or listen at another path\n"}, second)
	s.end(t, syscall.SIGKILL)
	require.FileExists(t, path)
	s, _ = startServe(t, "-card", "model:")
	status, _ := s.end(t, syscall.SIGTERM)
	require.Equal(t, 0, status)
}

// TestBenchThroughADaemon: the link of a card that takes arrays carries no data, so bench prints no shares of
// it. They were once millions of percent.
func TestBenchThroughADaemon(t *testing.T) {
	workFolder(t)
	startServe(t, "-card", "cpu:", "-card", "model:", "-listen", "unix:s")
	row := func(card string) string {
		s := tributary(context.Background(), "bench", "-card", card, "-window", "2", "-elements", "5000")
		require.Equal(t, 0, s.status, s.errs)
		return strings.Split(s.out, "\n")[4]
	}
	require.Regexp(t, `^4 +2 +- +- +- +- +- +0\.00 %`, row("serve:unix:s#card0"))
	require.Regexp(t, `^4 +2 +[0-9.]+ % +[0-9]{2}\.[0-9] % `, row("serve:unix:s#card1"))
}

// TestDefaultAddress lists the default addresses.
func TestDefaultAddress(t *testing.T) {
	for _, x := range []struct {
		dir  string
		root bool
		want string
	}{
		{"/run/user/1000", false, "unix:/run/user/1000/tributary.sock"},
		{"/run/user/0", true, "unix:/run/user/0/tributary.sock"},
		{"", true, "unix:/run/tributary.sock"},
	} {
		got, err := defaultAddress(x.dir, x.root)
		require.NoError(t, err)
		require.Equal(t, x.want, got)
	}
	_, err := defaultAddress("", false)
	require.ErrorAs(t, err, new(usageError))
}

// TestServeOffLoopback refuses an address that other machines can reach, and names the flags.
func TestServeOffLoopback(t *testing.T) {
	workFolder(t)
	s := tributary(context.Background(), "serve", "-card", "model:", "-listen", "tcp:0.0.0.0:0")
	require.Equal(t, statusUsage, s.status)
	require.Regexp(t, `^tributary serve: -listen tcp:0.0.0.0:0: other machines can reach \S+; give -tls-cert and -tls-key, and -token-file or -client-ca, or listen at a Unix socket or 127.0.0.1\n`, s.errs)
}

// TestServeJSON prints and logs JSON, and serves metrics. The token is in neither.
func TestServeJSON(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.WriteFile("token", []byte("secret\n"), 0o600))
	s, ready := startServe(t, "-card", "model:", "-listen", "tcp:127.0.0.1:0", "-token-file", "token", "-metrics", "127.0.0.1:0", "-json")
	var line struct {
		Address string
		Cards   []sharedCard
		Metrics string
	}
	require.NoError(t, json.Unmarshal([]byte(ready), &line))
	require.Regexp(t, `^tcp:127.0.0.1:\d+$`, line.Address)
	require.Equal(t, []sharedCard{{"card0", "model:"}}, line.Cards)
	page := func(path string) (status int, text string) {
		r, err := http.Get(strings.TrimSuffix(line.Metrics, "metrics") + path)
		require.NoError(t, err)
		defer r.Body.Close()
		all, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(all)
	}
	until(func() bool { // on a busy machine the card may not reply within the daemon's second
		status, text := page("readyz")
		return status == 200 && text == "ready\n"
	})
	for path, want := range map[string]string{"metrics": "\ntributary_card_up{card=\"card0\"} 1\n", "healthz": "ok\n"} {
		status, text := page(path)
		require.Equal(t, 200, status, "%s: %s", path, text)
		require.Contains(t, text, want)
	}
	status, log := s.end(t, syscall.SIGTERM)
	require.Equal(t, 0, status, log)
	for _, text := range strings.Split(strings.TrimSpace(log), "\n") {
		require.True(t, json.Valid([]byte(text)), text)
	}
	require.NotContains(t, ready+log, "secret")
}

// TestServeEngine: members that are processes or goroutines of this machine form a group by the engine of a
// daemon, and it ends with the daemon.
func TestServeEngine(t *testing.T) {
	workFolder(t)
	s, ready := startServe(t, "-card", "model:", "-listen", "unix:s", "-engine", "unix:e")
	require.Equal(t, "serving at unix:s: card0 (model:); members at unix:e\n", ready)
	info, err := os.Stat("e")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	var first, second membership.Engine
	for _, e := range []*membership.Engine{&first, &second} {
		*e, err = membership.Open(t.Context(), "unix:e")
		require.NoError(t, err)
		defer (*e).Close()
	}
	lease, err := first.Grant(t.Context(), 6*time.Second)
	require.NoError(t, err)
	leads, err := membership.Lead(t.Context(), first, lease, "leader", "first")
	require.NoError(t, err)
	require.True(t, leads)
	seen, err := second.Get(t.Context(), "leader")
	require.NoError(t, err)
	require.Equal(t, "first", seen.Find("leader").Value)

	again := tributary(t.Context(), "serve", "-card", "model:", "-listen", "unix:t", "-engine", "unix:e")
	require.Equal(t, said{1, "", "tributary serve: -engine unix:e: another program listens at e; stop it, or listen at another path\n"}, again)
	other := tributary(t.Context(), "serve", "-card", "model:", "-engine", "etcd:https://127.0.0.1:2379")
	require.Equal(t, statusUsage, other.status)
	require.Contains(t, other.errs, "-engine etcd:https://127.0.0.1:2379: it must be unix:PATH; etcd keeps the members of several machines\n")

	status, log := s.end(t, syscall.SIGTERM)
	require.Zero(t, status, log)
	require.NoFileExists(t, "e")
	<-lease.Lost()
}

// TestServeNotifies reports its states to the service manager, as systemd expects.
func TestServeNotifies(t *testing.T) {
	workFolder(t)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "manager"})
	require.NoError(t, err)
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", "manager")
	s, _ := startServe(t, "-card", "model:", "-listen", "unix:s")
	said := make([]byte, 64)
	n, err := manager.Read(said)
	require.NoError(t, err)
	require.Equal(t, "READY=1", string(said[:n]))
	s.end(t, syscall.SIGTERM)
	n, err = manager.Read(said)
	require.NoError(t, err)
	require.Equal(t, "STOPPING=1", string(said[:n]))
}

// TestServeSecondSignal ends a daemon at once although a job may go on for an hour.
func TestServeSecondSignal(t *testing.T) {
	workFolder(t)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "manager"})
	require.NoError(t, err)
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", "manager")
	s, _ := startServe(t, "-card", "model:", "-listen", "unix:s", "-grace", "1h")
	conn, err := grpc.NewClient("unix:s", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	stream, err := rpc.NewTributaryClient(conn).Attach(context.Background())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Hello{Hello: &protocol.Hello{Version: 1}}}))
	create := &protocol.Create{Parameters: &protocol.Parameters{Workers: new(uint32(1))}}
	require.NoError(t, stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: create}}))
	for begun := false; !begun; {
		m, err := stream.Recv()
		require.NoError(t, err)
		if c := m.GetCreated(); c != nil {
			require.NoError(t, stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Join{Join: &protocol.Join{Nonce: c.Nonce}}}))
		}
		begun = m.GetBegin() != nil
	}
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	said := make([]byte, 64)
	for n := 0; string(said[:n]) != "STOPPING=1"; {
		n, err = manager.Read(said)
		require.NoError(t, err)
	}
	ended := make(chan struct{})
	go func() { s.Wait(); close(ended) }()
	until(func() bool { // the first one may come before the command expects it
		s.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	// Among so many signals, Go 1.26 dies of SIGSEGV now and then.
	require.True(t, s.ProcessState.Sys().(syscall.WaitStatus).Signaled(), s.errs.String())
}

// TestServeLosesItsCards ends with an error when another card answers in the place of the last one: a service
// manager can start the daemon again.
func TestServeLosesItsCards(t *testing.T) {
	workFolder(t)
	var link net.Conn
	opens := []func() net.Conn{linkOf(t, newCard(t, nil, straight)), linkOf(t, newCardOf(t, 2, nil, straight))}
	name := newLink(func() net.Conn {
		link = opens[0]()
		opens = opens[1:]
		return link
	})
	reader, out := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), []string{"serve", "-card", name, "-listen", "unix:s"}, out, &errs)
	}()
	_, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	link.Close()
	require.Equal(t, statusNoCard, <-ended)
	require.Regexp(t, `(?s)level=WARN msg="card is away" card=card0 .*level=ERROR msg="card has gone" card=card0 .*tributary serve: .*another card replies`, errs.String())
}

// linkOf returns the function that opens a card of newCard.
func linkOf(t *testing.T, name string) func() net.Conn {
	t.Helper()
	number, err := strconv.Atoi(strings.TrimPrefix(name, "test:"))
	require.NoError(t, err)
	return links[number]
}

// TestServeSurvivesItsCard: a card goes while nobody uses it, and comes back. The daemon goes on, and its log
// and metrics follow the card.
func TestServeSurvivesItsCard(t *testing.T) {
	workFolder(t)
	open := linkOf(t, newCard(t, nil, straight))
	var link net.Conn
	returns := make(chan struct{}, 1)
	returns <- struct{}{}
	name := newLink(func() net.Conn {
		<-returns
		link = open()
		return link
	})
	out, errs := newLines(), newLines()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-card", name, "-listen", "unix:s", "-metrics", "127.0.0.1:0", "-json"}, out, errs)
	}()
	var ready struct{ Metrics string }
	require.NoError(t, json.Unmarshal([]byte(<-out.lines), &ready))
	up := func() string {
		r, err := http.Get(ready.Metrics)
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return regexp.MustCompile(`(?m)^tributary_card_up.*$`).FindString(string(text))
	}
	for range 2 {
		require.Equal(t, `tributary_card_up{card="card0"} 1`, up())
		link.Close()
		require.Contains(t, errs.next(`"card is away"`), `"level":"WARN"`)
		require.Equal(t, `tributary_card_up{card="card0"} 0`, up())
		returns <- struct{}{}
		require.Contains(t, errs.next(`"card is back"`), `"level":"INFO"`)
	}
	used := tributary(context.Background(), "bench", "-time", "50ms", "-card", "serve:unix:s")
	require.Equal(t, statusDone, used.status, used.errs)
	stop()
	require.Equal(t, statusDone, <-ended)
}

// lines is a writer whose lines a test reads.
type lines struct {
	rest  []byte
	lines chan string
}

func newLines() *lines { return &lines{lines: make(chan string, 1000)} }

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.lines <- string(line)
		l.rest = rest
	}
}

// next returns the next line that contains a text.
func (l *lines) next(text string) string {
	for line := range l.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// TestServeHasItsLimits: the flags reach the daemon. Without them it has its defaults.
func TestServeHasItsLimits(t *testing.T) {
	for args, want := range map[string]daemon.Limits{
		"": {Sessions: 256, Queue: 64, Connections: 100, Rate: 1 << 30, Wait: time.Hour},
		"--max-sessions=2 --max-queue=3 --max-connections=4 --max-rate=5 --max-wait=2m": {
			Sessions: 2, Queue: 3, Connections: 4, Rate: 5 << 20, Wait: 2 * time.Minute},
	} {
		f := serveFlags{wait: time.Minute, timeout: time.Second}
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		f.limits.add(flags)
		require.NoError(t, flags.Parse(strings.Fields(args)))
		require.NoError(t, f.check())
		options, err := f.options(io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, options.Limits)
	}
}

// TestServeRefusesBeyondItsLimits refuses the second session of a daemon with one.
func TestServeRefusesBeyondItsLimits(t *testing.T) {
	workFolder(t)
	startServe(t, "-card", "model:", "-listen", "unix:s", "-max-sessions", "1", "-max-connections", "1000000")
	card, err := driver.Open(context.Background(), "serve:unix:s")
	require.NoError(t, err)
	defer card.Close()
	second := tributary(context.Background(), "info", "-card", "serve:unix:s")
	require.Equal(t, statusNoCard, second.status)
	require.Contains(t, second.errs, "the daemon has 1 sessions, its limit; end one")
}

// TestServeHasItsGrace: a daemon may work on for -grace, where other commands are given up.
func TestServeHasItsGrace(t *testing.T) {
	cmd := newServe()
	require.NoError(t, cmd.ParseFlags([]string{"--grace", "5m"}))
	require.Equal(t, "5m0s", graceOf(cmd).String())
	require.Zero(t, graceOf(newInfo()))
}

// TestNameOfCard tells a name from the options of a card.
func TestNameOfCard(t *testing.T) {
	for text, want := range map[string]sharedCard{
		"model:":            {"", "model:"},
		"model:lanes=4":     {"", "model:lanes=4"},
		"cpu=model:lanes=4": {"cpu", "model:lanes=4"},
		"left=unix:a=b":     {"left", "unix:a=b"},
		"unix:a=b":          {"", "unix:a=b"},
		"=model:":           {"", "=model:"},
		"a/b=model:":        {"", "a/b=model:"},
		"usb:1209:7b7b#A=1": {"", "usb:1209:7b7b#A=1"},
		"board 1=usb:":      {"board 1", "usb:"},
	} {
		require.Equal(t, want, parseShared(text), text)
	}
}

// TestServeCannotPrint ends when nobody reads its first line.
func TestServeCannotPrint(t *testing.T) {
	workFolder(t)
	reader, out := io.Pipe()
	reader.CloseWithError(errors.New("nobody reads"))
	var errs bytes.Buffer
	require.Equal(t, 1, run(context.Background(), []string{"serve", "-card", "model:", "-listen", "unix:s"}, out, &errs))
	require.Regexp(t, `\ntributary serve: nobody reads\n$`, errs.String())
}
