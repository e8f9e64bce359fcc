package collective

// The parameter server (SPEC.md, section 6).

// server implements algorithm 3: rank 0 adds.
type server struct{}

// reduce sums the arrays of all members on rank 0, in the order of ranks, and passes each chunk to take
// there. work keeps sums; it is as long as the array, and nil on other ranks.
func (server) reduce(c *call, work []byte, take func(first, last int) error) error {
	n := int(c.length)
	if c.own() != 0 {
		return c.sendStep(0, phaseReduce, 0, 0, n, c.src)
	}
	for first, last := range c.chunks(0, n) {
		result, sum := c.at(work, first, last), c.at(c.src, first, last)
		for rank := 1; rank < c.group.Size(); rank++ {
			m, err := c.recv(rank, phaseReduce, 0, first, last)
			if err != nil {
				return err
			}
			add(c.format, result, sum, m.payload)
			m.release()
			sum = result
		}
		if err := take(first, last); err != nil {
			return err
		}
	}
	for range c.group.Size() - 1 {
		c.stepped()
	}
	return nil
}

// spread sends a chunk of dst from rank 0 to all others but skip.
func (server) spread(c *call, first, last, skip int) error {
	for rank := 1; rank < c.group.Size(); rank++ {
		if rank == skip {
			continue
		}
		if err := c.send(rank, phaseGather, 0, first, c.at(c.dst, first, last)); err != nil {
			return err
		}
	}
	return nil
}

// fetch receives dst from a rank.
func (server) fetch(c *call, rank int, took func(first, last int) error) error {
	return c.recvStep(rank, phaseGather, 0, 0, int(c.length), func(first, last int, payload []byte) error {
		copy(c.at(c.dst, first, last), payload)
		return took(first, last)
	})
}

func nothing(int, int) error { return nil }

func (s server) allReduce(c *call) error {
	if c.group.Size() == 1 {
		pass(c.format, c.dst, c.src)
		return nil
	}
	err := s.reduce(c, c.dst, func(first, last int) error { return s.spread(c, first, last, 0) })
	if err != nil || c.own() == 0 {
		return err
	}
	return s.fetch(c, 0, nothing)
}

func (s server) reduceScatter(c *call) error {
	if c.group.Size() == 1 {
		pass(c.format, c.dst, c.src)
		return nil
	}
	var work []byte
	if c.own() == 0 {
		work = make([]byte, len(c.src))
	}
	if err := s.reduce(c, work, nothing); err != nil {
		return err
	}
	return scatter(c, work)
}

func (s server) allGather(c *call) error {
	if err := collect(c); err != nil {
		return err
	}
	if c.own() != 0 {
		return s.fetch(c, 0, nothing)
	}
	for first, last := range c.chunks(0, int(c.length)) {
		if err := s.spread(c, first, last, 0); err != nil {
			return err
		}
	}
	return nil
}

func (s server) broadcast(c *call) error {
	root, n := int(c.root), int(c.length)
	switch own := c.own(); {
	case own == root && own != 0:
		return c.sendStep(0, phaseGather, 0, 0, n, c.dst)
	case own != 0:
		return s.fetch(c, 0, nothing)
	case root != 0:
		return s.fetch(c, root, func(first, last int) error { return s.spread(c, first, last, root) })
	}
	for first, last := range c.chunks(0, n) {
		if err := s.spread(c, first, last, 0); err != nil {
			return err
		}
	}
	return nil
}
