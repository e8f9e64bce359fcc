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

	late bool // it may come when its receiver is no more
	plug int  // number of its receiver
}

// sane is the kind of a frame without a fault.
const sane FrameKind = -1

// cableWay is one direction of a cable.
type cableWay struct {
	cable     *Cable
	direction frame.Direction

	mu    sync.Mutex
	fate  *fate
	check *frame.DatagramChecker
	held  *passing // to deliver after the next frame
}

func newCableWay(c *Cable, d frame.Direction, f *fate) *cableWay {
	return &cableWay{cable: c, direction: d, fate: f, check: frame.NewDatagramChecker(d)}
}

// deliver gives a frame to what is at the end of the way.
func (w *cableWay) deliver(f passing) { w.cable.deliver(w.direction, f) }

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
		held := w.cable.delayed(w.direction, passing{frame: b, kind: sane})
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
	if kind != OthersData || isOfAJob(f.Kind) {
		return kind, rng
	}
	if w.direction == frame.FromCard {
		return sane, rng
	}
	return OthersWrite, rng
}

// isOfAJob reports whether a packet is one of a job, whose sender a card checks: not a register access.
func isOfAJob(k wire.Kind) bool {
	return k != wire.KindRegRead && k != wire.KindRegWrite && k != wire.KindReply
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
		good = w.cable.delayed(w.direction, good)
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
