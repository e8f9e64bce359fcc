package main

// kind is the kind of a packet.
type kind uint8

const (
	data     kind = iota // a member's contribution
	ask                  // from a rogue only; asks of honest members need no packets, see world.steps
	result               // a sum from the card, for one member
	finish               // a member holds all results
	finished             // the card has received that member's finish
	commit               // the controller sets a job up
	evicted              // the card notifies a member of its eviction
	ended                // the card refuses a packet because its job has ended
)

// packet is a packet that may be under way. Its VID and epoch are absolute, so the properties
// know which chunk it belongs to. The rules of card and worker use only the VID modulo
// config.Modulus and the epoch modulo config.epochs().
type packet struct {
	kind   kind
	member uint8 // sender or receiver; 0 for commit
	job    uint8
	epoch  uint8
	vid    uint8 // commit: the first VID of the epoch
	mask   uint8 // result: members in the sum
	of     kind  // ended: kind of the refused packet
	sum    sum   // result
}

// tag names a contribution by member, epoch and VID, and replaces the payload itself. Zero is no
// contribution.
type tag uint16

const tagPresent tag = 1 << 15

// contribution is the payload of a member's chunk. A rogue has several variants of one chunk; all
// other members have variant 0 only.
func contribution(from, epoch, vid, variant int) tag {
	return tagPresent | tag(from)<<12 | tag(epoch)<<9 | tag(variant)<<8 | tag(vid)
}

func (t tag) from() int    { return int(t >> 12 & 7) }
func (t tag) epoch() int   { return int(t >> 9 & 7) }
func (t tag) variant() int { return int(t >> 8 & 1) }
func (t tag) vid() int     { return int(t & 0xff) }

// sum replaces the bits of a result: for each beat, entry m is the contribution of member m, or
// 0.
type sum [maxBeats][maxMembers]tag
