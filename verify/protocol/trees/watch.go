package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// watch shows the progress of an exploration on one line of a terminal. A nil watch shows
// nothing.
type watch struct {
	out  io.Writer
	last time.Time // when the line was written
}

// watchEvery is the minimum time between two updates. watchStates is how many states pass between
// two looks at the clock.
const (
	watchEvery  = 500 * time.Millisecond
	watchStates = 1024
)

// newWatch returns a watch on a terminal, or nil if out is not a terminal.
func newWatch(out io.Writer) *watch {
	if file, ok := out.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &watch{out: out, last: time.Now()}
}

// show reports that the phase called what has visited done of the states known so far.
func (w *watch) show(config, what string, done, states int) {
	if w == nil || done%watchStates != 0 || time.Since(w.last) < watchEvery {
		return
	}
	w.last = time.Now()
	fmt.Fprintf(w.out, "\r\x1b[K%-20s %s: %d of %d states so far", config, what, done, states)
}

// clear erases the line.
func (w *watch) clear() {
	if w != nil {
		fmt.Fprint(w.out, "\r\x1b[K")
	}
}
