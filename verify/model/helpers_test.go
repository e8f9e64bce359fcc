// What several tests of the model share: payloads and counters by name.

package model

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// words returns the payload of fp32 encodings.
func words(elements ...uint32) []byte {
	var b []byte
	for _, e := range elements {
		b = binary.LittleEndian.AppendUint32(b, e)
	}
	return b
}

// elements returns the fp32 encodings of a payload.
func elements(payload []byte) []uint32 {
	var e []uint32
	for ; len(payload) >= 4; payload = payload[4:] {
		e = append(e, binary.LittleEndian.Uint32(payload))
	}
	return e
}

// counterAddr returns the register address of a counter.
func counterAddr(name string) uint32 {
	for i, c := range wire.Counters {
		if c.Name == name {
			return wire.CounterAddr(i)
		}
	}
	panic("no counter " + name)
}
