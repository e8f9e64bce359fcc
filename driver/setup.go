package driver

// The set-up of a job: its epoch, the staged parameters, and the commit. The driver then checks
// that the card took these parameters (SPEC.md, sections 4 and 8).

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

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
	epoch, set, _, err = c.jobState(ctx, l, number)
	return epoch, set, err
}

// jobState returns the epoch of the number's last job, whether there was one, and whether it runs.
func (c *Card) jobState(ctx context.Context, l *link, number uint8) (epoch uint16, set, running bool, err error) {
	state, err := c.readOn(ctx, l, wire.JobAddr(wire.RegJobState, int(number)))
	return uint16(state >> stateEpochShift), state&stateEpochSet != 0, state&stateSetUp != 0, err
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
		right, err := j.looksRight(ctx, l, staged, epoch, refused == nil)
		switch {
		case err != nil:
			return epoch, err
		case right && refused != nil:
			return epoch, refused
		case right:
			j.watch(staged)
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
	if err := j.stage(ctx, l, staged); err != nil {
		return nil, err
	}
	_, err = j.card.writeOn(ctx, l, wire.RegJobCommit, uint64(first)|jobName(j.number, epoch))
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// stage stages the job's parameters. On a network it also reads them back, because a commit with
// another member's address would send results there.
func (j *Job) stage(ctx context.Context, l *link, staged []frame.Header) error {
	for range mostSetUps {
		_, err := j.card.accessOn(ctx, l, staged...)
		if err != nil || !l.packets {
			return err
		}
		got, err := j.readBack(ctx, l, staged)
		if err != nil || hold(got, staged) {
			return err
		}
	}
	return nil // looksRight finds what differs
}

// readBack reads registers that were written.
func (j *Job) readBack(ctx context.Context, l *link, written []frame.Header) ([]uint64, error) {
	reads := make([]frame.Header, len(written))
	for i, h := range written {
		reads[i] = readHeader(h.VID)
	}
	return j.card.accessOn(ctx, l, reads...)
}

// hold reports whether registers have the values that were written to them.
func hold(got []uint64, written []frame.Header) bool {
	for i, h := range written {
		if got[i] != h.Mask {
			return false
		}
	}
	return true
}

// staged returns the writes that stage the job's parameters.
func (j *Job) staged(ctx context.Context, l *link) ([]frame.Header, error) {
	deadline, err := j.deadline(ctx, l)
	if err != nil {
		return nil, err
	}
	members, err := j.stagedMembers(ctx, l)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]frame.Header{
		writeHeader(wire.RegJobToken, j.card.token),
		writeHeader(wire.RegJobPorts, j.ports()),
		writeHeader(wire.RegJobChunk, uint64(j.cfg.Chunk)),
		writeHeader(wire.RegJobWindow, uint64(j.cfg.Window)),
		writeHeader(wire.RegJobDeadline, deadline),
	}, members, j.stagedTree()), nil
}

// stagedMembers returns the writes that stage the addresses of the members of a card on a network. Members
// without an address of their own are behind this link, and have its address as the card sees it.
func (j *Job) stagedMembers(ctx context.Context, l *link) (writes []frame.Header, err error) {
	if !l.packets {
		return nil, nil
	}
	if j.connected != nil {
		return j.stagedConnections(), nil
	}
	own, err := j.card.source(ctx, l)
	if err != nil {
		return nil, err
	}
	for rank, port := range j.cfg.Ports {
		at := own
		if j.relay != nil && j.relay.members != nil {
			at = j.relay.members[rank]
		}
		if j.branch != nil && rank < len(j.branch.members) && j.branch.members[rank] != (wire.Address{}) {
			at = j.branch.members[rank] // of a card below
		}
		writes = append(writes,
			writeHeader(wire.MemberAddr(wire.RegMemberAddress, port), at.Station),
			writeHeader(wire.MemberAddr(wire.RegMemberMAC, port), at.MAC))
	}
	return writes, nil
}

// ports returns bit p for every port p of the job.
func (j *Job) ports() (ports uint64) {
	for _, p := range j.cfg.Ports {
		ports |= 1 << p
	}
	return ports
}

// looksRight reports whether the staged parameters are unchanged after the commit. For a job
// that is set up, it also compares the members and the number of slots, and on a network the epoch
// and the members' addresses. The card does not report the job's chunk or deadline. A wrong value
// goes unnoticed if one delayed copy came before the commit and another, with the right value, after
// it.
func (j *Job) looksRight(ctx context.Context, l *link, staged []frame.Header, epoch uint16, isSetUp bool) (bool, error) {
	want := slices.Clone(staged)
	if isSetUp {
		want = append(want, writeHeader(wire.JobAddr(wire.RegJobMembers, int(j.number)), j.ports()))
		if l.packets {
			want = append(want, writeHeader(wire.JobAddr(wire.RegJobState, int(j.number)), j.stateIn(epoch)))
			want = append(want, j.boundMembers(staged)...)
		}
		want = append(want, writeHeader(wire.JobAddr(wire.RegJobSlots, int(j.number)), uint64(2*j.cfg.Window)))
	}
	got, err := j.readBack(ctx, l, want)
	if err != nil {
		return false, err
	}
	if isSetUp {
		got[len(got)-1] >>= slotsCountShift
	}
	return hold(got, want), nil
}

// stateIn returns the value of JOB_STATE while the job is set up in an epoch.
func (j *Job) stateIn(epoch uint16) uint64 {
	return stateSetUp | stateEpochSet | uint64(epoch)<<stateEpochShift | uint64(j.number)<<stateJobShift
}

// boundMembers returns the entries of the address table that the staged addresses have become, and what
// has become of that of a tree, as if they had been written.
func (j *Job) boundMembers(staged []frame.Header) (entries []frame.Header) {
	for _, h := range staged {
		if of0, port, ok := wire.SplitMemberAddr(h.VID); ok {
			entry := wire.TableAddr(wire.RegJobAddress+(of0-wire.RegMemberAddress), int(j.number), port)
			entries = append(entries, writeHeader(entry, h.Mask))
		}
		if port, ok := wire.SplitConnectionAddr(h.VID); ok {
			entries = append(entries, writeHeader(wire.JobConnectionAddr(int(j.number), port), h.Mask))
		}
		if port, ok := wire.SplitRanksAddr(h.VID); ok {
			entries = append(entries, writeHeader(wire.JobRanksAddr(int(j.number), port), h.Mask))
		}
		switch h.VID {
		case wire.RegJobParent:
			entries = append(entries, writeHeader(wire.JobAddr(wire.RegJobUp, int(j.number)), h.Mask))
		case wire.RegTreeRanks:
			entries = append(entries, writeHeader(wire.JobAddr(wire.RegJobTree, int(j.number)), h.Mask))
		}
	}
	return entries
}
