package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows the progress of a reduction: a bar on a terminal, otherwise nothing.
type progress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil if nothing is shown
	out io.Writer
}

func newProgress(w io.Writer, total int) *progress {
	if _, ok := terminal(w); !ok {
		return &progress{out: w}
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("reducing"),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(50*time.Millisecond),
	)
	return &progress{bar: bar, out: w}
}

// terminal returns the descriptor of w's terminal, if w writes to one.
func terminal(w io.Writer) (fd int, ok bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	return int(file.Fd()), true
}

// set shows that done of total elements are summed.
func (p *progress) set(done, _ int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Set(done) // a failed write to a terminal is not fatal
	}
}

// say replaces the bar by a line, and draws the bar below it.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.out, format+"\n", args...)
	if p.bar != nil {
		_ = p.bar.RenderBlank()
	}
}

// close ends the bar's line.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Exit()
		io.WriteString(p.out, "\n")
		p.bar = nil
	}
}
