package cpu

import (
	"tributary/driver/cpu/arithmetic"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// refusalCycles is the least number of clock cycles between two refusals that are answered.
const refusalCycles = 1024

// engine is the core of a card. It has no lock: its fronts call it one at a time.
type engine struct {
	cfg                       Config
	elementBytes, resultBytes int // of an element

	arithmetic *arithmetic.Arithmetic
	work       arithmetic.Workspace
	found      arithmetic.Exceptions // of the current sum
	find       func(chunk int, x arithmetic.Exceptions)

	now uint64 // clock cycles since the hard reset
	due uint64 // no slot is overdue before this clock

	owner, token uint64
	network      *network  // with ShellUDP; otherwise nil
	uplink       *uplink   // with an up port; otherwise nil
	staged       setup     // without its first VID
	lastCode     wire.Code // of the last register write

	jobs     []job
	slots    []slot
	counters counters

	refused    uint64 // clock of the last refusal that was answered
	hasRefused bool
	answers    [wire.MaxPorts]frame.Header // the status that waits, by port
	answering  uint64                      // ports that have one
	notice     notice

	summing, sending turns
}

// newEngine returns a card's core after its hard reset.
func newEngine(cfg Config) (*engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	sums, err := arithmetic.New(cfg.Sum, cfg.Format, cfg.Result, cfg.Saturate)
	if err != nil {
		return nil, err
	}
	e := &engine{cfg: cfg, arithmetic: sums, counters: newCounters(cfg.Shell), network: newNetwork(cfg), uplink: newUplink(cfg), due: never, jobs: make([]job, cfg.Jobs), slots: make([]slot, 2*cfg.Window)}
	e.elementBytes, e.resultBytes = cfg.sizes()
	e.find = func(_ int, x arithmetic.Exceptions) { e.found = x }
	for i := range e.slots {
		s := &e.slots[i]
		s.number, s.queue.slot, s.timer.slot = i, s, s
	}
	for i := range e.jobs {
		e.jobs[i].number = uint8(i)
		e.jobs[i].place(^uint64(0) >> (64 - cfg.Ports))
		e.jobs[i].lags = make([][wire.LagBuckets]uint32, cfg.Ports)
	}
	return e, nil
}

// beats returns the number of beats of a packet with a payload of n bytes at a port.
func (e *engine) beats(n int) uint64 {
	beat := e.cfg.Lanes * e.elementBytes
	return uint64(max(1, (n+beat-1)/beat))
}

// take commits a packet of a port, whose payload has size bytes; bad means that they are damaged.
// It reports whether the payload is to be stored, and where: store must follow at once.
func (e *engine) take(port int, h *frame.Header, size int, bad bool) (at place, stores bool) {
	e.advance(e.beats(size))
	j, code := e.check(port, h)
	if code == wire.CodeDone && h.Kind == wire.KindData {
		code = e.checkData(j, h, size, bad)
	}
	if code != wire.CodeDone {
		e.refuse(port, h, code)
		return place{}, false
	}
	switch h.Kind {
	case wire.KindData:
		return e.data(j, port, h)
	case wire.KindAsk:
		e.ask(j, port, h)
	default:
		e.finish(j, port, h)
	}
	return place{}, false
}

// check makes the checks that data, asks and finishes have in common. It returns the packet's job,
// or the refusal.
func (e *engine) check(port int, h *frame.Header) (*job, wire.Code) {
	switch {
	case h.Version != wire.Version:
		return nil, wire.CodeBadVersion
	case h.Kind != wire.KindData && h.Kind != wire.KindAsk && h.Kind != wire.KindFinish:
		return nil, wire.CodeBadKind
	case int(h.Job) >= len(e.jobs):
		return nil, wire.CodeBadJob
	}
	j := &e.jobs[h.Job]
	answersLast := j.allFinished && h.Kind == wire.KindFinish && h.Epoch == j.epoch
	switch {
	case !j.running && !answersLast:
		return nil, wire.CodeBadJob
	case h.Epoch != j.epoch:
		return nil, wire.CodeBadEpoch
	case !j.has(h.Rank, port):
		return nil, wire.CodeBadRank
	case j.evicted&bit(h.Rank) != 0:
		return nil, wire.CodeEvicted
	}
	return j, wire.CodeDone
}

// checkData makes the checks of data alone.
func (e *engine) checkData(j *job, h *frame.Header, size int, bad bool) wire.Code {
	switch {
	case h.Format != e.cfg.Format:
		return wire.CodeBadFormat
	case uint64(h.Length) != j.setup.chunk || size != int(h.Length)*e.elementBytes:
		return wire.CodeBadLength
	case bad:
		return wire.CodePayloadCRC
	}
	return wire.CodeDone
}

// ask answers an ask.
func (e *engine) ask(j *job, port int, h *frame.Header) {
	s, w := j.slot(h.VID), bit(h.Rank)
	current, next := h.VID == s.vid, h.VID-s.vid == 2*j.window()
	switch {
	case current && s.state == empty:
		e.refuse(port, h, wire.CodeLate)
		return
	case !current && !next:
		e.refuse(port, h, serial(h.VID, s.vid))
		return
	case next:
		e.answer(port, h, wire.CodeSend, j.global(j.members))
	case s.state == reduced:
		s.owe(w)
	case s.state == collecting && s.held&w != 0:
		e.answer(port, h, wire.CodeWait, j.global(j.members&^s.held))
	case s.state == collecting:
		e.answer(port, h, wire.CodeSend, j.global(j.members&^s.held))
	case s.state == waiting:
		e.repeatUp(s)
		e.answer(port, h, wire.CodeWait, 0)
	}
	e.counters[countAsks]++
}

// refuse counts a refusal, and answers it if it may.
func (e *engine) refuse(port int, h *frame.Header, code wire.Code) {
	e.counters.refusal(code)
	switch {
	case code == wire.CodeBadRank || code == wire.CodePayloadCRC:
	case !e.jobOf(h.Job).has(h.Rank, port):
	case e.hasRefused && e.now-e.refused < refusalCycles:
	default:
		e.hasRefused, e.refused = true, e.now
		e.answer(port, h, code, 0)
	}
}

// jobOf returns the job whose ranks count for a packet's job number.
func (e *engine) jobOf(number uint8) *job { return &e.jobs[int(number)%len(e.jobs)] }

// linkDown ends everything that the link's host has begun.
func (e *engine) linkDown() {
	e.endAll()
	e.owner = 0
	e.counters[countLinkDown]++
}
