package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// world is a state and what may happen in it.
type world struct {
	state
	config *config
	rules  ruleSet
	explorer.Story

	calm bool                 // faults have stopped: nothing is repeated, and nobody fails
	good *explorer.Set[state] // states that complete
}

func (w *world) weak(r ruleSet) bool { return w.rules&r != 0 }

// Current returns the world's state.
func (w *world) Current() *state { return &w.state }

// Start is the first state: the card is new, and nobody is there.
func (w *world) Start() { w.state = state{left: w.config.left} }

// token returns the token of an owner's life.
func (w *world) token(o int) int8 {
	if w.weak(sameToken) {
		return 1
	}
	return 1 + int8(o)
}

// addressOf returns the address of an owner's life.
func (w *world) addressOf(o int) address {
	if w.weak(samePort) {
		return 1
	}
	return 1 + address(o)
}

// seatOf returns the address of a member's life: of its Join.
func (w *world) seatOf(m int) address {
	if w.weak(memberPort) {
		return 1 + address(w.config.life(m).rank)
	}
	return 1 + address(m)
}

// wants returns what an owner stages for a set-up.
func (w *world) wants(o int, s int8) values {
	set := &w.owners[o].setups[s]
	v := values{setting: w.config.setting(int8(o), set.job)}
	for r, m := range set.seats {
		if m != 0 {
			v.members[r] = w.seatOf(int(m) - 1)
		}
	}
	return v
}

// name returns the name of an owner's life, or of the stranger, in texts.
func name(o int) string {
	return [maxOwners + 1]string{"owner A", "owner B", "owner C", "owner D", "the stranger"}[o]
}

// describe formats staged values.
func (w *world) describe(v values) string {
	text := fmt.Sprintf("members at %s and %s", w.at(v.members[0]), w.at(v.members[1]))
	if w.config.settings {
		text += fmt.Sprintf(", chunks of size %d", v.setting)
	}
	return text
}

// at formats the address of a member.
func (w *world) at(a address) string {
	switch a {
	case 0:
		return "no address"
	case foreign:
		return "the stranger's address"
	}
	return fmt.Sprintf("address %d", a-1)
}
