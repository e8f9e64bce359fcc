package main

import "testing"

// states are the numbers of states of the configurations.
var states = map[string]int{
	"small": 429, "card": 11016, "daemon": 26108, "both": 31520, "window": 865530, "three": 205120,
	"partial": 1172224, "leave-card": 382557, "leave-daemon": 1181903,
}

// TestRules explores every configuration, and compares its number of states.
func TestRules(t *testing.T) {
	for _, c := range configs {
		found := explore(c, 0, "")
		if found.broken != "" {
			t.Errorf("%s:\n%s", c.name, found.story())
		}
		if found.states != states[c.name] {
			t.Errorf("%s has %d states, expected %d", c.name, found.states, states[c.name])
		}
	}
}

// TestWeakenings checks that each rule left out breaks its property, or none where that is harmless.
func TestWeakenings(t *testing.T) {
	broken := map[string]bool{}
	for _, w := range weakenings {
		found := explore(configOf(w.config), w.rules, w.breaks)
		if found.broken != w.breaks {
			t.Errorf("%s in %s breaks %q, expected %q\n%s", w.name, w.config, found.broken, w.breaks, found.story())
		}
		if (w.harmless == "") != (w.breaks != "") {
			t.Errorf("%s: a weakening breaks a property or says why not", w.name)
		}
		broken[found.broken] = true
	}
	for _, p := range properties {
		if !broken[p.name] {
			t.Errorf("no weakening breaks %q", p.name)
		}
	}
}
