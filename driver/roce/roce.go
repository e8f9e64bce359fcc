package roce

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/transport/rdma"
	"tributary/driver/transport/serve"
	"tributary/driver/transport/udp"
	"tributary/driver/wire"
)

func init() {
	transport.Register("roce", func(ctx context.Context, r transport.Request) (transport.Conn, error) {
		stack, err := openStack()
		if err != nil {
			return nil, err
		}
		return open(ctx, r, stack)
	})
}

// Use makes the scheme roce: take an RDMA stack of the caller, instead of libibverbs. Call it before the
// program opens a card or joins a job.
func Use(stack rdma.Stack) { openStack = func() (rdma.Stack, error) { return stack, nil } }

// openStack returns the RDMA stack of the scheme.
var openStack = openVerbs

// OpenOver is driver.Open for "roce:" and the address of a daemon, over an RDMA stack of the caller.
func OpenOver(ctx context.Context, address string, stack rdma.Stack, opts ...driver.Option) (*driver.Card, error) {
	name := "roce:" + address
	conn, err := open(ctx, transport.Request{Address: address}, stack)
	if err != nil {
		return nil, &driver.NoCardError{Name: name, Err: err}
	}
	return driver.OpenConn(ctx, name, conn, opts...)
}

// open opens a session with a daemon.
func open(ctx context.Context, r transport.Request, stack rdma.Stack) (transport.Conn, error) {
	conn, err := serve.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return over(conn, stack)
}

// over gives a session an RDMA stack.
func over(conn transport.Conn, stack rdma.Stack) (transport.Conn, error) {
	session, ok := conn.(*serve.Session)
	if !ok { // its frames have a UDP port
		return nil, errors.Join(errors.New("the daemon's card is not under RoCEv2; open it by the scheme serve"), conn.Close())
	}
	return &link{session, stack}, nil
}

// link is a session with an RDMA stack.
type link struct {
	*serve.Session
	stack rdma.Stack
}

// RDMA returns the stack.
func (l *link) RDMA() rdma.Stack {
	if at := l.SourceAt(); at != "" {
		return &located{l.stack, at}
	}
	return l.stack
}

// Name returns the name under which other processes open the card.
func (l *link) Name() string { return "roce:" + strings.TrimPrefix(l.Session.Name(), "serve:") }

// located is a stack whose queue pairs know behind which Ethernet port of the card they are.
type located struct {
	rdma.Stack
	card string // its name on the network
}

// Open makes the queue pairs, and asks the card for the Ethernet port at which it sees their address.
func (s *located) Open(ctx context.Context, job rdma.Job) (rdma.QueuePairs, error) {
	queues, err := s.Stack.Open(ctx, job)
	if err != nil {
		return nil, err
	}
	end := queues.Connection()
	port, err := s.portOf(ctx, end.Ip)
	if err != nil {
		return nil, errors.Join(err, queues.Close())
	}
	end.Mac |= port << portShift
	return queues, nil
}

// portOf returns the Ethernet port of the card behind which an IPv4 address is.
func (s *located) portOf(ctx context.Context, ip uint32) (uint64, error) {
	if l, ok := s.Stack.(rdma.Locator); ok {
		port, err := l.EthernetPort(ctx, s.card)
		return uint64(port), err
	}
	return s.ethernetPort(ctx, ip)
}

// portShift is the place of the Ethernet port in Connection.Mac and SOURCE_MAC.
const portShift = 48

// ethernetPort returns the Ethernet port at which the card sees one of this machine's IPv4 addresses.
func (s *located) ethernetPort(ctx context.Context, ip uint32) (uint64, error) {
	var own [4]byte
	binary.BigEndian.PutUint32(own[:], ip)
	conn, err := udp.OpenFrom(ctx, transport.Request{Address: strings.TrimPrefix(s.card, "udp:")}, netip.AddrFrom4(own))
	if err != nil {
		return 0, err
	}
	card, err := driver.OpenPackets(ctx, s.card, conn, driver.WithReadOnly())
	if err != nil {
		return 0, fmt.Errorf("the card does not answer the RDMA device's address %v: %w", netip.AddrFrom4(own), err)
	}
	source, err := card.ReadRegister(ctx, wire.RegSourceMAC)
	return source >> portShift & 0xff, errors.Join(err, card.Close())
}
