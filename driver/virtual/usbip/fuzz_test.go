package usbip

// Whatever a host sends, the server replies or hangs up, and the device is then free for the
// next host.

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"tributary/driver/wire"
)

// script is a connection on which a host sends fixed bytes and reads the replies at once.
type script struct {
	net.Conn // nil: no other method is called
	in       *bytes.Reader
	answers  int // bytes
}

func (s *script) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error) { s.answers += len(p); return len(p), nil }
func (s *script) Close() error                { return nil }

// sink is a card's byte stream that accepts everything and returns three bytes for each read.
type sink struct{ net.Conn }

func (sink) Read(p []byte) (int, error) {
	if n := copy(p, "abc"); n > 0 {
		return n, nil
	}
	return 0, os.ErrDeadlineExceeded
}
func (sink) Write(p []byte) (int, error)      { return len(p), nil }
func (sink) Close() error                     { return nil }
func (sink) SetReadDeadline(time.Time) error  { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }

// request returns a control transfer with its data.
func request(seq uint32, kind, number byte, value, length uint16) []byte {
	h := Head{Command: CmdSubmit, Seq: seq, Direction: uint32(kind >> 7), Setup: [8]byte{kind, number}}
	binary.LittleEndian.PutUint16(h.Setup[2:], value)
	binary.LittleEndian.PutUint16(h.Setup[6:], length)
	h.Args[ArgLength] = int32(length)
	return h.Append(nil)
}

// bulk returns a transfer of a bulk endpoint with its data.
func bulk(seq, direction uint32, length int) []byte {
	h := Head{Command: CmdSubmit, Seq: seq, Direction: direction, Endpoint: 1}
	h.Args[ArgLength] = int32(length)
	b := h.Append(nil)
	if direction == Out {
		b = append(b, make([]byte, length)...)
	}
	return b
}

// imported returns a host's first commands, which import and claim the device, and rest.
func imported(rest ...[]byte) []byte {
	var b bytes.Buffer
	var id [32]byte
	copy(id[:], BusID)
	if err := write(&b, op{Version: version, Code: opImport}, id); err != nil {
		panic(err)
	}
	b.Write(request(1, 0x00, 0x09, wire.USBConfiguration, 0))
	b.Write(request(2, 0x01, 0x0b, wire.USBLinkUp, 0))
	for _, r := range rest {
		b.Write(r)
	}
	return b.Bytes()
}

// FuzzServer sends any bytes to the server.
func FuzzServer(f *testing.F) {
	unlink := Head{Command: CmdUnlink, Seq: 9, Args: [5]int32{ArgUnlink: 3}}
	f.Add(imported(bulk(3, In, 512), unlink.Append(nil), bulk(4, Out, 30), bulk(5, In, 3)))
	f.Add(imported(request(3, 0x80, 0x06, 0x0100, 255), request(4, 0x80, 0x06, 0x0302, 255), request(5, wire.USBIdentifyType, wire.USBIdentify, 0, 104)))
	f.Add(imported(request(3, 0x02, 0x03, 0, 0), bulk(4, In, 64), request(5, 0x02, 0x01, 0, 0), request(6, 0x01, 0x0b, wire.USBLinkDown, 0)))
	f.Add([]byte{1, 0x11, 0x80, 5, 0, 0, 0, 0})
	f.Add(imported(bulk(3, In, MaxTransfer+1)))
	server, err := NewServer(Card{Ident: make([]byte, wire.USBIdentBytes), Serial: "F-1", Link: func() (net.Conn, error) { return sink{}, nil }})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		conn := &script{in: bytes.NewReader(in)}
		if err := server.serve(conn); err == nil && conn.answers == 0 {
			t.Error("a host was left without an answer or an error")
		}
		if server.device != nil {
			t.Error("a host that has left keeps the device")
		}
	})
}

// FuzzReadHead checks that a head is written as the bytes that were read, and that a length to
// allocate is within its limit.
func FuzzReadHead(f *testing.F) {
	f.Add(bulk(3, In, 512))
	f.Add(request(3, 0x80, 0x06, 0x0100, 255))
	f.Add(bulk(3, In, MaxTransfer+1))
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := ReadHead(bytes.NewReader(in))
		switch n := h.Args[ArgLength]; {
		case err != nil && len(in) < HeadBytes && err != io.EOF && err != io.ErrUnexpectedEOF:
			t.Errorf("%d bytes: %v", len(in), err)
		case err == nil && !bytes.Equal(h.Append(nil), in[:HeadBytes]):
			t.Errorf("%x is written as %x", in, h.Append(nil))
		case err == nil && (h.Command == CmdSubmit || h.Command == RetSubmit) && (n < 0 || n > MaxTransfer):
			t.Errorf("a transfer of %d bytes", n)
		}
	})
}
