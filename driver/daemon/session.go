package daemon

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/ring"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Limits of a session.
const (
	queueBytes    = 4 << 20 // frames on their way to a client
	queueMessages = 1024    // messages on their way to a client
	batchBytes    = 64 << 10

	announceTimeout = 10 * time.Second // for a call whose data has come
)

// session is one process's use of a card: a control stream and a data connection.
type session struct {
	card   *card
	name   string // for people
	admin  bool
	direct bool // its frames go to the card directly: the data connection carries none
	key    key
	memory *memory // shared with the client; nil without

	messages chan *protocol.ToClient
	over     context.Context
	end      context.CancelCauseFunc
	drops    []<-chan struct{} // of jobs of this session that the card drops; guarded by the card's mutex

	mu      sync.Mutex
	changed sync.Cond
	rings   *ring.End // have the frames in shared memory; nil without, and after the end
	frames  [][]byte  // to the client
	bytes   int       // of frames
	writing bool      // the writer sends frames that it has taken
	offer   offer     // sends what the client takes at once; nil without a data connection, or where none can
}

// offer writes as many bytes of frames as fit into a connection without a wait. It returns their number.
type offer func(frames [][]byte) int

// key names a session on its data connection.
type key [16]byte

func newSession(c *card, ctx context.Context, hello *protocol.Hello) *session {
	s := &session{card: c, name: hello.Client, admin: hello.Admin, messages: make(chan *protocol.ToClient, queueMessages)}
	s.changed.L = &s.mu
	s.over, s.end = context.WithCancelCause(ctx)
	return s
}

// tell queues a message to the client. A client that does not read its messages loses its session.
func (s *session) tell(m *protocol.ToClient) {
	select {
	case s.messages <- m:
	default:
		s.end(fmt.Errorf("the client has not read %d messages", queueMessages))
	}
}

// outgoing is a frame on its way to sessions. It is copied once if any of them keeps it.
type outgoing struct {
	raw    []byte
	copied bool
}

func (o *outgoing) keep() []byte {
	if !o.copied {
		o.raw, o.copied = slices.Clone(o.raw), true
	}
	return o.raw
}

// forward queues a frame to the client, until flush. It drops the frame if there is no room: the client
// asks again.
func (s *session) forward(o *outgoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.rings != nil:
		s.put(o.raw)
	case s.bytes+len(o.raw) > queueBytes:
		s.card.counts.fullQueue.Add(1)
	default:
		s.frames = append(s.frames, o.keep())
		s.bytes += len(o.raw)
	}
}

// flush lets the writer send the queued frames.
func (s *session) flush() {
	if !s.ringNow() {
		s.changed.Signal()
	}
}

// flushNow sends the queued frames itself, which saves waking the writer. The writer sends what the
// client does not take at once.
func (s *session) flushNow() {
	if s.ringNow() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing || s.offer == nil {
		s.changed.Signal()
		return
	}
	n := s.offer(s.frames)
	s.bytes -= n
	for len(s.frames) > 0 && n >= len(s.frames[0]) {
		n -= len(s.frames[0])
		s.frames[0], s.frames = nil, s.frames[1:]
	}
	if len(s.frames) > 0 {
		s.frames[0] = s.frames[0][n:]
		s.changed.Signal()
	}
}

// control runs the session's control stream until it ends.
func (s *session) control(stream grpc.BidiStreamingServer[protocol.ToDaemon, protocol.ToClient]) error {
	go func() {
		for {
			m, err := stream.Recv()
			if err == nil {
				err = s.handle(m)
			}
			if err != nil {
				s.end(err)
				return
			}
		}
	}()
	for {
		select {
		case m := <-s.messages:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-s.over.Done():
			s.drain(stream)
			return context.Cause(s.over)
		}
	}
}

// drain sends the messages that are queued, such as the end of the session's jobs.
func (s *session) drain(stream grpc.BidiStreamingServer[protocol.ToDaemon, protocol.ToClient]) {
	for {
		select {
		case m := <-s.messages:
			if stream.Send(m) != nil {
				return
			}
		default:
			return
		}
	}
}

