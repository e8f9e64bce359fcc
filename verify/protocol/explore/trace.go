package main

import (
	"fmt"
	"strings"
)

// trace describes a run step by step.
type trace struct {
	steps []traceStep
	calm  bool // faults have ceased, so a second arrival is a retransmission, not a duplicate
}

// traceStep is one step: its text, and the packets that it sent and delivered.
type traceStep struct {
	text          []string
	sent, arrived []int
}

func (t *trace) last() *traceStep { return &t.steps[len(t.steps)-1] }

// Tell begins a trace.
func (w *world) Tell() { w.trace = &trace{} }

// Lines returns the trace.
func (w *world) Lines() []string { return w.trace.lines() }

// Begin opens the next step.
func (w *world) Begin() {
	if w.trace != nil {
		w.trace.steps = append(w.trace.steps, traceStep{})
	}
}

// dropStep removes the last step, in which nothing happened.
func (w *world) dropStep() {
	if w.trace != nil {
		w.trace.steps = w.trace.steps[:len(w.trace.steps)-1]
	}
}

// Describe adds a line to the current step.
func (w *world) Describe(format string, args ...any) {
	if w.trace != nil {
		w.trace.last().text = append(w.trace.last().text, fmt.Sprintf(format, args...))
	}
}

// sent records that the current step sent a packet.
func (w *world) sent(n int) {
	if w.trace != nil && !w.trace.calm {
		w.trace.last().sent = append(w.trace.last().sent, n)
	}
}

// arrived records that the current step delivered a packet.
func (w *world) arrived(n int) {
	if w.trace != nil && !w.trace.calm {
		w.trace.last().arrived = append(w.trace.last().arrived, n)
	}
}

// lines returns the steps, one line each. A packet that never arrives was lost; one that arrives again
// was repeated.
func (t *trace) lines() []string {
	arrivals := map[int]int{}
	for _, s := range t.steps {
		for _, n := range s.arrived {
			arrivals[n]++
		}
	}
	before := map[int]bool{}
	var lines []string
	for _, s := range t.steps {
		head, rest := s.text[0], strings.Join(s.text[1:], "; ")
		for _, n := range s.arrived {
			if before[n] {
				head = "the network repeats a packet: " + head
			}
			before[n] = true
		}
		for _, n := range s.sent {
			if arrivals[n] == 0 {
				head += ", and the network loses it"
			}
		}
		if rest != "" {
			head += ": " + rest
		}
		lines = append(lines, head)
	}
	return lines
}

// name returns a member's name in texts.
func (w *world) name(member int) string {
	if w.trace == nil {
		return ""
	}
	kind := "worker"
	if !w.config.honest(member) {
		kind = "rogue"
	}
	if len(w.config.Jobs) > 1 {
		return fmt.Sprintf("%s %d of job %d", kind, member, w.config.jobOf(member))
	}
	return fmt.Sprintf("%s %d", kind, member)
}

// v formats a VID: the absolute one, and the field after it has wrapped.
func (w *world) v(vid int) string {
	switch {
	case w.trace == nil:
		return ""
	case vid >= w.config.Modulus:
		return fmt.Sprintf("v=%d (VID %d)", vid, w.field(vid))
	}
	return fmt.Sprintf("v=%d", vid)
}

// during formats the epoch, in configurations with more than one.
func (w *world) during(epoch int) string {
	if w.trace == nil || w.config.Epochs == 1 {
		return ""
	}
	return fmt.Sprintf(" of epoch %d", epoch)
}

// set formats a set of members.
func (w *world) set(members uint8) string {
	if w.trace == nil {
		return ""
	}
	var names []string
	for m := range w.config.members() {
		if members&bit(m) != 0 {
			names = append(names, fmt.Sprint(m))
		}
	}
	return "{" + strings.Join(names, ",") + "}"
}
