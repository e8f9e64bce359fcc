package ethernet

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes of frames in bytes, without their FCS.
const (
	Shortest = 60
	Longest  = 9018
)

// FCSBytes is the size of a frame's check sequence: the CRC-32 of IEEE 802.3, low byte first.
const FCSBytes = 4

// AppendFCS appends its FCS to a frame.
func AppendFCS(frame []byte) []byte {
	return binary.LittleEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
}

// CutFCS returns a frame without its FCS. ok is false if the FCS is not the frame's, or not there.
func CutFCS(frame []byte) (body []byte, ok bool) {
	if len(frame) < FCSBytes {
		return nil, false
	}
	body = frame[:len(frame)-FCSBytes]
	return body, binary.LittleEndian.Uint32(frame[len(body):]) == crc32.ChecksumIEEE(body)
}

// Pad appends zeros to a frame without FCS, up to the size of the shortest.
func Pad(frame []byte) []byte {
	return append(frame, make([]byte, max(0, Shortest-len(frame)))...)
}
