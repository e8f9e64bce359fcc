package faults

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver/frame"
)

// FrameKind is a kind of fault of an Ethernet frame. A frame has at most one.
type FrameKind int

// The kinds. The FCS of a frame stays as it was with Damaged and CutOff; with all others it is
// right, as a switch makes it that stores a frame and sends it on.
const (
	Lost          FrameKind = iota
	Repeated                // arrives twice
	Reordered               // arrives after the next one
	Delayed                 // arrives up to 200 ms later
	Damaged                 // one to three bits, or a burst of up to 32, flip
	CutOff                  // lacks its end
	Flipped                 // one bit flips
	Swapped                 // two bits of the datagram flip, and no checksum shows it
	Shortened               // lacks bytes of its packet, or is a runt
	Padded                  // has more bytes behind its packet
	Oversized               // is longer than the longest frame
	Tagged                  // has a VLAN tag
	WithOptions             // its IP header has an option
	Fragment                // is a fragment of an IP packet
	OtherMAC                // is for another station
	OtherIP                 // is for another IPv4 address
	OtherProtocol           // is of another protocol than UDP
	OtherPort               // is for another UDP port
	NoChecksum              // has no UDP checksum
	Marked                  // has the mark CE, as a switch with a long queue sets it
	OthersWrite             // a stranger writes a register before the frame
	OthersData              // a stranger sends a copy of a packet with a rank, with another payload
)

// FrameKinds are the names of the kinds.
var FrameKinds = [...]string{
	"lost", "repeated", "reordered", "delayed", "damaged", "cut off", "one bit, new FCS", "two bits, new checksums", "shortened, new FCS",
	"padded", "oversize", "VLAN tag", "IP options", "fragment", "other MAC address", "other IP address", "other protocol", "other UDP port",
	"no UDP checksum", "marked CE", "a stranger's write", "a stranger's data",
}

// FrameRates are the probabilities of each kind, per frame and in each direction. Their sum is at
// most 1.
type FrameRates struct {
	Chances [len(FrameKinds)]float64
	Seed    uint64
}

// FrameCounts counts frames and faults; the first index is a frame.Direction. Cables may share one.
type FrameCounts struct {
	Frames [2]atomic.Int64 // that entered the cable
	Faults [2][len(FrameKinds)]atomic.Int64
}

// Total returns the number of faults of all kinds.
func (c *FrameCounts) Total() int64 {
	var n int64
	for d := range c.Faults {
		for kind := range c.Faults[d] {
			n += c.Faults[d][kind].Load()
		}
	}
	return n
}

// Cable is an Ethernet cable with faults between a host and an Ethernet port of a card, while On is
// set. The host's end is the cable itself: Read returns one frame, with its FCS, and Write takes one.
// The card's end is a Plug. A switch or another card takes the host's end by PlugHost.
//
// ARP has no checksum, and other switches' frames are not the card's: frames that carry no datagram
// of a card meet loss, repetition, reordering, delay, and damage with a wrong FCS only.
type Cable struct {
	On       atomic.Bool
	Happened *FrameCounts
	// Watch, if set before the first use, is called for each datagram in both directions. It reports
	// whether to unplug the cable for a while.
	Watch func(*frame.Header) (unplug bool)

	toCard, toHost *cableWay
	late           sync.WaitGroup // delayed frames
	away           atomic.Int64   // unplugged until then, in nanoseconds

	mu      sync.Mutex
	ends    [2]end // by the direction of the frames that arrive there
	expects map[string]int64
	foreign Strangers
	broken  []error
}

// end is what is at an end of a cable.
type end struct {
	in    *frameQueue // its frames; nil without anything
	plugs int         // so far
}

// Strangers counts what a card did for strangers.
type Strangers struct {
	Writes, Data    int64 // sent to it
	Refused, Obeyed int64 // replies to the writes
}

// NewCable returns a cable whose counts go to counts.
func NewCable(r FrameRates, counts *FrameCounts) *Cable {
	toHost := r.Chances
	toHost[OthersWrite], toHost[OthersData] = 0, 0
	return newCable(r, toHost, counts)
}

// NewTrunk returns a cable of a network with cards beyond both ends. Strangers send copies of results and
// statuses too, so that some come to the upward UDP port of a card.
func NewTrunk(r FrameRates, counts *FrameCounts) *Cable {
	toHost := r.Chances
	toHost[OthersWrite] = 0
	return newCable(r, toHost, counts)
}

func newCable(r FrameRates, toHost [len(FrameKinds)]float64, counts *FrameCounts) *Cable {
	c := &Cable{Happened: counts, expects: map[string]int64{}}
	c.ends[frame.FromCard].in = newFrameQueue()
	c.toCard = newCableWay(c, frame.ToCard, fateOf(r.Seed, frame.ToCard, r.Chances[:]))
	c.toHost = newCableWay(c, frame.FromCard, fateOf(r.Seed, frame.FromCard, toHost[:]))
	return c
}

// Read waits for the next frame for the host.
func (c *Cable) Read(p []byte) (int, error) {
	c.mu.Lock()
	in := c.ends[frame.FromCard].in
	c.mu.Unlock()
	return in.pop(p)
}

