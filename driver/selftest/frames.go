package selftest

import (
	"context"
	"errors"
	"slices"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// rehearsal is job 0, set up without the driver: all ports of the card and a window of one
// chunk, which means two slots. The first chunk is number firstVID.
type rehearsal struct {
	*host
	arithmetic
	lanes, ports, maxChunk, maxWindow int
	jobs                              int // most jobs the card can hold
	chunk                             int // elements
	token                             uint64
	epoch                             uint16
}

const firstVID = 100

// frameTest is a question with hand-made frames. Each has a job of its own.
type frameTest struct {
	name, what string
	minPorts   int
	ask        func(ctx context.Context, r *rehearsal) error
}

var frameTests = []frameTest{
	{"registers", "invalid register accesses and set-ups are refused with their reason", 1, checkRegisters},
	{"refusals", "packets that must not be summed are refused and counted, each under its reason", 1, checkRefusals},
	{"damage", "flipped bits in headers and payloads are caught and counted, garbage is skipped", 1, checkDamage},
	{"missing", "the reply to an ask names the missing ranks", 2, checkMissing},
	{"replay", "a result that is asked for again is repeated, bit for bit", 1, checkReplay},
	{"finish", "a job ends when all ranks have finished", 1, checkFinish},
}

// strangersTest is the question for cards on a network.
var strangersTest = frameTest{"strangers", "what another address sends changes nothing", 1, checkStrangers}

// testsOf returns the questions for a card on a network, or for another one.
func testsOf(packets bool) []frameTest {
	if packets {
		return append(slices.Clone(frameTests), strangersTest)
	}
	return frameTests
}

func runFrames(ctx context.Context, name string, o Options, report func(Outcome)) error {
	h, err := openHost(ctx, name, o)
	if err != nil {
		return &driver.NoCardError{Name: name, Err: err}
	}
	defer h.close()
	r, err := prepare(ctx, h)
	if err != nil {
		return err
	}
	for _, t := range testsOf(r.packets) {
		if r.ports < t.minPorts {
			continue
		}
		err := r.setUp(ctx)
		if err == nil {
			err = t.ask(ctx, r)
		}
		var died *driver.DiedError
		if ctx.Err() != nil || errors.As(err, &died) {
			return err
		}
		report(Outcome{t.name, t.what, err})
	}
	_, _, err = h.write(ctx, wire.RegRelease, r.token)
	return err
}

// prepare reads the card's sizes and takes ownership of it.
func prepare(ctx context.Context, h *host) (*rehearsal, error) {
	r := &rehearsal{host: h, token: 0x5e1f7e57}
	var formats, sum int
	for addr, to := range map[uint32]*int{
		wire.RegLanes: &r.lanes, wire.RegPorts: &r.ports, wire.RegChunk: &r.maxChunk, wire.RegWindow: &r.maxWindow,
		wire.RegJobs: &r.jobs, wire.RegFormat: &formats, wire.RegSum: &sum,
	} {
		v, code, err := h.read(ctx, addr)
		if err := check(err, code == wire.CodeDone, "the identification block cannot be read: %s", code); err != nil {
			return nil, err
		}
		*to = int(v)
	}
	r.chunk = min(2*r.lanes, r.maxChunk)
	r.arithmetic = newArithmetic(driver.Info{Format: wire.Format(formats), Result: wire.Format(formats >> 8), Sum: wire.Sum(sum)})
	owner, _, err := h.write(ctx, wire.RegOwner, r.token)
	if err == nil && owner != r.token {
		err = &driver.BusyError{Name: h.name, Reason: "another host owns it"}
	}
	if err == nil {
		err = r.bindMembers(ctx)
	}
	return r, err
}

// members returns bit r for each port r.
func (r *rehearsal) members() uint64 { return 1<<r.ports - 1 }

// commitValue returns the value of JOB_COMMIT for an epoch.
func commitValue(epoch uint16) uint64 { return firstVID | uint64(epoch)<<32 }

// stage writes the staged registers of the job.
func (r *rehearsal) stage(ctx context.Context, token, ports uint64, chunk, window int) error {
	for _, w := range []struct {
		addr  uint32
		value uint64
	}{
		{wire.RegJobToken, token}, {wire.RegJobPorts, ports},
		{wire.RegJobChunk, uint64(chunk)}, {wire.RegJobWindow, uint64(window)}, {wire.RegJobDeadline, 0},
	} {
		_, code, err := r.write(ctx, w.addr, w.value)
		if err := check(err, code == wire.CodeDone, "staging register 0x%x has the reply %s", w.addr, code); err != nil {
			return err
		}
	}
	return nil
}

// setUp sets the job up with a new epoch.
func (r *rehearsal) setUp(ctx context.Context) error {
	state, _, err := r.read(ctx, wire.RegJobState)
	if err != nil {
		return err
	}
	r.epoch = uint16(state>>16) + 1
	if err := r.stage(ctx, r.token, r.members(), r.chunk, 1); err != nil {
		return err
	}
	_, code, err := r.write(ctx, wire.RegJobCommit, commitValue(r.epoch))
	return check(err, code == wire.CodeDone, "the job's set-up has the reply %s", code)
}

// header returns the header of a packet of the job.
func (r *rehearsal) header(kind wire.Kind, rank int, vid uint32) frame.Header {
	h := frame.Header{Kind: kind, Epoch: r.epoch, Rank: uint8(rank), VID: vid}
	if kind == wire.KindData {
		h.Format, h.Length = r.format.Format, uint16(r.chunk)
	}
	return h
}

// wholePayload returns the payload of a rank: whole numbers, as in checkPorts.
func (r *rehearsal) wholePayload(rank int) []byte { return r.wholeInput(r.ports, rank, r.chunk) }

// sendWhole sends that payload as chunk vid.
func (r *rehearsal) sendWhole(rank int, vid uint32) error {
	return r.send(r.header(wire.KindData, rank, vid), r.wholePayload(rank))
}

// sendAll sends chunk vid of every rank.
func (r *rehearsal) sendAll(vid uint32) error {
	for rank := range r.ports {
		if err := r.sendWhole(rank, vid); err != nil {
			return err
		}
	}
	return nil
}

// sum waits for the sum of chunk vid in a packet of the given kind, and checks its bits. It
// returns the ranks that receive it.
func (r *rehearsal) sum(ctx context.Context, kind wire.Kind, vid uint32) (uint64, error) {
	f, err := r.next(ctx, func(f *frame.Frame) bool {
		return (f.Kind == wire.KindResult || f.Kind == wire.KindReplay) && f.VID == vid && f.Epoch == r.epoch
	})
	if err != nil {
		return 0, wrong("waiting for the %s of chunk %d: %w", kind, vid, err)
	}
	if f.Kind != kind || f.Mask != r.members() || int(f.Length) != r.chunk {
		return 0, wrong("chunk %d comes as a %s of %d elements from ranks %#x, must be a %s of %d from %#x",
			vid, f.Kind, f.Length, f.Mask, kind, r.chunk, r.members())
	}
	if f.Format != r.result.Format {
		return 0, wrong("chunk %d comes in the format %s, must be %s", vid, f.Format, r.result.Format)
	}
	for i := range r.chunk {
		have, want := element.At(f.Format, f.Payload, i), r.wholeSum(r.ports, i)
		if have != want {
			return 0, wrong("%s of chunk %d, element %d: 0x%0*x, must be 0x%0*x", kind, vid, i, 2*r.outBytes(), have, 2*r.outBytes(), want)
		}
	}
	return f.Receivers, nil
}

// collect waits until every rank has been sent the sum of chunk vid.
func (r *rehearsal) collect(ctx context.Context, vid uint32) error {
	for missing := r.members(); missing != 0; {
		receivers, err := r.sum(ctx, wire.KindResult, vid)
		if err != nil {
			return err
		}
		if receivers&missing == 0 {
			return wrong("chunk %d is repeated for ranks %#x before ranks %#x received it", vid, receivers, missing)
		}
		missing &^= receivers
	}
	return nil
}

// status waits for the status for rank about chunk vid, and checks it.
func (r *rehearsal) status(ctx context.Context, rank int, vid uint32, code wire.Code, mask uint64) error {
	f, err := r.next(ctx, func(f *frame.Frame) bool {
		return f.Kind == wire.KindStatus && f.Epoch == r.epoch && int(f.Rank) == rank && f.VID == vid
	})
	if err != nil {
		return wrong("waiting for the status %s for rank %d: %w", code, rank, err)
	}
	if f.Code != code || f.Mask != mask {
		return wrong("rank %d has the reply %s with mask %#x, must be %s with %#x", rank, f.Code, f.Mask, code, mask)
	}
	return nil
}

// rises calls do and waits until the card's counters have risen as wanted. It is an error when
// a counter rises further, or an unlisted one rises, except those in risesFreely.
func (r *rehearsal) rises(ctx context.Context, want map[string]uint32, do func() error) error {
	before, err := r.counters(ctx)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	for start := time.Now(); ; {
		after, err := r.counters(ctx)
		if err != nil {
			return err
		}
		waitsFor := ""
		for _, c := range wire.CountersOf(r.shell()) {
			rise := after[c.Name] - before[c.Name]
			if rise > want[c.Name] && !risesFreely[c.Name] {
				return wrong("counter %s rose by %d, must be %d", c.Name, rise, want[c.Name])
			}
			if rise < want[c.Name] {
				waitsFor = c.Name
			}
		}
		if waitsFor == "" {
			return nil
		}
		if time.Since(start) > r.timeout {
			return wrong("counter %s rose by %d, must be %d", waitsFor, after[waitsFor]-before[waitsFor], want[waitsFor])
		}
	}
}

// risesFreely are the counters that rise with register accesses and replies.
var risesFreely = map[string]bool{"frames": true, "statuses": true, "results": true, "replays": true, "beats": true}
