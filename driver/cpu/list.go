package cpu

// list is a doubly linked list of slots. A slot has an element for each list that it can be in at
// the same time, so no list allocates.
type list struct{ first, last *element }

// element is a slot's place in a list.
type element struct {
	slot       *slot
	of         *list // nil: in none
	prev, next *element
}

// push appends e, which is in no list.
func (l *list) push(e *element) { l.insert(l.last, e) }

// insert puts e, which is in no list, behind after; nil means at the beginning.
func (l *list) insert(after, e *element) {
	e.of, e.prev = l, after
	if after == nil {
		e.next, l.first = l.first, e
	} else {
		e.next, after.next = after.next, e
	}
	if e.next == nil {
		l.last = e
	} else {
		e.next.prev = e
	}
}

// leave takes e out of its list, if it is in one.
func (e *element) leave() {
	if e.of == nil {
		return
	}
	if e.prev == nil {
		e.of.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		e.of.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.of, e.prev, e.next = nil, nil, nil
}
