package driver

// Reductions by one member or by all, of bytes or of typed arrays. Typed arrays are reduced as
// their bytes in memory.

import (
	"context"
	"fmt"
	"unsafe"

	"tributary/driver/wire"
)

// Reduce adds up inputs[r] over all ranks r into dst, element by element. All arrays have dst's
// length, at least 1; dst may be one of the inputs. When Reduce fails, only some elements of
// dst are sums.
//
// The card must sum fp32 into fp32. For other cards use the function of the same name, or
// ReduceBytes.
//
// In a job with partial sums (JobConfig.Partial), Partials returns which sums lack which ranks.
// Evicted ranks take no part.
//
// Errors: InputError, EndedError, EvictedError (when all are evicted), MissingError,
// TimeoutError, RefusedError, DiedError, ErrClosed, or one that wraps ctx's.
func (j *Job) Reduce(ctx context.Context, dst []float32, inputs [][]float32, opts ...ReduceOption) error {
	return Reduce(ctx, j, dst, inputs, opts...)
}

// Reduce is Job.Reduce for a card of any format. E is the Go type of the card's format, R that
// of its result format (see Element). dst must not overlap an input when the two formats differ
// in size.
func Reduce[R, E Element](ctx context.Context, j *Job, dst []R, inputs [][]E, opts ...ReduceOption) error {
	raw := make([][]byte, 0, wire.MaxPorts) // of constant size, so it needs no allocation
	raw, err := appendInputs[R](raw, j, inputs)
	if err != nil {
		return err
	}
	err = j.ReduceBytes(ctx, memory(dst), raw, opts...)
	arrived(dst)
	return err
}

// appendInputs appends the encodings of inputs to raw, if the types are those of the card's formats.
func appendInputs[R, E Element](raw [][]byte, j *Job, inputs [][]E) ([][]byte, error) {
	if why := wrongType[E](j.card.info.Format); why != "" {
		return nil, &InputError{"inputs", why}
	}
	if why := wrongType[R](j.card.info.Result); why != "" {
		return nil, &InputError{"result", why}
	}
	for _, in := range inputs {
		raw = append(raw, travelling(in))
	}
	return raw, nil
}

// ReduceBytes is Job.Reduce for a card of any format, on encoded arrays: little-endian
// elements, one after another. inputs have the card's format, dst has its result format. dst
// may be one of the inputs when the two formats have the same size. Otherwise it must not
// overlap an input.
func (j *Job) ReduceBytes(ctx context.Context, dst []byte, inputs [][]byte, opts ...ReduceOption) error {
	n, err := j.checkArrays(dst, inputs)
	if err != nil {
		return err
	}
	if w := j.tree(); w != nil {
		return w.reduce(ctx, optionsOf(opts), dst, n, inputs)
	}
	return j.whole.own.reduce(ctx, optionsOf(opts), dst, n, inputs...)
}

// AllReduce replaces buf by its sum with the buffers of all other members. They must call
// AllReduce too, with the same length. It returns when buf holds the sum. A member can make one
// call at a time; the members call from goroutines of their own.
//
// The card must sum fp32 into fp32. For other cards use the function of the same name, or
// AllReduceBytes.
//
// The errors are those of Job.Reduce. After an error, only some elements of buf are sums.
// EvictedError means that this member has left a job with partial sums (JobConfig.Partial).
func (m *Member) AllReduce(ctx context.Context, buf []float32, opts ...ReduceOption) error {
	return AllReduce(ctx, m, buf, buf, opts...)
}

// AllReduce is Member.AllReduce for a card of any format: src is the member's contribution and
// dst receives the sum. E is the Go type of the card's format, R that of its result format (see
// Element). dst may be src when the two formats have the same size. Otherwise it must not
// overlap src.
func AllReduce[R, E Element](ctx context.Context, m *Member, dst []R, src []E, opts ...ReduceOption) error {
	if err := checkTypes[R, E](m); err != nil {
		return err
	}
	err := m.AllReduceBytes(ctx, memory(dst), travelling(src), opts...)
	arrived(dst)
	return err
}

