package driver

// The set-up of a job: its epoch, the staged parameters, and the commit. The driver then checks
// that the card took these parameters (SPEC.md, sections 4 and 8).

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Bit positions in JOB_COMMIT and JOB_ABORT.
const (
	commitEpochShift = 32
	commitJobShift   = 48
)

// jobName returns the job's number and epoch as in JOB_COMMIT and JOB_ABORT.
func jobName(number uint8, epoch uint16) uint64 {
	return uint64(epoch)<<commitEpochShift | uint64(number)<<commitJobShift
}

// nextEpoch returns the epoch of a number's next job: the last epoch plus one, or a random one
// if there was none.
func (c *Card) nextEpoch(ctx context.Context, l *link, number uint8) (uint16, error) {
	epoch, set, err := c.lastEpoch(ctx, l, number)
	if err != nil {
		return 0, err
	}
	if set {
		return epoch + 1, nil
	}
	var b [2]byte
	if _, err := io.ReadFull(c.opts.random, b[:]); err != nil {
		return 0, &failure{at: place{card: c.name}, what: "no random epoch", err: err}
	}
	return binary.LittleEndian.Uint16(b[:]), nil
}

// lastEpoch returns the epoch of the number's last job, and whether there was one.
func (c *Card) lastEpoch(ctx context.Context, l *link, number uint8) (epoch uint16, set bool, err error) {
	state, err := c.readOn(ctx, l, wire.JobAddr(wire.RegJobState, int(number)))
	return uint16(state >> stateEpochShift), state&stateEpochSet != 0, err
}

// mostSetUps limits how often setUp repeats. Each failure needs a delayed copy of a frame that
// arrives at the wrong moment.
const mostSetUps = 10

// setUp stages the job's parameters and commits them, for an epoch that begins with chunk
// first. On a link that reorders frames, a delayed copy of an earlier job's parameters can
// arrive between staging and commit. Then setUp repeats both in the next epoch. It returns the
// last epoch, also when it fails.
func (j *Job) setUp(ctx context.Context, l *link, epoch uint16, first uint32) (uint16, error) {
	staged, err := j.staged(ctx, l)
	if err != nil {
		return epoch, err
	}
	if j.card.opts.reads {
		return epoch, ErrReadOnly
	}
	for range mostSetUps {
		refused, err := j.commit(ctx, l, staged, epoch, first)
		if err != nil {
			return epoch, err
		}
		right, err := j.looksRight(ctx, l, staged, refused == nil)
		switch {
		case err != nil:
			return epoch, err
		case right && refused != nil:
			return epoch, refused
		case right:
			return epoch, nil
		case refused != nil:
			continue // the card has not set up the job
		}
		if _, err := j.card.writeOn(ctx, l, wire.RegJobAbort, jobName(j.number, epoch)); err != nil {
			return epoch, err
		}
		epoch++
	}
	return epoch, &failure{at: place{card: j.card.name}, what: fmt.Sprintf("job %d was set up %d times, but never with the values written; check whether another program writes the card's registers",
		j.number, mostSetUps)}
}

// commit stages the job's parameters and commits them. It returns a refusal of the commit as
// refused, not as err.
func (j *Job) commit(ctx context.Context, l *link, staged []frame.Header, epoch uint16, first uint32) (refused *RefusedError, err error) {
	if _, err := j.card.accessOn(ctx, l, staged...); err != nil {
		return nil, err
	}
	_, err = j.card.writeOn(ctx, l, wire.RegJobCommit, uint64(first)|jobName(j.number, epoch))
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// staged returns the writes that stage the job's parameters.
func (j *Job) staged(ctx context.Context, l *link) ([]frame.Header, error) {
	deadline, err := j.deadline(ctx, l)
	if err != nil {
		return nil, err
	}
	return []frame.Header{
		writeHeader(wire.RegJobToken, j.card.token),
		writeHeader(wire.RegJobPorts, j.ports()),
		writeHeader(wire.RegJobChunk, uint64(j.cfg.Chunk)),
		writeHeader(wire.RegJobWindow, uint64(j.cfg.Window)),
		writeHeader(wire.RegJobDeadline, deadline),
	}, nil
}

// ports returns bit p for every port p of the job.
func (j *Job) ports() (ports uint64) {
	for _, p := range j.cfg.Ports {
		ports |= 1 << p
	}
	return ports
}

// looksRight reports whether the staged parameters are unchanged after the commit. For a job
// that is set up, it also compares the members and the number of slots. The card does not
// report the job's chunk or deadline. A wrong value goes unnoticed if one delayed copy came
// before the commit and another, with the right value, after it.
func (j *Job) looksRight(ctx context.Context, l *link, staged []frame.Header, isSetUp bool) (bool, error) {
	var reads []frame.Header
	var want []uint64
	expect := func(addr uint32, value uint64) {
		reads, want = append(reads, readHeader(addr)), append(want, value)
	}
	for _, h := range staged {
		expect(h.VID, h.Mask)
	}
	if isSetUp {
		expect(wire.JobAddr(wire.RegJobMembers, int(j.number)), j.ports())
		expect(wire.JobAddr(wire.RegJobSlots, int(j.number)), uint64(2*j.cfg.Window))
	}
	got, err := j.card.accessOn(ctx, l, reads...)
	if err != nil {
		return false, err
	}
	if isSetUp {
		got[len(got)-1] >>= slotsCountShift
	}
	for i := range want {
		if got[i] != want[i] {
			return false, nil
		}
	}
	return true, nil
}
