package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Capture is a capture file that is read once.
type Capture struct {
	withFCS []bool // by interface
	next    func() (packet, error)
}

// packet is a frame of a capture, as it is in the file.
type packet struct {
	at     time.Time
	port   int
	frame  []byte
	hasFCS bool
}

// Open reads what a capture has, except its frames.
func Open(file io.ReadSeeker) (*Capture, error) {
	magic := make([]byte, 4)
	if _, err := io.ReadFull(file, magic); err != nil {
		return nil, errors.New("it is neither a pcapng nor a pcap file")
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(magic) == sectionBlock {
		return openNg(file)
	}
	return openPcap(file)
}

// Ports returns the number of the capture's interfaces.
func (c *Capture) Ports() int { return len(c.withFCS) }

// openPcap opens a pcap, which has one interface.
func openPcap(file io.Reader) (*Capture, error) {
	r, err := pcapgo.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("it is neither a pcapng nor a pcap file: %w", err)
	}
	if r.LinkType() != layers.LinkTypeEthernet {
		return nil, fmt.Errorf("its link type is %v, not Ethernet", r.LinkType())
	}
	return &Capture{[]bool{false}, func() (packet, error) {
		data, ci, err := r.ReadPacketData()
		if err != nil {
			return packet{}, err
		}
		return packet{ci.Timestamp, 0, data, false}, checkWhole(ci.CaptureLength, ci.Length)
	}}, nil
}

// openNg opens a pcapng.
func openNg(file io.ReadSeeker) (*Capture, error) {
	withFCS, err := scan(file)
	if err != nil {
		return nil, err
	}
	if len(withFCS) == 0 {
		return nil, errors.New("it has no interface")
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r, err := pcapgo.NewNgReader(file, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		return nil, err
	}
	return &Capture{withFCS, func() (packet, error) { return readNg(r, withFCS) }}, nil
}

// readNg reads a frame of a pcapng.
func readNg(r *pcapgo.NgReader, withFCS []bool) (packet, error) {
	data, ci, options, err := r.ReadPacketDataWithOptions()
	if err != nil {
		return packet{}, err
	}
	at, err := r.Interface(ci.InterfaceIndex)
	if err != nil {
		return packet{}, err
	}
	if at.LinkType != layers.LinkTypeEthernet {
		return packet{}, fmt.Errorf("the link type of interface %d is %v, not Ethernet", ci.InterfaceIndex, at.LinkType)
	}
	has := withFCS[ci.InterfaceIndex] || options.Flags != nil && options.Flags.FCSLen == fcsLength
	return packet{ci.Timestamp, ci.InterfaceIndex, data, has}, checkWhole(ci.CaptureLength, ci.Length)
}

// checkWhole refuses a frame of which the capture has only the beginning.
func checkWhole(captured, size int) error {
	if captured != size {
		return fmt.Errorf("the capture has only %d of its %d bytes; capture whole frames (tcpdump -s 0)", captured, size)
	}
	return nil
}
