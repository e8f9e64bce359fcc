package collective

import (
	"context"
	"net"

	"tributary/driver/wire"
)

// The parts of the protocol that tests speak as an impostor.
type (
	Hello  = hello
	Header = header
)

const (
	HeaderBytes = headerBytes
	KindData    = kindData
	KindPing    = kindPing
	KindAbort   = kindAbort
	KindBye     = kindBye
	MaxPayload  = maxPayload
)

func (h *header) Encode() []byte {
	var b [headerBytes]byte
	h.encode(&b)
	return b[:]
}

func (h *header) Decode(b []byte) string { return h.decode((*[headerBytes]byte)(b)) }

// NewHeader returns the header of a message of data.
func NewHeader(op Operation, f wire.Format, a Algorithm, generation, call, length uint64, bytes, crc uint32) *Header {
	return &header{kind: kindData, description: description{op, f, a, 0, length}, generation: generation, call: call, bytes: bytes, crc: crc}
}

// Greet dials as the group's member.
func Greet(g *Group, conn net.Conn, rank int) error { return g.greet(conn, rank) }

// WithNetwork replaces sockets.
func WithNetwork(listen func(ctx context.Context, address string) (net.Listener, error), dial func(ctx context.Context, address string) (net.Conn, error)) Option {
	return func(o *options) { o.network = network{listen, dial} }
}

var (
	Add    = add
	Pass   = pass
	Family = family
)
