package main

import (
	"fmt"
	"strings"
)

// tale is a run told step by step.
type tale struct {
	steps []told
	calm  bool // faults have ceased: what arrives again was sent again
}

// told is one step: what happened, and the packets that it sent and brought.
type told struct {
	text          []string
	sent, arrived []int
}

func (t *tale) last() *told { return &t.steps[len(t.steps)-1] }

// begin opens the next step.
func (w *world) begin() {
	if w.tale != nil {
		w.tale.steps = append(w.tale.steps, told{})
	}
}

// unbegin takes back a step in which nothing happened.
func (w *world) unbegin() {
	if w.tale != nil {
		w.tale.steps = w.tale.steps[:len(w.tale.steps)-1]
	}
}

// say adds to the tale of the present step.
func (w *world) say(format string, args ...any) {
	if w.tale != nil {
		w.tale.last().text = append(w.tale.last().text, fmt.Sprintf(format, args...))
	}
}

// sent notes that the present step put a packet under way.
func (w *world) sent(n int) {
	if w.tale != nil && !w.tale.calm {
		w.tale.last().sent = append(w.tale.last().sent, n)
	}
}

// arrived notes that the present step delivered a packet.
func (w *world) arrived(n int) {
	if w.tale != nil && !w.tale.calm {
		w.tale.last().arrived = append(w.tale.last().arrived, n)
	}
}

// lines are the steps, numbered. A packet that never arrives was lost; one that
// arrives again was repeated.
func (t *tale) lines() []string {
	arrivals := map[int]int{}
	for _, s := range t.steps {
		for _, n := range s.arrived {
			arrivals[n]++
		}
	}
	before := map[int]bool{}
	var lines []string
	for i, s := range t.steps {
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
		lines = append(lines, fmt.Sprintf("%3d  %s", i+1, head))
	}
	return lines
}

// name is what a member is called.
func (w *world) name(member int) string {
	if w.tale == nil {
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

// v prints a VID: the absolute one, and the field where it has wrapped.
func (w *world) v(vid int) string {
	switch {
	case w.tale == nil:
		return ""
	case vid >= w.config.Modulus:
		return fmt.Sprintf("v=%d (VID %d)", vid, w.field(vid))
	}
	return fmt.Sprintf("v=%d", vid)
}

// during prints the epoch, where there can be several.
func (w *world) during(epoch int) string {
	if w.tale == nil || w.config.Epochs == 1 {
		return ""
	}
	return fmt.Sprintf(" of epoch %d", epoch)
}

// set prints a set of members.
func (w *world) set(members uint8) string {
	if w.tale == nil {
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
