package main

// kind is what a packet is.
type kind uint8

const (
	data     kind = iota // a member's contribution
	ask                  // a rogue's; those of the others are no packets of their own, see world.steps
	result               // the card's sum, for one member
	finish               // a member holds everything
	finished             // the card has seen that member's finish
	commit               // the controller sets a job up
	evicted              // the card tells a member that it is out
	ended                // the card refuses a packet: its job has ended
)

// packet is what may be under way. The numbers are absolute, so that what a
// packet means is known to the properties; the rules of card and worker look
// at the VID modulo config.Modulus and the epoch modulo that of epochs only.
type packet struct {
	kind   kind
	member uint8 // who sent it, or whom it is for; 0 for commit
	job    uint8
	epoch  uint8
	vid    uint8 // commit: the first VID of the epoch
	mask   uint8 // result: who is in the sum
	of     kind  // ended: what is refused
	sum    sum   // result
}

// tag says which contribution a piece of payload is: whose, of which epoch and
// VID. It stands for the payload itself. Zero is no contribution.
type tag uint16

const tagPresent tag = 1 << 15

// contribution is the payload of a member's chunk. A rogue has several
// variants of one chunk; everyone else has variant 0 only.
func contribution(from, epoch, vid, variant int) tag {
	return tagPresent | tag(from)<<12 | tag(epoch)<<9 | tag(variant)<<8 | tag(vid)
}

func (t tag) from() int    { return int(t >> 12 & 7) }
func (t tag) epoch() int   { return int(t >> 9 & 7) }
func (t tag) variant() int { return int(t >> 8 & 1) }
func (t tag) vid() int     { return int(t & 0xff) }

// sum is what was added up in each beat: at place m the contribution of member
// m, or 0. It stands for the bits of a result.
type sum [maxBeats][maxMembers]tag

// packetTable gives every packet that was ever met a number, so that what is
// under way is a set of small numbers.
type packetTable struct {
	numbers map[packet]int
	packets []packet
}

// number is the packet's place in the table.
func (t *packetTable) number(p packet) int {
	n, ok := t.numbers[p]
	if !ok {
		n = len(t.packets)
		if n == maxPackets {
			panic("explore: more kinds of packets than a state has room for")
		}
		t.numbers[p] = n
		t.packets = append(t.packets, p)
	}
	return n
}
