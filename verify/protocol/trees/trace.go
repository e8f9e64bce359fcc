package main

import (
	"fmt"
	"strings"
)

// begin begins a step, or a delivery within one.
func (w *world) begin() {
	if !w.retell || len(w.tell) == 0 {
		return
	}
	line := w.tell[0]
	if len(w.tell) > 1 {
		line += ": " + strings.Join(w.tell[1:], "; ")
	}
	w.lines, w.tell = append(w.lines, line), nil
}

// describe adds to what the current step did. While exploring, no text is formatted.
func (w *world) describe(format string, args ...any) {
	if w.retell {
		w.tell = append(w.tell, fmt.Sprintf(format, args...))
	}
}

func cardName(c int) string {
	if c == root {
		return "the root"
	}
	return fmt.Sprintf("leaf %d", c)
}

func nodeName(n node) string {
	if n.isLeaf() {
		return cardName(n.card())
	}
	return fmt.Sprintf("worker %d", n)
}

// card, worker and node return names in texts.
func (w *world) card(c int) string {
	if !w.retell {
		return ""
	}
	return cardName(c)
}

func (w *world) node(n node) string {
	if !w.retell {
		return ""
	}
	if !n.isLeaf() {
		return w.worker(int(n))
	}
	return nodeName(n)
}

func (w *world) worker(i int) string {
	if !w.retell {
		return ""
	}
	if !w.config.honest(i) {
		return fmt.Sprintf("rogue %d", i)
	}
	return nodeName(node(i))
}

// v formats a VID: the absolute one, and the field after it has wrapped.
func (w *world) v(vid int) string {
	switch {
	case !w.retell:
		return ""
	case vid >= w.config.mod:
		return fmt.Sprintf("v=%d (VID %d)", vid, w.field(vid))
	}
	return fmt.Sprintf("v=%d", vid)
}

// during formats the epoch, in configurations with more than one.
func (w *world) during(epoch uint8) string {
	if !w.retell || w.config.epochs == 1 {
		return ""
	}
	return fmt.Sprintf(" of epoch %d", epoch)
}

// memberSet formats a set of a card's members.
func (w *world) memberSet(c int, members uint8) string {
	if !w.retell {
		return ""
	}
	var names []string
	for m, n := range w.members[c] {
		if members&bit(m) != 0 {
			names = append(names, w.node(n))
		}
	}
	return strings.Join(names, " and ")
}
