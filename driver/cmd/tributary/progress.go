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

// progress shows how far a reduction is: a bar on a terminal, nothing elsewhere.
type progress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil where nothing is shown
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

// terminal returns the descriptor of the terminal that w writes to, if it does.
func terminal(w io.Writer) (fd int, ok bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	return int(file.Fd()), true
}

// set shows that done elements of the total are summed.
func (p *progress) set(done, _ int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Set(done) // a terminal that cannot be written to is no reason to stop
	}
}

// say writes a line, in the place of the bar, which then stands below it.
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

// close leaves the bar as it stands and goes on below it.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Exit()
		io.WriteString(p.out, "\n")
		p.bar = nil
	}
}
