// Package stack is an RDMA stack in software (rdma.Stack) on a host of package rc: jobs on a card under
// RoCEv2 where no RDMA is. It is for tests; its clock is that of the host.
//
//	s, err := stack.Attach(ctx, own, "host.port", "card.port")
//	card, err := roce.OpenOver(ctx, "unix:/run/tributary.sock", s)
//
// Attach runs a host at a Unix socket, in real time. For a host that something else moves, fill in a Stack.
package stack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"tributary/driver/daemon/protocol"
	"tributary/driver/transport/rdma"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
)

// Stack is the RDMA stack of a host. Its fields do not change after the first Open.
type Stack struct {
	Host *rc.Host

	// Moved.L guards the host. Whoever moves the host calls Broadcast.
	Moved *sync.Cond

	MaxMTU  int   // of connections, in bytes
	Port    int   // of the card: the Ethernet port behind which the host is
	Timeout uint8 // of the queue pairs, as in rc.Connection; 0 means 20, 4.3 s

	// CardMAC is the address to which all packets go: the static neighbour entries of a host at a one-armed
	// card. Without it they go to their receivers.
	CardMAC [6]byte
}

// MTU implements rdma.Stack.
func (s *Stack) MTU() int { return s.MaxMTU }

// EthernetPort implements rdma.Locator: the kernel, whose sockets would ask the card, does not know the host.
func (s *Stack) EthernetPort(context.Context, string) (int, error) { return s.Port, nil }

// qpns is the number of queue pairs that this process has made.
var qpns atomic.Uint32

// firstQPN is the QPN of the first queue pair.
const firstQPN = 0x10

func nextQPN() uint32 { return firstQPN + qpns.Add(1) - 1 }

// psnsBefore is how far the first PSNs are below 2^24, so that most jobs wrap around.
const psnsBefore = 5

// Open implements rdma.Stack.
func (s *Stack) Open(_ context.Context, job rdma.Job) (rdma.QueuePairs, error) {
	if job.MTU > s.MaxMTU {
		return nil, fmt.Errorf("the port has an MTU of %d, the job one of %d", s.MaxMTU, job.MTU)
	}
	s.Moved.L.Lock()
	defer s.Moved.L.Unlock()
	q := &queues{stack: s, job: job, send: s.Host.CreatePair(nextQPN())}
	q.take = q.send
	if job.Ranks > 2 {
		q.take = s.Host.CreatePair(nextQPN())
	}
	ip, own := s.Host.Address().IP.As4(), s.Host.Address().MAC
	q.end = &protocol.Connection{
		Ip: binary.BigEndian.Uint32(ip[:]), Mac: binary.BigEndian.Uint64(append([]byte{0, byte(s.Port)}, own[:]...)),
		SendQpn: q.send.QPN(), ReceiveQpn: q.take.QPN(), FirstPsn: wire.PSNs - 1 - q.send.QPN()%psnsBefore, Mtu: uint32(job.MTU),
	}
	return q, nil
}

// queues are the queue pairs of a rank, by the rules of driver/wire/ROCE.md, section 7.
type queues struct {
	stack      *Stack
	job        rdma.Job
	end        *protocol.Connection
	send, take *rc.Pair
	closed     bool
}

func (q *queues) Connection() *protocol.Connection { return q.end }

func (q *queues) Connect(previous, next *protocol.Connection) error {
	q.stack.Moved.L.Lock()
	defer q.stack.Moved.L.Unlock()
	if q.send != q.take {
		if err := q.send.Connect(q.connection(next, next.ReceiveQpn)); err != nil {
			return err
		}
	}
	return q.take.Connect(q.connection(previous, previous.SendQpn))
}

// connection returns the connection to a queue pair of another rank.
func (q *queues) connection(to *protocol.Connection, qpn uint32) rc.Connection {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], to.Ip)
	var mac [8]byte
	binary.BigEndian.PutUint64(mac[:], to.Mac)
	c := rc.Connection{
		Peer: rc.Address{MAC: [6]byte(mac[2:]), IP: netip.AddrFrom4(ip)}, PeerQPN: qpn, SourcePort: sourcePort, ECN: wire.ECT0,
		MTU: q.job.MTU, SendPSN: q.end.FirstPsn, ReceivePSN: to.FirstPsn, Timeout: q.stack.Timeout, Retries: retries,
	}
	if q.stack.CardMAC != [6]byte{} {
		c.Peer.MAC = q.stack.CardMAC
	}
	if c.Timeout == 0 {
		c.Timeout = timeout
	}
	return c
}

// Of the queue pairs.
const (
	sourcePort = 0xc000 // UDP
	retries    = 6
	timeout    = 20
)

// padded returns a copy of an array in whole packets.
func (q *queues) padded(array []byte) []byte {
	return append(append([]byte(nil), array...), make([]byte, (q.job.MTU-len(array)%q.job.MTU)%q.job.MTU)...)
}

func (q *queues) Reduce(ctx context.Context, in, out []byte) error {
	r := &reduction{queues: q, from: q.padded(in), size: q.job.Packets() * q.job.MTU, credits: q.job.Window / q.job.Packets()}
	r.to = make([]byte, len(r.from))
	r.messages = (len(r.from) + r.size - 1) / r.size
	moved := q.stack.Moved
	stop := context.AfterFunc(ctx, func() {
		moved.L.Lock()
		defer moved.L.Unlock()
		moved.Broadcast()
	})
	defer stop()
	moved.L.Lock()
	defer moved.L.Unlock()
	for {
		if err := r.step(); err != nil {
			return err
		}
		if r.sent == r.messages && r.received == r.messages {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		moved.Wait()
	}
	copy(out, r.to)
	return nil
}

func (q *queues) Close() error {
	q.stack.Moved.L.Lock()
	defer q.stack.Moved.L.Unlock()
	if q.closed {
		return errors.New("the queue pairs were closed before")
	}
	q.closed = true
	q.send.Reset()
	q.take.Reset()
	return nil
}

// reduction is one call of Reduce.
type reduction struct {
	*queues
	from, to []byte // with padding
	size     int    // of a message that is not the last, in bytes
	messages int
	credits  int

	wanted, received int // messages
	posted, sent     int
}

// part returns message m of an array.
func (r *reduction) part(array []byte, m int) []byte {
	return array[m*r.size : min((m+1)*r.size, len(array))]
}

// step takes completions, and posts receives and then sends.
func (r *reduction) step() error {
	for _, side := range []struct {
		poll func() (rc.Completion, bool)
		n    *int
	}{{r.send.PollSend, &r.sent}, {r.take.PollReceive, &r.received}} {
		for c, ok := side.poll(); ok; c, ok = side.poll() {
			if c.Status != rc.Success {
				return errors.New(c.Status.String())
			}
			*side.n++
		}
	}
	for ; r.wanted < min(r.messages, r.received+r.credits); r.wanted++ {
		if err := r.take.PostReceive(uint64(r.wanted), r.part(r.to, r.wanted)); err != nil {
			return err
		}
	}
	for ; r.posted < min(r.messages, min(r.sent, r.received)+r.credits); r.posted++ {
		if err := r.send.PostSend(rc.Request{ID: uint64(r.posted), Data: r.part(r.from, r.posted)}); err != nil {
			return err
		}
	}
	return nil
}
