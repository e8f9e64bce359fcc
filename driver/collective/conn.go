package collective

// One connection: its reader and its writer.

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"tributary/driver/element"
)

const (
	// farewellTime is how long an ended connection may take to deliver its abort.
	farewellTime = time.Second

	// finishTime is how long the writer of an ended connection may take for the message under way.
	finishTime = 300 * time.Millisecond

	// graceTime is how long the end of a connection that brings data waits for one that brings the reason, and the
	// end of a card's job for the end of the group.
	graceTime = time.Second

	// reasonTime is how long a member whose job another one has ended waits for the other's reason. The other
	// may be on a busy machine.
	reasonTime = 10 * time.Second

	// pingsPerSilence is how often a ping is sent within the silence time.
	pingsPerSilence = 5
)

// conn is one connection with another member.
type conn struct {
	e     *endpoint
	rank  int           // of the other member
	data  bool          // this end accepted it: data arrives here
	inbox chan *message // from the reader to the call
	over  chan struct{} // closed when the reader has ended
	wrote chan struct{} // closed when the writer has ended
	wake  chan struct{} // for the writer: the queue has grown

	net.Conn // nil before start

	mu     sync.Mutex
	queue  []outgoing
	closed bool // takes no more into the queue
	ending bool // the deadlines are those of the end
}

// message is data that has arrived. Its buffer goes back by release.
type message struct {
	header
	payload []byte
	buffer  *[maxPayload]byte
}

var buffers = sync.Pool{New: func() any { return new([maxPayload]byte) }}

func (m *message) release() {
	if m.buffer != nil {
		buffers.Put(m.buffer)
		m.buffer, m.payload = nil, nil
	}
}

// outgoing is a message to send.
type outgoing struct {
	header
	payload []byte
	over    func(sent bool) // runs when the payload is not used any more; may be nil
}

// done ends a message that was sent, or will not be.
func (o *outgoing) done(sent bool) {
	if o.over != nil {
		o.over(sent)
	}
}

func newConn(e *endpoint, rank int, data bool) *conn {
	return &conn{e: e, rank: rank, data: data, inbox: make(chan *message), over: make(chan struct{}), wrote: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// errBye is the end of a connection whose member has left.
var errBye = errors.New("the member has left")

// abortError is the end of a connection that brought an abort.
type abortError struct{ cause error }

func (e *abortError) Error() string { return e.cause.Error() }

// start runs the reader and the writer on an established connection.
func (c *conn) start(established net.Conn) {
	c.mu.Lock()
	c.Conn = established
	c.mu.Unlock()
	c.e.wg.Go(c.write)
	c.e.wg.Go(c.read)
}

// end sets the deadlines of the end, once. The writer may finish its message, so that an abort can follow.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return
	}
	c.ending = true
	now := time.Now()
	_ = c.SetReadDeadline(now.Add(farewellTime))
	_ = c.SetWriteDeadline(now.Add(finishTime))
}

// Read reads within the silence time. A process that was stopped itself finds its deadline passed, though data has
// come. So it reads again, for the time of a ping.
func (c *conn) Read(b []byte) (int, error) {
	patience := c.e.opts.silence
	for strikes := 0; ; strikes++ {
		c.mu.Lock()
		if !c.ending {
			_ = c.SetReadDeadline(time.Now().Add(patience))
		}
		ending := c.ending
		c.mu.Unlock()
		n, err := c.Conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || ending || strikes > 0 || c.e.life.Err() != nil {
			return n, err
		}
		patience = c.e.opts.silence / pingsPerSilence
	}
}

// read is the reader.
func (c *conn) read() {
	stop := context.AfterFunc(c.e.life, c.end)
	err := c.readMessages()
	c.e.ended(c, err)
	close(c.over)
	if c.e.life.Err() != nil { // an abort is under way in either direction
		c.end()
		_, _ = io.Copy(io.Discard, c.Conn)
		<-c.wrote // its abort may be late, on a busy machine
	}
	stop()
	c.Conn.Close()
	c.drop()
}

// readMessages reads until the connection or the group ends.
func (c *conn) readMessages() error {
	var raw [headerBytes]byte
	for c.e.life.Err() == nil {
		if _, err := io.ReadFull(c, raw[:]); err != nil {
			return err
		}
		var h header
		if why := h.decode(&raw); why != "" {
			return c.violation(why)
		}
		if h.generation != c.e.group.Generation {
			return c.violation(fmt.Sprintf("a message has generation %d, not %d", h.generation, c.e.group.Generation))
		}
		switch h.kind {
		case kindBye:
			return errBye
		case kindAbort:
			m, err := c.payload(h)
			if err != nil {
				return err
			}
			defer m.release()
			return &abortError{decodeCause(&c.e.group, c.rank, m.payload)}
		case kindData, kindCall:
			if err := c.take(h); err != nil {
				return err
			}
		}
	}
	return c.e.life.Err()
}

