package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sigurn/crc16"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// TestCRCCheckValue compares with the check value of CRC-16/CCITT-FALSE in the catalogue of CRCs.
func TestCRCCheckValue(t *testing.T) {
	check := []byte("123456789")
	assert.Equal(t, uint16(0x29b1), updateCRC(wire.CRCInit, check))
	assert.Equal(t, uint16(0x29b1), crcBitwise(wire.CRCInit, check))
}

// TestCRCIsItsDefinition tries every length around the steps of eight, at every offset in a word
// and from various registers, and compares with another implementation too.
func TestCRCIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	data := make([]byte, 300)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	table := crc16.MakeTable(crc16.CRC16_CCITT_FALSE)
	for length := range 260 {
		for offset := range crcSlice {
			for _, r := range []uint16{0, wire.CRCInit, uint16(rng.Uint32())} {
				part := data[offset : offset+length]
				got := updateCRC(r, part)
				require.Equal(t, crcBitwise(r, part), got, "%d bytes from %04x", length, r)
				require.Equal(t, crc16.Update(r, part, table), got, "%d bytes from %04x", length, r)
			}
		}
	}
}

func BenchmarkCRC(b *testing.B) {
	for _, size := range []int{14, 4032} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			data := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				updateCRC(wire.CRCInit, data)
			}
		})
	}
}
