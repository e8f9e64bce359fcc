package driver

import "testing"

// TestOvertaken checks that a packet counts as lost after three replies to later packets, in
// any order, and not before. A repeated packet starts anew.
func TestOvertaken(t *testing.T) {
	var k call
	var sent [8]chunkState
	for i := range sent {
		k.ordered(&sent[i])
	}
	expect := func(when string, want ...int) {
		t.Helper()
		var got []int
		for i := range sent {
			if k.overtaken(&sent[i]) {
				got = append(got, i)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%s: overtaken are %v, want %v", when, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: overtaken are %v, want %v", when, got, want)
			}
		}
	}
	answer := func(i int) { k.noteOrder(sent[i].order) }
	answer(5)
	answer(3)
	expect("two answers")
	answer(4)
	expect("three", 0, 1, 2)
	answer(0)
	expect("one that came late", 0, 1, 2)
	k.ordered(&sent[1])
	expect("1 sent again", 0, 2)
	answer(6)
	answer(7)
	expect("five", 0, 2, 3, 4)
	k.ordered(&sent[2])
	answer(2)
	expect("the one after 1 was sent again", 0, 3, 4, 5)
}
