package main

import "math/bits"

// kind is the kind of a packet.
type kind uint8

const (
	nothing kind = iota
	data         // from a member to its card: a worker's input, or a leaf's own sum
	result       // from a card to its members: the final sum
	finish       // from a member to its card
	done         // from a card to a member: the answer to its finish, or the notice
	commit       // from the owner to a card: JOB_COMMIT
)

// packet is a packet that may be under way. Its VID is absolute, so the properties know which chunk
// it belongs to. The rules use only the VID modulo config.mod.
//
// A result has no receiver here: it may reach any member of its card. Asks need no packets; see
// steps.
type packet struct {
	kind    kind
	card    uint8 // the upper end of its way
	member  uint8 // rank of the lower end, except result and commit
	epoch   uint8
	vid     uint8  // commit: the first VID of the epoch
	payload uint16 // data, result
	mask    uint8  // result: global ranks
	earlier bool   // between leaf and root in an earlier owner's tree: another upward UDP port
}

// maxPackets is the number of different packets that a configuration may produce.
const maxPackets = 768

// packetSet is a set of numbers of packets.
type packetSet [maxPackets / 64]uint64

func (s *packetSet) add(n int)    { s[n/64] |= 1 << (n % 64) }
func (s *packetSet) remove(n int) { s[n/64] &^= 1 << (n % 64) }

// each calls f with the current elements of the set, in ascending order.
func (s packetSet) each(f func(n int)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			f(64*i + bits.TrailingZeros64(word))
		}
	}
}
