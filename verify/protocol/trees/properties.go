package main

import (
	"fmt"
	"strings"

	"tributary/verify/protocol/explorer"
)

// The properties, by their names in counterexamples.
const (
	summedOnce      = "summed once"
	sameBits        = "same bits"
	rightResult     = "right result"
	noEarlyReuse    = "no early reuse"
	neverTurnedAway = "never turned away"
	inputsThere     = "inputs there"
	progress        = "progress"
)

// properties lists them all, for help and documentation.
var properties = []explorer.Property{
	{Name: summedOnce, Holds: "a card's sum has the input of each worker below it once, of its VID and epoch, and nothing else"},
	{Name: sameBits, Holds: "all results of one epoch and VID have the same bits, whichever card sends them, and however often"},
	{Name: rightResult, Holds: "a result that a worker takes has the input of each worker of the tree once, of its VID and epoch, and nothing else"},
	{Name: noEarlyReuse, Holds: "no slot is reused and no job ends while a member, worker or leaf, may still need that result"},
	{Name: neverTurnedAway, Holds: "a card stores data of a member that keeps the rules, or knows it as a duplicate; a leaf takes the final sum that it waits for, and its own sum may go up at once"},
	{Name: inputsThere, Holds: "every worker has the results below the first VID of a new epoch, and still its inputs from there on"},
	{Name: progress, Holds: "once faults cease, every worker gets every result, the job ends on every card, and the cards fall silent"},
}

// wrong describes what is wrong with a sum of ranks: it must have the input of each once.
func (w *world) wrong(number uint16, ranks uint8, epoch uint8, vid int) string {
	p := w.payloads.Values[number]
	if p.torn {
		return "has beats of the own sum and beats of another"
	}
	for i := range w.config.workers() {
		t := p.inputs[i]
		want := inputTag(int(epoch), vid)
		if !w.config.honest(i) {
			t &^= tagOther
		}
		switch {
		case t == 0 && ranks&bit(i) != 0:
			return fmt.Sprintf("lacks worker %d", i)
		case t != 0 && ranks&bit(i) == 0:
			return fmt.Sprintf("has worker %d", i)
		case p.twice&bit(i) != 0:
			return fmt.Sprintf("has worker %d twice", i)
		case t&tagForeign != 0:
			return "has inputs from elsewhere"
		case t&tagZeros != 0:
			return fmt.Sprintf("has zeros of worker %d", i)
		case t != 0 && t != want:
			return fmt.Sprintf("has worker %d's input v=%d of epoch %d", i, t.vid(), t.epoch())
		}
	}
	return ""
}

// judgeSum checks a new sum of a card.
func (w *world) judgeSum(c int, s *slot) {
	if wrong := w.wrong(s.cache, w.ranks(c, w.all(c)), w.cards[c].epoch, int(s.vid)); wrong != "" {
		w.Violate(summedOnce, "the sum v=%d of %s %s", s.vid, cardName(c), wrong)
	}
}

// judgeTaken checks a result that a worker takes for a VID.
func (w *world) judgeTaken(i, vid int, p packet) {
	if wrong := w.wrong(p.payload, w.config.ranks(), w.workers[i].epoch, vid); wrong != "" {
		w.Violate(rightResult, "the result that worker %d takes for v=%d %s", i, vid, wrong)
	}
}

// judgeSame compares a result with all results of the same VID that left before, from any card.
func (w *world) judgeSame(p packet) {
	w.network.each(func(n int) {
		q := w.packets.Values[n]
		if q.kind == result && q.epoch == p.epoch && q.vid == p.vid && !q.earlier && q.payload != p.payload {
			w.Violate(sameBits, "the result v=%d of %s has %s, and an earlier one of %s had %s", p.vid,
				cardName(int(p.card)), w.contents(p.payload), cardName(int(q.card)), w.contents(q.payload))
		}
	})
}

// contents names the workers in a sum.
func (w *world) contents(number uint16) string {
	var names []string
	for i, t := range w.payloads.Values[number].inputs {
		if t != 0 {
			name := fmt.Sprint(i)
			if t&tagOther != 0 {
				name += "'"
			}
			names = append(names, name)
		}
	}
	return "{" + strings.Join(names, ",") + "}"
}

