package udp

// Segmentation offload (UDP_SEGMENT, since Linux 4.18): the kernel takes packets of one size as one
// message, and cuts it at the end of its way through the stack.

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Limits of a message that the kernel cuts.
const (
	mostSegments     = 64
	mostSegmentBytes = 1<<16 - 1 - headerBytes
)

// run returns how many of the packets from start on go into one message: packets of one size, and
// perhaps a shorter one after them.
func run(start int, ends []int) (packets int) {
	size := ends[0] - start
	for packets = 1; packets < min(len(ends), mostSegments); packets++ {
		next := ends[packets] - ends[packets-1]
		if next > size || ends[packets]-start > mostSegmentBytes {
			break
		}
		if next < size {
			return packets + 1
		}
	}
	return packets
}

// segmentBytes is the room for the ancillary data that names the size of segments.
var segmentBytes = unix.CmsgSpace(2)

// putSegments writes that data to dst.
func putSegments(dst []byte, size int) {
	at := unix.SizeofCmsghdr - 8 // struct cmsghdr: length, level, type; the length is as long as a pointer
	if at == 8 {
		binary.NativeEndian.PutUint64(dst, uint64(unix.CmsgLen(2)))
	} else {
		binary.NativeEndian.PutUint32(dst, uint32(unix.CmsgLen(2)))
	}
	binary.NativeEndian.PutUint32(dst[at:], unix.SOL_UDP)
	binary.NativeEndian.PutUint32(dst[at+4:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(dst[unix.SizeofCmsghdr:], uint16(size))
}

// cannotSegment reports whether an error may mean that this kernel, or the device, does not segment.
func cannotSegment(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}
