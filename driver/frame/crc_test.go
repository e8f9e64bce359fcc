package frame

import (
	"math/rand/v2"
	"testing"

	"github.com/sigurn/crc16"

	"tributary/driver/wire"
)

// reference is sigurn/crc16's CRC-16/CCITT-FALSE, started from init.
func reference(init uint16, data []byte) uint16 {
	p := crc16.CRC16_CCITT_FALSE
	p.Init = init
	return crc16.Checksum(data, crc16.MakeTable(p))
}

func TestCRCKnownAnswer(t *testing.T) {
	if got := CRC(wire.CRCInit, []byte("123456789")); got != 0x29b1 {
		t.Errorf("CRC of the check string is %04x, the catalogue of CRCs says 29b1", got)
	}
}

func TestCRCAgainstReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for n := range 200 {
		for _, init := range []uint16{0, wire.CRCInit, uint16(rng.Uint32())} {
			if got, want := CRC(init, data[n:2*n]), reference(init, data[n:2*n]); got != want {
				t.Fatalf("%d bytes from %04x: %04x, reference %04x", n, init, got, want)
			}
		}
	}
	if got, want := CRC(wire.CRCInit, data), reference(wire.CRCInit, data); got != want {
		t.Fatalf("%d bytes: %04x, reference %04x", len(data), got, want)
	}
}

func FuzzCRC(f *testing.F) {
	f.Add(uint16(wire.CRCInit), []byte("123456789"))
	f.Add(uint16(0), make([]byte, 33))
	f.Fuzz(func(t *testing.T, init uint16, data []byte) {
		if got, want := CRC(init, data), reference(init, data); got != want {
			t.Fatalf("%d bytes from %04x: %04x, reference %04x", len(data), init, got, want)
		}
	})
}

func BenchmarkCRC(b *testing.B) {
	data := make([]byte, 4032)
	table := crc16.MakeTable(crc16.CRC16_CCITT_FALSE)
	b.Run("driver", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for range b.N {
			CRC(wire.CRCInit, data)
		}
	})
	b.Run("sigurn", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for range b.N {
			crc16.Checksum(data, table)
		}
	})
}
