package transport

// The scheme sim: a virtual card that this program starts. The program that `make -C DIR/sim`
// built serves this one host on a Unix socket in a temporary folder, and ends with the link.
//
// The folder is removed once the link is up. If this program is killed before that, the next
// card's start removes it. A pipe from this program is the card's standard input. If this
// program dies before the link is up, the card ends with the pipe.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tributary/driver/shell"
	"tributary/driver/transport/scratch"
)

// waveEndTime is how long a card may take to end when it has a waveform to write. After
// simEndTime or waveEndTime the card is stopped by a signal. A broken link is blamed on a card
// that ends within simBlameTime.
const waveEndTime = time.Minute

// Tests change these.
var (
	simEndTime   = 2 * time.Second
	simBlameTime = time.Second
)

func openSim(ctx context.Context, r Request) (Conn, error) {
	return openBuilt(ctx, r.Address, "")
}

// OpenTraced opens sim:DIR and records a waveform. `make -C DIR/sim trace` must have built that
// card. file, an FST, is complete when Close has returned without an error.
func OpenTraced(ctx context.Context, dir, file string) (Conn, error) {
	return openBuilt(ctx, dir, file)
}

// openBuilt opens the virtual card built in dir. wave is the file for its waveform, or empty.
func openBuilt(ctx context.Context, dir, wave string) (Conn, error) {
	if dir == "" {
		return nil, errors.New("the name lacks the card's folder, as in sim:DIR")
	}
	manifest, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := manifest.CheckLink(); err != nil {
		return nil, err
	}
	name, target, args := "card", "", []string(nil)
	if wave != "" {
		name, target, args = "card_trace", " trace", []string{"--trace", wave}
	}
	program := filepath.Join(dir, "sim", "build", name)
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the virtual card is not built: %w; `make -C %s%s` builds it", err, shell.Quote(filepath.Join(dir, "sim")), target)
	}
	process, err := startSim(ctx, program, args)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", process.socket)
	if err != nil {
		process.stop()
		return nil, fmt.Errorf("the virtual card does not accept its host: %w", err)
	}
	if err := process.folder.Remove(); err != nil {
		conn.Close()
		process.stop()
		return nil, err
	}
	return &simConn{Conn: conn, Manifest: manifest, process: process, traced: wave != ""}, nil
}

// simProcess is a running virtual card.
type simProcess struct {
	cmd    *exec.Cmd
	folder *scratch.Folder // holds the socket
	socket string
	stderr tail
	ended  chan struct{} // closed when err is set
	err    error         // how it ended
}

// startSim starts program with args and returns when it listens.
func startSim(ctx context.Context, program string, args []string) (*simProcess, error) {
	folder, err := scratch.New()
	if err != nil {
		return nil, err
	}
	p := &simProcess{folder: folder, socket: folder.Path("card"), ended: make(chan struct{})}
	if err := CheckSocket(p.socket); err != nil {
		folder.Remove()
		return nil, fmt.Errorf("%w; the path is in TMPDIR", err)
	}
	p.cmd = exec.Command(program, append([]string{"--listen", "unix:" + p.socket, "--once", "--end-with-stdin"}, args...)...)
	p.cmd.Stderr = &p.stderr
	// The process group keeps a Ctrl-C in the terminal from the card. The host receives it and
	// releases the card.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		_, err = p.cmd.StdinPipe() // open until this program ends
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		folder.Remove()
		return nil, fmt.Errorf("the virtual card does not start: %w", err)
	}
	listens := make(chan struct{})
	go p.watch(stdout, listens)
	select {
	case <-listens:
		return p, nil
	case <-p.ended:
		err = p.death()
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.stop()
	return nil, err
}

// watch closes listens when the program prints that it listens, and p.ended when it has ended.
func (p *simProcess) watch(stdout io.Reader, listens chan<- struct{}) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "listening ") && listens != nil {
			close(listens)
			listens = nil
		}
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// death returns the error that describes how the program ended.
func (p *simProcess) death() error {
	how := "without an error"
	if p.err != nil {
		how = p.err.Error()
	}
	if words := p.stderr.text(); words != "" {
		how += "; its last words: " + words
	}
	return fmt.Errorf("the virtual card ended (%s)", how)
}

// stop ends the program with SIGTERM, or with SIGKILL if that takes too long.
func (p *simProcess) stop() {
	defer p.folder.Remove()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = p.cmd.Process.Signal(sig)
		select {
		case <-p.ended:
			return
		case <-time.After(simEndTime):
		}
	}
	<-p.ended
}

// simConn is the link to a virtual card started for it.
type simConn struct {
	net.Conn
	*Manifest
	process *simProcess
	traced  bool // the card writes a waveform
	closing sync.Once
	closed  error
}

// Read reads from the card. If the card has died, the error describes how.
func (s *simConn) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if err != nil {
		err = s.blame(err)
	}
	return n, err
}

// Write writes to the card. If the card has died, the error describes how.
func (s *simConn) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil {
		err = s.blame(err)
	}
	return n, err
}

// blame returns the card's last words instead of the error of a broken link, if the card has
// died.
func (s *simConn) blame(err error) error {
	select {
	case <-s.process.ended:
		return s.process.death()
	case <-time.After(simBlameTime):
		return err
	}
}

// Close closes the link and ends the card. It returns an error if a card with a waveform did
// not end by itself.
func (s *simConn) Close() error {
	s.closing.Do(func() {
		s.closed = s.Conn.Close()
		patience := simEndTime
		if s.traced {
			patience = waveEndTime
		}
		select {
		case <-s.process.ended: // it serves only one host
		case <-time.After(patience):
			s.process.stop()
		}
		if s.traced && s.process.err != nil {
			s.closed = errors.Join(s.closed, s.process.death())
		}
	})
	return s.closed
}

// tail is a Writer that keeps the last bytes.
type tail struct {
	mu  sync.Mutex
	end []byte
}

// tailBytes is the number of bytes that a tail keeps.
const tailBytes = 1 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-tailBytes):]
	return len(p), nil
}

// text returns the kept bytes on one line.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.end)), " ")
}
