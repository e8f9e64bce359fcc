package main

import (
	"os"
	"sync"
	"syscall"

	"tributary/driver/daemon/protocol"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/transport/serve"
	"tributary/driver/wire"
)

// phase is when a process is killed.
type phase string

const (
	join    phase = "join"         // a job or an epoch is being set up
	half    phase = "half a frame" // the process has sent half of its last frame
	summing phase = "summing"      // between two frames of data or sums
	finish  phase = "finish"       // some members of a job finish
	anytime phase = "any time"     // the campaign kills the process, not the process itself
)

var phases = []phase{join, half, summing, finish, anytime}

// trigger kills its process at the n-th occasion of a phase.
type trigger struct {
	dying func(phase) // runs before the end

	mu   sync.Mutex
	at   phase
	left int // occasions up to the last one; 0: lives on
}

func (t *trigger) arm(at phase, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.left = at, n
}

// reached counts an occasion, and reports whether the process dies at it.
func (t *trigger) reached(p phase) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 || t.at != p {
		return false
	}
	t.left--
	return t.left == 0
}

// die ends the process as the system does when it runs out of memory.
func (t *trigger) die(p phase) {
	t.dying(p)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// mortal is a link at whose frames the process may die.
type mortal struct {
	transport.Conn
	trigger *trigger
	scan    *frame.Scanner
}

func newMortal(conn transport.Conn, t *trigger, d frame.Direction) *mortal {
	return &mortal{conn, t, frame.NewScanner(d, 0)}
}

// Write writes whole frames, up to the one at which the process dies.
func (m *mortal) Write(p []byte) (int, error) {
	at := 0
	for rest := p; len(rest) > 0; {
		rest = rest[m.scan.Feed(rest):]
		for f := (frame.Frame{}); m.scan.Next(&f); at += len(f.Raw) {
			occasion, ok := occasionOf(&f.Header)
			switch {
			case !ok:
			case m.trigger.reached(occasion):
				_, _ = m.Conn.Write(p[:at])
				m.trigger.die(occasion)
			case occasion == summing && m.trigger.reached(half):
				_, _ = m.Conn.Write(p[:at+len(f.Raw)/2])
				m.trigger.die(half)
			}
		}
	}
	return m.Conn.Write(p)
}

// occasionOf returns the phase of a frame, in either direction.
func occasionOf(h *frame.Header) (phase, bool) {
	switch {
	case h.Kind == wire.KindData, h.Kind == wire.KindResult, h.Kind == wire.KindReplay:
		return summing, true
	case h.Kind == wire.KindFinish, h.Kind == wire.KindStatus && h.Code == wire.CodeDone:
		return finish, true
	case (h.Kind == wire.KindRegWrite || h.Kind == wire.KindReply) && h.VID == wire.RegJobCommit:
		return join, true
	}
	return "", false
}

// mortalSession is a member's session, at whose frames and messages the process may die.
type mortalSession struct {
	*serve.Session
	frames *mortal
}

func (s *mortalSession) Write(p []byte) (int, error) { return s.frames.Write(p) }

func (s *mortalSession) Tell(m *protocol.ToDaemon) {
	s.Session.Tell(m)
	switch m.Message.(type) {
	case *protocol.ToDaemon_Create, *protocol.ToDaemon_Join, *protocol.ToDaemon_Rejoin, *protocol.ToDaemon_Report, *protocol.ToDaemon_Held:
		s.occasion()
	}
}

// Listen lets the process die before it handles a message, too: the daemon has then done its part.
func (s *mortalSession) Listen(f func(*protocol.ToClient)) {
	s.Session.Listen(func(m *protocol.ToClient) {
		switch m.Message.(type) {
		case *protocol.ToClient_Created, *protocol.ToClient_Waiting, *protocol.ToClient_Begin, *protocol.ToClient_Stop, *protocol.ToClient_Hand:
			s.occasion()
		}
		f(m)
	})
}

func (s *mortalSession) occasion() {
	if s.frames.trigger.reached(join) {
		s.frames.trigger.die(join)
	}
}
