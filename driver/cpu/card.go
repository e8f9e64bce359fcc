package cpu

import (
	"sync"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Packet is one packet at a port. Payload is in wire order: elements in sequence, little-endian.
// Bad means that the payload is damaged.
type Packet struct {
	frame.Header
	Payload []byte
	Bad     bool
}

// Card is the core of a card at packet level. Several goroutines may call its methods.
type Card struct {
	mu      sync.Mutex
	changed sync.Cond // what waits on the engine looks again
	engine  *engine
	serving bool     // a host
	session *session // of the host that is served; nil when there is none

	// Of arrays that members in this process have handed over.
	exchanges []*Exchange
	reporting []*Exchange // one for each report that is due
	unused    sync.Cond   // an exchange has no users
}

// New returns a card after its hard reset, or everything that is wrong with cfg.
func New(cfg Config) (*Card, error) {
	e, err := newEngine(cfg)
	if err != nil {
		return nil, err
	}
	c := &Card{engine: e}
	c.changed.L = &c.mu
	c.unused.L = &c.mu
	return c, nil
}

func (c *Card) lock() { c.mu.Lock() }

// unlock commits and sums what the handed over arrays allow now, releases the lock, and makes the
// reports that are due. Every change of the engine ends with it.
func (c *Card) unlock() {
	if len(c.exchanges) > 0 {
		c.pump()
		if c.session != nil {
			c.session.wake()
		}
	}
	c.unlockAndReport()
}

// Config returns the card's geometry, with its defaults filled in.
func (c *Card) Config() Config { return c.engine.cfg }

// Advance advances the clock by cycles, and then acts once on every overdue slot.
func (c *Card) Advance(cycles uint64) {
	c.lock()
	defer c.unlock()
	c.engine.advance(cycles)
}

// Handle commits one packet of a port: data, ask or finish; any other kind is refused. The up port has
// the number Ports, and takes results, replays and statuses. Handle copies the payload if the card keeps
// it.
func (c *Card) Handle(port int, p *Packet) {
	c.lock()
	defer c.unlock()
	if c.engine.uplink != nil && port == c.engine.cfg.Ports {
		c.engine.takeUp(&p.Header, p.Payload, p.Bad)
		return
	}
	c.engine.handle(port, &p.Header, p.Payload, p.Bad)
}

// handle commits one packet, and copies its payload into the slot's memory if the card keeps it.
func (e *engine) handle(port int, h *frame.Header, payload []byte, bad bool) {
	if at, stores := e.take(port, h, len(payload), bad); stores {
		e.store(at, e.keep(at, payload), e.arithmetic.HoldsNonfinite(payload))
	}
}

// keep copies a payload into memory of its slot, which the next contribution there reuses.
func (e *engine) keep(at place, payload []byte) []byte {
	s := at.slot
	if s.memory == nil {
		s.memory = make([][]byte, e.cfg.Ports)
	}
	kept := sized(s.memory[at.port], len(payload))
	s.memory[at.port] = kept
	copy(kept, payload)
	return kept
}

// Next sums all complete chunks and writes the next packet to out, whose payload memory it
// reuses. ready is the mask of the ports that can take a packet; ports is the mask of the
// packet's ports. If there is none, ok is false and out unchanged.
//
// Answers and refusals leave first, lower ports before higher ones, then the notice, one port at a
// time. Then the jobs take turns with one result each, replays before fresh results. A result is
// one packet for all its receivers.
func (c *Card) Next(ready uint64, out *Packet) (ports uint64, ok bool) {
	c.lock()
	defer c.unlock()
	var h frame.Header
	payload, ports := c.engine.next(ready, &h)
	if ports == 0 {
		return 0, false
	}
	*out = Packet{Header: h, Payload: append(out.Payload[:0], payload...)}
	return ports, true
}

// NextUp is Next for the up port, which can take a packet. It returns false, and leaves out unchanged, if
// there is no packet for a parent. The jobs take turns, each with one packet at a time.
func (c *Card) NextUp(out *Packet) bool {
	c.lock()
	defer c.unlock()
	var h frame.Header
	payload, j := c.engine.nextUp(&h)
	if j == nil {
		return false
	}
	*out = Packet{Header: h, Payload: append(out.Payload[:0], payload...)}
	return true
}

// Pending reports whether Next has a packet for a port that can take it.
func (c *Card) Pending() bool {
	c.lock()
	defer c.unlock()
	return c.engine.pending()
}

// Reduce sums all complete chunks.
func (c *Card) Reduce() {
	c.lock()
	defer c.unlock()
	c.engine.reduceAll()
}

// Register performs one access on the register bus. It returns the reply's code, and the
// register's value after the access, or 0 with a refusal.
func (c *Card) Register(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	c.lock()
	defer c.unlock()
	return c.engine.register(write, addr, value)
}

// PortOf returns the port of a rank, and whether there is one, in the job that was set up last
// under a number. Before the first job, rank r belongs to port r. A number that is not below JOBS
// counts as its remainder by JOBS.
func (c *Card) PortOf(job, rank uint8) (port int, ok bool) {
	c.lock()
	defer c.unlock()
	return c.engine.port(job, rank)
}

// port is PortOf.
func (e *engine) port(number, rank uint8) (port int, ok bool) {
	j := e.jobOf(number)
	if int(rank) >= j.ranks {
		return 0, false
	}
	return int(j.portOf[rank]), true
}

// LinkDown reports to the card that its host disconnected: all jobs end and OWNER is cleared.
func (c *Card) LinkDown() {
	c.lock()
	defer c.unlock()
	c.engine.linkDown()
}
