package usbip

// The USB/IP protocol, from the kernel's Documentation/usb/usbip_protocol. A client first
// requests the list of devices or imports one. After an import, heads of 48 bytes pass in both
// directions, some followed by the bytes of a transfer. All numbers are big-endian.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

const version = 0x0111

// Requests at the start of a connection. The reply has the same number without the upper bit.
const (
	opList   uint16 = 0x8005
	opImport uint16 = 0x8003
	opAnswer uint16 = 0x7fff // mask for a reply's number
)

// Status of a reply.
const (
	opDone     uint32 = 0
	opBusy     uint32 = 2 // a host has imported it
	opNoDevice uint32 = 4
)

// op is the beginning of every request before an import, and of its reply.
type op struct {
	Version uint16
	Code    uint16
	Status  uint32
}

// DeviceInfo describes a device in a list and in the reply to an import.
type DeviceInfo struct {
	PathBytes      [256]byte
	BusIDBytes     [32]byte
	Bus, Device    uint32
	Speed          uint32
	Vendor         uint16
	Product        uint16
	Release        uint16 // bcdDevice
	Class          uint8
	SubClass       uint8
	Protocol       uint8
	Configuration  uint8 // the current one
	Configurations uint8
	Interfaces     uint8
}

// BusID returns the device's name for an import.
func (d *DeviceInfo) BusID() string { return string(bytes.TrimRight(d.BusIDBytes[:], "\x00")) }

// interfaceInfo follows DeviceInfo in a list, once for each interface.
type interfaceInfo struct{ Class, SubClass, Protocol, _ uint8 }

// Commands of heads.
const (
	CmdSubmit uint32 = 1
	CmdUnlink uint32 = 2
	RetSubmit uint32 = 3
	RetUnlink uint32 = 4
)

// Directions of a transfer.
const (
	Out uint32 = 0
	In  uint32 = 1
)

// Head is a message after an import. The constants below index the fields of each command in
// Args.
type Head struct {
	Command   uint32
	Seq       uint32 // of the transfer; a reply has its command's
	DeviceID  uint32
	Direction uint32
	Endpoint  uint32 // without the direction
	Args      [5]int32
	Setup     [8]byte
}

// Indexes of Head.Args.
const (
	ArgFlags   = 0 // of CmdSubmit
	ArgLength  = 1 // of CmdSubmit: bytes to transfer
	ArgPackets = 3 // of CmdSubmit: 0 unless isochronous
	ArgUnlink  = 0 // of CmdUnlink: the Seq to cancel
	ArgStatus  = 0 // of RetSubmit and RetUnlink: 0 or a negative error number
	ArgActual  = 1 // of RetSubmit: bytes transferred
)

// HeadBytes is the size of a Head.
const HeadBytes = 48

// MaxTransfer limits the bytes of one transfer.
const MaxTransfer = 16 << 20

// Status values: negative error numbers of Linux.
const (
	StatusNoMemory  int32 = -12  // ENOMEM: the waiting transfers take all of Card.Memory
	StatusStall     int32 = -32  // EPIPE: a halted endpoint or an unknown request
	StatusProtocol  int32 = -71  // EPROTO: no reply at that endpoint
	StatusOverflow  int32 = -75  // EOVERFLOW: a packet exceeds the rest of the transfer
	StatusUnlinked  int32 = -104 // ECONNRESET: cancelled
	StatusUnplugged int32 = -108 // ESHUTDOWN
)

// Append appends the encoded head.
func (h *Head) Append(buf []byte) []byte {
	for _, word := range []uint32{h.Command, h.Seq, h.DeviceID, h.Direction, h.Endpoint} {
		buf = binary.BigEndian.AppendUint32(buf, word)
	}
	for _, word := range h.Args {
		buf = binary.BigEndian.AppendUint32(buf, uint32(word))
	}
	return append(buf, h.Setup[:]...)
}

// ReadHead reads a head. It rejects invalid lengths, so a caller may allocate a head's length.
func ReadHead(r io.Reader) (Head, error) {
	var b [HeadBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Head{}, err
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	h := Head{Command: word(0), Seq: word(1), DeviceID: word(2), Direction: word(3), Endpoint: word(4)}
	for i := range h.Args {
		h.Args[i] = int32(word(5 + i))
	}
	copy(h.Setup[:], b[40:])
	if n := h.Args[ArgLength]; (h.Command == CmdSubmit || h.Command == RetSubmit) && (n < 0 || n > MaxTransfer) {
		return h, fmt.Errorf("usbip: a transfer of %d bytes", n)
	}
	return h, nil
}

// write writes values of fixed size.
func write(w io.Writer, parts ...any) error {
	var b bytes.Buffer
	for _, p := range parts {
		if err := binary.Write(&b, binary.BigEndian, p); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// read reads values of fixed size.
func read(r io.Reader, to any) error { return binary.Read(r, binary.BigEndian, to) }
