package collective

// The binomial tree (SPEC.md, section 5).

// tree implements algorithm 2.
type tree struct{}

// family returns the parent of this member in the tree with a root, -1 for the root, and its children
// in the order in which a reduction takes them.
func family(rank, size, root int) (parent int, children []int) {
	v := (rank - root + size) % size
	of := func(v int) int { return (v + root) % size }
	for m := 1; m < size; m <<= 1 {
		if v&m != 0 {
			return of(v - m), children
		}
		if v+m < size {
			children = append(children, of(v+m))
		}
	}
	return -1, children
}

// reduce sums the arrays of all members to rank 0. take gets its chunks there, in order. work keeps
// partial sums; it is as long as the array, or nil on a member without children.
func (tree) reduce(c *call, work []byte, take func(first, last int) error) error {
	parent, children := family(c.own(), c.group.Size(), 0)
	for first, last := range c.chunks(0, int(c.length)) {
		sum := c.at(c.src, first, last)
		for _, child := range children {
			m, err := c.recv(child, phaseReduce, 0, first, last)
			if err != nil {
				return err
			}
			result := c.at(work, first, last)
			add(c.format, result, sum, m.payload)
			m.release()
			sum = result
		}
		var err error
		if parent >= 0 {
			err = c.send(parent, phaseReduce, 0, first, sum)
		} else {
			err = take(first, last)
		}
		if err != nil {
			return err
		}
	}
	for range children {
		c.stepped()
	}
	return nil
}

// down broadcasts elements of dst from a root. The root calls sendDown.
func (tree) down(c *call, root int) error {
	parent, _ := family(c.own(), c.group.Size(), root)
	if parent < 0 {
		return nil
	}
	return c.recvStep(parent, phaseGather, 0, 0, int(c.length), func(first, last int, payload []byte) error {
		copy(c.at(c.dst, first, last), payload)
		return tree{}.sendDown(c, root, first, last)
	})
}

// sendDown sends a chunk of dst to the children of this member.
func (tree) sendDown(c *call, root, first, last int) error {
	_, children := family(c.own(), c.group.Size(), root)
	for i := len(children) - 1; i >= 0; i-- {
		if err := c.send(children[i], phaseGather, 0, first, c.at(c.dst, first, last)); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) allReduce(c *call) error {
	if c.group.Size() == 1 {
		pass(c.format, c.dst, c.src)
		return nil
	}
	err := t.reduce(c, c.dst, func(first, last int) error { return t.sendDown(c, 0, first, last) })
	if err != nil {
		return err
	}
	return t.down(c, 0)
}

func (t tree) reduceScatter(c *call) error {
	if c.group.Size() == 1 {
		pass(c.format, c.dst, c.src)
		return nil
	}
	var work []byte
	if _, children := family(c.own(), c.group.Size(), 0); children != nil {
		work = make([]byte, len(c.src))
	}
	if err := t.reduce(c, work, func(int, int) error { return nil }); err != nil {
		return err
	}
	return scatter(c, work)
}

// scatter sends the pieces of the sums of rank 0 to their ranks.
func scatter(c *call, sums []byte) error {
	from, to := c.piece(c.own())
	if c.own() != 0 {
		return c.recvStep(0, phaseGather, 0, from, to, func(first, last int, payload []byte) error {
			copy(c.at(c.dst, first-from, last-from), payload)
			return nil
		})
	}
	copy(c.dst, c.at(sums, from, to))
	for rank := 1; rank < c.group.Size(); rank++ {
		from, to := c.piece(rank)
		if err := c.sendStep(rank, phaseGather, 0, from, to, sums); err != nil {
			return err
		}
	}
	return nil
}

// collect copies the pieces of all members into dst of rank 0.
func collect(c *call) error {
	from, to := c.piece(c.own())
	if c.own() != 0 {
		for first, last := range c.chunks(from, to) {
			if err := c.send(0, phaseReduce, 0, first, c.at(c.src, first-from, last-from)); err != nil {
				return err
			}
		}
		return nil
	}
	copy(c.at(c.dst, from, to), c.src)
	for rank := 1; rank < c.group.Size(); rank++ {
		from, to := c.piece(rank)
		err := c.recvStep(rank, phaseReduce, 0, from, to, func(first, last int, payload []byte) error {
			copy(c.at(c.dst, first, last), payload)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t tree) allGather(c *call) error {
	if err := collect(c); err != nil {
		return err
	}
	return t.fromRoot(c, 0)
}

func (t tree) broadcast(c *call) error { return t.fromRoot(c, int(c.root)) }

// fromRoot broadcasts dst of the root.
func (t tree) fromRoot(c *call, root int) error {
	if c.own() != root {
		return t.down(c, root)
	}
	for first, last := range c.chunks(0, int(c.length)) {
		if err := t.sendDown(c, root, first, last); err != nil {
			return err
		}
	}
	return nil
}
