package explorer

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Watch shows the progress of an exploration on one line of a terminal. A nil Watch
// shows nothing.
type Watch struct {
	out  io.Writer
	last time.Time // when the line was written
}

// watchEvery is the minimum time between two updates. watchStates is how many states pass between two
// looks at the clock.
const (
	watchEvery  = 500 * time.Millisecond
	watchStates = 1024
)

// NewWatch returns a Watch on a terminal, or nil if out is not a terminal.
func NewWatch(out io.Writer) *Watch {
	if file, ok := out.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &Watch{out: out, last: time.Now()}
}

// show reports that the phase called what has visited done of the states known so far.
func (w *Watch) show(config, what string, done, states int) {
	if w == nil || done%watchStates != 0 || time.Since(w.last) < watchEvery {
		return
	}
	w.last = time.Now()
	fmt.Fprintf(w.out, "\r\x1b[K%-20s %s: %d of %d states so far", config, what, done, states)
}

// clear erases the line.
func (w *Watch) clear() {
	if w != nil {
		fmt.Fprint(w.out, "\r\x1b[K")
	}
}
