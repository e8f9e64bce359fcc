package main

// tag names a worker's input by epoch and VID, in place of its bits. Zero is no input.
type tag uint16

const (
	tagPresent tag = 1 << 15
	tagForeign tag = 1 << 14 // of an earlier owner's tree, or forged
	tagOther   tag = 1 << 13 // a rogue's second payload for one chunk
	tagZeros   tag = 1 << 12 // zeros in place of the input
)

func inputTag(epoch, vid int) tag { return tagPresent | tag(epoch)<<8 | tag(vid) }

func (t tag) epoch() int { return int(t >> 8 & 0xf) }
func (t tag) vid() int   { return int(t & 0xff) }

// payload is the content of data, own sum or result: the inputs in it, by worker. The tree is fixed,
// so the list of its inputs determines how a sum is nested, and with that its bits.
type payload struct {
	inputs [maxWorkers]tag
	twice  uint8 // workers whose input is in it more than once
	torn   bool  // its beats are of different payloads
}

// add returns the sum of two payloads.
func (p payload) add(q payload) payload {
	for i, t := range q.inputs {
		if t != 0 && p.inputs[i] != 0 {
			p.twice |= bit(i)
		}
		p.inputs[i] |= t
	}
	p.twice |= q.twice
	p.torn = p.torn || q.torn
	return p
}

// input returns the number of a worker's data.
func (w *world) input(worker, epoch, vid int, marks tag) uint16 {
	var p payload
	p.inputs[worker] = inputTag(epoch, vid) | marks
	return uint16(w.payloads.Number(p))
}

// foreign returns the number of a payload with all inputs of ranks from another tree.
func (w *world) foreign(ranks uint8, vid int) uint16 {
	var p payload
	for i := range w.config.workers() {
		if ranks&bit(i) != 0 {
			p.inputs[i] = inputTag(0, vid) | tagForeign
		}
	}
	return uint16(w.payloads.Number(p))
}
