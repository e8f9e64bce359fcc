// Package rdma is what the driver needs of an RDMA stack, for jobs on a card under RoCEv2
// (driver/wire/ROCE.md, section 7). Package driver/roce has one on libibverbs.
package rdma

import (
	"context"

	"tributary/driver/daemon/protocol"
)

// Stack is a port of an RDMA device. Any goroutine may call its methods.
type Stack interface {
	// MTU returns the largest MTU of the port's connections in bytes: one of wire.ConnectionMTUs.
	MTU() int

	// Open makes the queue pairs of a rank, in state INIT.
	Open(ctx context.Context, job Job) (QueuePairs, error)
}

// Locator is a Stack that knows behind which Ethernet port of a card it is. Without it the driver asks the
// card, from a UDP socket of this machine with the address of the queue pairs.
type Locator interface {
	// EthernetPort returns the Ethernet port, of the card with a name such as udp:192.0.2.7.
	EthernetPort(ctx context.Context, card string) (int, error)
}

// Job is what all ranks of a job agree on.
type Job struct {
	Ranks  int // 2 or more, in a ring
	MTU    int // bytes of payload of a packet
	Window int // packets in flight
}

// Packets returns the number of packets of a message that is not the last of its array. The number of messages
// in flight, Window / Packets rounded down, is 1 to 4.
func (j Job) Packets() int { return max(1, j.Window/messages) }

// messages is the number of messages in flight, if the window has as many packets.
const messages = 4

// QueuePairs are a rank's queue pair to the next rank of the ring, and that from the previous one; for two
// ranks one queue pair. One goroutine at a time calls its methods.
type QueuePairs interface {
	// Connection describes the queue pairs to the daemon and the other ranks. Its MTU is what the port
	// takes, at most that of the job.
	Connection() *protocol.Connection

	// Connect connects the queue pairs to those of the previous and the next rank, and returns when they
	// are in state RTS.
	Connect(previous, next *protocol.Connection) error

	// Reduce sends in to the next rank, and receives as many bytes from the previous one into out: with
	// registered connections the sums of all ranks. The last packet is padded with zeros. It returns when all
	// bytes have come and all own sends have completed; then the queue pairs take the next array. in and out
	// do not overlap. After an error, only Close is of use.
	Reduce(ctx context.Context, in, out []byte) error

	// Close removes the queue pairs.
	Close() error
}
