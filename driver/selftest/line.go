package selftest

import (
	"tributary/driver/frame"
	"tributary/driver/transport"
)

// line sends and receives packets that are made by hand, as frames or as datagrams.
type line interface {
	// whole returns a packet as its frame or datagram.
	whole(h *frame.Header, payload []byte) []byte
	// sendRaw sends bytes, which are a datagram where packets are.
	sendRaw(b []byte) error
	// receive passes packets on until the link ends. They are valid during the call.
	receive(take func(*frame.Frame))
	Close() error
}

// newLine returns the line over an open link, and whether it is one of datagrams.
func newLine(link transport.Link) (_ line, packets bool) {
	if conn, ok := link.(transport.PacketConn); ok {
		return packetLine{conn}, true
	}
	return byteLine{link.(transport.Conn)}, false // there is no third kind
}

type byteLine struct{ transport.Conn }

func (byteLine) whole(h *frame.Header, payload []byte) []byte { return frame.Append(nil, h, payload) }

func (l byteLine) sendRaw(b []byte) error {
	_, err := l.Write(b)
	return err
}

func (l byteLine) receive(take func(*frame.Frame)) {
	scan := frame.NewScanner(frame.FromCard, 0)
	for {
		_, err := scan.Fill(l)
		for f := (frame.Frame{}); scan.Next(&f); {
			take(&f)
		}
		if err != nil {
			return
		}
	}
}

type packetLine struct{ transport.PacketConn }

func (packetLine) whole(h *frame.Header, payload []byte) []byte {
	return frame.AppendDatagram(nil, h, payload)
}

func (l packetLine) sendRaw(b []byte) error { return l.WritePackets(b, []int{len(b)}) }

func (l packetLine) receive(take func(*frame.Frame)) {
	check := frame.NewDatagramChecker(frame.FromCard)
	batch := []transport.Packet{{Bytes: make([]byte, frame.MaxDatagramBytes)}}
	for {
		n, err := l.ReadPackets(batch)
		for f := (frame.Frame{}); n > 0 && check.Check(batch[0].Bytes, &f); n = 0 {
			take(&f)
		}
		if err != nil {
			return
		}
	}
}
