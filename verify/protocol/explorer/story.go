package explorer

import (
	"fmt"
	"strings"
)

// Story judges a world, and tells what happens in it. Worlds embed it. While a search explores, no text
// of steps is formatted.
type Story struct {
	Only string // the name of the property under test; "": all

	broken, how string // the first property that did not hold

	telling bool
	step    []string // what the current step did
	lines   []string // what the steps before it did
}

// Violate records the first violation of the property under test.
func (s *Story) Violate(property, format string, args ...any) {
	if s.broken == "" && (s.Only == "" || s.Only == property) {
		s.broken, s.how = property, fmt.Sprintf(format, args...)
	}
}

// Blame records a violation in place of any other: it is their cause.
func (s *Story) Blame(property, format string, args ...any) {
	s.broken = ""
	s.Violate(property, format, args...)
}

// Broken returns the name of the property that is broken, or "", and how it broke.
func (s *Story) Broken() (property, how string) { return s.broken, s.how }

// Tell lets the story format text from here on.
func (s *Story) Tell() { s.telling = true }

// Telling reports whether text is wanted.
func (s *Story) Telling() bool { return s.telling }

// Begin begins a step.
func (s *Story) Begin() {
	if len(s.step) == 0 {
		return
	}
	line := s.step[0]
	if len(s.step) > 1 {
		line += ": " + strings.Join(s.step[1:], "; ")
	}
	s.lines, s.step = append(s.lines, line), nil
}

// Describe adds a part to what the current step did. The first part is the step, the others are its
// effects.
func (s *Story) Describe(format string, args ...any) {
	if s.telling {
		s.step = append(s.step, fmt.Sprintf(format, args...))
	}
}

// Say replaces what the current step did.
func (s *Story) Say(format string, args ...any) {
	if s.telling {
		s.step = []string{fmt.Sprintf(format, args...)}
	}
}

// Add continues the last part of what the current step did; there must be one.
func (s *Story) Add(format string, args ...any) {
	if s.telling {
		s.step[len(s.step)-1] += fmt.Sprintf(format, args...)
	}
}

// Drop drops what the current step did: it was not possible.
func (s *Story) Drop() { s.step = nil }

// Lines returns what the steps did, one line each.
func (s *Story) Lines() []string {
	s.Begin()
	return s.lines
}
