package main

import "testing"

// states are the numbers of states of the configurations.
var states = map[string]int{
	"small": 181, "card": 1099, "daemon": 1926, "both": 2904, "window": 7520, "three": 11258,
	"partial": 6104, "leave-card": 34100, "leave-daemon": 24743, "evict": 3065, "evict-window": 34226,
	"evict-three": 235195, "early": 87283, "return": 1820, "return-card": 7013, "return-daemon": 11180,
	"return-twice": 7225, "return-evicted": 4296, "return-early": 27365, "return-early-card": 38012,
	"return-three": 104708, "return-window": 95220, "return-all-early": 294609,
}

// TestRules explores every configuration that is not large, and compares its number of states.
func TestRules(t *testing.T) {
	for _, c := range configs {
		if c.large {
			continue
		}
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
