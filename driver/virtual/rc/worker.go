package rc

import (
	"fmt"
	"time"

	"tributary/driver/wire"
)

// Job is what all workers of a job agree on.
type Job struct {
	Ranks    int
	Bytes    int           // of each worker's array
	MTU      int           // one of wire.MTUs
	Packets  int           // of a message; the last message of an array may have fewer
	Window   int           // packets in flight, as the card's JOB_WINDOW: at least Packets
	Write    bool          // RDMA WRITE with immediate instead of SEND
	Timeout  uint8         // of the queue pairs, see Connection
	Retries  int           // of the queue pairs, see Connection
	Deadline time.Duration // from Connect to the barrier's end; 0 means none

	OldestAlone bool // see Connection
}

// messageBytes returns the size of a message that is not the last, in bytes.
func (j *Job) messageBytes() int { return j.Packets * j.MTU }

// padded returns the size of an array with its padding: whole packets.
func (j *Job) padded() int { return (j.Bytes + j.MTU - 1) / j.MTU * j.MTU }

// Messages returns the number of messages of an array.
func (j *Job) Messages() int { return (j.Bytes + j.messageBytes() - 1) / j.messageBytes() }

// Credits returns C, the number of messages in flight.
func (j *Job) Credits() int { return j.Window / j.Packets }

// check refuses a job that none can be.
func (j *Job) check() error {
	switch {
	case j.Ranks < 2:
		return fmt.Errorf("rc: %d ranks are no job", j.Ranks)
	case j.Bytes < 1:
		return fmt.Errorf("rc: an array of %d bytes", j.Bytes)
	case j.MTU < 1 || j.Packets < 1 || j.Window < j.Packets:
		return fmt.Errorf("rc: messages of %d packets of %d bytes, a window of %d", j.Packets, j.MTU, j.Window)
	}
	return nil
}

// Offer is what a worker tells the others before a job.
type Offer struct {
	Address  Address
	SendQPN  uint32 // sends to the next rank
	TakeQPN  uint32 // receives from the previous rank; for two ranks it is SendQPN
	FirstPSN uint32 // of both queue pairs
	MTU      int
	At       uint64 // remote address and key of the array that receives
	Key      uint32
}

// Worker sends its array to the next rank of a ring and receives one from the previous rank: through a card
// of shell roce, the sum of all. It follows driver/wire/ROCE.md, section 7. With its host it is an
// ethernet.Device.
type Worker struct {
	*Host
	job     Job
	rank    int
	barrier *Barrier
	offer   Offer

	send, take *Pair // the same for two ranks
	next       Offer
	in, sum    []byte // with padding
	end        uint64 // of the deadline, in cycles; 0 for none

	started            bool
	posted, sent       int // messages
	receives, received int // messages
	messages           int
	ahead              int // see Ahead
}

// arrayAt is the remote address of each worker's array.
const arrayAt = 0x5442_0000_0000

// NewWorker returns the worker of a rank on a host. It makes one queue pair for two ranks, otherwise two:
// qpn, and qpn + 1.
func NewWorker(host *Host, rank int, job Job, barrier *Barrier, qpn, firstPSN uint32) (*Worker, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	w := &Worker{Host: host, job: job, rank: rank, barrier: barrier, messages: job.Messages(), sum: make([]byte, job.padded())}
	w.send = host.CreatePair(qpn)
	w.take = w.send
	if job.Ranks > 2 {
		w.take = host.CreatePair(qpn + 1)
	}
	w.offer = Offer{host.own, w.send.qpn, w.take.qpn, firstPSN, job.MTU, arrayAt, host.Register(arrayAt, w.sum)}
	return w, nil
}

// Offer returns what the worker tells the others.
func (w *Worker) Offer() Offer { return w.offer }

// Pairs returns the queue pairs to the next rank and from the previous one.
func (w *Worker) Pairs() (send, take *Pair) { return w.send, w.take }

// Connect connects the queue pairs, and posts the first receives. A one-armed card's workers are given its
// MAC address in each offer.
func (w *Worker) Connect(previous, next Offer) error {
	for _, o := range []Offer{previous, next} {
		if o.MTU != w.job.MTU {
			return fmt.Errorf("rc: MTUs of %d and %d", w.job.MTU, o.MTU)
		}
	}
	w.next = next
	for range min(2*w.job.Credits(), w.messages) {
		if err := w.postReceive(); err != nil {
			return err
		}
	}
	if err := w.take.Connect(w.connection(previous, previous.SendQPN)); err != nil {
		return err
	}
	if w.send != w.take {
		if err := w.send.Connect(w.connection(next, next.TakeQPN)); err != nil {
			return err
		}
	}
	if w.job.Deadline > 0 {
		w.end = w.after(w.job.Deadline)
	}
	return nil
}