// handle handles a message of the client. An error ends the session.
func (s *session) handle(m *protocol.ToDaemon) error {
	switch m := m.Message.(type) {
	case *protocol.ToDaemon_Create:
		j, refused := s.card.create(s, m.Create)
		if refused != nil {
			s.refused(m.Create.Request, refused)
			return nil
		}
		s.tell(&protocol.ToClient{Message: &protocol.ToClient_Created{Created: &protocol.Created{Request: m.Create.Request, Nonce: j.nonce}}})
		return nil
	case *protocol.ToDaemon_Join:
		s.join(m.Join)
		return nil
	case *protocol.ToDaemon_Rejoin:
		s.card.rejoin(s, m.Rejoin)
		return nil
	case *protocol.ToDaemon_Abort:
		return s.abort(m.Abort)
	case *protocol.ToDaemon_Connect:
		if refused := s.connect(m.Connect); refused != nil {
			s.refused(m.Connect.Request, refused)
		}
		return nil
	case *protocol.ToDaemon_Disconnected:
		s.disconnected(m.Disconnected)
		return nil
	}
	return s.handleOfSeat(m)
}

func (s *session) refused(request uint64, r *refusal) {
	s.card.server.meters.refused(r)
	s.tell(&protocol.ToClient{Message: &protocol.ToClient_Refused{Refused: &protocol.Refused{
		Request: request, Reason: r.reason, Text: r.text, Field: r.field}}})
}

func (s *session) join(p *protocol.Join) {
	j, seat, refused := s.card.join(s, p)
	if refused != nil {
		s.refused(p.Request, refused)
		return
	}
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	w, rank := j.waiting(), uint32(seat.rank)
	w.Rank, w.Request, w.Parameters = &rank, p.Request, j.parameters.Parameters()
	s.tell(&protocol.ToClient{Message: &protocol.ToClient_Waiting{Waiting: w}})
	if j.state == gathering {
		j.reportExcept(s)
	}
	if seat.returns {
		j.readmit()
	}
	j.startIfComplete()
}

func (s *session) abort(p *protocol.Abort) error {
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	j := s.card.jobs[p.Nonce]
	if j == nil || j.creator != s && len(j.ranksOf(s)) == 0 {
		return nil // it has ended meanwhile
	}
	why := fmt.Sprintf("ranks %d aborted the job", j.ranksOf(s))
	if len(j.ranksOf(s)) == 0 {
		why = "the client that made the job aborted it"
	}
	j.end(&protocol.Ended{Cause: protocol.Cause_ABORTED, Ranks: j.ranksOf(s), Text: why})
	return nil
}

// handleOfSeat handles a message about a seat. A seat that the session does not hold any more is no
// error: the job may have ended while the message was under way.
func (s *session) handleOfSeat(m *protocol.ToDaemon) error {
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	seatOf := s.card.seatOf
	switch m := m.Message.(type) {
	case *protocol.ToDaemon_Call:
		j, seat := seatOf(s, m.Call.Nonce, m.Call.Rank)
		if seat == nil {
			return nil
		}
		ended, err := j.announce(seat, m.Call)
		if ended != nil {
			j.end(ended)
		}
		s.card.changed.Broadcast()
		return err
	case *protocol.ToDaemon_Report:
		if j, seat := seatOf(s, m.Report.Nonce, m.Report.Rank); seat != nil && j.stop != nil {
			if err := j.checkReport(seat, m.Report); err != nil {
				return err
			}
			j.stop.report(seat, m.Report)
		}
	case *protocol.ToDaemon_Kept:
		if j, seat := seatOf(s, m.Kept.Nonce, m.Kept.Rank); seat != nil && j.stop != nil {
			j.stop.take(seat, m.Kept)
		}
	case *protocol.ToDaemon_Held:
		if j, seat := seatOf(s, m.Held.Nonce, m.Held.Rank); seat != nil && j.stop != nil {
			j.stop.confirm(seat)
		}
	case *protocol.ToDaemon_Block:
		if j, seat := seatOf(s, m.Block.Nonce, m.Block.Rank); seat != nil {
			return j.takeBlock(seat, m.Block)
		}
	case *protocol.ToDaemon_Finish:
		if j, seat := seatOf(s, m.Finish.Nonce, m.Finish.Rank); seat != nil {
			return j.takeFinish(seat)
		}
	case *protocol.ToDaemon_Failed:
		if j, seat := seatOf(s, m.Failed.Nonce, m.Failed.Rank); seat != nil && j.rdma != nil {
			j.end(failed(seat, m.Failed.Text))
		}
	case *protocol.ToDaemon_Ask:
		if j, seat := seatOf(s, m.Ask.Nonce, m.Ask.Rank); seat != nil {
			j.takeAsk(seat, m.Ask)
		}
	case *protocol.ToDaemon_Leave:
		if j, seat := seatOf(s, m.Leave.Nonce, m.Leave.Rank); seat != nil {
			j.leave(seat, false)
			j.endIfForsaken("all members have left")
		}
	default:
		return fmt.Errorf("the client sent %T, which this daemon does not know", m)
	}
	return nil
}

