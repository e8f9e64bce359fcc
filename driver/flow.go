package driver

// A flow exchanges chunks with the card for some members of a job, call after call: for one member
// (AllReduce) or for all of them (Reduce). It is the worker of SPEC.md, section 8. The members of a
// flow share the received results, and each sends its own input, so every result is stored once.
//
// Calls queue in their flow. The window passes from the chunks of one call to those of the next, so
// the card has work while results of earlier calls are on their way.
//
// This file has the order of calls and chunks, send.go sends their data and asks, and receive.go
// handles the card's packets. Card.mu guards everything.

import (
	"fmt"
	"slices"
	"time"

	"tributary/driver/wire"
)

// fastAsk replies to later packets show, without a timer, that a chunk, an ask or its reply was
// lost.
const fastAsk = 3

type flow struct {
	job     *Job
	members []*Member
	ranks   uint64 // bit r for every rank r of the members
	own     *call  // the call of the methods that wait for it; they use it again
	users   int    // calls whose arrays are in use

	calls  []*call // in progress, in the order of their chunks
	first  uint32  // VID of chunk 0; chunks are counted from when the flow was last idle
	chunks int     // of all calls since then

	low    int          // the first chunk that is not held
	held   int          // chunks held, in any position
	kept   int          // chunks not held in this epoch whose result is kept from an earlier one
	next   int          // the first chunk that some member has not sent
	turn   int          // index of the member that sends it next
	sent   int          // data frames sent at least once
	ring   []chunkState // chunk i is at i mod window, for low <= i < low + window
	resend int          // chunks with a rank in resend

	order    uint64          // counts data and asks; that of the last one sent
	answered [fastAsk]uint64 // the highest orders with a reply, ascending

	congestion *congestion // nil if the card is not on a network

	backOff backOff
	moved   time.Time // last sign of progress
	asked   time.Time // on a card that takes blocks: when the flow last asked who is late
	handing bool      // a call's arrays are being handed to the card
}

// chunkState is the state of one chunk in the window.
type chunkState struct {
	held    bool
	kept    bool      // has a result from an earlier epoch: send zeros, drop their sum
	asks    int       // asks sent
	again   bool      // asked for or sent again: its result is no sample
	waiting bool      // an ask has no reply yet
	sent    time.Time // by the last member; the start of the sample
	since   time.Time // when it was last sent or asked for
	order   uint64    // the flow's order at that time
	known   bool      // missing is the card's last report
	missing uint64    // ranks whose contribution the card lacks
	arrived uint64    // ranks that some report of the card did not lack
	resend  uint64    // ranks that must send again
}

func newFlow(j *Job, members []*Member) *flow {
	f := &flow{job: j, members: members, ring: make([]chunkState, j.cfg.Window)}
	for _, m := range members {
		f.ranks |= 1 << m.rank
	}
	if j.card.info.Shell == wire.ShellUDP {
		f.congestion = newCongestion(j.cfg.Window, j.card.opts.fixedWindow)
	}
	f.own = newCall(f)
	return f
}

// name returns the flow's name in messages, with the member if there is one.
func (f *flow) name() string {
	if f == f.job.whole {
		return "call of all ranks"
	}
	return fmt.Sprintf("call of rank %d", f.members[0].Rank())
}

// isWhole reports whether the flow's members are all workers of the job. Nobody else delays its results then. At
// a card with a parent, the workers at other cards do.
func (f *flow) isWhole() bool {
	b := f.job.branch
	return f.ranks == f.job.ranks && (b == nil || b.card == b.of.tree.root)
}

// state returns the state of chunk i in the window.
func (f *flow) state(i int) *chunkState { return &f.ring[i&(len(f.ring)-1)] }

// vid returns the VID of chunk i.
func (f *flow) vid(i int) uint32 { return f.first + uint32(i) }

// chunkOf returns the chunk of a VID near the window.
func (f *flow) chunkOf(vid uint32) int { return f.low + int(int32(vid-f.vid(f.low))) }

// callOf returns the call in progress that has chunk i.
func (f *flow) callOf(i int) *call {
	for _, k := range f.calls {
		if i < k.end() {
			return k
		}
	}
	return nil
}

// ordered gives s the next place in the order of data and asks.
func (f *flow) ordered(s *chunkState) {
	f.order++
	s.order = f.order
}

// noteOrder records a reply to the data or ask with that order.
func (f *flow) noteOrder(order uint64) {
	for i := range f.answered {
		if order <= f.answered[i] {
			return
		}
		if i > 0 {
			f.answered[i-1] = f.answered[i]
		}
		f.answered[i] = order
	}
}

// overtaken reports whether several later packets have a reply while s has none. Then the
// packet of s, or its reply, is lost.
func (f *flow) overtaken(s *chunkState) bool { return f.answered[0] > s.order }

