package usbip

// The device that a host has attached: its endpoints with their waiting transfers, and the link
// to the card while it is up.

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"tributary/driver/virtual/pins"
	"tributary/driver/wire"
)

// burstEnd is how long the card must be silent to end a burst that has filled its last
// transfer.
const burstEnd = time.Millisecond

// past is a deadline that ends a read or write at once.
var past = time.Unix(1, 0)

// transfer is a transfer that waits at an endpoint.
type transfer struct {
	seq    uint32
	data   []byte // for an IN transfer: a buffer up to a whole packet
	length int    // requested length
	done   int    // bytes of data that stay, after a wait for the host's request
	held   int    // bytes of device.held that are this transfer's

	// Set when something other than its bytes ends the transfer.
	ended  int32
	unlink uint32 // Seq of the command that cancels it, if one does
}

// endpoint is an endpoint of a device; guarded by device.mu.
type endpoint struct {
	halted  bool
	queue   []*transfer
	current *transfer // the queue's transfer that the link is using
	arrived sync.Cond // queue has grown, or the link went down
	stop    func()    // ends the I/O on current
}

// device is the device that a host has attached. Its control requests come one at a time.
type device struct {
	card          *Card
	face          face
	answer        func(h Head, data []byte) // sends to the host
	lost          func()                    // called when the card breaks its link
	configuration byte
	setting       byte

	mu      sync.Mutex
	held    int // bytes of the transfers that have not ended
	out, in endpoint
	sides   [2]endpoint    // for a commanded face
	link    net.Conn       // nil while it is down
	running sync.WaitGroup // the goroutines of the link
}

func newDevice(card *Card, answer func(Head, []byte), lost func()) *device {
	d := &device{card: card, face: &native{card: card}, answer: answer, lost: lost}
	if card.Bridge != "" {
		d.face = bridges[card.Bridge]()
	}
	d.out.arrived.L, d.in.arrived.L = &d.mu, &d.mu
	return d
}

// endpoint returns the endpoint at an address, or nil if there is none now. The caller holds
// mu.
func (d *device) endpoint(address uint8) *endpoint {
	out, in := d.face.endpoints()
	switch {
	case d.link == nil:
		return nil
	case address == out:
		return &d.out
	case address == in:
		return &d.in
	}
	if c, ok := d.face.(commanded); ok {
		commands, mute := c.side()
		switch address {
		case commands:
			return &d.sides[0]
		case mute:
			return &d.sides[1]
		}
	}
	return nil
}

// endpoints returns all endpoints that a device may have.
func (d *device) endpoints() []*endpoint {
	return []*endpoint{&d.out, &d.in, &d.sides[0], &d.sides[1]}
}

// linkUp opens the card's byte stream and reports whether it succeeded.
func (d *device) linkUp() bool {
	conn, err := d.card.Link()
	if err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = conn
	for _, e := range d.endpoints() {
		e.halted = false
	}
	d.out.stop = func() { _ = conn.SetWriteDeadline(past) }
	d.in.stop = func() { _ = conn.SetReadDeadline(past) }
	d.running.Add(2)
	go d.serveOut(conn)
	go d.serveIn(conn)
	return true
}

// linkDown closes the byte stream. Waiting transfers end as if the device did not reply.
func (d *device) linkDown() {
	d.mu.Lock()
	d.setting = wire.USBLinkDown
	if d.link != nil {
		pins.HangUp(d.link)
		d.link = nil
		for _, e := range d.endpoints() {
			d.endAll(e, StatusProtocol)
		}
		d.out.arrived.Broadcast()
		d.in.arrived.Broadcast()
	}
	d.mu.Unlock()
	d.running.Wait()
}

// transferBytes is what a transfer takes besides its data, generously.
const transferBytes = 256

// reserve gives a transfer its data of n bytes, unless all transfers together would exceed the
// card's memory.
func (d *device) reserve(t *transfer, n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held+n+transferBytes > d.card.memory() {
		d.finish(t, StatusNoMemory, 0)
		return false
	}
	t.held = n + transferBytes
	d.held += t.held
	t.data = make([]byte, n)
	return true
}

// submit adds a transfer to an endpoint.
func (d *device) submit(address uint8, t *transfer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.endpoint(address)
	switch {
	case e == nil:
		d.finish(t, StatusProtocol, 0)
	case e.halted:
		d.finish(t, StatusStall, 0)
	case e == &d.sides[0]:
		d.carryOut(t)
	default:
		e.queue = append(e.queue, t)
		e.arrived.Broadcast()
	}
}

// carryOut handles the command in a transfer. The caller holds mu.
func (d *device) carryOut(t *transfer) {
	b := t.data
	t.data = nil
	if !d.face.(commanded).command(b) {
		d.sides[0].halted = true
		d.finish(t, StatusStall, 0)
		return
	}
	d.finish(t, 0, len(b))
	d.in.arrived.Broadcast()
}