// gone takes the session's seats.
func (s *session) gone() {
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	for _, j := range s.card.jobs {
		for _, seat := range j.seats {
			if seat.session == s {
				j.leave(seat, true)
			}
		}
		if j.creator == s {
			j.creator = nil
		}
		j.endIfForsaken("the client that made the job has gone")
	}
	s.forgetQueuePairs()
	delete(s.card.sessions, s)
	s.endRings()
	s.memory.end()
	s.card.changed.Broadcast()
}

// data runs the session's data connection until it ends.
func (s *session) data(conn net.Conn) {
	if !s.memory.enter() {
		conn.Close() // the session has ended meanwhile
		return
	}
	defer s.memory.leave()
	defer conn.Close() // before the memory's pages go: the client looks whether it is open
	if s.hasRings() {
		s.dataInRings(conn)
		return
	}
	context.AfterFunc(s.over, func() {
		conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	if s.memory != nil {
		if err := s.memory.send(conn); err != nil {
			s.end(err)
			return
		}
	}
	s.mu.Lock()
	s.offer = newOffer(conn)
	s.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { s.end(s.write(conn)) })
	s.end(s.read(s.throttle(conn)))
	writing.Wait()
}

// write sends the queued frames.
func (s *session) write(conn net.Conn) error {
	for {
		s.mu.Lock()
		s.writing = false
		for len(s.frames) == 0 && s.over.Err() == nil {
			s.changed.Wait()
		}
		batch := net.Buffers(s.frames)
		s.frames, s.bytes, s.writing = nil, 0, true
		s.mu.Unlock()
		if s.over.Err() != nil {
			return context.Cause(s.over)
		}
		if err := writeBatch(conn, batch); err != nil {
			return err
		}
	}
}

// read forwards the client's frames, in batches by job.
func (s *session) read(conn *throttled) error {
	scan := frame.NewSwitchScanner(frame.ToCard)
	var f frame.Frame
	b := &batch{session: s, from: conn}
	var skipped frame.Stats
	for {
		_, err := scan.Fill(conn)
		for scan.Next(&f) {
			if err := b.take(&f); err != nil {
				return err
			}
		}
		b.send()
		skipped = s.card.noteSkipped(skipped, scan.Stats())
		if err != nil {
			return err
		}
	}
}

// batch gathers frames of one job for its card. They follow one another in the scanner's buffer, so the
// batch is a part of that, until the next read.
type batch struct {
	session *session
	from    *throttled
	job     *job
	frames  []byte
}

func (b *batch) send() {
	if len(b.frames) > 0 {
		b.job.relay.Send(b.frames)
	}
	b.frames = nil
}

// add appends a frame, unless bytes that are no frame to forward lie between.
func (b *batch) add(raw []byte) bool {
	n := len(b.frames)
	switch {
	case n == 0:
		b.frames = raw
	case n == cap(b.frames) || &b.frames[:n+1][n] != &raw[0]:
		return false
	default:
		b.frames = b.frames[:n+len(raw)]
	}
	return true
}

// take takes a frame of the client. An error ends the session.
func (b *batch) take(f *frame.Frame) error {
	s := b.session
	if f.Kind == wire.KindRegRead || f.Kind == wire.KindRegWrite {
		b.from.use(len(f.Raw))
		return s.access(f.Header)
	}
	j, err := s.admit(&f.Header)
	if j == nil || err != nil {
		return err
	}
	b.from.use(len(f.Raw))
	if j != b.job || len(b.frames)+len(f.Raw) > batchBytes {
		b.send()
		b.job = j
	}
	if !b.add(f.Raw) {
		b.send()
		b.add(f.Raw)
	}
	return nil
}
