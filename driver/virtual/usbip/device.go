package usbip

// The device that one host has attached: its endpoints, each with the
// transfers that wait at it, and the link to the card while it is up.

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

// burstEnd is for how long the card must be silent for a burst to be over whose
// last transfer was filled.
const burstEnd = time.Millisecond

// past is a deadline that ends what is under way.
var past = time.Unix(1, 0)

// transfer is one that waits at an endpoint.
type transfer struct {
	seq    uint32
	data   []byte // of an IN transfer: room for what comes, up to a whole packet
	length int    // that was asked for
	done   int    // bytes of data that stay, where it has waited for the host to ask

	// Set when the transfer is to end by something else than its bytes.
	ended  int32
	unlink uint32 // Seq of the command that takes it back, if that ended it
}

// endpoint is one of a device; guarded by device.mu.
type endpoint struct {
	halted  bool
	queue   []*transfer
	current *transfer // of the queue: the link is at it
	arrived sync.Cond // queue has grown, or the link went down
	stop    func()    // ends the wait of the goroutine that is at current
}

// device is what a host has attached. Its control requests come one by one.
type device struct {
	card          *Card
	face          face
	answer        func(h Head, data []byte) // sends to the host
	lost          func()                    // the card broke its link: the device is gone
	configuration byte
	setting       byte

	mu      sync.Mutex
	out, in endpoint
	sides   [2]endpoint    // of a face that is commanded
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

// endpoint returns the endpoint at an address, nil where none is now; with mu held.
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

// endpoints returns all that a device may have.
func (d *device) endpoints() []*endpoint {
	return []*endpoint{&d.out, &d.in, &d.sides[0], &d.sides[1]}
}

// linkUp opens the card's byte stream. It says whether it could.
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

// linkDown closes the byte stream. Transfers that wait end without a word from
// the device.
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

// submit puts a transfer at an endpoint.
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

// carryOut carries out the command that a transfer brings; with mu held.
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

// unlink takes a transfer back. What has ended already was answered.
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

// endAll ends all transfers at an endpoint; with mu held.
func (d *device) endAll(e *endpoint, status int32) {
	for _, t := range slices.Clone(e.queue) {
		if t.ended == 0 {
			d.end(e, t, status)
		}
	}
}

// end ends a transfer that waits, at once or, when the link is at it, as soon as
// that has let go of it; with mu held.
func (d *device) end(e *endpoint, t *transfer, status int32) {
	t.ended = status
	if e.current == t {
		e.stop()
		return
	}
	e.queue = slices.DeleteFunc(e.queue, func(x *transfer) bool { return x == t })
	d.finish(t, status, 0)
}

// finish tells the host how a transfer ended; with mu held, so that answers leave
// in the order of what happened.
func (d *device) finish(t *transfer, status int32, n int) {
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

// next waits for a transfer at an endpoint of the link, and is at it from then on. It is nil
// when the link went down. ready prepares the link for it.
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

// leave ends the transfer that the link was at. err is what the link said, status
// what it comes to where nothing else has ended the transfer. Bytes that have
// passed are told, also when the transfer was to end without them.
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

// letGo has a transfer that the link was at wait again, unless it is to end.
func (d *device) letGo(e *endpoint, t *transfer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.current = nil
	if t.ended != 0 {
		e.queue = e.queue[1:]
		d.finish(t, t.ended, 0)
	}
}

// serveOut moves what the host sends into the link. A transfer whose bytes the
// card does not take waits.
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

// wake has what waits at the endpoint to the card look again.
func (d *device) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out.arrived.Broadcast()
}

// serveIn moves what the card sends to the host.
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

// broken says whether an error ended the link. If it was the card that ended it,
// the device is gone.
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
