package rc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/driver/wire"
)

// Connection describes how a queue pair is connected.
type Connection struct {
	Peer       Address
	PeerQPN    uint32
	SourcePort uint16 // UDP
	ECN        wire.ECN

	MTU         int    // payload of a packet in bytes, one of wire.MTUs
	SendPSN     uint32 // of the first packet sent
	ReceivePSN  uint32 // of the first packet received
	MaxUnacked  int    // packets sent and not acknowledged; 0 means 128
	AckEvery    int    // a packet in so many requests an ACK, beside the last of each message; 0 means 64
	Timeout     uint8  // the timer lasts 4.096 µs · 2^Timeout; 0 means for ever, at most 31
	Retries     int    // without progress, by timer or NAK, before the queue pair fails: at most 6
	OldestAlone bool   // a retry repeats the oldest packet alone: no go-back-N, for tests of cards
}

// The defaults of a Connection: those of rdma_rxe.
const (
	maxUnacked = 128
	ackEvery   = 64
)

// maxRetries is the largest number of retries; 7 means without end in some stacks.
const maxRetries = 6

// timerUnit is the time of a timer with a Timeout of 0, if it had one.
const timerUnit = 4096 * time.Nanosecond

// state is the state of a queue pair.
type state int

const (
	reset state = iota
	connected
	failed
)

// Pair is a queue pair with its completion queues.
type Pair struct {
	host  *Host
	qpn   uint32
	to    Connection
	state state
	requester
	responder
	stats Stats

	sent, received []Completion
}

// Stats counts what a queue pair did.
type Stats struct {
	Packets    int // of data sent, repeats included
	Repeats    int // of data sent again
	Timeouts   int // of the timer
	NAKs       int // received because of a missing PSN
	OutOfOrder int // packets received ahead of the expected PSN, dropped
	NAKsSent   int // because of a missing PSN
	Duplicates int // packets received again
	Ghosts     int // ACKs and NAKs of packets that were not outstanding
}

// Status is the outcome of a work request.
type Status int

// The statuses, as libibverbs has them.
const (
	Success           Status = iota
	Flushed                  // the queue pair failed before
	RetryExceeded            // the peer did not acknowledge
	NotReady                 // the peer had no receive posted (RNR)
	RemoteInvalid            // the peer refused the request as invalid
	RemoteAccess             // the peer does not allow access to the memory
	RemoteOperational        // the peer failed
	LocalLength              // a received message is longer than its buffer
)

var statuses = []string{"success", "flushed", "retries exceeded", "receiver not ready", "invalid request", "remote access error", "remote operational error", "message longer than the buffer"}

// String returns the status in words.
func (s Status) String() string { return statuses[s] }

// Completion is the end of a work request.
type Completion struct {
	ID     uint64
	Status Status
	Bytes  int // of a received message
	Write  bool
	Imm    uint32 // of a received message
	HasImm bool
}

// Request is a message to send, by SEND or RDMA WRITE.
type Request struct {
	ID     uint64
	Data   []byte // not copied: it must not change before the completion
	Write  bool
	At     uint64 // of an RDMA WRITE
	Key    uint32 // of an RDMA WRITE
	Imm    uint32
	HasImm bool
}

// Errors of calls.
var (
	ErrNotConnected = errors.New("rc: the queue pair is not connected")
	ErrTooLong      = errors.New("rc: a message has more packets than PSNs can tell apart")
)

// QPN returns the queue pair's number.
func (p *Pair) QPN() uint32 { return p.qpn }

// Stats returns what the queue pair did since it was made.
func (p *Pair) Stats() Stats { return p.stats }

// Failed reports whether an error has ended the connection.
func (p *Pair) Failed() bool { return p.state == failed }

// Connect connects a queue pair that is new or was reset. It may send and receive at once.
func (p *Pair) Connect(c Connection) error {
	if c.MaxUnacked == 0 {
		c.MaxUnacked = maxUnacked
	}
	if c.AckEvery == 0 {
		c.AckEvery = min(ackEvery, c.MaxUnacked)
	}
	switch {
	case p.state != reset:
		return errors.New("rc: the queue pair is in use: reset it")
	case !slices.Contains(wire.MTUs, c.MTU):
		return fmt.Errorf("rc: an MTU of %d is none of %d", c.MTU, wire.MTUs)
	case c.Retries < 0 || c.Retries > maxRetries:
		return fmt.Errorf("rc: %d retries are not from 0 to %d", c.Retries, maxRetries)
	case c.Timeout > 31:
		return fmt.Errorf("rc: a timeout of %d is above 31", c.Timeout)
	case c.AckEvery < 0 || c.MaxUnacked < 0 || c.AckEvery > c.MaxUnacked || c.MaxUnacked >= wire.PSNs/2:
		return fmt.Errorf("rc: an ACK every %d of %d packets", c.AckEvery, c.MaxUnacked)
	case max(c.SendPSN, c.ReceivePSN, c.PeerQPN) >= wire.PSNs:
		return errors.New("rc: a PSN or QPN has more than 24 bits")
	case !c.Peer.IP.Is4():
		return fmt.Errorf("rc: %v is no IPv4 address", c.Peer.IP)
	}
	receives := p.receives // posted before
	p.to, p.state = c, connected
	p.requester = requester{oldest: c.SendPSN, next: c.SendPSN, fresh: c.SendPSN, end: c.SendPSN, retries: c.Retries}
	p.responder = responder{expected: c.ReceivePSN, receives: receives}
	return nil
}

// Reset drops all requests and receives without completions. Connect may follow, also with other PSNs.
func (p *Pair) Reset() {
	*p = Pair{host: p.host, qpn: p.qpn, stats: p.stats}
}

// PollSend returns the next completion of a PostSend. ok is false if there is none.
func (p *Pair) PollSend() (c Completion, ok bool) { return poll(&p.sent) }

// PollReceive returns the next completion of a PostReceive. ok is false if there is none.
func (p *Pair) PollReceive() (c Completion, ok bool) { return poll(&p.received) }

func poll(queue *[]Completion) (c Completion, ok bool) {
	if len(*queue) == 0 {
		return Completion{}, false
	}
	c, *queue = (*queue)[0], (*queue)[1:]
	return c, true
}

// fail ends the connection: all that is posted is flushed.
func (p *Pair) fail() {
	p.state, p.timer = failed, 0
	for _, s := range p.sends {
		p.sent = append(p.sent, Completion{ID: s.request.ID, Status: Flushed})
	}
	for _, r := range p.receives {
		p.received = append(p.received, Completion{ID: r.id, Status: Flushed})
	}
	p.sends, p.receives = nil, nil
}

// packet returns a packet to the peer.
func (p *Pair) packet(opcode wire.Opcode, psn uint32) *Packet {
	return &Packet{
		From: p.host.own, To: p.to.Peer, SourcePort: p.to.SourcePort, ECN: p.to.ECN,
		BTH: wire.BTH{Opcode: opcode, PKey: wire.PKey, DestQP: p.to.PeerQPN, PSN: psn},
	}
}
