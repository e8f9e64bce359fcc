package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// watch shows how far an exploration is, in one line of a terminal that it writes anew.
// nil shows nothing.
type watch struct {
	out  io.Writer
	last time.Time // when the line was written
}

// watchEvery is the time from one line to the next, watchStates how many states are
// looked at before the clock is.
const (
	watchEvery  = 500 * time.Millisecond
	watchStates = 1024
)

// newWatch returns what writes to a terminal, or nil when out is none.
func newWatch(out io.Writer) *watch {
	if file, ok := out.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &watch{out: out, last: time.Now()}
}

// show says that the first done of so many states have been looked at; what says for
// what. More may be found.
func (w *watch) show(config, what string, done, states int) {
	if w == nil || done%watchStates != 0 || time.Since(w.last) < watchEvery {
		return
	}
	w.last = time.Now()
	fmt.Fprintf(w.out, "\r\x1b[K%-18s %s: %d of %d states so far", config, what, done, states)
}

// clear takes the line away.
func (w *watch) clear() {
	if w != nil {
		fmt.Fprint(w.out, "\r\x1b[K")
	}
}
