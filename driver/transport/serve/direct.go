package serve

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"tributary/driver/transport"
	"tributary/driver/transport/udp"
)

// direct is a session whose frames go to a card on a network as datagrams, past the daemon. The end of
// the session closes its socket.
type direct struct {
	*Session
	packets transport.PacketConn
}

// openPast opens the session's own way to the card, through a UDP port that no other session has. The
// data connection remains as a sign of life.
func (s *Session) openPast(ctx context.Context) (*direct, error) {
	packets, err := udp.Open(ctx, transport.Request{Address: strings.TrimPrefix(s.network, "udp:")})
	if err != nil {
		return nil, err
	}
	s.frames = noStream{packets, s.data}
	return &direct{s, packets}, nil
}

// noStream stands for the stream of frames that such a session lacks.
type noStream struct {
	packets transport.PacketConn
	data    net.Conn
}

func (noStream) Read([]byte) (int, error)  { return 0, errors.ErrUnsupported }
func (noStream) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (n noStream) Close() error            { return errors.Join(n.packets.Close(), n.data.Close()) }

// unreachable is how long a read waits after an error of the network.
const unreachable = 20 * time.Millisecond

// ReadPackets reads datagrams. What the network reports, such as a card that is being restarted, is no
// end: the daemon notices that its card has gone, and leads the members on.
func (d *direct) ReadPackets(batch []transport.Packet) (int, error) {
	for {
		n, err := d.packets.ReadPackets(batch)
		if err == nil || errors.Is(err, net.ErrClosed) {
			return n, d.why(err)
		}
		select {
		case <-d.stream.Context().Done():
		case <-time.After(unreachable):
		}
	}
}

// WritePackets sends datagrams. Those that the network does not take are lost, as others are.
func (d *direct) WritePackets(buf []byte, ends []int) error {
	if err := d.packets.WritePackets(buf, ends); errors.Is(err, net.ErrClosed) {
		return d.why(err)
	}
	return nil
}

func (d *direct) Limits() transport.PacketLimits { return d.packets.Limits() }

// Network returns the card's name on its network.
func (d *direct) Network() string { return d.network }
