package faults

import (
	"sync"
	"time"

	"tributary/driver/wire"
)

// frameBytes is what a datagram's frame has beside it: preamble and gap, the headers of Ethernet, IPv4
// and UDP, and the FCS.
const frameBytes = 8 + 12 + 14 + 20 + 8 + 4

// Bottleneck is a switch's output queue in front of a slow link: first in, first out. It drops above a
// limit, and marks above an instantaneous threshold on arrival. Ways of several proxies may share it.
//
// The queue follows from the times of arrivals and the rate alone. A busy machine that delivers a packet
// late changes nothing in it.
type Bottleneck struct {
	BottleneckConfig

	mu      sync.Mutex
	empty   time.Time // when the last packet will have left
	began   time.Time // of the statistics
	stats   BottleneckStats
	waiting []departure
	more    chan struct{} // capacity 1: waiting has a packet
	over    chan struct{}
	ended   sync.WaitGroup
}

// BottleneckConfig are the parameters of a Bottleneck. Bytes are those of frames.
type BottleneckConfig struct {
	Rate      float64       // bytes a second
	Limit     int           // a packet that finds no room in so many bytes is lost
	Threshold int           // a packet that finds more bytes waiting is marked, or lost if it is not ECT
	Delay     time.Duration // of the link
}

// BottleneckStats describes what a Bottleneck has done.
type BottleneckStats struct {
	Passed, Marked, Lost uint64 // packets
	Bytes                uint64 // of the packets that passed

	ByteSeconds float64       // the bytes in the queue, integrated over time
	Elapsed     time.Duration // since the last call of Restart
}

// MeanQueue returns the time-weighted mean of the bytes in the queue, with the packet that leaves.
func (s BottleneckStats) MeanQueue() float64 { return s.ByteSeconds / s.Elapsed.Seconds() }

// departure is a packet that leaves at a time.
type departure struct {
	at   time.Time
	mark wire.ECN
	send func(wire.ECN)
}

// NewBottleneck starts a bottleneck.
func NewBottleneck(cfg BottleneckConfig) *Bottleneck {
	q := &Bottleneck{BottleneckConfig: cfg, more: make(chan struct{}, 1), over: make(chan struct{})}
	q.empty = time.Now()
	q.Restart()
	q.ended.Go(q.run)
	return q
}

// Close stops it. Packets that wait are lost.
func (q *Bottleneck) Close() {
	close(q.over)
	q.ended.Wait()
}

// Restart begins new statistics.
func (q *Bottleneck) Restart() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.began, q.stats = time.Now(), BottleneckStats{}
}

// Stats returns the statistics since Restart. Packets that still wait count as if they had left.
func (q *Bottleneck) Stats() BottleneckStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Elapsed = time.Since(q.began)
	return s
}

// Pass takes a datagram of that many bytes. It calls send, in a goroutine of its own, when the datagram
// leaves.
func (q *Bottleneck) Pass(now time.Time, bytes int, mark wire.ECN, send func(wire.ECN)) {
	bytes += frameBytes
	q.mu.Lock()
	defer q.mu.Unlock()
	mark, at, ok := q.admit(now, bytes, mark)
	if !ok {
		return
	}
	q.waiting = append(q.waiting, departure{at.Add(q.Delay), mark, send})
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// admit decides about a packet, and returns its mark and the time when it leaves. ok is false if it is
// lost.
func (q *Bottleneck) admit(now time.Time, bytes int, mark wire.ECN) (_ wire.ECN, leaves time.Time, ok bool) {
	if q.empty.Before(now) {
		q.empty = now
	}
	found := q.empty.Sub(now).Seconds() * q.Rate
	marks := found > float64(q.Threshold)
	if found+float64(bytes) > float64(q.Limit) || marks && mark == wire.NotECT {
		q.stats.Lost++
		return mark, now, false
	}
	if marks {
		mark = wire.CE
		q.stats.Marked++
	}
	q.empty = q.empty.Add(time.Duration(float64(bytes) / q.Rate * 1e9))
	q.stats.Passed++
	q.stats.Bytes += uint64(bytes)
	q.stats.ByteSeconds += float64(bytes) * q.empty.Sub(now).Seconds()
	return mark, q.empty, true
}

// run sends packets when they leave.
func (q *Bottleneck) run() {
	timer := time.NewTimer(0)
	for {
		select {
		case <-q.more:
		case <-timer.C:
		case <-q.over:
			return
		}
		for now := time.Now(); ; {
			q.mu.Lock()
			if len(q.waiting) == 0 {
				q.mu.Unlock()
				break
			}
			d := q.waiting[0]
			if wait := d.at.Sub(now); wait > 0 {
				q.mu.Unlock()
				timer.Reset(wait)
				break
			}
			q.waiting = q.waiting[1:]
			q.mu.Unlock()
			d.send(d.mark)
		}
	}
}
