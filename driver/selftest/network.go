package selftest

// What is different on a card on a network (NETWORK.md).

import (
	"context"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// bindMembers stages this host's address for the members on all ports.
func (r *rehearsal) bindMembers(ctx context.Context) error {
	if !r.packets {
		return nil
	}
	for of0, source := range map[uint32]uint32{wire.RegMemberAddress: wire.RegSource, wire.RegMemberMAC: wire.RegSourceMAC} {
		own, code, err := r.read(ctx, source)
		if err := check(err, code == wire.CodeDone, "reading register 0x%x has the reply %s", source, code); err != nil {
			return err
		}
		for port := range r.ports {
			_, code, err := r.write(ctx, wire.MemberAddr(of0, port), own)
			if err := check(err, code == wire.CodeDone, "staging the address of port %d has the reply %s", port, code); err != nil {
				return err
			}
		}
	}
	return nil
}

// foreign returns the counter of data that the core refuses as named. A card on a network finds no
// address for a job number or a rank that it lacks.
func (r *rehearsal) foreign(named string) string {
	if r.packets {
		return "stranger"
	}
	return named
}

// checkStrangers sends from an address that is not the owner's.
func checkStrangers(ctx context.Context, r *rehearsal) error {
	other, err := openHost(ctx, r.name, Options{Timeout: r.timeout})
	if err != nil {
		return &driver.NoCardError{Name: r.name, Err: err}
	}
	defer other.close()
	for _, addr := range []uint32{wire.RegJobToken, wire.RegJobPorts, wire.RegJobCommit, wire.RegLease} {
		_, code, err := other.write(ctx, addr, 1)
		if err := check(err, code == wire.CodeBusy, "a stranger's write to register 0x%x has the reply %s, must be %s", addr, code, wire.CodeBusy); err != nil {
			return err
		}
	}
	for _, kind := range []wire.Kind{wire.KindData, wire.KindAsk, wire.KindFinish} {
		h := r.header(kind, 0, firstVID)
		var payload []byte
		if kind == wire.KindData {
			payload = r.wholePayload(0)
		}
		if err := r.rises(ctx, map[string]uint32{"stranger": 1}, func() error { return other.send(h, payload) }); err != nil {
			return wrong("a stranger's %s: %w", kind, err)
		}
	}
	if err := r.sendAll(firstVID); err != nil {
		return err
	}
	return r.collect(ctx, firstVID)
}

// checkDamagedDatagrams sends datagrams with a flipped bit, and such that are too short. The card must
// still sum the next chunk correctly.
func checkDamagedDatagrams(ctx context.Context, r *rehearsal) error {
	h := r.header(wire.KindData, 0, firstVID)
	whole := r.line.whole(&h, r.wholePayload(0))
	for _, t := range []struct {
		what    string
		sent    []byte
		counter string
	}{
		{"a bit flipped in the VID", flippedAt(whole, 8), "datagram_crc"},
		{"a bit flipped in the first element", flippedAt(whole, wire.BaseHeaderBytes), "datagram_crc"},
		{"a bit flipped in the last byte", flippedAt(whole, len(whole)-1), "datagram_crc"},
		{"a byte less", whole[:len(whole)-1], "datagram_crc"},
		{"a datagram of 17 bytes", whole[:wire.BaseHeaderBytes+wire.DatagramCRCBytes-1], "short"},
	} {
		if err := r.rises(ctx, map[string]uint32{t.counter: 1}, func() error { return r.line.sendRaw(t.sent) }); err != nil {
			return wrong("%s: %w", t.what, err)
		}
	}
	if err := r.sendAll(firstVID); err != nil {
		return err
	}
	return r.collect(ctx, firstVID)
}

// flippedAt returns a copy of b with a flipped bit.
func flippedAt(b []byte, at int) []byte {
	flipped := append([]byte(nil), b...)
	flipped[at] ^= 0x10
	return flipped
}

// packetFlipper is a flipper for a link of packets.
type packetFlipper struct {
	transport.PacketConn
	*spoiler
}

func (f packetFlipper) WritePackets(buf []byte, ends []int) error {
	if f.armed.Load() {
		buf = append([]byte(nil), buf...) // the caller's must not change
		f.out.spoil(buf)
	}
	return f.PacketConn.WritePackets(buf, ends)
}

func (f packetFlipper) ReadPackets(batch []transport.Packet) (int, error) {
	n, err := f.PacketConn.ReadPackets(batch)
	for i := range n {
		if f.armed.Load() {
			f.in.spoil(batch[i].Bytes)
		}
	}
	return n, err
}

// openOver opens a card over a link that flips bits once the spoiler is armed.
func openOver(ctx context.Context, name string, link transport.Link, s *spoiler, opts []driver.Option) (*driver.Card, error) {
	if conn, ok := link.(transport.PacketConn); ok {
		return driver.OpenPackets(ctx, name, packetFlipper{conn, s}, opts...)
	}
	return driver.OpenConn(ctx, name, &flipper{link.(transport.Conn), s}, opts...)
}
