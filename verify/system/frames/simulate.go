package frames

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"tributary/driver/virtual/ethernet"
)

// Simulate is a card's simulator for tests: it speaks the records of package simulator on in and out
// for a device, until in ends.
func Simulate(in io.Reader, out io.Writer, device ethernet.Device) error {
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		var head struct {
			Kind, Port uint8
			Size       uint16
		}
		if err := binary.Read(r, binary.LittleEndian, &head); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		body := make([]byte, head.Size)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		switch head.Kind {
		case 'F':
			device.Receive(int(head.Port), body)
			continue
		case 'A':
			if until := binary.LittleEndian.Uint64(body); until > device.Cycles() {
				device.Advance(until - device.Cycles())
			}
		case 'I':
		default:
			return fmt.Errorf("a record of type %q", head.Kind)
		}
		if err := settle(w, device); err != nil {
			return err
		}
	}
}

// settle writes what leaves the device, and then its clock.
func settle(w *bufio.Writer, device ethernet.Device) error {
	for {
		frame, port, ok := device.Send(nil)
		if !ok {
			break
		}
		w.Write([]byte{'F', byte(port), byte(len(frame)), byte(len(frame) >> 8)})
		w.Write(frame)
	}
	w.Write([]byte{'I', 0, 8, 0})
	w.Write(binary.LittleEndian.AppendUint64(nil, device.Cycles()))
	return w.Flush()
}
