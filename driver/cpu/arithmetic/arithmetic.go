// Package arithmetic sums arrays as a card does, bit for bit (section 7 of the specification), at
// the speed of memory. It follows the specification alone, not the model or the gateware.
//
// An Arithmetic works in tiles that stay in the first-level cache. Elements of the narrow formats
// become fp32 numbers on the way in, which is exact, and are encoded on the way out. Every number
// in between is the bits of an fp32 number or of an int32.
//
// Two paths give the same bits. The portable path is plain Go. On amd64 with AVX2, kernels handle
// eight elements at a time. A kernel handles only elements that it can decide and that are not to
// be reported, and stops before the others; the portable path handles those.
//
// The arithmetic relies on the floating-point environment that Go sets up: rounding to nearest, and
// subnormals kept.
package arithmetic

import (
	"errors"
	"fmt"

	"tributary/driver/wire"
)

// MaxRows is the largest number of rows of a sum.
const MaxRows = 64

// sums lists the sums of floating-point formats and of integers.
var sums = map[wire.Sum]struct{ floats, integers operation }{
	wire.SumTree:  {(*Arithmetic).tree, (*Arithmetic).integers},
	wire.SumFused: {(*Arithmetic).fused, (*Arithmetic).integers},
	wire.SumExact: {(*Arithmetic).exact, (*Arithmetic).integers},
	wire.SumMax:   {(*Arithmetic).largest, (*Arithmetic).largestInteger},
}

// operation computes the sums of a block: of the elements from..to of w.wide, into the same
// elements of w.sums.
type operation func(a *Arithmetic, w *Workspace, from, to int)

// Arithmetic is the arithmetic of a card. Several goroutines may use one at once.
type Arithmetic struct {
	which    wire.Sum
	in, out  *format
	adds     bool // every sum of a NaN or an infinity is one
	saturate bool
	portable operation
	fast     *fastPath // nil: portable alone
}

// New returns the arithmetic of cards with the given sum, formats of contributions and of results,
// and, for int32, saturation.
func New(sum wire.Sum, format, result wire.Format, saturate bool) (*Arithmetic, error) {
	row, known := sum.Info()
	in, knownFormat := format.Info()
	out, knownResult := result.Info()
	operations, implemented := sums[sum]
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(!known || !implemented, "sum: there is no %v", sum)
	refuse(!knownFormat, "format: there is no %v", format)
	refuse(!knownResult, "result: there is no %v", result)
	refuse(knownFormat && knownResult && !in.FitsIn(out), "result: %v does not hold every %v", result, format)
	refuse(saturate && knownFormat && in.Exp > 0, "saturate: %v does not saturate", format)
	refuse(saturate && known && !row.Adds, "saturate: %v never overflows", sum)
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	a := &Arithmetic{which: sum, in: newFormat(in), out: newFormat(out), adds: row.Adds, saturate: saturate, portable: operations.floats}
	if in.Exp == 0 {
		a.portable = operations.integers
	}
	a.fast = newFastPath(a)
	return a, nil
}

// Portable returns the same arithmetic without kernels.
func (a *Arithmetic) Portable() *Arithmetic {
	portable := *a
	portable.fast = nil
	return &portable
}

// Sum writes the sum of rows to dst. rows[p] is the contribution of port p, and nil where the port
// is no member or its contribution is missing. At least one row is present. dst and the rows are
// payloads: little-endian encodings, aligned or not, all of as many elements. dst is the memory of
// a row with elements of the same size, or overlaps no row.
//
// The elements belong to chunks of chunk elements, at least 1; the last may be shorter. Sum calls
// each for every chunk with something to report, in order.
func (a *Arithmetic) Sum(dst []byte, rows [][]byte, chunk int, w *Workspace, each func(chunk int, e Exceptions)) {
	elements := len(dst) / a.out.size
	if elements*a.out.size != len(dst) {
		panic(fmt.Sprintf("arithmetic: a result of %d bytes for %v", len(dst), a.out.Format))
	}
	w.take(rows, elements*a.in.size, a.which == wire.SumTree && !a.out.integer())
	defer w.release()
	reached(dst, rows)
	r := report{chunk: chunk, each: each}
	if a.fast != nil && a.fast.inPlace {
		a.sumInPlace(dst, elements, w, &r)
	} else {
		for from := 0; from < elements; from += tile {
			a.sumTile(dst, from, min(tile, elements-from), w, &r)
		}
	}
	r.flush()
}

// sumTile sums the n elements from element from on. It widens them into the workspace, so dst may
// be the memory of a row.
func (a *Arithmetic) sumTile(dst []byte, from, n int, w *Workspace, r *report) {
	a.load(w, from, n)
	ordinary := true
	for done := 0; done < n; {
		end := n // of what the portable path sums
		if a.fast != nil {
			if done += a.fast.sum(w, w.wideAt(done), bytesOf(w.sums[done:]), roundUp(n-done)); done >= n {
				break
			}
			end = min(done+lanes, n)
		}
		ordinary = a.portably(w, done, end, from, r) && ordinary
		done = end
	}
	a.store(dst, from, n, w, ordinary)
}

// sumInPlace sums all n elements without widening: the kernels read the rows and write to dst.
func (a *Arithmetic) sumInPlace(dst []byte, n int, w *Workspace, r *report) {
	for done := 0; done < n; {
		if asked := min((n-done)/lanes*lanes, longest); asked > 0 {
			sums := a.fast.sum(w, w.rowsAt(done*a.in.size), &dst[done*a.out.size], asked)
			if done += sums; sums == asked {
				continue
			}
		}
		block := min(lanes, n-done)
		w.load(a.in, done, block)
		a.portably(w, 0, block, done, r)
		a.out.store(dst[done*a.out.size:], w.sums[:block])
		done += block
	}
}

// portably sums the elements from..to of w.wide on the portable path, and reports them. at is the
// number of element 0. It returns whether there was nothing to report.
func (a *Arithmetic) portably(w *Workspace, from, to, at int, r *report) (ordinary bool) {
	a.portable(a, w, from, to)
	switch {
	case !a.out.integer():
		return a.countFloats(w, from, to, at, r)
	case a.adds:
		a.countIntegers(w, from, to, at, r)
	}
	return true
}

// load widens n elements of every row into w.wide.
func (a *Arithmetic) load(w *Workspace, from, n int) {
	if a.fast != nil {
		a.fast.load(a.in, w, from, n)
		return
	}
	w.load(a.in, from, n)
}

// store encodes the sums of n elements. If ordinary, all are finite.
func (a *Arithmetic) store(dst []byte, from, n int, w *Workspace, ordinary bool) {
	dst = dst[from*a.out.size : (from+n)*a.out.size]
	done := 0
	if a.fast != nil && ordinary {
		done = a.fast.store(dst, w.sums[:n])
	}
	a.out.store(dst[done*a.out.size:], w.sums[done:n])
}

// HoldsNonfinite reports whether an element of a contribution is a NaN or an infinity.
func (a *Arithmetic) HoldsNonfinite(payload []byte) bool { return a.in.holdsNonfinite(payload) }
