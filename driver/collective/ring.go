package collective

// The ring (SPEC.md, section 4).

import (
	"cmp"
	"sync"
)

// node adds a ring member's part to what passes it. Its methods are called in the order of messages;
// add does not wait for sum, and sums come in the order of the calls, from any goroutine.
type node interface {
	// add computes elements [first, last) of a partial sum: incoming + the node's own part. incoming
	// is nil where the sum begins at this node, else valid until sum is called. sum gets the result,
	// which stays as it is until finish has got the same elements, and the call is over.
	add(first, last int, incoming []byte, sum func(result []byte, err error))
	// finish takes elements [first, last) of a final sum, and returns memory where they stay as they
	// are until the call is over.
	finish(first, last int, final []byte) (kept []byte, err error)
}

// ring is a ring of some ranks.
type ring struct {
	*call
	ranks []int // in the order of the ring
	at    int   // this member's place
	node  node
	shift int // 0: place g ends with piece g+1; -1: with piece g

	from, to int // the elements that the ring cuts into pieces
}

// newRing returns a ring over the whole array.
func newRing(c *call, ranks []int, at int, n node, shift int) *ring {
	return &ring{call: c, ranks: ranks, at: at, node: n, shift: shift, to: int(c.length)}
}

func (r *ring) next() int { return r.ranks[(r.at+1)%len(r.ranks)] }
func (r *ring) prev() int { return r.ranks[(r.at+len(r.ranks)-1)%len(r.ranks)] }

// ringPiece returns the piece at a place, which may be negative.
func (r *ring) ringPiece(place int) (from, to int) {
	n := len(r.ranks)
	from, to = Piece(((place+r.shift)%n+n)%n, n, r.to-r.from)
	return r.from + from, r.from + to
}

// reduce is the scatter-reduce: len(ranks)-1 steps. The sum of the piece at place at+1 goes to the
// node, and on to the ring if gathers.
func (r *ring) reduce(gathers bool) error {
	steps := len(r.ranks) - 1
	var adds sync.WaitGroup
	var failed firstError
	// pass sends the sum that step s-1 has computed.
	pass := func(s, first, last int, result []byte, err error) {
		switch {
		case err != nil:
		case s < steps:
			err = r.send(r.next(), phaseReduce, s, first, result)
		default:
			result, err = r.node.finish(first, last, result)
			if err == nil && gathers && steps > 0 {
				err = r.send(r.next(), phaseGather, 0, first, result)
			}
		}
		if err != nil {
			failed.set(err)
			r.stop(err)
		}
	}
	from, to := r.ringPiece(r.at)
	for first, last := range r.chunks(from, to) {
		adds.Add(1)
		r.node.add(first, last, nil, func(result []byte, err error) {
			pass(0, first, last, result, err)
			adds.Done()
		})
	}
	var err error
	for s := 0; s < steps && err == nil; s++ {
		from, to := r.ringPiece(r.at - s - 1)
		for first, last := range r.chunks(from, to) {
			var m *message
			if m, err = r.recv(r.prev(), phaseReduce, s, first, last); err != nil {
				break
			}
			adds.Add(1)
			r.node.add(first, last, m.payload, func(result []byte, err error) {
				m.release()
				pass(s+1, first, last, result, err)
				adds.Done()
			})
		}
		if err == nil {
			r.stepped()
		}
	}
	if err != nil { // or the node would wait for more
		failed.set(err)
		r.stop(err)
	}
	adds.Wait()
	return failed.get()
}

// gather passes final pieces on: len(ranks)-1 steps. The caller sends the first.
func (r *ring) gather() error {
	steps := len(r.ranks) - 1
	for s := range steps {
		from, to := r.ringPiece(r.at - s)
		err := r.recvStep(r.prev(), phaseGather, s, from, to, func(first, last int, payload []byte) error {
			kept, err := r.node.finish(first, last, payload)
			if err != nil || s+1 == steps {
				return err
			}
			return r.send(r.next(), phaseGather, s+1, first, kept)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// allReduce is both.
func (r *ring) allReduce() error {
	if err := r.reduce(true); err != nil {
		return err
	}
	return r.gather()
}

// allGather gathers the pieces of an array, of which every place has its own. shift is -1.
func (r *ring) allGather(array []byte) error {
	if len(r.ranks) == 1 {
		return nil
	}
	from, to := r.ringPiece(r.at + 1)
	if err := r.sendStep(r.next(), phaseGather, 0, from, to, array); err != nil {
		return err
	}
	return r.gather()
}

// firstError keeps the first of several errors.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = cmp.Or(f.err, err)
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// host is a node that adds by a loop.
type host struct {
	*call
	src  []byte // its own part of the sums, for the call's elements
	work []byte // partial sums: as long as src
	out  []byte // element base and on of the final sums
	base int
}

func (h *host) add(first, last int, incoming []byte, sum func([]byte, error)) {
	own := h.at(h.src, first, last)
	if incoming == nil {
		sum(own, nil)
		return
	}
	result := h.at(h.work, first, last)
	add(h.format, result, incoming, own)
	sum(result, nil)
}

func (h *host) finish(first, last int, final []byte) ([]byte, error) {
	kept := h.at(h.out, first-h.base, last-h.base)
	copy(kept, final)
	return kept, nil
}

// hostRing is the ring of all members, each of which is a host.
type hostRing struct{}

// whole returns the ring of all ranks.
func whole(c *call, n node, shift int) *ring {
	var ranks []int
	for rank := range c.group.Members {
		ranks = append(ranks, rank)
	}
	return newRing(c, ranks, c.own(), n, shift)
}

func (hostRing) allReduce(c *call) error {
	if c.group.Size() == 1 {
		pass(c.format, c.dst, c.src)
		return nil
	}
	return whole(c, &host{call: c, src: c.src, work: c.dst, out: c.dst}, 0).allReduce()
}

func (hostRing) reduceScatter(c *call) error {
	if c.group.Size() == 1 {
		pass(c.format, c.dst, c.src)
		return nil
	}
	base, _ := c.piece(c.own())
	return whole(c, &host{call: c, src: c.src, work: make([]byte, len(c.src)), out: c.dst, base: base}, -1).reduce(false)
}

func (hostRing) allGather(c *call) error {
	from, to := c.piece(c.own())
	copy(c.at(c.dst, from, to), c.src)
	return whole(c, &host{call: c, out: c.dst}, -1).allGather(c.dst)
}

// broadcast passes the array along the ring, from the root to the member before it.
func (hostRing) broadcast(c *call) error {
	r := whole(c, nil, 0)
	root, n := int(c.root), int(c.length)
	if c.own() == root {
		if r.next() == root {
			return nil
		}
		return c.sendStep(r.next(), phaseGather, 0, 0, n, c.dst)
	}
	return c.recvStep(r.prev(), phaseGather, 0, 0, n, func(first, last int, payload []byte) error {
		kept := c.at(c.dst, first, last)
		copy(kept, payload)
		if r.next() == root {
			return nil
		}
		return c.send(r.next(), phaseGather, 0, first, kept)
	})
}
