package ethernet

// queue is a bounded queue of frames that leave at one or more ports each.
type queue struct {
	most    int
	waiting []leaving
}

// leaving is a frame and the ports at which it has not left.
type leaving struct {
	frame []byte
	ports []int
}

// push adds a frame. It reports whether there was room.
func (q *queue) push(frame []byte, ports []int) bool {
	if len(q.waiting) == q.most {
		return false
	}
	q.waiting = append(q.waiting, leaving{frame, ports})
	return true
}

// pop returns the next frame and one of its ports.
func (q *queue) pop() (frame []byte, port int, ok bool) {
	if len(q.waiting) == 0 {
		return nil, 0, false
	}
	first := &q.waiting[0]
	frame, port = first.frame, first.ports[0]
	if first.ports = first.ports[1:]; len(first.ports) == 0 {
		q.waiting = append(q.waiting[:0], q.waiting[1:]...)
	}
	return frame, port, true
}
