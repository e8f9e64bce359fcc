package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a process of a site.
type process struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	log   *journal
	ready chan struct{} // closed when it is ready
	over  chan struct{} // closed when it has died and its last event was handled
	pongs chan event    // answers to pings
	take  func(event)   // handles the other events, one after another
	shot  atomic.Bool   // the campaign has killed it
	phase phase         // in which it killed itself; of the reader
}

// start starts a process of a role. Its events reach take.
func start(role, name string, environment []string, log *journal, take func(event)) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(program), log: log, take: take,
		ready: make(chan struct{}), over: make(chan struct{}), pongs: make(chan event, 1)}
	p.cmd.Env = append(append(os.Environ(), "GOTRACEBACK=all", roleVariable+"="+role), environment...)
	p.cmd.Stderr = &lines{who: name, log: log}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	log.note(name, "starts as process %d", p.cmd.Process.Pid)
	go p.read(out)
	return p, nil
}

// read handles the events of the process until its end.
func (p *process) read(out io.Reader) {
	events := json.NewDecoder(out)
	for first := true; ; {
		var e event
		if events.Decode(&e) != nil {
			break
		}
		if e.Is != "summed" && e.Is != "pong" {
			p.log.note(p.name, "%s", e)
		}
		switch e.Is {
		case "ready":
			if first {
				close(p.ready)
			}
			first = false
		case "pong":
			p.pongs <- e
		case "dying":
			p.phase = e.Phase
			p.take(e)
		default:
			p.take(e)
		}
	}
	_ = p.cmd.Wait() // the state has the reason
	state := p.cmd.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	e := event{Is: "dead", Phase: p.phase, status: state.String(), usage: state.UserTime() + state.SystemTime(),
		killed: status.Signaled() && status.Signal() == syscall.SIGKILL && (p.phase != "" || p.shot.Load())}
	if e.killed && p.phase == "" {
		e.Phase = anytime
	}
	p.log.note(p.name, "is dead: %s", e.status)
	p.take(e)
	close(p.over)
}

// tell gives the process an order. A dead process takes none.
func (p *process) tell(o order) {
	line, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	_, _ = p.in.Write(append(line, '\n'))
}

// ping waits until the process has reported everything up to now. It returns false if it is dead.
func (p *process) ping() (event, bool) {
	p.tell(order{Do: "ping"})
	select {
	case e := <-p.pongs:
		return e, true
	case <-p.over:
		return event{}, false
	}
}

// kill kills the process at once.
func (p *process) kill() {
	p.shot.Store(true)
	p.log.note(p.name, "is killed")
	_ = p.cmd.Process.Kill()
}

// pause stops the process for a time.
func (p *process) pause(d time.Duration) {
	p.log.note(p.name, "is stopped for %s", d)
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// stop ends the process: it exits when its input is closed.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	p.in.Close()
	select {
	case <-p.over:
	case <-time.After(limit):
		p.kill()
		<-p.over
	}
}

// dump lets the process print its goroutines, and end.
func (p *process) dump() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.over:
	case <-time.After(lateness):
		p.kill()
		<-p.over
	}
}

func (e event) String() string {
	switch e.Is {
	case "seated":
		return fmt.Sprintf("life %d is seated", e.Life)
	case "failed":
		return fmt.Sprintf("life %d failed at %s: %s: %s", e.Life, e.Stage, e.Kind, e.Text)
	case "finished":
		return fmt.Sprintf("life %d has finished", e.Life)
	case "dying":
		return "dies: " + string(e.Phase)
	}
	return e.Is
}

// journal is the log of a site: what happened when.
type journal struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

// mostLines is how much a journal keeps.
const mostLines = 20_000

func (j *journal) note(who, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == mostLines {
		j.lines = append(j.lines[:0], j.lines[mostLines/2:]...)
	}
	j.lines = append(j.lines, fmt.Sprintf("%9.4f %-9s ", time.Since(j.began).Seconds(), who)+fmt.Sprintf(format, args...))
}

// begin forgets the round before the last one.
func (j *journal) begin(seed uint64) {
	j.mu.Lock()
	j.lines = nil
	j.mu.Unlock()
	j.note("round", "seed %d", seed)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b bytes.Buffer
	for _, line := range j.lines {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// lines notes what a process writes, line by line.
type lines struct {
	who  string
	log  *journal
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.log.note(l.who, "| %s", line)
		l.rest = rest
	}
}
