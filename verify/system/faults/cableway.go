package faults

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// passing is a frame in a cable, the fault that made it, and the counter in which it must end at the
// card; "" for none.
type passing struct {
	frame   []byte
	kind    FrameKind
	counter string

	late bool // it may come when its card is no more
	plug int  // number of its card
}

// sane is the kind of a frame without a fault.
const sane FrameKind = -1

// cableWay is one direction of a cable.
type cableWay struct {
	cable     *Cable
	direction frame.Direction
	deliver   func(passing)

	mu    sync.Mutex
	fate  *fate
	check *frame.DatagramChecker
	held  *passing // to deliver after the next frame
}

func newCableWay(c *Cable, r FrameRates, d frame.Direction, deliver func(passing)) *cableWay {
	chances := r.Chances
	if d == frame.FromCard {
		chances[OthersWrite], chances[OthersData] = 0, 0
	}
	return &cableWay{cable: c, direction: d, deliver: deliver, fate: fateOf(r.Seed, d, chances[:]), check: frame.NewDatagramChecker(d)}
}

// pass forwards a frame with its fault.
func (w *cableWay) pass(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cable.Happened.Frames[w.direction].Add(1)
	var f frame.Frame
	datagram := isDatagram(b) && w.check.Check(dataOf(b), &f)
	if datagram {
		w.cable.watch(&f.Header)
	}
	if datagram && w.direction == frame.FromCard && isStrangers(b) {
		w.cable.noteReply(f.Kind == wire.KindReply && f.Code == wire.CodeBusy)
		return
	}
	if w.cable.unplugged() {
		return
	}
	kind, rng := w.draw(datagram, &f)
	if kind == Reordered && w.held == nil {
		held := w.cable.delayed(passing{frame: b, kind: sane})
		w.held = &held
		return
	}
	w.apply(b, kind, rng)
	if held := w.held; held != nil {
		w.held = nil
		w.count(Reordered)
		w.deliver(*held)
	}
}

// release delivers a held frame.
func (w *cableWay) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if held := w.held; held != nil {
		w.held = nil
		w.deliver(*held)
	}
}

// draw returns the fault of a frame.
func (w *cableWay) draw(datagram bool, f *frame.Frame) (FrameKind, *rand.Rand) {
	if !w.cable.On.Load() {
		return sane, nil
	}
	if !datagram {
		n, rng := w.fate.drawFor(identity{kind: 0xff})
		return min(FrameKind(n), Damaged), rng
	}
	n, rng := w.fate.drawFor(identity{uint8(f.Kind), f.Job, f.Rank, f.VID})
	kind := FrameKind(n)
	if kind == OthersData && !belongsToAMember(f.Kind) {
		kind = OthersWrite
	}
	return kind, rng
}

// belongsToAMember reports whether a packet to the card has a rank, whose address the card checks.
func belongsToAMember(k wire.Kind) bool {
	return k == wire.KindData || k == wire.KindAsk || k == wire.KindFinish
}

func (w *cableWay) count(k FrameKind) { w.cable.Happened.Faults[w.direction][k].Add(1) }

// apply delivers a frame after a fault that concerns it alone.
func (w *cableWay) apply(b []byte, kind FrameKind, rng *rand.Rand) {
	if kind != sane && kind != Reordered {
		w.count(kind)
	}
	good := passing{frame: b, kind: sane}
	switch kind {
	case Lost:
	case Delayed:
		w.cable.late.Add(1)
		good = w.cable.delayed(good)
		time.AfterFunc(longTime(rng), func() {
			defer w.cable.late.Done()
			w.deliver(good)
		})
	case Repeated:
		w.deliver(good)
		w.deliver(good)
	case OthersWrite:
		w.deliver(passing{frame: strangersWrite(b, rng), kind: kind})
		w.deliver(good)
	case OthersData:
		w.deliver(passing{frame: strangersCopy(b, rng), kind: kind})
		w.deliver(good)
	case sane, Reordered:
		w.deliver(good)
	default:
		harmed, counter := harms[kind](slices.Clone(b), rng)
		w.deliver(passing{frame: harmed, kind: kind, counter: counter})
	}
}
