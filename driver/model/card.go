// The card's core: packets in.

package model

import (
	"fmt"

	"tributary/driver/wire"
)

// refusalGap is the least number of cycles between two answered refusals.
const refusalGap = 1024

// Card is the core of a card at packet level. Its methods must not be called concurrently, nor
// while Serve runs.
type Card struct {
	cfg      Config
	sum      *Arithmetic
	operands [][]byte // scratch: the contributions to a sum, by port
	cycles   uint64
	counters counters
	owner    uint64
	lastCode wire.Code // of the last register write
	staged   staged
	upward   upward   // staged
	up       counters // of wire.UpCounters; none without an up port
	network  *network // with ShellUDP and ShellRoCE; otherwise nil
	jobs     []job    // by number
	summing  turns    // turns of jobs with complete chunks
	sending  turns    // turns of jobs with results to send
	rising   turns    // turns of jobs with packets for the parent

	connections *connections // with ShellRoCE; otherwise nil
	releasing   turns        // turns of connections with sums to release, in the order of jobs and ranks

	statuses    []Header // the pending answer or refusal of each port
	statusPorts uint64   // the ports that have one
	notice      notice

	refusedAt  uint64 // when the last refusal was answered
	refusedYet bool   // whether any was answered

	serving chan struct{} // holds a token while a host is served
}

// NewCard returns a card after its hard reset.
func NewCard(cfg Config) (*Card, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	sum, err := cfg.arithmetic()
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	c := &Card{
		cfg:      cfg,
		sum:      sum,
		operands: make([][]byte, cfg.Ports),
		counters: newCounters(cfg.Shell),
		summing:  turns{of: cfg.Jobs},
		sending:  turns{of: cfg.Jobs},
		rising:   turns{of: cfg.Jobs},

		releasing: turns{of: cfg.Jobs * cfg.Ports},

		statuses: make([]Header, cfg.Ports),
		serving:  make(chan struct{}, 1),
	}
	for number := range cfg.Jobs {
		c.jobs = append(c.jobs, newJob(number, cfg))
	}
	if cfg.Shell.Network() {
		c.network = newNetwork(cfg)
	}
	if cfg.Shell == wire.ShellRoCE {
		c.connections = newConnections(cfg)
	}
	if cfg.Parent {
		c.up = make(counters, len(wire.UpCounters))
	}
	return c, nil
}

// Config returns the card's geometry, with its defaults filled in.
func (c *Card) Config() Config { return c.cfg }

// Advance advances the clock by the given number of cycles. It then ends the lease of an owner that
// was silent for too long, and acts once on every overdue slot.
func (c *Card) Advance(cycles uint64) {
	c.cycles += cycles
	c.lookAtLease()
	c.lookAtDeadlines()
}

// PortOf returns the port of a rank, and whether there is one, in the job that was set up last
// under the number job. Before the first job, rank r belongs to port r. A number that is not below
// JOBS counts as its remainder by JOBS.
func (c *Card) PortOf(job, rank uint8) (port int, ok bool) {
	j := c.numbered(job)
	if int(rank) >= j.n {
		return 0, false
	}
	return j.portOf[rank], true
}

// numbered returns the job with that number, or with its remainder by JOBS.
func (c *Card) numbered(number uint8) *job { return &c.jobs[int(number)%len(c.jobs)] }

// Handle commits one packet of a port: data, ask or finish; any other kind is refused. Of a card with
// an up port, that has the number after the last port's, and takes results, replays and statuses. Handle
// copies the parts of the payload that it keeps. The next call of Reduce, Next or NextUp reduces a slot
// that became complete.
func (c *Card) Handle(port int, p *Packet) {
	c.Advance(c.beats(p.Payload))
	if c.cfg.Parent && port == c.cfg.Ports {
		c.fromParent(p)
		return
	}
	if code := c.check(port, p); code != accepted {
		c.refuse(port, &p.Header, code)
		return
	}
	j := c.numbered(p.Job)
	switch p.Kind {
	case wire.KindData:
		c.data(j, port, p)
	case wire.KindAsk:
		c.ask(j, port, p)
	case wire.KindFinish:
		c.finish(j, port, p)
	}
}

// beats returns how many beats a packet with the given payload takes.
func (c *Card) beats(payload []byte) uint64 {
	beat := c.cfg.Lanes * elementBytes(c.cfg.Format)
	return uint64(max(1, (len(payload)+beat-1)/beat))
}

// check applies, in their order, the checks that precede the slot rules.
func (c *Card) check(port int, p *Packet) wire.Code {
	j := c.numbered(p.Job)
	switch {
	case p.Version != wire.Version:
		return wire.CodeBadVersion
	case p.Kind != wire.KindData && p.Kind != wire.KindAsk && p.Kind != wire.KindFinish:
		return wire.CodeBadKind
	case int(p.Job) >= len(c.jobs) || !j.running && !j.confirmsEnd(p):
		return wire.CodeBadJob
	case p.Epoch != j.epoch:
		return wire.CodeBadEpoch
	case !j.owns(port, p.Rank):
		return wire.CodeBadRank
	case j.evicted>>p.Rank&1 != 0:
		return wire.CodeEvicted
	}
	if p.Kind != wire.KindData {
		return accepted
	}
	switch {
	case p.Format != c.cfg.Format:
		return wire.CodeBadFormat
	case uint64(p.Length) != j.setup.chunk || len(p.Payload) != int(p.Length)*elementBytes(c.cfg.Format):
		return wire.CodeBadLength
	case p.Bad:
		return wire.CodePayloadCRC
	}
	return accepted
}

