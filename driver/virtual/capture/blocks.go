package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The parts of a pcapng file that pcapgo does not show: the number of its interfaces, and if_fcslen.
const (
	sectionBlock   = 0x0a0d0d0a
	interfaceBlock = 1

	byteOrderMagic = 0x1a2b3c4d
	optionFCS      = 13
)

// Sizes in a pcapng file, in bytes.
const (
	blockHeader   = 8        // type and length
	blockOverhead = 12       // with the length at the end
	maxBlock      = 16 << 20 // as in Wireshark; a longer one is damage
	beforeOptions = 8        // of an interface block
)

// scan returns for each interface of a pcapng file whether its frames have an FCS.
func scan(r io.Reader) (withFCS []bool, err error) {
	in := bufio.NewReader(r)
	var order binary.ByteOrder
	for {
		kind, body, err := readBlock(in, &order)
		switch {
		case err == io.EOF:
			return withFCS, nil
		case err != nil:
			return nil, err
		case kind == interfaceBlock:
			has, err := hasFCS(body, order)
			if err != nil {
				return nil, fmt.Errorf("interface %d: %w", len(withFCS), err)
			}
			withFCS = append(withFCS, has)
		}
	}
}

// readBlock reads a block. The first is that of the section, which sets the order of bytes; no other
// section may follow.
func readBlock(in *bufio.Reader, order *binary.ByteOrder) (kind uint32, body []byte, err error) {
	header := make([]byte, blockHeader)
	if _, err := io.ReadFull(in, header); err != nil {
		return 0, nil, err
	}
	if first := *order == nil; first != (binary.LittleEndian.Uint32(header) == sectionBlock) {
		return 0, nil, errors.New("it does not have one section; mergecap makes one of several")
	} else if first {
		magic, err := in.Peek(4)
		if err != nil {
			return 0, nil, io.ErrUnexpectedEOF
		}
		*order = binary.LittleEndian
		if binary.BigEndian.Uint32(magic) == byteOrderMagic {
			*order = binary.BigEndian
		}
	}
	length := (*order).Uint32(header[4:])
	if length < blockOverhead || length > maxBlock || length%4 != 0 {
		return 0, nil, fmt.Errorf("a block has %d bytes; the file is damaged", length)
	}
	body = make([]byte, length-blockHeader)
	if _, err := io.ReadFull(in, body); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return (*order).Uint32(header), body[:len(body)-4], nil
}

// hasFCS returns whether an interface block has the option if_fcslen. The format's texts have its value
// in bits, and programs in bytes.
func hasFCS(body []byte, order binary.ByteOrder) (bool, error) {
	options := body[min(beforeOptions, len(body)):]
	for len(options) >= 4 {
		code, length := order.Uint16(options), int(order.Uint16(options[2:]))
		options = options[4:]
		if length > len(options) {
			break
		}
		if code == optionFCS && length == 1 {
			switch options[0] {
			case 0:
				return false, nil
			case 4, 32:
				return true, nil
			}
			return false, fmt.Errorf("its FCS has the length %d (if_fcslen); that of Ethernet is 4", options[0])
		}
		options = options[min((length+3)&^3, len(options)):]
	}
	return false, nil
}
