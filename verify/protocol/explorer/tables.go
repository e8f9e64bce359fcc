// Package explorer has what the explorers of verify/protocol share: their tables, a breadth-first search,
// counterexamples, and the command. An explorer adds the model of its specification. Package
// explorertest has the tests of tables, counterexamples, command and page.
//
// The package knows no protocol, and shares no code with the driver, the gateware or their models.
package explorer

import "io"

// Rules is a set of rules, one bit each, that are left out or changed. The empty set is the protocol.
type Rules uint64

// Config is a configuration: one setting to explore completely. Its type is the explorer's own.
type Config interface{ Heading() Heading }

// Heading is what all configurations have.
type Heading struct {
	Name, About string
	Note        string // an addition to About in counterexamples; may be empty
	Large       bool   // too slow for the tests; only the command explores it
	States      int    // reachable states
}

// Property is a statement that must hold in every state.
type Property struct{ Name, Holds string }

// Weakening is a rule left out or changed, and the property that this breaks.
type Weakening[C Config] struct {
	Name, Means string
	Config      string // the name of the configuration to explore
	Breaks      string // the name of the only property to test, which must break
	Harmless    string // why nothing breaks; empty if a property does
	Rules       Rules
	Reshape     func(*C) // changes the configuration; nil: no change
}

// Suite is an explorer: its tables, and its search.
type Suite[C Config] struct {
	Name  string // of the command
	Usage string // of the command, up to the flags

	Column int // width of the names in lists; 0: 24

	Configs    []C
	Properties []Property
	Weakenings []Weakening[C]
	Rules      Rules // all of them

	// Search prepares the exploration of a configuration without some rules. It tests one property, or
	// all if only is empty.
	Search func(c C, rules Rules, only string) Runner

	// An explorer's own part of the command. Each may be nil.

	// Flags adds flags.
	Flags func(Flags)
	// Narrow returns a condition for configurations that the flags set, or nil.
	Narrow func() func(C) bool
	// Instead does what the flags want instead of an exploration, and reports whether they do.
	Instead func(out io.Writer, rules Rules) (done bool, err error)
	// Line formats the line of an exploration that found no violation.
	Line func(name string, found Outcome, seconds float64) string
}

// Runner explores.
type Runner interface{ Run(*Watch) Outcome }

// Outcome is what an exploration found.
type Outcome struct {
	States int
	Steps  int  // that changed the state
	Depth  int  // the most steps from the start to a state
	Cut    bool // the limit of states ended the exploration early

	Broken string   // the name of the broken property; "": all hold
	How    string   // it broke
	Path   []string // the counterexample, one step a line
}

// find returns the first element for which f holds.
func find[T any](all []T, f func(T) bool) (T, bool) {
	for _, e := range all {
		if f(e) {
			return e, true
		}
	}
	var none T
	return none, false
}

// Configuration returns the configuration of a name.
func (s *Suite[C]) Configuration(name string) (C, bool) {
	return find(s.Configs, func(c C) bool { return c.Heading().Name == name })
}

// Weakening returns the weakening of a name.
func (s *Suite[C]) Weakening(name string) (Weakening[C], bool) {
	return find(s.Weakenings, func(w Weakening[C]) bool { return w.Name == name })
}

// Explore explores a configuration under a weakening, and returns its counterexample as text. The zero
// weakening is the protocol. The text is empty if no property breaks.
func (s *Suite[C]) Explore(c C, weak Weakening[C], watch *Watch) (Outcome, string) {
	if weak.Reshape != nil {
		weak.Reshape(&c)
	}
	found := s.Search(c, weak.Rules, weak.Breaks).Run(watch)
	if found.Broken == "" {
		return found, ""
	}
	return found, s.counterexample(c, weak, found)
}