// admit checks a call with arrays of that many elements, and returns the number of its chunks.
func (f *flow) admit(elements int) (chunks int, err error) {
	j := f.job
	leader := f.turnOf(0)
	switch {
	case j.relay != nil:
		return 0, &InputError{"reduction", "the job's members are in other processes"}
	case j.ended:
		return 0, j.endedError()
	case f.ranks&^j.here != 0:
		return 0, &InputError{"reduction", fmt.Sprintf("ranks %s are in other processes; each process calls the members that it has", rankList(f.ranks&^j.here))}
	case j.overQueues() && len(f.members) > 1:
		return 0, &InputError{"reduction", "each rank with RDMA connections calls for itself; use AllReduce of its member, or tributary allreduce"}
	case j.finish.left != 0 || j.finish.confirmed:
		return 0, &InputError{"reduction", "the job is being closed"}
	case leader.out != nil:
		return 0, leader.out
	}
	if err := f.checkFree(leader); err != nil {
		return 0, err
	}
	chunks = (elements + j.cfg.Chunk - 1) / j.cfg.Chunk
	return chunks, f.checkLength(f.nextVID(), elements, chunks)
}

// nextVID returns the VID of the first chunk of the next call.
func (f *flow) nextVID() uint32 {
	if len(f.calls) > 0 {
		return f.vid(f.chunks)
	}
	return f.turnOf(0).next
}

// add puts a call at the end of the flow.
func (f *flow) add(k *call) {
	j := f.job
	idle := len(f.calls) == 0
	if idle {
		f.first, f.chunks = f.nextVID(), 0
		f.low, f.held, f.kept, f.next, f.turn, f.sent, f.resend = 0, 0, 0, 0, 0, 0, 0
		f.order, f.answered = 0, [fastAsk]uint64{}
		f.moved = time.Now()
		if f.congestion != nil {
			f.congestion.rest()
		}
		j.flows = append(j.flows, f)
		for _, m := range f.members {
			m.got = 0
		}
	}
	k.from, k.base, k.vid = f.chunks, f.chunks, f.vid(f.chunks)
	f.chunks += k.chunks
	f.calls = append(f.calls, k)
	f.use()
	f.announce(len(f.calls) - 1)
	if j.history != nil && (j.outage.count > 0 || j.waits()) {
		f.joinLate(k, idle)
	}
}

// checkFree rejects a call of members that another flow uses, or that are not at the same chunk.
func (f *flow) checkFree(leader *Member) error {
	for _, m := range f.members {
		if m.out != nil {
			continue
		}
		if m.flow != nil && m.flow != f {
			return &InputError{"reduction", fmt.Sprintf("rank %d is in a call already; calls of all ranks and calls of one rank exclude each other", m.Rank())}
		}
		if m.next != leader.next {
			return &InputError{"reduction", fmt.Sprintf("rank %d is at chunk %d and rank %d at chunk %d; all members must make the same calls", m.Rank(), m.next, leader.Rank(), leader.next)}
		}
	}
	return nil
}

// checkLength rejects an array of another length than that of a member in the same round, when
// the numbers of chunks agree. The last sums would be wrong. When the numbers differ, the card
// reports the missing rank.
func (f *flow) checkLength(first uint32, elements, chunks int) error {
	for _, other := range f.job.flows {
		for _, k := range other.calls {
			if other.vid(k.from) == first && k.chunks == chunks && k.elements != elements {
				return &InputError{fmt.Sprintf("buffer of rank %d", f.members[0].Rank()),
					fmt.Sprintf("it has %d elements, that of rank %d %d; all members' buffers have the same length", elements, other.members[0].Rank(), k.elements)}
			}
		}
	}
	return nil
}

// use notes that one more call uses its arrays; release ends that. Meanwhile no other flow may
// have the members.
func (f *flow) use() {
	f.users++
	for _, m := range f.members {
		m.flow = f
	}
}

func (f *flow) release() {
	if f.users--; f.users > 0 {
		return
	}
	for _, m := range f.members {
		if m.flow == f {
			m.flow = nil
		}
	}
}

// settle completes the calls whose results are all held.
func (f *flow) settle() {
	for len(f.calls) > 0 && f.low >= f.calls[0].end() {
		f.complete(nil)
	}
}

// fail completes all calls with err.
func (f *flow) fail(err error) {
	for len(f.calls) > 0 {
		f.complete(err)
	}
}

// complete gives the first call its outcome, and removes it.
func (f *flow) complete(err error) {
	k := f.calls[0]
	f.remove(k)
	if err == nil {
		for _, m := range f.members {
			m.next += uint32(k.chunks)
			m.calls++
		}
	}
	k.complete(err)
}

// remove removes a call. A flow without calls is not one of the job's flows in progress.
func (f *flow) remove(k *call) {
	i := slices.Index(f.calls, k)
	f.calls = slices.Delete(f.calls, i, i+1)
	if len(f.calls) == 0 {
		f.leaveJob()
	}
}

// leaveJob removes the flow from those in progress.
func (f *flow) leaveJob() {
	j := f.job
	i, last := slices.Index(j.flows, f), len(j.flows)-1
	j.flows[i], j.flows[last] = j.flows[last], nil
	j.flows = j.flows[:last]
}

func (f *flow) lastMoved() time.Time {
	if sent := f.job.sentData; sent.After(f.moved) {
		return sent
	}
	return f.moved
}

// noteProgress wakes the callers that want progress.
func (f *flow) noteProgress() {
	for _, k := range f.calls {
		k.noteProgress()
	}
}
