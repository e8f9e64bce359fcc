package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"tributary/driver/frame"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// treeCard is a card of a round of trees, plugged into the network.
type treeCard struct {
	*treeRound
	number int
	plugs  []func() frameport.Port // by Ethernet port

	running sync.Mutex
	stop    func() error // returns why the card ended before, if it did
}

// Addresses in the network of a round. The switch has one because it is a card without jobs.
func cardMAC(number int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0x54, 0x52, 0x42, 1, byte(number)}
}
func cardIP(number int) net.IP { return net.IP{192, 168, 84, byte(100 + number)} }
func hostMAC(number int) net.HardwareAddr {
	return net.HardwareAddr{0x06, 0, 0, 0, 0, byte(1 + number)}
}
func hostIP(number int) net.IP { return net.IPv4(192, 168, 84, byte(1+number)) }

// at is where a card is reached.
func (c *treeCard) at() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(cardIP(c.number))), frames.CardPort)
}

// start plugs a card without any history in.
func (c *treeCard) start() error {
	c.running.Lock()
	defer c.running.Unlock()
	return c.startLocked()
}

func (c *treeCard) startLocked() error {
	ctx, cancel := context.WithCancel(context.Background())
	card, time, err := c.device(ctx, true)
	if err == nil {
		err = move(card, cardMAC(c.number), cardIP(c.number))
	}
	if err != nil {
		cancel()
		return fmt.Errorf("card %d does not start: %w", c.number, err)
	}
	c.stop = plugIn(ctx, cancel, newBelated(c, card), time, c.plugs)
	return nil
}

// restart kills the card, and starts it again.
func (c *treeCard) restart() error {
	c.running.Lock()
	defer c.running.Unlock()
	return errors.Join(c.stop(), c.startLocked())
}

// plugIn runs a device at its ports until the returned function ends it, by cancel.
func plugIn(ctx context.Context, cancel func(), card ethernet.Device, time frameport.Timekeeper, plugs []func() frameport.Port) (stop func() error) {
	var ports []frameport.Port
	for _, plug := range plugs {
		ports = append(ports, plug())
	}
	ended := make(chan error, 1)
	go func() { ended <- frameport.Serve(ctx, card, time, ports) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// moves is the owner of a card before it is plugged in.
const moves = 0x6d6f7665

// move gives a new card an address of its own. All cards are made with the same one.
func move(card ethernet.Device, mac net.HardwareAddr, ip net.IP) error {
	at := frames.NewDatagram(nil)
	station := uint64(frames.CardPort)<<32 | uint64(ip[0])<<24 | uint64(ip[1])<<16 | uint64(ip[2])<<8 | uint64(ip[3])
	number := uint64(0)
	for _, b := range mac {
		number = number<<8 | uint64(b)
	}
	for _, write := range []struct {
		addr  uint32
		value uint64
		then  func()
	}{
		{wire.RegOwner, moves, func() {}},
		{wire.RegCardAddress, station, func() { at.IP.DstIP = ip }},
		{wire.RegCardMAC, number, func() { at.Ether.DstMAC = mac }},
		{wire.RegRelease, moves, func() {}},
	} {
		at.Body = frames.Access(wire.KindRegWrite, write.addr, write.value)
		at.SetLengths(len(at.Body))
		card.Receive(0, at.Bytes())
		reply, err := leaves(card)
		if err != nil {
			return err
		}
		var f frame.Frame
		if n := 42 + wire.MaskHeaderBytes + wire.DatagramCRCBytes; len(reply) < n || !frame.NewDatagramChecker(frame.FromCard).Check(reply[42:n], &f) || f.Code != wire.CodeDone {
			return fmt.Errorf("the reply to a write of %#x is %x", write.addr, reply)
		}
		write.then()
	}
	return nil
}

// mostToLeave is more than a card takes to reply, in steps of 64 cycles.
const mostToLeave = 1000

// leaves returns the next frame of a card, when nothing else leaves it.
func leaves(card ethernet.Device) (reply []byte, err error) {
	for range mostToLeave {
		b, _, ok := card.Send(nil)
		switch {
		case ok:
			reply = b
			continue
		case reply != nil:
			return reply, nil
		}
		card.Advance(64)
		if err := card.Err(); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("a card does not reply")
}

// belated is a card that gets packets of jobs of earlier set-ups again, now and then. Accesses of registers
// do not come again: they would keep the lease of an owner that has long gone.
type belated struct {
	ethernet.Device
	rng             *rand.Rand
	setUps          *atomic.Int64 // of the round
	happened        *atomic.Int64
	now             int64     // set-up of recent
	recent, earlier []arrived // of this set-up; of those before
}

// arrived is a frame that came at a port.
type arrived struct {
	port  int
	frame []byte
}

const (
	mostKept      = 256 // frames of the latest set-ups
	belatedChance = 24  // one in so many frames meets an earlier one
)

func newBelated(c *treeCard, card ethernet.Device) *belated {
	return &belated{
		Device: card, rng: rand.New(rand.NewPCG(c.seed, 4<<32+uint64(c.number))),
		setUps: &c.setUps, happened: &c.events[packetOfBefore],
	}
}

// Receive implements ethernet.Device.
func (b *belated) Receive(port int, f []byte) {
	if now := b.setUps.Load(); now != b.now {
		b.earlier, b.recent, b.now = lastOf(append(b.earlier, b.recent...)), nil, now
	}
	if len(b.earlier) > 0 && b.rng.IntN(belatedChance) == 0 {
		late := b.earlier[b.rng.IntN(len(b.earlier))]
		b.happened.Add(1)
		b.Device.Receive(late.port, late.frame)
	}
	if isOfAJob(f) {
		b.recent = lastOf(append(b.recent, arrived{port, append([]byte(nil), f...)}))
	}
	b.Device.Receive(port, f)
}

// isOfAJob reports whether a frame may have a datagram of a job.
func isOfAJob(f []byte) bool {
	if len(f) < 64 || f[12] != 0x08 || f[13] != 0 {
		return false
	}
	kind := wire.Kind(f[42] >> 4)
	return kind != wire.KindRegRead && kind != wire.KindRegWrite && kind != wire.KindReply
}

// lastOf returns the last frames.
func lastOf(all []arrived) []arrived { return all[max(0, len(all)-mostKept):] }
