package driver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// accessBench is a writer and a reader without a card. Its clock advances only when a test says
// so.
type accessBench struct {
	accesses
	link link
	now  time.Time
}

const benchMost = time.Hour // no timeout limits the waits

func newAccessBench() *accessBench {
	return &accessBench{accesses: newAccesses(false), now: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// ask starts reads of n registers.
func (b *accessBench) ask(n int) []*access {
	headers := make([]frame.Header, n)
	for i := range headers {
		headers[i] = readHeader(uint32(8 * i))
	}
	return b.add(&b.link, headers)
}

// sends advances the clock and returns the tags of the frames that the writer then sends.
func (b *accessBench) sends(after time.Duration) []uint16 {
	b.now = b.now.Add(after)
	out := newBatch(false)
	b.addDue(out, &b.link, b.now, benchMost)
	scan := frame.NewScanner(frame.ToCard, 0)
	scan.Feed(out.buf)
	tags := []uint16{}
	for f := (frame.Frame{}); scan.Next(&f); {
		tags = append(tags, f.Length)
	}
	return tags
}

// answer advances the clock and replies to the last sending of a.
func (b *accessBench) answer(a *access, after time.Duration) (lost bool) {
	return b.answerTo(a, a.header.Length, after)
}

// answerTo advances the clock and replies to the sending of a with that tag.
func (b *accessBench) answerTo(a *access, tag uint16, after time.Duration) (lost bool) {
	b.now = b.now.Add(after)
	return b.takeReply(&frame.Header{Kind: wire.KindReply, VID: a.header.VID, Length: tag}, b.now)
}

func expectSent(t *testing.T, when string, got []uint16, want ...uint16) {
	t.Helper()
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s: tags %d are sent, want %d", when, got, want)
	}
}

// TestSlowCardIsAskedOnce makes many accesses at once. The card takes longer for all of them
// than any wait, but not for one. No access must be repeated, because each reply restarts the
// wait.
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

// TestLaterAnswerShowsALoss checks that a reply repeats exactly the accesses sent before it, at
// once. The repeats then wait as usual.
func TestLaterAnswerShowsALoss(t *testing.T) {
	b := newAccessBench()
	batch := b.ask(4)
	b.sends(0)
	b.answer(batch[0], time.Millisecond)
	if !b.answer(batch[2], time.Millisecond) {
		t.Error("the answer to the third does not show the second to be lost")
	}
	expectSent(t, "after the third's answer", b.sends(0), 5)
	if b.answer(batch[3], time.Millisecond) {
		t.Error("the fourth was asked before the second was asked again: its answer shows nothing")
	}
	expectSent(t, "after the fourth's answer", b.sends(0))
	if b.answer(batch[1], time.Millisecond) || len(b.open) != 0 {
		t.Errorf("%d are open after all answers", len(b.open))
	}
}

// TestRepeatedAccessGivesSamples checks that the tag identifies the sending. A reply to the
// first sending shows nothing about later ones, and its sample begins at the first.
func TestRepeatedAccessGivesSamples(t *testing.T) {
	b := newAccessBench()
	early := b.ask(1)
	b.sends(0)
	late := b.ask(1)
	expectSent(t, "the second", b.sends(firstRepeat-1), 2)
	expectSent(t, "both again", b.sends(1), 3, 4)
	if b.answerTo(early[0], 1, time.Millisecond) || b.trip != firstRepeat+time.Millisecond {
		t.Errorf("sample %s, or what was sent later is thought lost", b.trip)
	}
	if b.answerTo(late[0], 4, time.Millisecond) || b.trip != 2*time.Millisecond || b.backOff != 0 {
		t.Errorf("sample %s, back-off %d", b.trip, b.backOff)
	}
}

// TestAccessesBackOff checks that the wait doubles with each repeat. The next access waits as
// long as the last when that was given up. A reply resets the wait.
func TestAccessesBackOff(t *testing.T) {
	b := newAccessBench()
	a := b.ask(1)
	expectSent(t, "first", b.sends(0), 1)
	for i, wait := range []time.Duration{firstRepeat, 2 * firstRepeat, 4 * firstRepeat} {
		expectSent(t, "just before "+wait.String(), b.sends(wait-1))
		expectSent(t, "after "+wait.String(), b.sends(1), uint16(i+2))
	}
	b.forget(a)
	a = b.ask(1)
	expectSent(t, "the next", b.sends(0), 5)
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
	b.ask(1)
	b.sends(0)
	expectSent(t, "of a fast card", b.sends(shortestWait-1))
	expectSent(t, "of a fast card, after the shortest wait", b.sends(1), b.tag)
}

// TestCardBecomesAThousandTimesSlower checks a card whose earlier samples no longer hold. Some
// repeats are wasted before the first reply, and none after it.
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
		first := b.tag
		for waited := time.Duration(0); waited < slow; waited += 5 * fast {
			n += len(b.sends(5 * fast))
		}
		b.answerTo(a[0], first, 0)
		return n
	}
	// At 20, 60, 140, 300 ms, and every 160 ms from then on.
	if n := repeats(); n != 8 {
		t.Errorf("%d repeats of the first slow access, want 8", n)
	}
	for i := range 20 {
		if n := repeats(); n != 0 {
			t.Errorf("%d repeats of slow access %d", n, i+2)
		}
	}
}

// TestTimeoutBoundsTheWait checks that accesses are repeated before a call gives up.
func TestTimeoutBoundsTheWait(t *testing.T) {
	b := newAccessBench()
	b.backOff = 10
	b.ask(1)
	if wait := b.addDue(newBatch(false), &b.link, b.now, time.Second); wait != time.Second {
		t.Errorf("wait %s", wait)
	}
}

// TestReplyOfAnotherAccess checks that a late reply to an earlier access is no reply to the
// next access of the same register.
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
