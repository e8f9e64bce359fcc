package ftdi

import (
	"context"

	"tributary/driver/transport/bridge"
	"tributary/driver/transport/bulk"
	"tributary/driver/wire"
)

// stream is the byte stream behind a claimed chip.
type stream struct {
	bulk.Stream
	packets []byte // buffer for a transfer
	left    []byte // unread bytes of the stream in it
}

func newStream(claimed bulk.Stream) *stream {
	return &stream{Stream: claimed, packets: make([]byte, bulk.TransferBytes)}
}

// Read returns no bytes when the chip sends only its status.
func (s *stream) Read(ctx context.Context, p []byte) (int, error) {
	if len(s.left) == 0 {
		n, err := s.Stream.Read(ctx, s.packets)
		if err != nil {
			return 0, err
		}
		s.left = strip(s.packets[:n], s.PacketBytes())
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// strip removes the status at the beginning of each packet, in place. All packets but the last
// have the size whole.
func strip(packets []byte, whole int) []byte {
	kept := packets[:0]
	for len(packets) > 0 {
		packet := packets[:min(len(packets), whole)]
		packets = packets[len(packet):]
		if len(packet) > wire.FTDIStatus {
			kept = append(kept, packet[wire.FTDIStatus:]...)
		}
	}
	return kept
}

// begin begins a link to the card behind the chip.
func (s *stream) begin(ctx context.Context) (err error) {
	s.left, err = bridge.Begin(ctx, s, bridge.ErrMute)
	return err
}
