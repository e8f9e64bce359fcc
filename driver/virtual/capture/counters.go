package capture

import (
	"encoding/binary"

	"tributary/driver/frame"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
)

// Counters returns the counters of a card in software that are not zero, by name. It reads the card's
// registers, which counts as that many frames afterwards. A card with shell udp has no counters of roce:
// they read as 0.
func Counters(endpoint ethernet.Endpoint) map[string]uint64 {
	counts := map[string]uint64{}
	for i, c := range wire.CountersOf(wire.ShellRoCE) {
		read := frame.Header{Kind: wire.KindRegRead, VID: wire.CounterAddr(i)}
		endpoint.Receive(frame.AppendDatagram(nil, &read, nil), wire.Address{}, wire.ECT0)
		reply, _, _, ok := endpoint.Send(nil)
		if !ok || len(reply) < wire.BaseHeaderBytes+8 {
			continue
		}
		n := binary.LittleEndian.Uint64(reply[wire.BaseHeaderBytes:])
		if c.Name == "frames" {
			n-- // this read
		}
		if n > 0 {
			counts[c.Name] = n
		}
	}
	return counts
}
