// What section 7.7 counts.

package arithmetic

// Exceptions are what a chunk has to report.
type Exceptions struct {
	In       uint64 // bit p: the contribution of port p holds a NaN or an infinity
	Out      int    // elements of the sum that are NaNs or infinities
	Overflow int    // elements of the sum that overflowed
}

// report collects the exceptions of elements by chunk. Elements come in order.
type report struct {
	chunk   int // elements
	each    func(chunk int, e Exceptions)
	current int // the chunk of sum
	sum     Exceptions
}

// add counts the exceptions of an element.
func (r *report) add(element int, in uint64, out, overflowed bool) {
	if chunk := element / r.chunk; chunk != r.current {
		r.flush()
		r.current = chunk
	}
	r.sum.In |= in
	if out {
		r.sum.Out++
	}
	if overflowed {
		r.sum.Overflow++
	}
}

// flush reports the current chunk.
func (r *report) flush() {
	if r.sum != (Exceptions{}) {
		r.each(r.current, r.sum)
		r.sum = Exceptions{}
	}
}

// countFloats reports the elements from..to of a tile that are NaNs or infinities, or have a
// contribution that is one. Only max has finite sums of such contributions. at is the number of
// element 0.
func (a *Arithmetic) countFloats(w *Workspace, from, to, at int, r *report) (ordinary bool) {
	ordinary = true
	for i := from; i < to; i++ {
		out := nonfinite(w.sums[i])
		if !out && a.adds {
			continue
		}
		var in uint64
		for k, row := range w.rows[:w.used] {
			if row != nil && nonfinite(w.wide[k][i]) {
				in |= 1 << w.ports[k]
			}
		}
		if out || in != 0 {
			r.add(at+i, in, out, out && in == 0)
		}
		ordinary = ordinary && !out
	}
	return ordinary
}
