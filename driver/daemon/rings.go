package daemon

import (
	"context"
	"net"

	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/ring"
)

// Frames in shared memory (SPEC.md, section 11). The ring towards the client is its queue: nothing waits
// for room in it.

// ringSize is the size of a session's rings. That towards the daemon holds some turns of a session, as a
// socket does.
var ringSize = ring.Size{ToDaemon: 256 << 10, ToClient: queueBytes}

// shareRings gives a session rings in shared memory, if its client asks for them and can have them.
func (s *Server) shareRings(ctx context.Context, hello *protocol.Hello, session *session, welcome *protocol.Welcome) {
	m := s.share(ctx, hello, hello.Rings, ringSize.Memory())
	if m == nil {
		return
	}
	rings, err := ring.Daemon(m.bytes(), ringSize)
	if err != nil {
		panic(err) // the sizes are constants
	}
	session.memory, session.rings = m, rings
	welcome.RingToDaemon, welcome.RingToClient = uint32(ringSize.ToDaemon), uint32(ringSize.ToClient)
}

func (s *session) hasRings() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rings != nil
}

// dataInRings is data for a session with rings. The caller has entered the memory.
func (s *session) dataInRings(conn net.Conn) {
	s.mu.Lock()
	rings := s.rings
	var err error
	if rings != nil {
		err = rings.Attach(conn)
	}
	s.mu.Unlock()
	if rings == nil {
		return // the session has ended meanwhile
	}
	context.AfterFunc(s.over, func() { rings.Close() })
	if err == nil {
		err = s.memory.send(conn)
	}
	if err != nil {
		s.end(err)
		return
	}
	s.end(s.read(s.throttle(rings)))
}

// put queues a frame in the ring. The caller holds the session's mutex.
func (s *session) put(raw []byte) {
	switch fits, err := s.rings.Put(raw); {
	case err != nil:
		s.end(err)
	case !fits:
		s.card.counts.fullQueue.Add(1)
	}
}

// ringNow wakes a client that waits for frames in its ring. It reports whether the session has rings.
func (s *session) ringNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rings != nil {
		s.rings.Ring()
	}
	return s.rings != nil
}

// endRings lets nobody use the rings any more, except for dataInRings, which has entered the memory.
func (s *session) endRings() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rings = nil
}