// data applies the slot rules to a contribution.
func (c *Card) data(j *job, port int, p *Packet) {
	s, code, owed := j.table.offer(p.Rank, p.VID, c.cycles)
	switch {
	case code == accepted:
		c.store(j, s, p)
	case owed:
		c.counters.refused(code)
	default:
		if code == wire.CodeDuplicate {
			c.repeatSum(j, p.VID)
		}
		c.refuse(port, &p.Header, code)
	}
}

// store keeps a contribution and merges its marks.
func (c *Card) store(j *job, s *slot, p *Packet) {
	kept := &s.contributions[p.Rank]
	if *kept == nil {
		*kept = make([]byte, 0, c.cfg.Chunk*elementBytes(c.cfg.Format))
	}
	*kept = append((*kept)[:0], p.Payload...)
	s.congestion = max(s.congestion, congestionOf(p.Flags))
	c.counters.add(countStored, 1)
	if wire.ECN(p.Flags&wire.FlagECN) == wire.CE {
		c.counters.add(countCE, 1)
	}
	if c.sum.holdsNonfinite(p.Payload) {
		s.nonfinite = true
		c.counters.add(countNonfiniteIn, 1)
		j.nonfiniteIn.add(1, uint64(p.Rank)<<32|uint64(p.VID))
	}
	j.lags[p.Rank].add(s.held == 0, c.cycles-s.turned)
	j.table.hold(s, p.Rank)
}

// ask answers an ask.
func (c *Card) ask(j *job, port int, p *Packet) {
	status, missing, answer, refusal := j.table.ask(p.Rank, p.VID)
	if refusal != accepted {
		c.refuse(port, &p.Header, refusal)
		return
	}
	c.counters.add(countAsks, 1)
	c.repeatSum(j, p.VID)
	if answer {
		c.answer(port, &p.Header, status, j.global(missing))
	}
}

// finish records that a rank has finished. Once all members have, the job ends; its waiting answers
// are still sent. A tree job ends when its parent confirms that.
func (c *Card) finish(j *job, port int, p *Packet) {
	c.counters.add(countFinishes, 1)
	if j.running {
		j.finished |= 1 << p.Rank
		if j.isTree() && j.allFinished() {
			c.owe(j, &j.finish, p.VID)
			return
		}
	}
	c.answer(port, &p.Header, wire.CodeDone, 0)
	if j.running && j.allFinished() {
		j.complete = true
		j.end()
	}
}

// refuse counts a refusal, and answers it if the rank belongs to the port and the last answer was
// long enough ago.
func (c *Card) refuse(port int, h *Header, code wire.Code) {
	c.counters.refused(code)
	if code == wire.CodePayloadCRC || !c.numbered(h.Job).owns(port, h.Rank) {
		return
	}
	if c.refusedYet && c.cycles-c.refusedAt < refusalGap {
		return
	}
	c.refusedYet, c.refusedAt = true, c.cycles
	c.answer(port, h, code, 0)
}

// answer stores a status for the port; it replaces one that waits.
func (c *Card) answer(port int, h *Header, code wire.Code, mask uint64) {
	c.statuses[port] = Header{
		Version: wire.Version,
		Kind:    wire.KindStatus,
		Job:     h.Job,
		Epoch:   h.Epoch,
		Rank:    h.Rank,
		Code:    code,
		VID:     h.VID,
		Mask:    mask,
	}
	c.statusPorts |= 1 << port
}

// Reduce completes the reductions that have begun: the jobs take turns, and each job's reductions
// run in order.
func (c *Card) Reduce() {
	for {
		number, ok := c.summing.take(func(number int) bool { return len(c.jobs[number].table.reducing) > 0 })
		if !ok {
			return
		}
		c.reduce(&c.jobs[number])
	}
}

// reduce sums the contributions of the job's first closed slot into its cache entry. A final sum passes
// the same way alone.
func (c *Card) reduce(j *job) {
	s := &j.table.slots[j.table.reducing[0]]
	if s.result == nil {
		s.result = make([]byte, 0, c.cfg.Chunk*elementBytes(c.cfg.Result))
	}
	chunk := int(j.setup.chunk)
	s.result = s.result[:chunk*elementBytes(c.cfg.Result)]
	clear(c.operands)
	if s.state == closing {
		c.operands[0] = s.final
	} else {
		c.gather(j, s)
	}
	nonfinite, overflowed := c.sum.chunk(s.result, c.operands)
	c.counters.add(countChunks, 1)
	c.counters.add(countBeats, chunk/c.cfg.Lanes)
	c.counters.add(countNonfiniteOut, nonfinite)
	c.counters.add(countOverflow, overflowed)
	j.nonfiniteOut.add(nonfinite, uint64(s.vid))
	j.overflow.add(overflowed, uint64(s.vid))
	j.table.summed(j.isTree())
}

// gather makes the stored contributions of a slot the operands of a sum.
func (c *Card) gather(j *job, s *slot) {
	for rank, port := range j.portOf {
		if s.held>>rank&1 != 0 {
			c.operands[port] = s.contributions[rank]
		}
	}
	if s.held != j.all {
		c.counters.add(countPartial, 1)
	}
}

// endJob ends a job, if it runs: it discards begun reductions, waiting results and waiting
// statuses.
func (c *Card) endJob(j *job) {
	j.end()
	for port := range c.statuses {
		if c.numbered(c.statuses[port].Job) == j {
			c.statusPorts &^= 1 << port
		}
	}
	if c.notice.job == j {
		c.notice = notice{}
	}
}

// endJobs ends all jobs.
func (c *Card) endJobs() {
	for number := range c.jobs {
		c.endJob(&c.jobs[number])
	}
}

// LinkDown reports to the card that its host disconnected. All jobs end and OWNER is cleared; the
// counters stay.
func (c *Card) LinkDown() {
	c.counters.add(countLinkDown, 1)
	c.owner = 0
	c.endJobs()
}
