package record

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tributary/driver/transport"
)

// Recorder writes one log of what passes over a link, or over several that
// follow one another.
type Recorder struct {
	mu    sync.Mutex
	log   io.Writer
	buf   []byte // an entry on its way, kept for its memory
	begun time.Time
	err   error // the first that log answered; nothing is written after it
}

// New begins a log. log is not closed.
func New(log io.Writer) *Recorder {
	r := &Recorder{log: log, begun: time.Now()}
	_, r.err = log.Write(appendHead(nil, r.begun))
	return r
}

// Record returns conn with everything that passes written to the log as it
// passes. A log that cannot be written does not disturb the link: Close says so.
func (r *Recorder) Record(conn transport.Conn) transport.Conn { return &recorded{conn, r} }

// Record is Recorder.Record with a log of its own.
func Record(conn transport.Conn, log io.Writer) transport.Conn { return New(log).Record(conn) }

// recorded is a Conn that is recorded.
type recorded struct {
	transport.Conn
	log *Recorder
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.log.note(p[:n], true)
	return n, err
}

// Write notes the bytes before they are on the link: else the card's answer
// could be noted before the question.
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

// Close closes the link. The error names a log that could not be written.
func (r *recorded) Close() error {
	err := r.Conn.Close()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.log.err != nil {
		return errors.Join(err, fmt.Errorf("the link log is not complete: %w", r.log.err))
	}
	return err
}
