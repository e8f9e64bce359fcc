package frames

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// Host is a host in user space at a port of a card. It answers ARP requests, and takes UDP datagrams for
// its sockets. All other frames go to Others, those to another MAC address included.
type Host struct {
	MAC     net.HardwareAddr
	IP      net.IP
	Others  chan []byte  // with FCS
	Unsound atomic.Int64 // frames that it dropped behind a faulty cable

	cable  io.ReadWriteCloser // a frame with its FCS for each Read and Write
	faulty bool
	done   chan struct{}

	mu      sync.Mutex
	known   map[netip.Addr]net.HardwareAddr // by ARP
	asked   map[netip.Addr]chan struct{}    // closed by the answer
	sockets map[uint16]*Socket
	next    uint16 // UDP port
	broken  []error
}

// maxWaiting is the number of frames and datagrams that wait for a test.
const maxWaiting = 1 << 14

// Attach connects a host to the card's port unix:PATH. Each frame that comes must be sound.
func Attach(path string, mac net.HardwareAddr, ip net.IP) (*Host, error) {
	own := fmt.Sprintf("%s.%x", path, []byte(mac))
	conn, err := net.DialUnix("unixgram", &net.UnixAddr{Name: own, Net: "unixgram"}, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(nil); err != nil { // so that the card knows the host
		return nil, errors.Join(err, conn.Close())
	}
	return newHost(&named{conn, own}, mac, ip, false), nil
}

// AttachFaulty connects a host to a cable with faults. Frames that are not sound are dropped, as network
// cards and kernels drop them, and counted.
func AttachFaulty(cable io.ReadWriteCloser, mac net.HardwareAddr, ip net.IP) *Host {
	return newHost(cable, mac, ip, true)
}

func newHost(cable io.ReadWriteCloser, mac net.HardwareAddr, ip net.IP, faulty bool) *Host {
	h := &Host{
		MAC: mac, IP: ip.To4(), Others: make(chan []byte, maxWaiting), cable: cable, faulty: faulty, done: make(chan struct{}),
		known: map[netip.Addr]net.HardwareAddr{}, asked: map[netip.Addr]chan struct{}{}, sockets: map[uint16]*Socket{}, next: 40000,
	}
	go h.receive()
	return h
}

// named is a Unix socket that goes when it is closed.
type named struct {
	*net.UnixConn
	path string
}

func (n *named) Close() error { return errors.Join(n.UnixConn.Close(), os.Remove(n.path)) }

// Close disconnects the host, and returns what was wrong with the frames that it received.
func (h *Host) Close() error {
	err := h.cable.Close()
	<-h.done
	return errors.Join(append(h.broken, err)...)
}

// Send sends a frame as it is.
func (h *Host) Send(frame []byte) error {
	_, err := h.cable.Write(frame)
	return err
}

// receive takes frames until the host is closed, or the card is.
func (h *Host) receive() {
	defer close(h.done)
	buffer := make([]byte, 1<<16)
	for {
		n, err := h.cable.Read(buffer)
		if err != nil {
			h.mu.Lock()
			for _, s := range h.sockets {
				s.over()
			}
			h.mu.Unlock()
			return
		}
		frame := slices.Clone(buffer[:n])
		err = CheckSound(frame)
		if err != nil && h.faulty {
			h.Unsound.Add(1)
			continue
		}
		if err != nil {
			h.mu.Lock()
			h.broken = append(h.broken, fmt.Errorf("frame %x: %w", frame, err))
			h.mu.Unlock()
		}
		if !h.take(frame) {
			h.Others <- frame
		}
	}
}

// take handles a frame of ARP or UDP for the host. It reports whether the frame was one.
func (h *Host) take(frame []byte) bool {
	if to := net.HardwareAddr(frame[:6]); !slices.Equal(to, h.MAC) && !slices.Equal(to, ToAll) {
		return false
	}
	p := gopacket.NewPacket(frame[:len(frame)-4], layers.LayerTypeEthernet, gopacket.NoCopy)
	if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok && slices.Equal(a.DstProtAddress, h.IP) {
		return h.takeARP(a)
	}
	ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	u, ok2 := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	if !ok || !ok2 || !ip.DstIP.Equal(h.IP) {
		return false
	}
	h.mu.Lock()
	s := h.sockets[uint16(u.DstPort)]
	h.mu.Unlock()
	return s != nil && s.deliver(ip, u)
}

// takeARP learns the sender of an ARP packet, and answers a request.
func (h *Host) takeARP(a *layers.ARP) bool {
	from, _ := netip.AddrFromSlice(a.SourceProtAddress)
	h.mu.Lock()
	h.known[from] = slices.Clone(a.SourceHwAddress)
	if asked := h.asked[from]; asked != nil {
		close(asked)
		delete(h.asked, from)
	}
	h.mu.Unlock()
	if a.Operation == layers.ARPRequest {
		h.Send(h.arp(layers.ARPReply, a.SourceHwAddress, a.SourceHwAddress, a.SourceProtAddress))
	}
	return true
}

// arp returns the frame of an ARP packet of the host.
func (h *Host) arp(operation uint16, to, toMAC net.HardwareAddr, toIP net.IP) []byte {
	return Closed(MustSerialize(
		&layers.Ethernet{SrcMAC: h.MAC, DstMAC: to, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: operation, SourceHwAddress: h.MAC, SourceProtAddress: h.IP, DstHwAddress: toMAC, DstProtAddress: toIP.To4(),
		}))
}

// askAgain is the time after which a host repeats an ARP request.
const askAgain = 250 * time.Millisecond

// Resolve asks for the MAC address of an IPv4 address until an answer comes.
func (h *Host) Resolve(ctx context.Context, ip netip.Addr) (net.HardwareAddr, error) {
	h.mu.Lock()
	mac, asked := h.known[ip], h.asked[ip]
	if mac == nil && asked == nil {
		asked = make(chan struct{})
		h.asked[ip] = asked
	}
	h.mu.Unlock()
	if mac != nil {
		return mac, nil
	}
	if err := h.Send(h.arp(layers.ARPRequest, ToAll, make(net.HardwareAddr, 6), ip.AsSlice())); err != nil {
		return nil, err
	}
	select {
	case <-asked:
		return h.Resolve(ctx, ip)
	case <-time.After(askAgain):
		return h.Resolve(ctx, ip)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Dial opens a UDP socket to an address, at a port that the host has not used before.
func (h *Host) Dial(ctx context.Context, to netip.AddrPort) (*Socket, error) {
	mac, err := h.Resolve(ctx, to.Addr())
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &Socket{host: h, port: h.next, to: to, mac: mac}
	s.came.L = &s.mu
	h.next++
	h.sockets[s.port] = s
	return s, nil
}

// Socket is a UDP socket of a host: a link to a card.
type Socket struct {
	host *Host
	port uint16
	to   netip.AddrPort
	mac  net.HardwareAddr

	mu     sync.Mutex
	came   sync.Cond
	in     []transport.Packet
	closed bool
}

// Port returns the socket's UDP port.
func (s *Socket) Port() uint16 { return s.port }

// deliver takes a datagram from where the socket leads to.
func (s *Socket) deliver(ip *layers.IPv4, u *layers.UDP) bool {
	if from, _ := netip.AddrFromSlice(ip.SrcIP.To4()); from != s.to.Addr() || uint16(u.SrcPort) != s.to.Port() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in = append(s.in, transport.Packet{Bytes: slices.Clone(u.Payload), ECN: wire.ECN(ip.TOS & 3)})
	s.came.Signal()
	return true
}

// over ends the socket.
func (s *Socket) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.came.Broadcast()
}

// ReadPackets implements transport.PacketConn.
func (s *Socket) ReadPackets(batch []transport.Packet) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.in) == 0 && !s.closed {
		s.came.Wait()
	}
	if s.closed {
		return 0, net.ErrClosed
	}
	n := min(len(batch), len(s.in))
	for i, p := range s.in[:n] {
		batch[i].Bytes, batch[i].ECN = append(batch[i].Bytes[:0], p.Bytes...), p.ECN
	}
	s.in = slices.Delete(s.in, 0, n)
	return n, nil
}

// WritePackets implements transport.PacketConn.
func (s *Socket) WritePackets(buf []byte, ends []int) error {
	start := 0
	for _, end := range ends {
		if err := s.host.Send(s.frame(buf[start:end])); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// frame returns the frame of a datagram from the socket.
func (s *Socket) frame(body []byte) []byte {
	d := NewDatagram(body)
	d.Ether.SrcMAC, d.Ether.DstMAC = s.host.MAC, s.mac
	d.IP.SrcIP, d.IP.DstIP, d.IP.TOS = s.host.IP, s.to.Addr().AsSlice(), uint8(wire.ECT0)
	d.UDP.SrcPort, d.UDP.DstPort = layers.UDPPort(s.port), layers.UDPPort(s.to.Port())
	return d.Bytes()
}

// Limits implements transport.PacketConn: Ethernet's usual MTU.
func (s *Socket) Limits() transport.PacketLimits { return transport.PacketLimits{Packet: 1472} }

// Close implements transport.PacketConn.
func (s *Socket) Close() error {
	s.over()
	return nil
}
