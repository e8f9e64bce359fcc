package explorer

import "hash/maphash"

// States are the states that a search has found, numbered from 0 in that order. S is what a step
// changes. What is kept of it may be less.
type States[S any] interface {
	// Has reports whether a state is known.
	Has(*S) bool
	// Add adds a state, and returns false if it is known.
	Add(*S) bool
	// Load sets a state to one that is kept.
	Load(number int, s *S)
	// Is reports whether a state counts as the one that is kept.
	Is(number int, s *S) bool
	Len() int
}

// Set keeps states as they are.
type Set[S comparable] struct {
	all    []S
	places map[uint64]int32 // by hash; a state whose place is taken has one of the next
}

var seed = maphash.MakeSeed()

// NewSet returns an empty set.
func NewSet[S comparable]() *Set[S] { return &Set[S]{places: map[uint64]int32{}} }

// find returns the place of a state: its number there, and whether it is known.
func (k *Set[S]) find(s *S) (place uint64, there bool) {
	for place = maphash.Comparable(seed, *s); ; place++ {
		n, taken := k.places[place]
		if !taken {
			return place, false
		}
		if k.all[n] == *s {
			return place, true
		}
	}
}

// Has reports whether a state is known.
func (k *Set[S]) Has(s *S) bool {
	_, there := k.find(s)
	return there
}

// Add adds a state, and returns false if it is known.
func (k *Set[S]) Add(s *S) bool {
	place, there := k.find(s)
	if there {
		return false
	}
	k.places[place] = int32(len(k.all))
	k.all = append(k.all, *s)
	return true
}

// Load sets a state to the one of a number.
func (k *Set[S]) Load(number int, s *S) { *s = k.all[number] }

// Is reports whether a state is the one of a number.
func (k *Set[S]) Is(number int, s *S) bool { return *s == k.all[number] }

// Len returns the number of states.
func (k *Set[S]) Len() int { return len(k.all) }

// All returns the states.
func (k *Set[S]) All() []S { return k.all }

// Encodings keep states as strings of bytes. States of one key are one state: a key is the encoding of
// the state itself, or of the one that represents all that differ only in the numbers of equal parts.
type Encodings struct {
	known map[string]struct{} // keys
	all   []string
}

// NewEncodings returns an empty set.
func NewEncodings() *Encodings { return &Encodings{known: map[string]struct{}{}} }

// Has reports whether a key is known.
func (e *Encodings) Has(key []byte) bool {
	_, known := e.known[string(key)]
	return known
}

// Add adds the encoding of a state, and returns false if its key is known.
func (e *Encodings) Add(key, own []byte) bool {
	if e.Has(key) {
		return false
	}
	k := string(key)
	e.known[k] = struct{}{}
	if string(own) != k {
		k = string(own)
	}
	e.all = append(e.all, k)
	return true
}

// Len returns the number of states.
func (e *Encodings) Len() int { return len(e.all) }

// All returns the encodings.
func (e *Encodings) All() []string { return e.all }

// Reader reads an encoding, little-endian. The program that wrote it knows its length, so a Reader does not
// check it.
type Reader string

// Byte reads a byte.
func (r *Reader) Byte() byte {
	b := (*r)[0]
	*r = (*r)[1:]
	return b
}

// Uint16 reads 2 bytes.
func (r *Reader) Uint16() uint16 {
	low := uint16(r.Byte())
	return low | uint16(r.Byte())<<8
}

// Uint64 reads 8 bytes.
func (r *Reader) Uint64() uint64 {
	var v uint64
	for i := range 8 {
		v |= uint64(r.Byte()) << (8 * i)
	}
	return v
}