func (c *conn) violation(text string) error {
	return &ProtocolError{c.rank, c.e.group.Members[c.rank].ID, text}
}

// take hands the message of a header over to the call that it belongs to.
func (c *conn) take(h header) error {
	if !c.data {
		return c.violation("data arrived on a connection for control messages")
	}
	own, err := c.e.awaitCall(h.call)
	switch {
	case err == errNoCall:
		_, err = io.CopyN(io.Discard, c, int64(h.bytes))
		return err
	case err != nil:
		return err
	}
	size := uint64(element.Size(h.format))
	switch {
	case own == nil && h.kind == kindCall:
		return nil // too late to matter
	case own == nil:
		return c.violation(fmt.Sprintf("a message of call %d came after that call", h.call))
	case own.description != h.description:
		g := &c.e.group
		return &DifferError{[2]int{g.Rank, c.rank}, fmt.Sprintf("call %d of %s is %s, but that of %s is %s",
			h.call, g.name(g.Rank), own.description, g.name(c.rank), h.description)}
	case uint64(h.bytes)%size != 0 || h.first > h.length || uint64(h.bytes)/size > h.length-h.first:
		return c.violation(fmt.Sprintf("a message has %d bytes at element %d of %d", h.bytes, h.first, h.length))
	}
	if h.kind == kindCall {
		return nil
	}
	m, err := c.payload(h)
	if err != nil {
		return err
	}
	select {
	case c.inbox <- m:
		return nil
	case <-c.e.dialing.Done(): // nobody takes it any more
		m.release()
		return c.e.life.Err()
	}
}

// payload reads the payload of a header, and checks it.
func (c *conn) payload(h header) (*message, error) {
	m := &message{header: h, payload: []byte{}}
	if h.bytes > 0 {
		m.buffer = buffers.Get().(*[maxPayload]byte)
		m.payload = m.buffer[:h.bytes]
	}
	_, err := io.ReadFull(c, m.payload)
	if err == nil && crc32.Checksum(m.payload, castagnoli) != h.crc {
		err = c.violation("the CRC of a payload is wrong")
	}
	if err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

// send queues a message.
func (c *conn) send(o outgoing) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		o.done(false)
		return
	}
	c.queue = append(c.queue, o)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next takes a message out of the queue.
func (c *conn) next() (o outgoing, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return o, false
	}
	o, c.queue[0] = c.queue[0], outgoing{}
	c.queue = c.queue[1:]
	return o, true
}

// drop empties the queue for good, and reports whether it had data.
func (c *conn) drop() (data bool) {
	c.mu.Lock()
	queue := c.queue
	c.queue, c.closed = nil, true
	c.mu.Unlock()
	for _, o := range queue {
		data = data || o.kind == kindData
		o.done(false)
	}
	return data
}

// write is the writer.
func (c *conn) write() {
	defer close(c.wrote)
	defer c.drop()
	every := c.e.opts.silence / pingsPerSilence
	idle := time.NewTimer(every)
	defer idle.Stop()
	for c.e.life.Err() == nil {
		o, ok := c.next()
		if !ok {
			select {
			case <-c.wake:
				continue
			case <-c.e.life.Done():
				continue
			case <-c.over:
				if c.e.life.Err() == nil {
					return
				}
				continue
			case <-idle.C:
				o = outgoing{header: header{kind: kindPing}}
			}
		}
		err := c.transmit(o)
		o.done(err == nil)
		switch {
		case err != nil:
			return // the reader finds out why; in the middle of a message no abort can follow
		case o.kind == kindBye:
			closeWrite(c.Conn)
			return
		}
		idle.Reset(every)
	}
	c.farewell()
}

// farewell sends the cause of the group's end, or bye after Close.
func (c *conn) farewell() {
	c.end()
	o := outgoing{header: header{kind: kindBye}}
	if payload := c.e.abort(); payload != nil {
		o = outgoing{header: header{kind: kindAbort}, payload: payload}
	}
	_ = c.SetWriteDeadline(time.Now().Add(farewellTime))
	_ = c.transmit(o) // the other end may be gone
	closeWrite(c.Conn)
}

// transmit writes one message, by one write.
func (c *conn) transmit(o outgoing) error {
	o.generation, o.bytes, o.crc = c.e.group.Generation, uint32(len(o.payload)), crc32.Checksum(o.payload, castagnoli)
	whole := messages.Get().(*[headerBytes + maxPayload]byte)
	defer messages.Put(whole)
	o.encode((*[headerBytes]byte)(whole[:]))
	n := headerBytes + copy(whole[headerBytes:], o.payload)
	_, err := c.Conn.Write(whole[:n])
	return err
}

var messages = sync.Pool{New: func() any { return new([headerBytes + maxPayload]byte) }}
