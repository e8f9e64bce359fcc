package record

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tributary/driver/transport"
)

// Recorder writes one log of a link, or of several links one after another.
type Recorder struct {
	mu    sync.Mutex
	log   io.Writer
	buf   []byte // the current entry; kept to reuse its memory
	begun time.Time
	err   error // the first error of log; no writes after it
}

// NewRecorder begins a log of links of bytes, or of packets. The caller closes log.
func NewRecorder(log io.Writer, packets bool) *Recorder {
	r := &Recorder{log: log, begun: time.Now()}
	_, r.err = log.Write(appendHead(nil, r.begun, packets))
	return r
}

// Record returns conn and writes all of its bytes to the log. A failure to write the log does
// not disturb the link; Close returns it.
func (r *Recorder) Record(conn transport.Conn) transport.Conn { return &recorded{conn, r} }

// Record is Recorder.Record with a log of its own.
func Record(conn transport.Conn, log io.Writer) transport.Conn {
	return NewRecorder(log, false).Record(conn)
}

// recorded is a recorded Conn.
type recorded struct {
	transport.Conn
	log *Recorder
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.log.note(Entry{FromCard: true, Bytes: p[:n]})
	return n, err
}

// Write logs the bytes before it sends them. Otherwise the card's reply could be logged first.
func (r *recorded) Write(p []byte) (int, error) {
	r.log.note(Entry{Bytes: p})
	return r.Conn.Write(p)
}

func (r *Recorder) note(e Entry) {
	if len(e.Bytes) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	e.At = time.Since(r.begun)
	r.buf = appendEntry(r.buf[:0], e)
	_, r.err = r.log.Write(r.buf)
}

// Close closes the link. It also returns the error of a log that could not be written.
func (r *recorded) Close() error { return r.log.closed(r.Conn.Close()) }

// closed returns the error of a closed link, or of a log that could not be written.
func (r *Recorder) closed(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return errors.Join(err, fmt.Errorf("the link log is not complete: %w", r.err))
	}
	return err
}

// RecordPackets is Recorder.Record for a link of packets.
func (r *Recorder) RecordPackets(conn transport.PacketConn) transport.PacketConn {
	return &recordedPackets{conn, r}
}

// recordedPackets is a recorded PacketConn.
type recordedPackets struct {
	transport.PacketConn
	log *Recorder
}

func (r *recordedPackets) ReadPackets(batch []transport.Packet) (int, error) {
	n, err := r.PacketConn.ReadPackets(batch)
	for _, p := range batch[:n] {
		r.log.note(Entry{FromCard: true, ECN: p.ECN, Bytes: p.Bytes})
	}
	return n, err
}

// WritePackets logs packets before it sends them, as Write does.
func (r *recordedPackets) WritePackets(buf []byte, ends []int) error {
	start := 0
	for _, end := range ends {
		r.log.note(Entry{Bytes: buf[start:end]})
		start = end
	}
	return r.PacketConn.WritePackets(buf, ends)
}

func (r *recordedPackets) Close() error { return r.log.closed(r.PacketConn.Close()) }
