package driver

// What a card has counted of NaNs, infinities and overflows (SPEC.md, section
// 7.7), and where in the arrays they are.

import (
	"context"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// Exceptions are the elements of a job that were no plain numbers, as the card
// counted them. Setting up the next job of its number clears them.
type Exceptions struct {
	NonfiniteIn  Exception // contributions that held a NaN or an infinity
	NonfiniteOut Exception // elements of sums that are a NaN or an infinity
	Overflow     Exception // elements of sums that overflowed: no contribution to them was a NaN or an infinity
}

// Exception is one kind of exception.
type Exception struct {
	Count uint32 // stops at 2^32 - 1
	VID   uint32 // of the chunk in which the card met the first; of no meaning when Count is 0
	Rank  int    // of whose contribution that was; 0 for sums
}

// Any tells whether there are exceptions at all.
func (e Exceptions) Any() bool {
	return e.NonfiniteIn.Count|e.NonfiniteOut.Count|e.Overflow.Count != 0
}

// The parts of JOB_FIRST_IN, JOB_FIRST_OUT and JOB_FIRST_OVERFLOW.
const (
	firstRankShift = 32
	firstRankMask  = 0xff
)

// Exceptions reads what the card has counted of the job, also after its end. Once
// another job was set up under its number that is gone: EndedError. Other errors
// are those of ReadRegister.
func (j *Job) Exceptions(ctx context.Context) (Exceptions, error) {
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
		return e, &EndedError{Card: j.card.name, Epoch: epoch, Err: errReplaced, job: j.label()}
	}
	return e, nil
}

// readExceptions reads what the card has counted of the job of a number, by a way
// to read registers.
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
		count, err := read(wire.JobAddr(r.count, number))
		if err != nil {
			return e, err
		}
		if r.kind.Count = uint32(count); count == 0 {
			continue
		}
		first, err := read(wire.JobAddr(r.first, number))
		if err != nil {
			return e, err
		}
		r.kind.VID = uint32(first)
		r.kind.Rank = int(first >> firstRankShift & firstRankMask)
	}
	return e, nil
}

// A Place is where the first exception of a kind is in the arrays of a
// reduction.
type Place struct {
	Chunk   int // of the reduction, counted from 0
	Element int // of the arrays; the first such element of that chunk
}

// Places are those of Exceptions; each is nil where there is none in the
// reduction.
type Places struct {
	NonfiniteIn, NonfiniteOut, Overflow *Place
}

// Locate finds the elements that e speaks of in the arrays of one reduction, as
// ReduceBytes takes them: sums as it left them, inputs as they were before. first
// is how many chunks earlier reductions of the job had; a reduction of N elements
// has ceil(N/Chunk).
func (j *Job) Locate(e Exceptions, first int, sums []byte, inputs [][]byte) Places {
	info := j.card.info
	var p Places
	p.NonfiniteIn = j.locate(e.NonfiniteIn, first, len(sums)/j.outBytes, func(from, to int) int {
		return element.Nonfinite(info.Format, inputs[e.NonfiniteIn.Rank][from*j.inBytes:to*j.inBytes])
	})
	p.NonfiniteOut = j.locate(e.NonfiniteOut, first, len(sums)/j.outBytes, func(from, to int) int {
		return element.Nonfinite(info.Result, sums[from*j.outBytes:to*j.outBytes])
	})
	p.Overflow = j.locate(e.Overflow, first, len(sums)/j.outBytes, func(from, to int) int {
		parts := make([][]byte, len(inputs))
		for r, in := range inputs {
			parts[r] = in[from*j.inBytes : to*j.inBytes]
		}
		return element.Overflow(info.Format, info.Result, sums[from*j.outBytes:to*j.outBytes], parts)
	})
	return p
}

// locate has find search the elements of the chunk that x names, if the reduction
// of n elements has it; find returns how far behind from the first one is, or -1.
func (j *Job) locate(x Exception, first, n int, find func(from, to int) int) *Place {
	if x.Count == 0 || x.Rank >= len(j.members) {
		return nil
	}
	chunk := int(x.VID-j.cfg.FirstVID) - first
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
