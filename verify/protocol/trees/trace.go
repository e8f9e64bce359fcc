package main

import (
	"fmt"
	"strings"
)

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
	if !w.Telling() {
		return ""
	}
	return cardName(c)
}

func (w *world) node(n node) string {
	if !w.Telling() {
		return ""
	}
	if !n.isLeaf() {
		return w.worker(int(n))
	}
	return nodeName(n)
}

func (w *world) worker(i int) string {
	if !w.Telling() {
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
	case !w.Telling():
		return ""
	case vid >= w.config.mod:
		return fmt.Sprintf("v=%d (VID %d)", vid, w.field(vid))
	}
	return fmt.Sprintf("v=%d", vid)
}

// during formats the epoch, in configurations with more than one.
func (w *world) during(epoch uint8) string {
	if !w.Telling() || w.config.epochs == 1 {
		return ""
	}
	return fmt.Sprintf(" of epoch %d", epoch)
}

// memberSet formats a set of a card's members.
func (w *world) memberSet(c int, members uint8) string {
	if !w.Telling() {
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
