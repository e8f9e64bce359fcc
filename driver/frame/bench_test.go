package frame

import (
	"testing"

	"github.com/sigurn/crc16"

	"tributary/driver/wire"
)

// BenchmarkFrames measures one core's work for a chunk of 992 elements. It builds the data
// frame from the array. It finds and checks the result frame and stores its payload in the
// array. The bytes of both frames count. The other benchmark is sigurn/crc16's CRC of the same
// bytes.
func BenchmarkFrames(b *testing.B) {
	const elements = 992
	array := make([]byte, 4*elements)
	for i := range array {
		array[i] = byte(i * i >> 3)
	}
	data := Header{Kind: wire.KindData, Format: wire.FP32, Length: elements}
	outgoing := AppendPadded(nil, &data, array)
	incoming := AppendPadded(nil, &Header{Kind: wire.KindResult, Format: wire.FP32, Length: elements, Mask: 1, Receivers: 1}, array)
	size := int64(len(outgoing) + len(incoming))

	b.Run("driver", func(b *testing.B) {
		b.SetBytes(size)
		b.ReportAllocs()
		s := NewScanner(FromCard, 0)
		var f Frame
		for range b.N {
			outgoing = AppendPadded(outgoing[:0], &data, array)
			s.Feed(incoming)
			if !s.Next(&f) {
				b.Fatal("the frame is not found")
			}
			copy(array, f.Payload)
		}
	})
	b.Run("sigurn", func(b *testing.B) {
		b.SetBytes(size)
		table := crc16.MakeTable(crc16.CRC16_CCITT_FALSE)
		for range b.N {
			crc16.Checksum(outgoing, table)
			crc16.Checksum(incoming, table)
		}
	})
}