// unlink cancels a transfer. One that has ended already has its reply.
func (d *device) unlink(command, seq uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.endpoints() {
		for _, t := range e.queue {
			if t.seq == seq && t.ended == 0 {
				t.unlink = command
				d.end(e, t, StatusUnlinked)
				return
			}
		}
	}
	d.answerUnlink(command, 0)
}

// endAll ends all transfers at an endpoint. The caller holds mu.
func (d *device) endAll(e *endpoint, status int32) {
	for _, t := range slices.Clone(e.queue) {
		if t.ended == 0 {
			d.end(e, t, status)
		}
	}
}

// end ends a waiting transfer at once, or, if the link is using it, as soon as the link has
// released it. The caller holds mu.
func (d *device) end(e *endpoint, t *transfer, status int32) {
	t.ended = status
	if e.current == t {
		e.stop()
		return
	}
	e.queue = slices.DeleteFunc(e.queue, func(x *transfer) bool { return x == t })
	d.finish(t, status, 0)
}

// finish reports the end of a transfer to the host. The caller holds mu, so that replies leave
// in the order of events.
func (d *device) finish(t *transfer, status int32, n int) {
	d.held -= t.held
	if t.unlink != 0 {
		d.answerUnlink(t.unlink, status)
		return
	}
	h := Head{Command: RetSubmit, Seq: t.seq}
	h.Args[ArgStatus], h.Args[ArgActual] = status, int32(n)
	d.answer(h, t.data[:min(n, len(t.data))])
}

func (d *device) answerUnlink(seq uint32, status int32) {
	h := Head{Command: RetUnlink, Seq: seq}
	h.Args[ArgStatus] = status
	d.answer(h, nil)
}

// next waits for a transfer at an endpoint, and makes it current. It returns nil when the link
// went down. ready prepares the link for the transfer.
func (d *device) next(e *endpoint, link net.Conn, ready func()) *transfer {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.link == link && (len(e.queue) == 0 || e == &d.out && !d.face.takes() || e == &d.in && !d.face.gives()) {
		e.arrived.Wait()
	}
	if d.link != link {
		return nil
	}
	e.current = e.queue[0]
	ready()
	return e.current
}

// leave ends the current transfer. err is the link's error. status is the transfer's status
// unless something else has ended the transfer. Transferred bytes are reported even when the
// transfer was cancelled.
func (d *device) leave(e *endpoint, t *transfer, err error, status int32, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.current = nil
	e.queue = e.queue[1:]
	switch {
	case t.ended == 0:
		d.finish(t, status, n)
	case err != nil:
		d.finish(t, t.ended, 0)
	default:
		unlink := t.unlink
		t.unlink = 0
		d.finish(t, status, n)
		if unlink != 0 {
			d.answerUnlink(unlink, 0)
		}
	}
}

// letGo returns the current transfer to the queue, unless it must end.
func (d *device) letGo(e *endpoint, t *transfer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.current = nil
	if t.ended != 0 {
		e.queue = e.queue[1:]
		d.finish(t, t.ended, 0)
	}
}

// serveOut passes data from the host to the link. A transfer waits while the card does not take
// its bytes.
func (d *device) serveOut(link net.Conn) {
	defer d.running.Done()
	for {
		t := d.next(&d.out, link, func() { _ = link.SetWriteDeadline(time.Time{}) })
		if t == nil {
			return
		}
		data := t.data
		t.data = nil
		n, err := link.Write(data)
		if d.broken(link, err) {
			d.leave(&d.out, t, err, StatusUnplugged, 0)
			return
		}
		d.leave(&d.out, t, err, 0, n)
	}
}

// wake makes the endpoint to the card check its queue again.
func (d *device) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out.arrived.Broadcast()
}

// serveIn passes data from the card to the host.
func (d *device) serveIn(link net.Conn) {
	defer d.running.Done()
	for {
		t := d.next(&d.in, link, func() { _ = link.SetReadDeadline(d.face.deadline()) })
		if t == nil {
			return
		}
		n, err := d.face.fill(link, t)
		if errors.Is(err, errUnasked) {
			d.letGo(&d.in, t)
			continue
		}
		if d.broken(link, err) {
			d.leave(&d.in, t, err, StatusUnplugged, 0)
			return
		}
		if n > t.length {
			d.leave(&d.in, t, err, StatusOverflow, t.length)
		} else {
			d.leave(&d.in, t, err, 0, n)
		}
	}
}

// broken reports whether an error ended the link. If the card ended it, the device is gone.
func (d *device) broken(link net.Conn, err error) bool {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	ours := d.link != link
	d.mu.Unlock()
	if !ours {
		d.lost()
	}
	return true
}
