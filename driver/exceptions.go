package driver

// The card's counts of NaNs, infinities and overflows (SPEC.md, section 7.7), and their
// positions in the arrays.

import (
	"context"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// Exceptions are the card's counts of a job's NaNs, infinities and overflows. The set-up of the
// next job with the same number clears them.
type Exceptions struct {
	NonfiniteIn  Exception // contributed elements that are a NaN or an infinity
	NonfiniteOut Exception // summed elements that are a NaN or an infinity
	Overflow     Exception // summed elements that overflowed from finite contributions
}

// Exception is one kind of exception.
type Exception struct {
	Count uint32 // stops at 2^32 - 1
	VID   uint32 // of the chunk with the first one; meaningless when Count is 0
	Rank  int    // the rank that contributed it; 0 for sums
}

// Any reports whether there are exceptions.
func (e Exceptions) Any() bool {
	return e.NonfiniteIn.Count|e.NonfiniteOut.Count|e.Overflow.Count != 0
}

// Bit positions in JOB_FIRST_IN, JOB_FIRST_OUT and JOB_FIRST_OVERFLOW.
const (
	firstRankShift = 32
	firstRankMask  = 0xff
	firstValid     = 1 << 63
)

// Exceptions reads the card's counts for the job. It works after the job has ended, until
// another job is set up under its number; then it returns EndedError. Other errors are those of
// ReadRegister.
//
// On a tree, each card counts: NonfiniteIn and Overflow are the sums of all cards' counts, so a NaN counts
// on each level, and NonfiniteOut is the root's.
func (j *Job) Exceptions(ctx context.Context) (Exceptions, error) {
	if w := j.tree(); w != nil {
		return w.exceptions(ctx)
	}
	return j.exceptions(ctx)
}

// exceptions is Exceptions for the job's part on this card.
func (j *Job) exceptions(ctx context.Context) (Exceptions, error) {
	read := func(addr uint32) (uint64, error) { return j.card.ReadRegister(ctx, addr) }
	e, err := readExceptions(j.Number(), read)
	if err != nil {
		return e, err
	}
	state, err := read(wire.JobAddr(wire.RegJobState, j.Number()))
	if err != nil {
		return e, err
	}
	if epoch := j.Epoch(); uint16(state>>stateEpochShift) != epoch {
		return e, &EndedError{Card: j.card.name, Epoch: epoch, Err: errReplaced, job: j.name}
	}
	return e, nil
}

// readExceptions reads the counts of the job with that number through read.
func readExceptions(number int, read func(addr uint32) (uint64, error)) (Exceptions, error) {
	var e Exceptions
	for _, r := range []struct {
		kind         *Exception
		count, first uint32
	}{
		{&e.NonfiniteIn, wire.RegJobNonfiniteIn, wire.RegJobFirstIn},
		{&e.NonfiniteOut, wire.RegJobNonfiniteOut, wire.RegJobFirstOut},
		{&e.Overflow, wire.RegJobOverflow, wire.RegJobFirstOverflow},
	} {
		var err error
		if *r.kind, err = readException(number, r.count, r.first, read); err != nil {
			return e, err
		}
	}
	return e, nil
}

// readException reads one kind: its count, and the place of the first if there is one.
func readException(number int, count, first uint32, read func(addr uint32) (uint64, error)) (Exception, error) {
	n, err := read(wire.JobAddr(count, number))
	if err != nil || n == 0 {
		return Exception{}, err
	}
	at, err := read(wire.JobAddr(first, number))
	return Exception{Count: uint32(n), VID: uint32(at), Rank: int(at >> firstRankShift & firstRankMask)}, err
}

// Place is the position of the first exception of a kind in the arrays of a reduction.
type Place struct {
	Chunk   int // in the reduction, counted from 0
	Element int // index in the arrays of the first such element of that chunk
}

// Places are the positions of Exceptions. A field is nil when the reduction has none.
type Places struct {
	NonfiniteIn, NonfiniteOut, Overflow *Place
}

// Locate finds the elements of e in the arrays of one reduction, as ReduceBytes takes them.
// sums are its results and inputs its original inputs. first is the number of chunks in the
// job's earlier reductions; a reduction of N elements has ceil(N/Chunk).
func (j *Job) Locate(e Exceptions, first int, sums []byte, inputs [][]byte) Places {
	return j.locateIn(e, sums, inputs, func(vid uint32) int { return int(vid-j.cfg.FirstVID) - first })
}

// locateIn is Locate. place returns the reduction's chunk with a VID; a number below 0 is none.
func (j *Job) locateIn(e Exceptions, sums []byte, inputs [][]byte, place func(vid uint32) int) Places {
	info := j.card.info
	var p Places
	in := inputs
	if w := j.tree(); w != nil && e.NonfiniteIn.Count > 0 {
		in = w.byRank(inputs)
	}
	p.NonfiniteIn = j.locate(e.NonfiniteIn, place, len(sums)/j.outBytes, func(from, to int) int {
		return element.Nonfinite(info.Format, in[e.NonfiniteIn.Rank][from*j.inBytes:to*j.inBytes])
	})
	p.NonfiniteOut = j.locate(e.NonfiniteOut, place, len(sums)/j.outBytes, func(from, to int) int {
		return element.Nonfinite(info.Result, sums[from*j.outBytes:to*j.outBytes])
	})
	p.Overflow = j.locate(e.Overflow, place, len(sums)/j.outBytes, func(from, to int) int {
		parts := make([][]byte, len(inputs))
		for r, in := range inputs {
			parts[r] = in[from*j.inBytes : to*j.inBytes]
		}
		return element.Overflow(info.Format, info.Result, sums[from*j.outBytes:to*j.outBytes], parts)
	})
	return p
}

// locate searches the chunk of x with find, if the reduction of n elements has that chunk. find
// returns the offset of the first match between from and to, or -1.
func (j *Job) locate(x Exception, place func(uint32) int, n int, find func(from, to int) int) *Place {
	if x.Count == 0 || j.everyone()>>x.Rank&1 == 0 && x.Rank != 0 {
		return nil
	}
	chunk := place(x.VID)
	from := chunk * j.cfg.Chunk
	if chunk < 0 || from >= n {
		return nil
	}
	at := find(from, min(from+j.cfg.Chunk, n))
	if at < 0 {
		return nil
	}
	return &Place{Chunk: chunk, Element: from + at}
}
