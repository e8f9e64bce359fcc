package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// world is a state with the rules and everything that they read and write.
type world struct {
	config *config
	rules  ruleSet // rules that are left out
	*explorer.Numbers[packet]
	state

	explorer.Story

	calm  bool                 // faults have ceased
	queue []packet             // packets under way then
	good  *explorer.Set[state] // states that complete; nil: none is known yet
}

func newWorld(c *config, rules ruleSet, only string) *world {
	return &world{config: c, rules: rules, Story: explorer.Story{Only: only}, Numbers: explorer.NewNumbers[packet](maxPackets)}
}

// another returns a world with the same packets.
func (w *world) another() *world {
	return &world{config: w.config, rules: w.rules, Story: explorer.Story{Only: w.Only}, Numbers: w.Numbers}
}

// Current returns the world's state.
func (w *world) Current() *state { return &w.state }

// Start sets the job up; the ranks post what they may.
func (w *world) Start() {
	c := w.config
	w.state = state{losses: uint8(c.losses), others: uint8(c.others), timers: uint8(c.timers)}
	for s := range w.slotCount() {
		w.slots[s] = slot{vid: int16(s - w.slotCount()), done: c.all()}
	}
	w.post()
}

func (w *world) slotCount() int {
	if w.without(slotsShort) {
		return w.config.slots() - 1
	}
	return w.config.slots()
}

// slotOf returns the slot of a VID.
func (w *world) slotOf(vid int) *slot {
	n := w.slotCount()
	return &w.slots[(vid%n+n)%n]
}

// send puts a packet on its way: to the card, or from the card to its receiver.
func (w *world) send(p packet) {
	switch n := w.Number(p); {
	case w.calm:
		w.queue = append(w.queue, p)
	case !w.config.ordered:
		w.network.add(n)
	case p.kind == data:
		w.up[p.conn].add(n)
	case p.kind == sum:
		w.down[w.config.receiver(int(p.conn))].add(n)
	default:
		w.up[w.config.receiver(int(p.conn))].add(n)
	}
}

// expire removes packets that are too old for their PSN once the card stores vid.
func (w *world) expire(vid int) {
	if w.config.mod == 0 {
		return
	}
	w.network.each(func(n int) {
		if vid-int(w.Values[n].vid) >= w.config.mod/2-1 {
			w.network.remove(n)
		}
	})
}

// v formats a VID, and its PSN where PSNs wrap.
func (w *world) v(vid int) string {
	switch {
	case !w.Telling():
		return ""
	case w.config.mod != 0 && w.config.field(vid) != vid:
		return fmt.Sprintf("v=%d (PSN %d)", vid, w.config.field(vid))
	}
	return fmt.Sprintf("v=%d", vid)
}

// name formats a packet.
func (w *world) name(p packet) string {
	if !w.Telling() {
		return ""
	}
	conn, v := int(p.conn), w.v(int(p.vid))
	asks := ""
	if w.config.asked && p.ask {
		asks = " with AckReq"
	}
	switch p.kind {
	case data:
		return fmt.Sprintf("%s of rank %d%s", v, conn, asks)
	case sum:
		return fmt.Sprintf("the sum %s on connection %d%s", v, conn, asks)
	case ack:
		return fmt.Sprintf("an ACK of all before %s on connection %d", v, conn)
	default:
		return fmt.Sprintf("a NAK of %s on connection %d", v, conn)
	}
}