// checkTypes rejects arrays whose types are not those of the card's formats.
func checkTypes[R, E Element](m *Member) error {
	for _, why := range []string{wrongType[E](m.job.card.info.Format), wrongType[R](m.job.card.info.Result)} {
		if why != "" {
			return &InputError{m.bufferName(), why}
		}
	}
	return nil
}

// AllReduceBytes is AllReduce on encoded arrays, as in ReduceBytes.
func (m *Member) AllReduceBytes(ctx context.Context, dst, src []byte, opts ...ReduceOption) error {
	n, err := m.checkBuffers(dst, src)
	if err != nil {
		return err
	}
	return m.own.own.reduce(ctx, optionsOf(opts), dst, n, src)
}

// checkBuffers rejects buffers that cannot be reduced, and returns their number of elements.
func (m *Member) checkBuffers(dst, src []byte) (int, error) {
	n, why := m.job.elements(dst)
	if why == "" {
		why = m.job.wrongInput(src, dst, n)
	}
	if why != "" {
		return 0, &InputError{m.bufferName(), why}
	}
	return n, nil
}

// bufferName returns the name of the member's buffer in messages.
func (m *Member) bufferName() string { return fmt.Sprintf("buffer of rank %d", m.Rank()) }

// checkArrays rejects arrays that cannot be reduced, and returns their number of elements.
func (j *Job) checkArrays(dst []byte, inputs [][]byte) (int, error) {
	return j.checkArraysOf(j.workers(), dst, inputs)
}

// checkArraysOf is checkArrays for another number of workers.
func (j *Job) checkArraysOf(workers int, dst []byte, inputs [][]byte) (int, error) {
	if len(inputs) != workers {
		return 0, &InputError{"inputs", fmt.Sprintf("%d arrays for a job of %d workers; every worker has one", len(inputs), workers)}
	}
	n, why := j.elements(dst)
	if why != "" {
		return 0, &InputError{"result", why}
	}
	for r, in := range inputs {
		if why := j.wrongInput(in, dst, n); why != "" {
			return 0, &InputError{fmt.Sprintf("array of worker %d", r), why}
		}
	}
	return n, nil
}

// elements returns the number of elements of a result array, or why it cannot be one.
func (j *Job) elements(dst []byte) (n int, why string) {
	switch {
	case len(dst) == 0:
		return 0, "it is empty; a reduction has at least one element"
	case len(dst)%j.outBytes != 0:
		return 0, fmt.Sprintf("it has %d bytes; an element of %s has %d", len(dst), j.card.info.Result, j.outBytes)
	}
	return len(dst) / j.outBytes, ""
}

// wrongInput returns why a contribution cannot be summed into dst, which has n elements; "" means
// that it can.
func (j *Job) wrongInput(in, dst []byte, n int) (why string) {
	switch {
	case len(in)%j.inBytes != 0:
		return fmt.Sprintf("it has %d bytes; an element of %s has %d", len(in), j.card.info.Format, j.inBytes)
	case len(in) != n*j.inBytes:
		return fmt.Sprintf("it has %d elements, the result %d; all arrays have the same length", len(in)/j.inBytes, n)
	case &in[0] == &dst[0] && j.inBytes == j.outBytes:
		return ""
	case overlap(in, dst) && j.inBytes == j.outBytes:
		return "it overlaps the result without being the same array; results would overwrite elements before they are sent; use separate arrays"
	case overlap(in, dst):
		return fmt.Sprintf("it overlaps the result, whose elements have %d bytes each and its own %d; results would overwrite elements before they are sent; use separate arrays", j.outBytes, j.inBytes)
	}
	return ""
}

// overlap reports whether two arrays share bytes.
func overlap(a, b []byte) bool {
	pa, pb := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return pa < pb+uintptr(len(b)) && pb < pa+uintptr(len(a))
}
