package usbip

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"tributary/driver/virtual/pins"
	"tributary/driver/wire"
)

// Server offers a card to one host at a time.
type Server struct {
	card *Card

	mu     sync.Mutex
	conns  map[net.Conn]bool
	device *device // the attached device, or nil
	closed bool
}

// NewServer returns a server for a card.
func NewServer(card Card) (*Server, error) {
	if err := card.check(); err != nil {
		return nil, err
	}
	if card.Bridge != "" {
		card.Link = pins.New(card.Link).Session
	}
	return &Server{card: &card, conns: map[net.Conn]bool{}}, nil
}

// Serve accepts hosts until the listener or the server is closed.
func (s *Server) Serve(l net.Listener) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closed || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		serving.Go(func() {
			defer conn.Close()
			if s.hold(conn) {
				// The host sees why the connection ends.
				_ = s.serve(conn)
			}
			s.drop(conn)
		})
	}
}

// Close ends all connections and thereby unplugs an attached device. The caller closes the
// listener.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		conn.Close()
	}
}

// Unplug takes the device from its host. A host can attach it again.
func (s *Server) Unplug() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.device != nil {
		s.device.lost()
	}
}

// Halt halts an endpoint of the device, as a fault would. It reports whether it could, which
// requires a host that has claimed the device.
func (s *Server) Halt(endpoint uint8) bool {
	s.mu.Lock()
	d := s.device
	s.mu.Unlock()
	return d != nil && d.halt(endpoint, true)
}

func (s *Server) hold(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[conn] = true
	return !s.closed
}

func (s *Server) drop(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// serve handles the first request of a connection.
func (s *Server) serve(conn net.Conn) error {
	var request op
	if err := read(conn, &request); err != nil {
		return err
	}
	if request.Version != version {
		return fmt.Errorf("usbip: the host speaks version %04x", request.Version)
	}
	answer := op{version, request.Code & opAnswer, opDone}
	switch request.Code {
	case opList:
		device, inside := newDevice(s.card, nil, nil).face.info()
		return write(conn, answer, uint32(1), device, inside)
	case opImport:
		return s.serveImport(conn, answer)
	}
	return fmt.Errorf("usbip: request %04x", request.Code)
}

// serveImport gives the device to a host, if it is free, until the host leaves.
func (s *Server) serveImport(conn net.Conn, answer op) error {
	var wanted DeviceInfo
	if err := read(conn, &wanted.BusIDBytes); err != nil {
		return err
	}
	if wanted.BusID() != BusID {
		answer.Status = opNoDevice
		return write(conn, answer)
	}
	a := &attachment{conn: conn}
	d := newDevice(s.card, a.answer, func() { conn.Close() })
	if !s.attach(d) {
		answer.Status = opBusy
		return write(conn, answer)
	}
	defer s.detach()
	info, _ := d.face.info()
	if err := write(conn, answer, info); err != nil {
		return err
	}
	defer d.linkDown()
	return a.serve(d)
}

// attach records that a host has the device. It returns false if another host has it.
func (s *Server) attach(d *device) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.device != nil {
		return false
	}
	s.device = d
	return true
}

func (s *Server) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.device = nil
}

// attachment is the connection of the host with the device.
type attachment struct {
	conn net.Conn
	mu   sync.Mutex // held while a reply is sent
	buf  []byte
}

// answer sends a head and its data. It ignores errors, because a read detects that the host is
// gone.
func (a *attachment) answer(h Head, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buf = append(h.Append(a.buf[:0]), data...)
	_, _ = a.conn.Write(a.buf)
}

// serve handles commands until the host leaves.
func (a *attachment) serve(d *device) error {
	for {
		h, err := ReadHead(a.conn)
		if err != nil {
			return err
		}
		switch h.Command {
		case CmdSubmit:
			if err := a.submit(d, h); err != nil {
				return err
			}
		case CmdUnlink:
			d.unlink(h.Seq, uint32(h.Args[ArgUnlink]))
		default:
			return fmt.Errorf("usbip: command %d", h.Command)
		}
	}
}

// submit starts a transfer, or handles a request at once.
func (a *attachment) submit(d *device, h Head) error {
	length := int(h.Args[ArgLength])
	if h.Endpoint == 0 {
		if h.Direction == Out {
			if err := a.skip(length); err != nil { // no request takes data
				return err
			}
		}
		a.request(d, h, length)
		return nil
	}
	t := &transfer{seq: h.Seq, length: length}
	if h.Direction == In {
		if d.reserve(t, (length+wire.USBPacket-1)/wire.USBPacket*wire.USBPacket) {
			d.submit(uint8(h.Endpoint)|0x80, t)
		}
		return nil
	}
	if !d.reserve(t, length) {
		return a.skip(length)
	}
	if _, err := io.ReadFull(a.conn, t.data); err != nil {
		return err
	}
	d.submit(uint8(h.Endpoint), t)
	return nil
}

// skip drops data of the host.
func (a *attachment) skip(n int) error {
	_, err := io.CopyN(io.Discard, a.conn, int64(n))
	return err
}

// request handles a control transfer.
func (a *attachment) request(d *device, h Head, length int) {
	answer, ok := d.control(newSetup(h.Setup))
	done := Head{Command: RetSubmit, Seq: h.Seq}
	if !ok {
		done.Args[ArgStatus] = StatusStall
		a.answer(done, nil)
		return
	}
	if h.Direction == Out {
		answer = nil
	}
	answer = answer[:min(len(answer), length)]
	done.Args[ArgActual] = int32(len(answer))
	a.answer(done, answer)
}
