//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// screen prints lines, and on a terminal a progress line below them.
type screen struct{ out *os.File }

func newScreen(out *os.File) screen { return screen{out} }

func (s screen) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// bar returns a progress line, which shows how many of the total pings were answered.
func (s screen) bar(total int) *progressbar.ProgressBar {
	var out io.Writer = s.out
	if !term.IsTerminal(int(s.out.Fd())) {
		out = io.Discard
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("pings"),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}
