package collective

// The handshake of a connection (SPEC.md, section 8).

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	helloMagic = "TRIBCOL1"
	helloMost  = 2048 // bytes after the length
	randomSize = 16
	helloFixed = 8 + 4 + 4 + randomSize

	// helloTime is how long an acceptor waits for a dialer's part.
	helloTime = 5 * time.Second
)

// hello is what a dialer says first.
type hello struct {
	generation uint64
	from, to   uint32 // ranks
	random     [randomSize]byte
	group, id  string
}

// encode returns the bytes of a hello, from the magic on.
func (h *hello) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, h.generation)
	b = binary.LittleEndian.AppendUint32(b, h.from)
	b = binary.LittleEndian.AppendUint32(b, h.to)
	b = append(b, h.random[:]...)
	b = appendText(appendText(b, h.group), h.id)
	return append(binary.LittleEndian.AppendUint16([]byte(helloMagic), uint16(len(b))), b...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(text))), text...)
}

// text reads a text at the start of b.
func text(b []byte) (text string, rest []byte, ok bool) {
	if len(b) < 2 || len(b)-2 < int(binary.LittleEndian.Uint16(b)) {
		return "", nil, false
	}
	n := 2 + int(binary.LittleEndian.Uint16(b))
	return string(b[2:n]), b[n:], true
}

var errHello = errors.New("the hello is malformed")

// readHello reads a hello, and returns its bytes too.
func readHello(r io.Reader) (h hello, raw []byte, err error) {
	raw = make([]byte, len(helloMagic)+2)
	if _, err := io.ReadFull(r, raw); err != nil {
		return h, nil, err
	}
	n := int(binary.LittleEndian.Uint16(raw[len(helloMagic):]))
	if !bytes.HasPrefix(raw, []byte(helloMagic)) || n < helloFixed || n > helloMost {
		return h, nil, errHello
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, nil, err
	}
	raw = append(raw, b...)
	h.generation = binary.LittleEndian.Uint64(b)
	h.from, h.to = binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	copy(h.random[:], b[16:])
	var ok1, ok2 bool
	h.group, b, ok1 = text(b[helloFixed:])
	h.id, b, ok2 = text(b)
	if !ok1 || !ok2 || len(b) != 0 {
		return h, nil, errHello
	}
	return h, raw, nil
}

// proof is the HMAC of parts under the group's token.
func (g *Group) proof(parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, []byte(g.Token))
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

// greet is a dialer's part of the handshake with a rank. A refusal is a RefusedError, or the error of
// an abort.
func (g *Group) greet(conn net.Conn, rank int) error {
	h := hello{generation: g.Generation, from: uint32(g.Rank), to: uint32(rank), group: g.Name, id: g.Members[g.Rank].ID}
	rand.Read(h.random[:])
	raw := h.encode()
	if _, err := conn.Write(raw); err != nil {
		return err
	}
	challenge := make([]byte, randomSize)
	if _, err := io.ReadFull(conn, challenge); err != nil {
		return err
	}
	if _, err := conn.Write(g.proof([]byte("dial"), raw, challenge)); err != nil {
		return err
	}
	answer := make([]byte, 1+sha256.Size+2)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint16(answer[1+sha256.Size:]))
	if n > helloMost {
		return &ProtocolError{rank, g.Members[rank].ID, fmt.Sprintf("its answer to the hello has %d bytes", n)}
	}
	why := make([]byte, n)
	if _, err := io.ReadFull(conn, why); err != nil {
		return err
	}
	reason := Reason(answer[0])
	if reason == ReasonStranger || reason == ReasonInvalid {
		return &RefusedError{rank, g.Members[rank].ID, reason, string(why)}
	}
	if !hmac.Equal(answer[1:1+sha256.Size], g.proof([]byte("accept"), raw, challenge, answer[:1], why)) {
		return &RefusedError{rank, g.Members[rank].ID, ReasonStranger, "what listens at its address lacks the group's token"}
	}
	switch reason {
	case welcome:
		return nil
	case reasonEnded:
		return &toldError{decodeCause(g, rank, why)}
	}
	return &RefusedError{rank, g.Members[rank].ID, reason, string(why)}
}

// toldError is the cause that another member told.
type toldError struct{ error }

// receive is an acceptor's part of the handshake. take decides about a proven member, and returns the
// reason and its text; with welcome, it has the connection. receive returns the rank, and an error if
// the dialer was refused (refusal) or went away.
func (g *Group) receive(conn net.Conn, take func(rank int) (Reason, []byte)) (rank int, err error) {
	h, raw, err := readHello(conn)
	if err != nil {
		return -1, err
	}
	challenge := make([]byte, randomSize)
	rand.Read(challenge)
	if _, err := conn.Write(challenge); err != nil {
		return -1, err
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return -1, err
	}
	refuse := func(r Reason, format string, args ...any) (int, error) {
		return -1, g.refuse(conn, raw, challenge, r, fmt.Sprintf(format, args...))
	}
	switch own := uint32(g.Rank); {
	case !hmac.Equal(proof, g.proof([]byte("dial"), raw, challenge)):
		return refuse(ReasonStranger, "%s of group %q has another token", h.id, h.group)
	case h.group != g.Name:
		return refuse(ReasonInvalid, "%s is of group %q; this one is %q", h.id, h.group, g.Name)
	case h.generation != g.Generation:
		return refuse(ReasonGeneration, "%s has generation %d; this one is %d", h.id, h.generation, g.Generation)
	case h.to != own:
		return refuse(ReasonInvalid, "%s dialed rank %d, but %s listens here", h.id, h.to, g.name(g.Rank))
	case int64(h.from) >= int64(g.Size()) || h.from == own:
		return refuse(ReasonMember, "%s is no other member's rank: it is %d of %d", h.id, h.from, g.Size())
	case h.id != g.Members[h.from].ID:
		return refuse(ReasonMember, "%s is not %s", h.id, g.name(int(h.from)))
	}
	reason, why := take(int(h.from))
	answer := g.answer(raw, challenge, reason, why)
	if _, err := conn.Write(answer); err != nil {
		return int(h.from), err
	}
	switch reason {
	case welcome:
	case reasonEnded:
		return -1, io.EOF // no stranger: nothing to warn of
	default:
		return -1, refusal(fmt.Sprintf("refused a connection (%s): %s", reason, g.name(int(h.from))))
	}
	return int(h.from), nil
}

// answer returns the acceptor's last bytes.
func (g *Group) answer(raw, challenge []byte, r Reason, why []byte) []byte {
	proof := make([]byte, sha256.Size)
	if r != ReasonStranger && r != ReasonInvalid {
		proof = g.proof([]byte("accept"), raw, challenge, []byte{byte(r)}, why)
	}
	return append(append([]byte{byte(r)}, proof...), appendText(nil, string(why))...)
}

// refuse sends a refusal and returns it as an error.
func (g *Group) refuse(conn net.Conn, raw, challenge []byte, r Reason, why string) error {
	why = why[:min(len(why), maxText)]
	_, _ = conn.Write(g.answer(raw, challenge, r, []byte(why))) // it may be gone
	return refusal(fmt.Sprintf("refused a connection (%s): %s", r, why))
}

// refusal is the error of an acceptor that has refused a dialer.
type refusal string

func (r refusal) Error() string { return string(r) }
