package driver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// accessBench is a writer, a reader and a card without any of them: time passes
// when a test says so.
type accessBench struct {
	accesses
	link link
	now  time.Time
}

const benchMost = time.Hour // no time-out bounds the waits

func newAccessBench() *accessBench {
	return &accessBench{accesses: newAccesses(), now: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// ask puts reads of n registers under way.
func (b *accessBench) ask(n int) []*access {
	headers := make([]frame.Header, n)
	for i := range headers {
		headers[i] = readHeader(uint32(8 * i))
	}
	return b.add(&b.link, headers)
}

// sends lets time pass, and returns the tags of what the writer sends then.
func (b *accessBench) sends(after time.Duration) []uint16 {
	b.now = b.now.Add(after)
	buf, _ := b.appendDue(nil, &b.link, b.now, benchMost)
	scan := frame.NewScanner(frame.ToCard, len(buf)+1)
	scan.Feed(buf)
	tags := []uint16{}
	for f := (frame.Frame{}); scan.Next(&f); {
		tags = append(tags, f.Length)
	}
	return tags
}

// answer lets time pass, and answers a.
func (b *accessBench) answer(a *access, after time.Duration) (lost bool) {
	b.now = b.now.Add(after)
	h := frame.Header{Kind: wire.KindReply, VID: a.header.VID, Length: a.header.Length}
	return b.takeReply(&h, b.now)
}

func expectSent(t *testing.T, when string, got []uint16, want ...uint16) {
	t.Helper()
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s: tags %d are sent, want %d", when, got, want)
	}
}

// TestSlowCardIsAskedOnce: many accesses at once, of a card that takes longer for
// all than any wait, but not for one: none is repeated, since each answer gives the
// next one time.
func TestSlowCardIsAskedOnce(t *testing.T) {
	b := newAccessBench()
	batch := b.ask(13)
	expectSent(t, "first", b.sends(0), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
	for i, a := range batch {
		expectSent(t, fmt.Sprintf("before answer %d", i), b.sends(90*time.Millisecond))
		if b.answer(a, 90*time.Millisecond) {
			t.Errorf("answer %d shows something to be lost", i)
		}
	}
}

// TestLaterAnswerShowsALoss: what was asked before what is answered is repeated at
// once, and nothing else; and then waits like everything.
func TestLaterAnswerShowsALoss(t *testing.T) {
	b := newAccessBench()
	batch := b.ask(4)
	b.sends(0)
	b.answer(batch[0], time.Millisecond)
	if !b.answer(batch[2], time.Millisecond) {
		t.Error("the answer to the third does not show the second to be lost")
	}
	expectSent(t, "after the third's answer", b.sends(0), 2)
	if b.answer(batch[3], time.Millisecond) {
		t.Error("the fourth was asked before the second was asked again: its answer shows nothing")
	}
	expectSent(t, "after the fourth's answer", b.sends(0))
	if b.answer(batch[1], time.Millisecond) || len(b.open) != 0 {
		t.Errorf("%d are open after all answers", len(b.open))
	}
}

// TestAnswerToWhatWasRepeatedShowsNothing: it may answer the first sending, from
// before the others were asked. Nor is it a sample.
func TestAnswerToWhatWasRepeatedShowsNothing(t *testing.T) {
	b := newAccessBench()
	early := b.ask(1)
	b.sends(0)
	late := b.ask(1)
	expectSent(t, "the second", b.sends(firstRepeat-1), 2)
	expectSent(t, "both again", b.sends(1), 1, 2)
	if b.answer(late[0], time.Millisecond) || b.timing.srtt != 0 || b.trip != 0 {
		t.Error("the answer to what was sent twice was made use of")
	}
	if b.answer(early[0], time.Millisecond); b.timing.srtt != 0 || b.backOff != 1 {
		t.Errorf("sample %s, back-off %d", b.timing.srtt, b.backOff)
	}
}

// TestAccessesBackOff: repeats come at doubling waits, the next access waits as
// long as the last, and a sample ends that.
func TestAccessesBackOff(t *testing.T) {
	b := newAccessBench()
	a := b.ask(1)
	expectSent(t, "first", b.sends(0), 1)
	for _, wait := range []time.Duration{firstRepeat, 2 * firstRepeat, 4 * firstRepeat} {
		expectSent(t, "just before "+wait.String(), b.sends(wait-1))
		expectSent(t, "after "+wait.String(), b.sends(1), 1)
	}
	b.answer(a[0], time.Millisecond)
	a = b.ask(1)
	expectSent(t, "the next", b.sends(0), 2)
	expectSent(t, "the next, after as long a wait", b.sends(8*firstRepeat-1))
	b.answer(a[0], 0)
	trip := 8*firstRepeat - 1
	if want := trip + 4*(trip/2); b.backOff != 0 || b.timing.wait != want {
		t.Errorf("back-off %d, wait %s after a sample, want 0 and %s", b.backOff, b.timing.wait, want)
	}
	for range 100 {
		a = b.ask(1)
		b.sends(0)
		b.answer(a[0], time.Microsecond)
	}
	a = b.ask(1)
	b.sends(0)
	expectSent(t, "of a fast card", b.sends(shortestWait-1))
	expectSent(t, "of a fast card, after the shortest wait", b.sends(1), a[0].header.Length)
}

// TestCardBecomesAThousandTimesSlower: what was measured is worth nothing then.
// A few repeats are sent in vain, until an access was answered that was sent once;
// from then on none.
func TestCardBecomesAThousandTimesSlower(t *testing.T) {
	const fast, slow = time.Millisecond, time.Second
	b := newAccessBench()
	for range 20 {
		a := b.ask(1)
		b.sends(0)
		b.answer(a[0], fast)
	}
	repeats := func() (n int) {
		a := b.ask(1)
		b.sends(0)
		for waited := time.Duration(0); waited < slow; waited += 5 * fast {
			n += len(b.sends(5 * fast))
		}
		b.answer(a[0], 0)
		return n
	}
	// Of 20 ms, doubled, five pass in the first second, and 640 ms in the next.
	if n := repeats() + repeats(); n != 6 {
		t.Errorf("%d repeats of the first two slow accesses, want 6", n)
	}
	for i := range 20 {
		if n := repeats(); n != 0 {
			t.Errorf("%d repeats of slow access %d", n, i+3)
		}
	}
}

// TestTimeoutBoundsTheWait: before a call gives up, accesses were repeated.
func TestTimeoutBoundsTheWait(t *testing.T) {
	b := newAccessBench()
	b.backOff = 10
	b.ask(1)
	if _, wait := b.appendDue(nil, &b.link, b.now, time.Second); wait != time.Second {
		t.Errorf("wait %s", wait)
	}
}

// TestReplyOfAnotherAccess: one that came late, to an access that is over, is no
// answer to the next of the same register.
func TestReplyOfAnotherAccess(t *testing.T) {
	b := newAccessBench()
	old := b.ask(1)
	b.sends(0)
	b.forget(old)
	next := b.ask(1)
	b.sends(0)
	if b.answer(old[0], time.Millisecond); len(b.open) != 1 || len(next[0].reply) != 0 {
		t.Error("it was taken for the answer")
	}
	if b.answer(next[0], time.Millisecond); len(b.open) != 0 || len(next[0].reply) != 1 {
		t.Error("the answer was not taken")
	}
}
