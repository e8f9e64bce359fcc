package main

// stepKind is the kind of a step. The comments name the fields that it uses.
type stepKind uint8

const (
	stepStart    stepKind = iota // member
	stepGiveBack                 // member
	stepStop                     // member
	stepSend                     // member, tree
	stepTake                     // member, tree, vid
	stepDie                      // tree
	stepBegin
)

// step is one transition.
type step struct {
	kind              stepKind
	member, tree, vid uint8
}

// Steps calls f with every step that may be possible.
func (w *world) Steps(f func(step)) {
	for m := range uint8(w.members) {
		for k := stepStart; k <= stepStop; k++ {
			f(step{kind: k, member: m})
		}
		for t := range uint8(w.trees) {
			f(step{kind: stepSend, member: m, tree: t})
			for vid := range uint8(w.chunks) {
				f(step{kind: stepTake, member: m, tree: t, vid: vid})
			}
		}
	}
	for t := range uint8(w.trees) {
		f(step{kind: stepDie, tree: t})
	}
	f(step{kind: stepBegin})
}

// Step makes a step and reports whether it was possible.
func (w *world) Step(s step) bool {
	m, t := int(s.member), int(s.tree)
	switch s.kind {
	case stepStart:
		w.Describe("member %d starts its next reduction", m)
		return w.start(m)
	case stepGiveBack:
		w.Describe("member %d gives a reduction back", m)
		return w.giveBack(m)
	case stepStop:
		w.Describe("member %d stops", m)
		return w.stop(m)
	case stepSend:
		w.Describe("member %d sends to tree %d", m, t)
		return w.send(m, t)
	case stepTake:
		w.Describe("member %d takes sum %d of tree %d", m, s.vid, t)
		return w.take(m, t, int(s.vid))
	case stepDie:
		w.Describe("tree %d dies", t)
		return w.die(t)
	}
	w.Describe("a new epoch begins")
	return w.begin()
}

// Completes judges whether a step is possible, unless all is over.
func (w *world) Completes() {
	from, moves := w.state, w.over()
	w.Steps(func(s step) {
		if !moves {
			moves = w.Step(s)
			w.state = from
		}
	})
	w.Drop()
	if !moves {
		w.Violate(progress, "no step is possible, and reductions are not over")
	}
}
