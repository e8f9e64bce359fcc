package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// A display shows readings of a card. status contains the time of the reading and the card's host.
// fresh is false if the reading is already shown and only the status is new.
type display interface {
	show(r *reading, status string, fresh bool) error
	close() error
}

// jsonLines prints readings for scripts, and the card's status to errs.
type jsonLines struct {
	out  *json.Encoder
	errs io.Writer
}

func (d jsonLines) show(r *reading, status string, fresh bool) error {
	if !fresh {
		return tell(d.errs, status)
	}
	return d.out.Encode(r)
}

func (jsonLines) close() error { return nil }

// pages prints readings one below the other, and the card's status to errs.
type pages struct{ out, errs io.Writer }

func (d pages) show(r *reading, status string, fresh bool) error {
	if !fresh {
		return tell(d.errs, status)
	}
	_, err := fmt.Fprintln(d.out, strings.Join(append(r.lines(status), ""), "\n"))
	return err
}

func (pages) close() error { return nil }

func tell(errs io.Writer, status string) error {
	_, err := fmt.Fprintf(errs, "tributary top: read %s\n", status)
	return err
}

// screen shows readings in a full terminal window, and leaves the last one behind when it restores
// the window.
type screen struct {
	out  io.Writer
	fd   int
	last []string // lines
}

// The terminal's control sequences (ECMA-48, and xterm's second screen).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	endLine     = "\x1b[K"
	endScreen   = "\x1b[J"
)

func (d *screen) show(r *reading, status string, _ bool) error {
	text := ""
	if d.last == nil {
		signal.Ignore(syscall.SIGTSTP) // the shell would appear in this window
		text = enterScreen
	}
	d.last = r.lines(status)
	lines := append(slices.Clone(d.last), "Ctrl-C ends")
	if width, height, err := term.GetSize(d.fd); err == nil {
		lines = fit(lines, width, height)
	}
	text += toTop + strings.Join(lines, endLine+"\n") + endLine + endScreen
	_, err := io.WriteString(d.out, text)
	return err
}

// close restores the window.
func (d *screen) close() error {
	if d.last == nil {
		return nil
	}
	signal.Reset(syscall.SIGTSTP)
	_, err := io.WriteString(d.out, leaveScreen+strings.Join(append(d.last, ""), "\n"))
	return err
}

// fit cuts lines to a window, and reports how many do not fit.
func fit(lines []string, width, height int) []string {
	if height > 0 && len(lines) > height {
		more := fmt.Sprintf("... %d more lines in a taller window", len(lines)-height+1)
		lines = append(lines[:height-1:height-1], more)
	}
	cut := make([]string, len(lines))
	for i, l := range lines {
		if r := []rune(l); width > 0 && len(r) > width {
			l = string(r[:width])
		}
		cut[i] = l
	}
	return cut
}