// Write takes a frame from the host.
func (c *Cable) Write(p []byte) (int, error) {
	c.toCard.pass(slices.Clone(p))
	return len(p), nil
}

// Close ends the host's end.
func (c *Cable) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[frame.FromCard].in.close()
	return nil
}

// Quiet ends the faults, and waits for delayed frames.
func (c *Cable) Quiet() {
	c.On.Store(false)
	c.late.Wait()
	c.toCard.release()
	c.toHost.release()
}

// Expected returns how often each counter of the card must have counted because of faults, by name,
// since the last Plug.
func (c *Cable) Expected() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]int64{}
	for name, n := range c.expects {
		all[name] = n
	}
	return all
}

// Strangers returns what happened between strangers and the card, since the last Plug.
func (c *Cable) Strangers() Strangers {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.foreign
}

// Broken returns what Sound, of Plug, found wrong with frames of the card.
func (c *Cable) Broken() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.broken)
}

// unplugged reports whether the cable is out.
func (c *Cable) unplugged() bool { return time.Now().UnixNano() < c.away.Load() }

// watch shows Watch a datagram.
func (c *Cable) watch(h *frame.Header) {
	if c.Watch != nil && c.Watch(h) {
		c.away.Store(time.Now().Add(unplugTime).UnixNano())
	}
}

// unplugTime is how long a cable is out.
const unplugTime = 30 * time.Millisecond

// deliver gives a frame to what is at the end of its way. Without anything there, it is lost.
func (c *Cable) deliver(d frame.Direction, f passing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &c.ends[d]
	if e.in == nil || f.late && f.plug != e.plugs {
		return
	}
	if d == frame.ToCard {
		c.note(f)
	}
	e.in.push(f)
}

// note counts what comes to the card.
func (c *Cable) note(f passing) {
	if f.counter != "" {
		c.expects[f.counter]++
	}
	switch f.kind {
	case OthersWrite:
		c.foreign.Writes++
	case OthersData:
		c.foreign.Data++
	}
}

// delayed marks a frame as one for what is at the end of its way now.
func (c *Cable) delayed(d frame.Direction, f passing) passing {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.late, f.plug = true, c.ends[d].plugs
	return f
}

// noteReply counts the reply to a stranger's write.
func (c *Cable) noteReply(refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if refused {
		c.foreign.Refused++
	} else {
		c.foreign.Obeyed++
	}
}

// Plug is an end of a cable as a frame port (package frameport).
type Plug struct {
	cable *Cable
	end   frame.Direction // of the frames that arrive
	in    *frameQueue
	sound func(frame []byte) error
}

// Plug connects a card without any history. sound judges each frame that the card sends. Delayed frames
// for an earlier card are lost: a copy of a write to OWNER could take the card for its lease, which is
// longer than anybody can simulate.
func (c *Cable) Plug(sound func(frame []byte) error) *Plug {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.foreign = Strangers{}
	clear(c.expects)
	return c.plug(frame.ToCard, sound)
}

// PlugHost is Plug for a card or a switch at the host's end.
func (c *Cable) PlugHost(sound func(frame []byte) error) *Plug {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plug(frame.FromCard, sound)
}

// plug connects what is at an end from now on; mu must be held.
func (c *Cable) plug(d frame.Direction, sound func(frame []byte) error) *Plug {
	e := &c.ends[d]
	e.in = newFrameQueue()
	e.plugs++
	return &Plug{c, d, e.in, sound}
}

// Name returns the port's name.
func (p *Plug) Name() string { return "cable" }

// ReadFrame waits for the next frame that arrives.
func (p *Plug) ReadFrame(frame []byte) (int, error) { return p.in.pop(frame) }

// WriteFrame takes a frame from what is at this end.
func (p *Plug) WriteFrame(b []byte) error {
	if err := p.sound(b); err != nil {
		p.cable.mu.Lock()
		p.cable.broken = append(p.cable.broken, fmt.Errorf("the card sent %x: %w", b, err))
		p.cable.mu.Unlock()
	}
	way := p.cable.toHost
	if p.end == frame.FromCard {
		way = p.cable.toCard
	}
	way.pass(slices.Clone(b))
	return nil
}

// Close disconnects what is at this end.
func (p *Plug) Close() error {
	p.cable.mu.Lock()
	if e := &p.cable.ends[p.end]; e.in == p.in {
		e.in = nil
	}
	p.cable.mu.Unlock()
	p.in.close()
	return nil
}

// frameQueue holds frames for one end of a cable.
type frameQueue struct {
	mu     sync.Mutex
	came   sync.Cond
	frames [][]byte
	closed bool
}

func newFrameQueue() *frameQueue {
	q := &frameQueue{}
	q.came.L = &q.mu
	return q
}

func (q *frameQueue) push(f passing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.frames = append(q.frames, f.frame)
		q.came.Signal()
	}
}

// pop waits for a frame, and copies it into p. At the end of the queue it fails.
func (q *frameQueue) pop(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.frames) == 0 && !q.closed {
		q.came.Wait()
	}
	if len(q.frames) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, q.frames[0])
	q.frames = slices.Delete(q.frames, 0, 1)
	return n, nil
}

func (q *frameQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.came.Broadcast()
}

var _ io.ReadWriteCloser = (*Cable)(nil)
