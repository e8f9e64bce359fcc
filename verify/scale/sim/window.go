package sim

import "math"

// WindowConfig are the parameters of a congestion window, in packets.
type WindowConfig struct {
	First float64 // window
	Most  float64 // window; 0 for no limit
	Gain  float64 // g of DCTCP; 0 for a window that stays at First
}

// Window is the congestion window of DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): slow start
// up to the first mark or loss, then one packet more each round trip. Once a round trip at most, a
// mark cuts the window by alpha/2, and a loss halves it. Alpha is the moving average of the
// fraction of marks.
type Window struct {
	WindowConfig
	Size  float64
	Alpha float64

	threshold     float64 // of slow start
	acked, marked int     // in the current round trip
	round         int64   // it ends with the acknowledgement of this packet
	cut           int64   // marks and losses before this packet cut no more
	Least         float64 // window after the last cut, and
	Highest       float64 // before it
}

// NewWindow returns a window with alpha 1, as RFC 8257 has it.
func NewWindow(c WindowConfig) Window {
	return Window{WindowConfig: c, Size: c.First, Alpha: 1, threshold: math.Inf(1)}
}

// Acknowledge takes the acknowledgement of packet seq, marked or not; next is the first that has
// not been sent.
func (w *Window) Acknowledge(seq, next int64, marked bool) {
	if w.Gain == 0 {
		return
	}
	w.acked++
	if marked {
		w.marked++
	}
	if seq >= w.round {
		w.Alpha += w.Gain * (float64(w.marked)/float64(w.acked) - w.Alpha)
		w.acked, w.marked, w.round = 0, 0, next
	}
	switch {
	case marked && seq >= w.cut:
		w.reduce(1-w.Alpha/2, next)
	case marked:
	case w.Size < w.threshold:
		w.Size++
	default:
		w.Size += 1 / w.Size
	}
	if w.Most > 0 {
		w.Size = min(w.Size, w.Most)
	}
}

// Lose takes the loss of packet seq.
func (w *Window) Lose(seq, next int64) {
	if w.Gain != 0 && seq >= w.cut {
		w.reduce(0.5, next)
	}
}

func (w *Window) reduce(factor float64, next int64) {
	w.Highest = w.Size
	w.Size = max(1, w.Size*factor)
	w.Least = w.Size
	w.threshold, w.cut = w.Size, next
}

// restart returns to slow start with one packet, after a timeout.
func (w *Window) restart(next int64) {
	if w.Gain == 0 {
		return
	}
	w.threshold = max(2, w.Size/2)
	w.Size, w.cut = 1, next
}

// roundTrip estimates the timeout of retransmissions as RFC 6298 does.
type roundTrip struct {
	mean, deviation Time
	least           Time
	backOff         uint
}

func (r *roundTrip) sample(t Time) {
	if r.mean == 0 {
		r.mean, r.deviation = t, t/2
	} else {
		d := r.mean - t
		if d < 0 {
			d = -d
		}
		r.deviation += (d - r.deviation) / 4
		r.mean += (t - r.mean) / 8
	}
}

// timeout doubles with each one that has passed since something new was acknowledged.
func (r *roundTrip) timeout() Time {
	return max(r.least, r.mean+4*r.deviation) << min(r.backOff, 6)
}