// connection returns the connection to a queue pair of another worker.
func (w *Worker) connection(peer Offer, qpn uint32) Connection {
	return Connection{
		Peer: peer.Address, PeerQPN: qpn, SourcePort: uint16(0xc000 + w.rank), ECN: wire.ECT0, MTU: w.job.MTU,
		SendPSN: w.offer.FirstPSN, ReceivePSN: peer.FirstPSN, Timeout: w.job.Timeout, Retries: w.job.Retries,
		OldestAlone: w.job.OldestAlone,
	}
}

// Start contributes an array, which is copied.
func (w *Worker) Start(array []byte) error {
	if len(array) != w.job.Bytes {
		return fmt.Errorf("rc: an array of %d bytes, want %d", len(array), w.job.Bytes)
	}
	w.in = make([]byte, len(w.sum))
	copy(w.in, array)
	w.started = true
	w.step()
	return nil
}

// Outcome returns the sum when all ranks have it, or a *RankError. done is false before.
func (w *Worker) Outcome() (sum []byte, done bool, err error) {
	if err := w.barrier.Err(); err != nil {
		return nil, true, err
	}
	if !w.barrier.Done() {
		return nil, false, nil
	}
	return w.sum[:w.job.Bytes], true, nil
}

// Received returns the part of the sum that has been received in whole messages, whatever the outcome.
func (w *Worker) Received() []byte {
	return w.sum[:min(w.received*w.job.messageBytes(), w.job.Bytes)]
}

// Ahead returns the largest number of messages that were posted and not yet both received and completed: at
// most the credits.
func (w *Worker) Ahead() int { return w.ahead }

// Receive is Host.Receive; the worker goes on with what has come.
func (w *Worker) Receive(port int, frame []byte) {
	w.Host.Receive(port, frame)
	w.step()
}

// Advance is Host.Advance; the worker goes on, or ends by its deadline.
func (w *Worker) Advance(cycles uint64) {
	w.Host.Advance(cycles)
	w.step()
	if w.end != 0 && w.now >= w.end {
		w.barrier.Fail(w.rank, ErrDeadline)
	}
	if w.barrier.Done() {
		w.end = 0
	}
}

// Deadline is Host.Deadline, or that of the job if it is earlier.
func (w *Worker) Deadline() (cycle uint64, ok bool) {
	cycle, ok = w.Host.Deadline()
	if w.end != 0 && (!ok || w.end < cycle) {
		return w.end, true
	}
	return cycle, ok
}

// step takes completions, and posts what they allow.
func (w *Worker) step() {
	if w.barrier.Done() {
		return
	}
	if err := w.progress(); err != nil {
		w.barrier.Fail(w.rank, err)
		return
	}
	if w.started && w.received == w.messages && w.sent == w.messages {
		w.barrier.Arrive(w.rank)
	}
}

// progress is step without the barrier.
func (w *Worker) progress() error {
	if err := w.takeReceived(); err != nil {
		return err
	}
	for {
		c, ok := w.send.PollSend()
		if !ok {
			break
		}
		if c.Status != Success {
			return &StatusError{int(c.ID), false, c.Status}
		}
		w.sent++
	}
	for w.started && w.posted < w.messages && w.mayPost() {
		if err := w.send.PostSend(w.message(w.posted)); err != nil {
			return err
		}
		w.posted++
		w.ahead = max(w.ahead, w.posted-min(w.sent, w.received))
	}
	return nil
}

// mayPost reports whether message m = posted may be posted: m − C was received, and the own m − C completed.
func (w *Worker) mayPost() bool {
	before := w.posted - w.job.Credits()
	return before < 0 || w.received > before && w.sent > before
}

// takeReceived takes messages that have come, and posts a receive for each.
func (w *Worker) takeReceived() error {
	for {
		c, ok := w.take.PollReceive()
		if !ok {
			return nil
		}
		if c.Status != Success {
			return &StatusError{int(c.ID), true, c.Status}
		}
		want := len(w.part(w.sum, w.received))
		if c.Bytes != want || c.Write != w.job.Write || c.Write && c.Imm != uint32(w.received) {
			return &MessageError{w.received, c.Bytes, want, c.Imm}
		}
		w.received++
		if w.receives < w.messages {
			if err := w.postReceive(); err != nil {
				return err
			}
		}
	}
}

// postReceive posts the receive of the next message.
func (w *Worker) postReceive() error {
	buffer := w.part(w.sum, w.receives)
	if w.job.Write {
		buffer = nil // the message goes where its sender writes it
	}
	err := w.take.PostReceive(uint64(w.receives), buffer)
	w.receives++
	return err
}

// message returns the request of a message.
func (w *Worker) message(m int) Request {
	r := Request{ID: uint64(m), Data: w.part(w.in, m)}
	if w.job.Write {
		r.Write, r.At, r.Key = true, w.next.At+uint64(m*w.job.messageBytes()), w.next.Key
		r.HasImm, r.Imm = true, uint32(m)
	}
	return r
}

// part returns the part of an array that is message m.
func (w *Worker) part(array []byte, m int) []byte {
	n := w.job.messageBytes()
	return array[m*n : min((m+1)*n, len(array))]
}
