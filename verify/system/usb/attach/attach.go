// Package attach is the host's side of USB/IP, as far as tests need it. It imports a device as
// the kernel's vhci-hcd does, and passes transfers to it.
package attach

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"tributary/driver/virtual/usbip"
)

// Host has one attached device.
type Host struct {
	Info usbip.DeviceInfo

	conn    net.Conn
	sending sync.Mutex // held while a command is sent
	mu      sync.Mutex // guards the following
	seq     uint32
	waiting map[uint32]*Transfer // submitted, by sequence number
	gone    chan struct{}        // closed when the device is unplugged
}

// Transfer is a transfer that the host submits.
type Transfer struct {
	Endpoint uint8   // with the direction in bit 7
	Setup    [8]byte // of a control transfer
	Data     []byte  // to send, or a buffer for received bytes

	// Set when it has ended.
	Status int32 // 0, or a negative error number of Linux
	Actual int   // bytes that passed

	// Done is called when it has ended, by the goroutine that reads from the device.
	Done func(*Transfer)

	seq uint32
}

// BusyError reports that the device cannot be imported.
type BusyError struct{ Status uint32 }

func (e *BusyError) Error() string {
	return fmt.Sprintf("the device cannot be attached: status %d", e.Status)
}

// List returns the devices that a server offers.
func List(conn net.Conn) ([]usbip.DeviceInfo, error) {
	if err := begin(conn, 0x8005); err != nil {
		return nil, err
	}
	var n uint32
	if err := errors.Join(answer(conn, 0x0005), binary.Read(conn, binary.BigEndian, &n)); err != nil {
		return nil, err
	}
	all := make([]usbip.DeviceInfo, n)
	for i := range all {
		if err := binary.Read(conn, binary.BigEndian, &all[i]); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(io.Discard, conn, 4*int64(all[i].Interfaces)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Import attaches the device that a server offers under a name. The host then owns conn.
func Import(conn net.Conn, name string) (*Host, error) {
	info, err := Request(conn, name)
	if err != nil {
		return nil, err
	}
	h := &Host{Info: info, conn: conn, waiting: map[uint32]*Transfer{}, gone: make(chan struct{})}
	go h.read()
	return h, nil
}

// Request asks a server for a device. Afterwards conn carries transfers.
func Request(conn net.Conn, name string) (info usbip.DeviceInfo, err error) {
	var id [32]byte
	copy(id[:], name)
	if err := begin(conn, 0x8003, id); err != nil {
		return info, err
	}
	if err := answer(conn, 0x0003); err != nil {
		return info, err
	}
	return info, binary.Read(conn, binary.BigEndian, &info)
}

// begin sends the first request of a connection.
func begin(conn net.Conn, code uint16, more ...any) error {
	var b bytes.Buffer
	for _, part := range append([]any{uint16(0x0111), code, uint32(0)}, more...) {
		if err := binary.Write(&b, binary.BigEndian, part); err != nil {
			return err
		}
	}
	_, err := conn.Write(b.Bytes())
	return err
}

// answer reads the header of the reply.
func answer(conn net.Conn, code uint16) error {
	var a struct {
		Version, Code uint16
		Status        uint32
	}
	if err := binary.Read(conn, binary.BigEndian, &a); err != nil {
		return err
	}
	if a.Version != 0x0111 || a.Code != code {
		return fmt.Errorf("the reply has version %04x and code %04x", a.Version, a.Code)
	}
	if a.Status != 0 {
		return &BusyError{a.Status}
	}
	return nil
}

// Detach releases the device.
func (h *Host) Detach() {
	h.conn.Close()
	<-h.gone
}

// Gone returns a channel that is closed when the device is unplugged.
func (h *Host) Gone() <-chan struct{} { return h.gone }

// Submit begins a transfer.
func (h *Host) Submit(t *Transfer) {
	h.sending.Lock()
	defer h.sending.Unlock()
	if !h.expect(t) {
		t.end(usbip.StatusUnplugged, 0)
		return
	}
	head := usbip.Head{Command: usbip.CmdSubmit, Seq: t.seq, DeviceID: 1<<16 | 1, Endpoint: uint32(t.Endpoint & 0x7f), Setup: t.Setup}
	head.Args[usbip.ArgLength] = int32(len(t.Data))
	if t.Endpoint&0x80 != 0 {
		head.Direction = usbip.In
		h.send(head, nil)
	} else {
		h.send(head, t.Data)
	}
}

// expect numbers a transfer that waits for its reply, and reports whether the device is present.
func (h *Host) expect(t *Transfer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		return false
	}
	h.seq++
	t.seq = h.seq
	h.waiting[t.seq] = t
	return true
}

// Unlink cancels a transfer. It ends with StatusUnlinked, unless it has already ended otherwise.
func (h *Host) Unlink(t *Transfer) {
	h.sending.Lock()
	defer h.sending.Unlock()
	h.mu.Lock()
	if h.waiting[t.seq] != t {
		h.mu.Unlock()
		return
	}
	h.seq++
	h.waiting[h.seq] = t
	head := usbip.Head{Command: usbip.CmdUnlink, Seq: h.seq}
	head.Args[usbip.ArgUnlink] = int32(t.seq)
	h.mu.Unlock()
	h.send(head, nil)
}

// Control makes a control transfer and returns its status and the number of bytes that passed.
func (h *Host) Control(kind, request byte, value, index uint16, data []byte) (status int32, n int) {
	t := &Transfer{Endpoint: kind & 0x80, Data: data}
	t.Setup = [8]byte{kind, request, byte(value), byte(value >> 8), byte(index), byte(index >> 8), byte(len(data)), byte(len(data) >> 8)}
	h.Wait(t)
	return t.Status, t.Actual
}

// Wait submits a transfer and waits for its end.
func (h *Host) Wait(t *Transfer) {
	done := make(chan struct{})
	t.Done = func(*Transfer) { close(done) }
	h.Submit(t)
	<-done
}

// send sends a command; the caller holds sending. The reader detects a device that is gone.
func (h *Host) send(head usbip.Head, data []byte) {
	_, _ = h.conn.Write(append(head.Append(nil), data...))
}

// read handles replies until the device is unplugged.
func (h *Host) read() {
	for {
		head, err := usbip.ReadHead(h.conn)
		if err == nil {
			err = h.take(head)
		}
		if err != nil {
			break
		}
	}
	h.conn.Close()
	h.mu.Lock()
	left := h.waiting
	h.waiting = nil
	h.mu.Unlock()
	for seq, t := range left {
		if seq == t.seq {
			t.end(usbip.StatusUnplugged, 0)
		}
	}
	close(h.gone)
}

// take handles one reply.
func (h *Host) take(head usbip.Head) error {
	h.mu.Lock()
	t := h.waiting[head.Seq]
	delete(h.waiting, head.Seq)
	h.mu.Unlock()
	switch {
	case t == nil:
		return fmt.Errorf("a reply to request %d, which was not sent", head.Seq)
	case head.Command == usbip.RetUnlink:
		if head.Args[usbip.ArgStatus] != 0 {
			h.forget(t)
			t.end(head.Args[usbip.ArgStatus], 0)
		}
		return nil
	case head.Command != usbip.RetSubmit:
		return fmt.Errorf("a reply of kind %d", head.Command)
	}
	n := int(head.Args[usbip.ArgActual])
	if n > len(t.Data) {
		return fmt.Errorf("received %d bytes, at most %d were requested", n, len(t.Data))
	}
	if t.Endpoint&0x80 != 0 {
		if _, err := io.ReadFull(h.conn, t.Data[:n]); err != nil {
			t.end(usbip.StatusUnplugged, 0)
			return err
		}
	}
	t.end(head.Args[usbip.ArgStatus], n)
	return nil
}

// forget drops a transfer that will get no reply.
func (h *Host) forget(t *Transfer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, t.seq)
}

func (t *Transfer) end(status int32, n int) {
	t.Status, t.Actual = status, n
	if t.Done != nil {
		t.Done(t)
	}
}
