package main

import "math/bits"

// kind is the kind of a packet.
type kind uint8

const (
	nothing kind = iota
	data         // from a sender to the card
	sum          // from the card to a receiver; or data that a weakened card forwards
	ack          // from a receiver to the sender: it has all before vid
	nak          // the same, and it saw a later one
)

// tag names a contribution, or a frame for its header, by rank and VID. 0 is none.
type tag uint16

const (
	tagSum     tag = 1 << 6 // the rank sent a sum that it had received
	tagDamaged tag = 1 << 7
	tagAsk     tag = 1 << 8 // the frame has AckReq
)

func tagOf(rank, vid int) tag { return tag(rank)<<9 | tag(vid+1) }

func (t tag) rank() int { return int(t >> 9) }
func (t tag) vid() int  { return int(t&0x3f) - 1 }

// payload has the contribution of each rank.
type payload [maxRanks]tag

// packet is a packet that may be under way. Its VID is absolute, for the properties. Rules of card and
// endpoints use config.field of it.
type packet struct {
	kind   kind
	conn   uint8
	vid    uint8 // ack, nak: the first that the receiver lacks
	ask    bool  // data, sum: AckReq
	source tag   // data: the frame from which its header comes
	load   payload
}

// header is what the card keeps of the header.
func (p packet) header() tag {
	if p.ask {
		return p.source | tagAsk
	}
	return p.source
}

// maxPackets is the number of different packets that a configuration may produce.
const maxPackets = 192

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

// queue is a cable that keeps the order of packets. It holds their numbers + 1.
type queue [maxQueue]uint8

func (q *queue) add(n int) {
	for i := range q {
		if q[i] == 0 {
			q[i] = uint8(n + 1)
			return
		}
	}
	panic("roce: more packets on a cable than a state has room for")
}

// take removes the packet at a place.
func (q *queue) take(place int) {
	copy(q[place:], q[place+1:])
	q[maxQueue-1] = 0
}

// rank is an endpoint: a worker and its queue pair.
type rank struct {
	posted   uint8 // messages
	oldest   uint8 // the first VID without an ACK
	expected uint8 // the first VID that it has not received
	gone     bool  // has left

	// Ordered networks only.
	next   uint8 // the VID to send next
	fresh  uint8 // the first VID never sent
	nakked bool  // has sent a NAK for the gap
}

// phase is the state of a slot.
type phase uint8

const (
	empty phase = iota
	collecting
	reduced
)

// slot is one slot of the card. Sets have one bit for each rank, or its connection.
type slot struct {
	vid              int16 // u, absolute
	phase            phase
	held, done, owed uint8
	memory           [maxRanks]tag // keeps its value across turnovers, like a RAM
	header           [maxRanks]tag
	cache            payload
}

// connection is what the card knows of a connection, and what was lost there.
type connection struct {
	next  uint8 // all VIDs below it were released
	early bool  // the VID after that was released once
	ended bool  // a slot turned over from next or a later VID: nothing more is released

	lost uint8 // on an ordered network: data and sums that were lost or overtaken
}

// state is the complete state of a world: it determines all next steps and all judgements.
type state struct {
	network packetSet // open: packets under way; a delivered one stays
	slots   [maxSlots]slot
	ranks   [maxRanks]rank
	conns   [maxRanks]connection
	over    bool // the job has ended

	// Ordered networks only.
	up     [maxRanks]queue // from a rank to the card
	down   [maxRanks]queue // from the card to a rank
	harmed bool            // an ACK or NAK was lost, or a packet repeated or overtaken

	// How many faults may still strike.
	losses, others, timers uint8
}
