package simulator

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The types of records.
const (
	frameRecord = 'F'
	advance     = 'A'
	idle        = 'I'
)

// headerBytes is the size of a record without its bytes, and fcsBytes that of the shortest frame's end.
const (
	headerBytes = 4
	fcsBytes    = 4
)

// writeRecord writes a record of at most 64 KiB less one byte.
func writeRecord(w *bufio.Writer, kind byte, port int, body []byte) error {
	header := binary.LittleEndian.AppendUint16([]byte{kind, byte(port)}, uint16(len(body)))
	_, err := w.Write(header)
	_, err2 := w.Write(body)
	return errors.Join(err, err2)
}

// readRecord reads a record. The error is io.EOF if the process ended between two.
func readRecord(r *bufio.Reader) (kind byte, port int, body []byte, err error) {
	var header [headerBytes]byte
	if _, err = io.ReadFull(r, header[:]); err != nil {
		return 0, 0, nil, err
	}
	body = make([]byte, binary.LittleEndian.Uint16(header[2:]))
	if _, err = io.ReadFull(r, body); err != nil {
		return 0, 0, nil, fmt.Errorf("within a record: %w", err)
	}
	return header[0], int(header[1]), body, nil
}
