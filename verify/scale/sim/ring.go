package sim

// RingConfig describes a ring all-reduce that repeats.
type RingConfig struct {
	Workers int // in each rack, from First on; 0 for all
	First   int
	TCP     TCPConfig
	Bytes   int // of an array
	Compute Time
	Hash    uint32
}

// Ring is a ring all-reduce among workers of a network, in the order of their racks. Worker i
// sends to worker i + 1: in each of 2(N-1) steps one N-th of the array, which it may do when it
// has received all of the step before.
type Ring struct {
	RingConfig
	engine  *Engine
	members []*ringMember
	done    []int
	Ends    []Time // of iterations: all workers have the sum
}

type ringMember struct {
	ring      *Ring
	flow      *Flow // to the next
	sending   bool
	iteration int
	received  int64 // messages, in all iterations
	sent      int64
}

// NewRing sets a ring up.
func NewRing(n *Network, c RingConfig) *Ring {
	if c.Workers == 0 {
		c.Workers = n.Clos.Workers
	}
	r := &Ring{RingConfig: c, engine: n.Engine}
	var hosts []*Host
	for i := range n.Racks {
		hosts = append(hosts, n.workerHosts(i, c.First, c.Workers)...)
	}
	part := int64((c.Bytes + len(hosts) - 1) / len(hosts))
	for range hosts {
		r.members = append(r.members, &ringMember{ring: r})
	}
	for i, m := range r.members {
		to := (i + 1) % len(hosts)
		next := r.members[to]
		m.flow = NewFlow(n.Engine, c.TCP, hosts[i], hosts[to], c.Hash+uint32(i), part, func(segments int64) {
			next.received = segments / m.flow.segments
			next.proceed()
		})
	}
	return r
}

// steps returns the number of steps of an all-reduce.
func (r *Ring) steps() int64 { return 2 * int64(len(r.members)-1) }

// Start begins the first reduction.
func (r *Ring) Start() {
	for _, m := range r.members {
		m.begin()
	}
}

func (m *ringMember) begin() {
	m.sending = true
	m.proceed()
}

// proceed sends what the received messages allow, and ends the iteration with its last message.
func (m *ringMember) proceed() {
	steps := m.ring.steps()
	before := int64(m.iteration) * steps // messages of earlier iterations
	for m.sending && m.sent < before+steps && m.sent <= m.received {
		m.sent++
		m.flow.Send()
	}
	if m.sending && m.received >= before+steps && m.sent == before+steps {
		m.sending = false
		m.ring.finished(m.iteration)
		m.iteration++
		m.ring.engine.After(m.ring.Compute, m.begin)
	}
}

func (r *Ring) finished(iteration int) {
	if iteration == len(r.done) {
		r.done = append(r.done, 0)
	}
	if r.done[iteration]++; r.done[iteration] == len(r.members) {
		r.Ends = append(r.Ends, r.engine.now)
	}
}
