package sim

// kind is what a packet is.
type kind uint8

const (
	segment      kind = iota // of a TCP flow
	ack                      // of a TCP flow
	contribution             // to a card: of a worker, or a card's own sum
	result                   // of a card: final
	ask                      // of a worker, for a result
	statusSend               // of a card: the contribution is missing
)

// Bytes on the wire.
const (
	ethernet = 8 + 14 + 4 + 12           // preamble, header, FCS, gap
	ipTCP    = 40                        // IPv4 and TCP without options
	ipUDP    = 28                        // IPv4 and UDP
	shortest = 8 + 64 + 12               // preamble, the shortest frame, gap
	ackWire  = shortest                  // 40 bytes of IP and TCP fit the shortest frame
	askWire  = ethernet + ipUDP + 14 + 4 // header of 14 bytes, CRC (NETWORK, section 2)
	dataOver = ethernet + ipUDP + 22 + 4 // beside a contribution's payload
	resOver  = ethernet + ipUDP + 30 + 4 // beside a result's payload
	segment0 = ethernet + ipTCP          // beside a segment's payload
	mss      = 1500 - ipTCP              // payload of a whole segment
	status   = max(shortest, ethernet+ipUDP+22+4)
)

// Packet is a packet of any kind.
type Packet struct {
	wire int32 // bytes, with all that Ethernet adds
	dst  int32 // node
	hash uint32
	kind kind
	ce   bool // congestion experienced
	echo bool // ack: its segment's mark

	flow *Flow
	seq  int64 // segment: its number; ack: the first that is missing; else VID

	job  *Job
	from int32 // node of a contribution or ask
}

func (e *Engine) packet() *Packet {
	if n := len(e.free); n > 0 {
		p := e.free[n-1]
		e.free = e.free[:n-1]
		return p
	}
	return new(Packet)
}

// release returns a packet that nothing needs any more.
func (e *Engine) release(p *Packet) {
	*p = Packet{}
	e.free = append(e.free, p)
}