// takesPart reports whether a member takes part in a card's current epoch, and keeps the rules.
func (w *world) takesPart(c int, n node) bool {
	k := &w.cards[c]
	if n.isLeaf() {
		below := &w.cards[n.card()]
		return k.up && below.up && below.lost == none && below.epoch == k.epoch
	}
	me := &w.workers[n]
	return k.up && w.config.honest(int(n)) && me.life == active && me.epoch == k.epoch
}

// needs reports whether a member that takes part has yet to get the result of a VID.
func (w *world) needs(n node, vid int) bool {
	if !n.isLeaf() {
		return !w.workers[n].holds(vid)
	}
	s := w.slotOf(n.card(), vid)
	return int(s.vid) < vid || int(s.vid) == vid && s.phase < closing
}

// judgeTurnover checks a slot before its reuse.
func (w *world) judgeTurnover(c int, s *slot) {
	for m, n := range w.members[c] {
		if s.phase != empty && w.all(c)&bit(m) != 0 && w.takesPart(c, n) && w.needs(n, int(s.vid)) {
			w.Violate(noEarlyReuse, "the slot of v=%d of %s is reused, and %s does not have that result", s.vid, cardName(c), nodeName(n))
		}
	}
}

// judgeEnd checks a job before it ends because all members have finished: no worker below that keeps
// the rules lacks anything.
func (w *world) judgeEnd(c int) {
	for m, n := range w.members[c] {
		switch {
		case w.all(c)&bit(m) == 0 || !w.takesPart(c, n):
		case n.isLeaf():
			w.judgeEnd(n.card())
		case int(w.workers[n].low) < w.config.end():
			w.Violate(noEarlyReuse, "the job of %s ends, and %s lacks v=%d", cardName(c), nodeName(n), w.workers[n].low)
		}
	}
}

// judgeAnswer checks a card's answer to data of a member that keeps the rules.
func (w *world) judgeAnswer(p packet, a answer) {
	c := int(p.card)
	n := w.members[c][p.member]
	if w.config.rogue || p.earlier || w.cards[c].lost != none || !w.takesPart(c, n) || p.epoch != w.cards[c].epoch || w.all(c)&bit(int(p.member)) == 0 {
		return
	}
	if a == notReady || a == early || a == late && w.needs(n, int(p.vid)) {
		w.Violate(neverTurnedAway, "%s was allowed to send v=%d, %s did not store it, and it is not a duplicate", nodeName(n), p.vid, cardName(c))
	}
}

// judgeReady checks that a new own sum need not wait: data v of a worker that keeps the rules shows
// that v - W is here.
func (w *world) judgeReady(c int, s *slot) {
	if !w.config.rogue && w.cards[c].lost == none && !w.mayGoUp(c, s) {
		w.Violate(neverTurnedAway, "%s has the own sum v=%d, which may not go up yet", cardName(c), s.vid)
	}
}

// judgeFinal checks whether a leaf took a final sum.
func (w *world) judgeFinal(c int, p packet, was bool) {
	k := &w.cards[c]
	if !was && !p.earlier && w.takesPart(root, leaf(c)) && p.epoch == k.epoch && w.needs(leaf(c), int(p.vid)) && !w.config.misfit {
		w.Violate(neverTurnedAway, "%s drops the final sum v=%d, which it lacks", cardName(c), p.vid)
	}
}

// judgeInputs checks that a worker has the results below first, and its inputs from there on.
func (w *world) judgeInputs(i, first int) {
	if low := int(w.workers[i].low); w.config.honest(i) && low < first {
		w.Violate(inputsThere, "worker %d lacks the result v=%d, and the epoch begins at v=%d", i, low, first)
	}
	kept := w.config.window
	if w.without(inputsGivenUp) {
		kept = 0
	}
	for vid := first; vid+kept < w.config.end(); vid++ {
		if w.config.honest(i) && w.workers[i].holds(vid+kept) {
			w.Violate(inputsThere, "worker %d has given up its input v=%d, since it held the result v=%d", i, vid, vid+kept)
			return
		}
	}
}
