package selftest

import (
	"context"
	"errors"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// checkRegisters makes invalid accesses and set-ups. The running job must survive them.
func checkRegisters(ctx context.Context, r *rehearsal) error {
	const otherToken = 0x0dd
	next := r.epoch + 1
	for _, t := range []struct {
		what          string
		token, ports  uint64
		chunk, window int
		commit        uint64
		want          wire.Code
	}{
		{"the same set-up again", r.token, r.members(), r.chunk, 1, commitValue(r.epoch), wire.CodeDone},
		{"another host's token", otherToken, r.members(), r.chunk, 1, commitValue(next), wire.CodeBusy},
		{"a job number too high", r.token, r.members(), r.chunk, 1, commitValue(next) | uint64(r.jobs)<<48, wire.CodeBadJob},
		{"the running epoch with another first VID", r.token, r.members(), r.chunk, 1, commitValue(r.epoch) + 1, wire.CodeEpochInUse},
		{"an older epoch", r.token, r.members(), r.chunk, 1, commitValue(r.epoch - 1), wire.CodeStaleEpoch},
		{"no ports", r.token, 0, r.chunk, 1, commitValue(next), wire.CodeBadPorts},
		{"a chunk of 0", r.token, r.members(), 0, 1, commitValue(next), wire.CodeBadChunk},
		{"a chunk over the card's", r.token, r.members(), r.maxChunk + r.lanes, 1, commitValue(next), wire.CodeBadChunk},
		{"a window of 0", r.token, r.members(), r.chunk, 0, commitValue(next), wire.CodeBadWindow},
		{"a window of 3", r.token, r.members(), r.chunk, 3, commitValue(next), wire.CodeBadWindow},
		{"a window over the card's", r.token, r.members(), r.chunk, 2 * r.maxWindow, commitValue(next), wire.CodeBadWindow},
	} {
		if err := r.stage(ctx, t.token, t.ports, t.chunk, t.window); err != nil {
			return err
		}
		_, code, err := r.write(ctx, wire.RegJobCommit, t.commit)
		if err := check(err, code == t.want, "JOB_COMMIT with %s has the reply %s, must be %s", t.what, code, t.want); err != nil {
			return err
		}
	}
	if err := checkBadDeadline(ctx, r); err != nil {
		return err
	}
	if r.jobs > 1 {
		if err := checkNoSlots(ctx, r); err != nil {
			return err
		}
	}
	return checkAccesses(ctx, r, otherToken)
}

// checkBadDeadline tries to set up a job with partial sums but no deadline.
func checkBadDeadline(ctx context.Context, r *rehearsal) error {
	if err := r.stage(ctx, r.token, r.members(), r.chunk, 1); err != nil {
		return err
	}
	if _, _, err := r.write(ctx, wire.RegJobDeadline, 1<<32); err != nil {
		return err
	}
	_, code, err := r.write(ctx, wire.RegJobCommit, commitValue(r.epoch+1))
	return check(err, code == wire.CodeBadDeadline, "JOB_COMMIT with partial sums without a deadline has the reply %s, must be %s", code, wire.CodeBadDeadline)
}

// checkNoSlots tries to set up a second job that needs all slots.
func checkNoSlots(ctx context.Context, r *rehearsal) error {
	const second = 1
	state := wire.JobAddr(wire.RegJobState, second)
	before, code, err := r.read(ctx, state)
	if err := check(err, code == wire.CodeDone, "reading JOB_STATE of job %d has the reply %s", second, code); err != nil {
		return err
	}
	if err := r.stage(ctx, r.token, r.members(), r.chunk, r.maxWindow); err != nil {
		return err
	}
	_, code, err = r.write(ctx, wire.RegJobCommit, commitValue(uint16(before>>16)+1)|second<<48)
	if err := check(err, code == wire.CodeNoSlots, "JOB_COMMIT with a window too large for the free slots has the reply %s, must be %s", code, wire.CodeNoSlots); err != nil {
		return err
	}
	after, _, err := r.read(ctx, state)
	return check(err, after == before, "JOB_STATE of job %d is %#x after a refused set-up, must be %#x as before", second, after, before)
}

// checkAccesses makes single accesses that must change nothing.
func checkAccesses(ctx context.Context, r *rehearsal, otherToken uint64) error {
	for _, nowhere := range []uint32{0x3f8, wire.JobAddr(wire.RegJobState, r.jobs)} {
		v, code, err := r.read(ctx, nowhere)
		if err := check(err, code == wire.CodeBadAddress && v == 0, "reading 0x%x has the reply %s with value %x", nowhere, code, v); err != nil {
			return err
		}
	}
	v, code, err := r.write(ctx, wire.RegMagic, 0)
	if err := check(err, code == wire.CodeReadOnly && v == 0, "writing MAGIC has the reply %s with value %x", code, v); err != nil {
		return err
	}
	v, code, err = r.write(ctx, wire.RegOwner, otherToken)
	if err := check(err, code == wire.CodeDone && v == r.token, "writing OWNER while it is taken has the reply %s with value %x", code, v); err != nil {
		return err
	}
	return r.running(ctx, true)
}

// running checks whether the job is set up.
func (r *rehearsal) running(ctx context.Context, want bool) error {
	state, _, err := r.read(ctx, wire.RegJobState)
	ok := state&1 != 0 == want && uint16(state>>16) == r.epoch
	return check(err, ok, "JOB_STATE is %#x, must say set up: %t, epoch %d", state, want, r.epoch)
}

// checkRefusals sends contributions that the card must refuse.
func checkRefusals(ctx context.Context, r *rehearsal) error {
	good := r.header(wire.KindData, 0, firstVID)
	for _, t := range []struct {
		counter string
		spoil   func(h *frame.Header)
	}{
		{r.foreign("bad_job"), func(h *frame.Header) { h.Job = uint8(r.jobs) }},
		{"bad_epoch", func(h *frame.Header) { h.Epoch-- }},
		{r.foreign("bad_rank"), func(h *frame.Header) { h.Rank = uint8(r.ports) }},
		{"bad_format", func(h *frame.Header) { h.Format = r.otherFormat() }},
		{"late", func(h *frame.Header) { h.VID = firstVID - 1 }},
		{"early", func(h *frame.Header) { h.VID = firstVID + 2 }},
	} {
		bad := good
		t.spoil(&bad)
		err := r.rises(ctx, map[string]uint32{t.counter: 1}, func() error { return r.send(bad, r.wholePayload(0)) })
		if err != nil {
			return wrong("data that is %s: %w", t.counter, err)
		}
	}
	for _, ask := range []func(context.Context, *rehearsal) error{checkForeignHeaders, checkLengths, checkRepeats} {
		if err := ask(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// otherFormat returns another format with the same size of an element.
func (r *rehearsal) otherFormat() wire.Format {
	for _, f := range wire.Formats {
		if f.Bits == r.format.Bits && f.Format != r.format.Format {
			return f.Format
		}
	}
	return 0
}

// checkForeignHeaders sends headers of another version and of an unknown kind.
func checkForeignHeaders(ctx context.Context, r *rehearsal) error {
	version := r.header(wire.KindAsk, 0, firstVID)
	version.Version = wire.Version + 1
	const noKind = wire.Kind(7)
	for counter, h := range map[string]frame.Header{"bad_version": version, "bad_kind": r.header(noKind, 0, firstVID)} {
		if err := r.rises(ctx, map[string]uint32{counter: 1}, func() error { return r.send(h, nil) }); err != nil {
			return wrong("a header that is %s: %w", counter, err)
		}
	}
	return nil
}

// checkLengths sends a length other than the job's, and one over the card's limit. It sends only
// the header of the latter, because the card does not wait for the rest.
func checkLengths(ctx context.Context, r *rehearsal) error {
	want := map[string]uint32{"bad_length": 1}
	h := r.header(wire.KindData, 0, firstVID)
	if r.chunk > r.lanes {
		h.Length = uint16(r.lanes)
		if err := r.rises(ctx, want, func() error { return r.send(h, r.wholePayload(0)[:r.inBytes()*r.lanes]) }); err != nil {
			return wrong("data of half a chunk: %w", err)
		}
	}
	h.Length = uint16(r.maxChunk + r.lanes)
	start := r.line.whole(&h, nil)
	if !r.packets {
		start = start[:len(start)-wire.CRCBytes]
	}
	if err := r.rises(ctx, want, func() error { return r.line.sendRaw(start) }); err != nil {
		return wrong("data of more than the card's largest chunk: %w", err)
	}
	return nil
}

// checkRepeats sends a contribution twice. It also sends one that would overwrite a result that
// others may still ask for.
func checkRepeats(ctx context.Context, r *rehearsal) error {
	if r.ports == 1 {
		return nil // the first contribution completes a chunk
	}
	stored := map[string]uint32{"stored": 1, "duplicate": 1}
	err := r.rises(ctx, stored, func() error { return errors.Join(r.sendWhole(0, firstVID), r.sendWhole(0, firstVID)) })
	if err != nil {
		return wrong("the same contribution twice: %w", err)
	}
	for rank := 1; rank < r.ports; rank++ {
		if err := r.sendWhole(rank, firstVID); err != nil {
			return err
		}
	}
	if err := r.collect(ctx, firstVID); err != nil {
		return err
	}
	err = r.rises(ctx, map[string]uint32{"not_ready": 1}, func() error { return r.sendWhole(0, firstVID+2) })
	if err != nil {
		return wrong("a contribution to a slot that other ranks still need: %w", err)
	}
	return nil
}

// checkDamage sends frames with a flipped bit and bytes that are no frame. The card must still
// sum the next chunk correctly.
func checkDamage(ctx context.Context, r *rehearsal) error {
	if r.packets {
		return checkDamagedDatagrams(ctx, r)
	}
	h := r.header(wire.KindData, 0, firstVID)
	whole := frame.Append(nil, &h, r.wholePayload(0))
	garbage := append([]byte{wire.Sync[0], wire.Sync[1], 0, wire.Sync[0]}, wire.Sync[:]...)
	garbage = append(garbage, make([]byte, 64)...)
	all := uint32(len(whole))
	for _, t := range []struct {
		what string
		sent []byte
		want map[string]uint32
	}{
		{"a bit flipped in the VID", flippedAt(whole, wire.SyncBytes+8), map[string]uint32{"header_crc": 1, "hunted": all}},
		{"a bit flipped in the sync word", flippedAt(whole, 1), map[string]uint32{"hunted": all}},
		{"a bit flipped in the first element", flippedAt(whole, wire.SyncBytes+wire.BaseHeaderBytes+wire.CRCBytes), map[string]uint32{"payload_crc": 1}},
		{"a bit flipped in the last byte", flippedAt(whole, len(whole)-1), map[string]uint32{"payload_crc": 1}},
		{"a sync word in garbage", garbage, map[string]uint32{"header_crc": 1, "hunted": uint32(len(garbage))}},
	} {
		if err := r.rises(ctx, t.want, func() error { return r.line.sendRaw(t.sent) }); err != nil {
			return wrong("%s: %w", t.what, err)
		}
	}
	if err := r.sendAll(firstVID); err != nil {
		return err
	}
	return r.collect(ctx, firstVID)
}

// checkMissing contributes for rank 0 only, and asks.
func checkMissing(ctx context.Context, r *rehearsal) error {
	if err := r.sendWhole(0, firstVID); err != nil {
		return err
	}
	others := r.members() &^ 1
	for _, t := range []struct {
		rank int
		vid  uint32
		code wire.Code
		mask uint64
	}{
		{0, firstVID, wire.CodeWait, others},
		{1, firstVID, wire.CodeSend, others},
		{1, firstVID + 1, wire.CodeSend, r.members()}, // a chunk without contributions
	} {
		if err := r.send(r.header(wire.KindAsk, t.rank, t.vid), nil); err != nil {
			return err
		}
		if err := r.status(ctx, t.rank, t.vid, t.code, t.mask); err != nil {
			return err
		}
	}
	return nil
}

// checkReplay has a chunk summed. Every rank then requests the sum again, by an ask and by
// repeating its contribution.
func checkReplay(ctx context.Context, r *rehearsal) error {
	if err := r.sendAll(firstVID); err != nil {
		return err
	}
	if err := r.collect(ctx, firstVID); err != nil {
		return err
	}
	for rank := range r.ports {
		for _, again := range []func() error{
			func() error { return r.send(r.header(wire.KindAsk, rank, firstVID), nil) },
			func() error { return r.sendWhole(rank, firstVID) },
		} {
			if err := again(); err != nil {
				return err
			}
			receivers, err := r.sum(ctx, wire.KindReplay, firstVID)
			if err != nil {
				return err
			}
			if receivers != 1<<rank {
				return wrong("the replay for rank %d is sent to ranks %#x", rank, receivers)
			}
		}
	}
	return nil
}

// checkFinish finishes rank after rank. The last finish must end the job, and the card must still
// confirm a repeated finish.
func checkFinish(ctx context.Context, r *rehearsal) error {
	finish := func(rank int) error {
		if err := r.send(r.header(wire.KindFinish, rank, firstVID), nil); err != nil {
			return err
		}
		return r.status(ctx, rank, firstVID, wire.CodeDone, 0)
	}
	for rank := range r.ports {
		if err := r.running(ctx, true); err != nil {
			return err
		}
		if err := finish(rank); err != nil {
			return err
		}
	}
	if err := r.running(ctx, false); err != nil {
		return err
	}
	if err := finish(0); err != nil {
		return err
	}
	return r.rises(ctx, map[string]uint32{"bad_job": 1}, func() error { return r.sendWhole(0, firstVID) })
}
