package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far a reduction is: a bar on a terminal, nothing elsewhere.
type progress struct {
	bar *progressbar.ProgressBar // nil where nothing is shown
	out io.Writer
}

func newProgress(w io.Writer, total int) *progress {
	if _, ok := terminal(w); !ok {
		return &progress{}
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("reducing"),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(50*time.Millisecond),
	)
	return &progress{bar, w}
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
	if p.bar != nil {
		_ = p.bar.Set(done) // a terminal that cannot be written to is no reason to stop
	}
}

// close leaves the bar as it stands and goes on below it.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Exit()
		io.WriteString(p.out, "\n")
	}
}
