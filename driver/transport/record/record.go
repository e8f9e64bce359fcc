package record

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tributary/driver/transport"
)

// Recorder writes one log of the bytes on a link, or on several links one after another.
type Recorder struct {
	mu    sync.Mutex
	log   io.Writer
	buf   []byte // the current entry; kept to reuse its memory
	begun time.Time
	err   error // the first error of log; no writes after it
}

// New begins a log. The caller closes log.
func New(log io.Writer) *Recorder {
	r := &Recorder{log: log, begun: time.Now()}
	_, r.err = log.Write(appendHead(nil, r.begun))
	return r
}

// Record returns conn and writes all of its bytes to the log. A failure to write the log does
// not disturb the link; Close returns it.
func (r *Recorder) Record(conn transport.Conn) transport.Conn { return &recorded{conn, r} }

// Record is Recorder.Record with a log of its own.
func Record(conn transport.Conn, log io.Writer) transport.Conn { return New(log).Record(conn) }

// recorded is a recorded Conn.
type recorded struct {
	transport.Conn
	log *Recorder
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.log.note(p[:n], true)
	return n, err
}

// Write logs the bytes before it sends them. Otherwise the card's reply could be logged first.
func (r *recorded) Write(p []byte) (int, error) {
	r.log.note(p, false)
	return r.Conn.Write(p)
}

func (r *Recorder) note(p []byte, fromCard bool) {
	if len(p) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.buf = appendEntry(r.buf[:0], Entry{At: time.Since(r.begun), FromCard: fromCard, Bytes: p})
	_, r.err = r.log.Write(r.buf)
}

// Close closes the link. It also returns the error of a log that could not be written.
func (r *recorded) Close() error {
	err := r.Conn.Close()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.log.err != nil {
		return errors.Join(err, fmt.Errorf("the link log is not complete: %w", r.log.err))
	}
	return err
}
