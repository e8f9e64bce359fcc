package transport

import (
	"context"
	"fmt"
	"io"
	"strings"

	"tributary/driver/wire"
)

// Link is the way to one card: a Conn, which carries bytes, or a PacketConn.
type Link interface{ io.Closer }

// PacketConn carries packets between this host and one card. A packet arrives whole or not at all,
// possibly several times, and packets may overtake one another. One goroutine may call ReadPackets,
// another WritePackets and a third Close at the same time. Close ends calls in progress.
type PacketConn interface {
	Link

	// ReadPackets waits for packets, and stores those that are there in batch. It returns their
	// number, at least 1 without an error. Bytes of a Packet are the room for it, up to their
	// capacity, and then what was received.
	ReadPackets(batch []Packet) (n int, err error)

	// WritePackets sends packets, which lie one after another in buf: packet i ends before
	// buf[ends[i]]. It may keep neither. Packets that are lost on the way are no error.
	WritePackets(buf []byte, ends []int) error

	// Limits returns what the host and the way to the card allow.
	Limits() PacketLimits
}

// PacketLimits are limits of a PacketConn, in bytes; 0 means no limit.
type PacketLimits struct {
	Packet int // the largest packet that the way carries, as far as this host knows
	Unread int // received packets that the host keeps until they are read; what comes beyond is lost
}

// Packet is a received packet.
type Packet struct {
	Bytes []byte
	ECN   wire.ECN // of its IP header
}

// PacketOpener opens a card of a scheme of packets. It returns when ctx ends.
type PacketOpener func(ctx context.Context, r Request) (PacketConn, error)

var packetSchemes = map[string]PacketOpener{}

// RegisterPackets is Register for a scheme of packets.
func RegisterPackets(scheme string, open PacketOpener) {
	mu.Lock()
	defer mu.Unlock()
	mustBeNew(scheme)
	packetSchemes[scheme] = open
}

// OpenLink opens the way to the card called name, SCHEME:ADDRESS.
func OpenLink(ctx context.Context, name string, needs Needs) (Link, error) {
	scheme, address, _ := strings.Cut(name, ":")
	mu.Lock()
	open := packetSchemes[scheme]
	mu.Unlock()
	if open == nil || scheme == name {
		return Open(ctx, name, needs)
	}
	return open(ctx, Request{Address: address, Needs: needs})
}

// noStream returns the error for a card of packets where a stream of bytes is needed.
func noStream(name string) error {
	return fmt.Errorf("card %s takes packets, not a stream of bytes; use a card of another scheme", name)
}
