package record

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tributary/driver/transport"
)

// recorder is a Conn that writes a log of what passes.
type recorder struct {
	transport.Conn
	mu    sync.Mutex
	log   io.Writer
	buf   []byte // an entry on its way, kept for its memory
	begun time.Time
	err   error // the first that log answered; nothing is written after it
}

// Record returns conn with a log of everything that passes, written to log as
// it passes. A log that cannot be written does not disturb the link: Close says
// so. log is not closed.
func Record(conn transport.Conn, log io.Writer) transport.Conn {
	r := &recorder{Conn: conn, log: log, begun: time.Now()}
	_, r.err = log.Write(appendHead(nil, r.begun))
	return r
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.note(p[:n], true)
	return n, err
}

// Write notes the bytes before they are on the link: else the card's answer
// could be noted before the question.
func (r *recorder) Write(p []byte) (int, error) {
	r.note(p, false)
	return r.Conn.Write(p)
}

func (r *recorder) note(p []byte, fromCard bool) {
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
func (r *recorder) Close() error {
	err := r.Conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return errors.Join(err, fmt.Errorf("the link log is not complete: %w", r.err))
	}
	return err
}
