package daemon

import (
	"bytes"
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// tagged is a connection whose first bytes have been read.
type tagged struct {
	net.Conn
	tag    *bytes.Reader
	closed func()
}

// Close has called closed when the peer sees the end: its next connection finds the place free.
func (t *tagged) Close() error {
	t.closed()
	return t.Conn.Close()
}

func (t *tagged) Read(p []byte) (int, error) {
	if t.tag.Len() > 0 {
		return t.tag.Read(p)
	}
	return t.Conn.Read(p)
}

// handedOver is a net.Listener of connections that another one has accepted.
type handedOver struct {
	addr  net.Addr
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func newHandedOver(addr net.Addr) *handedOver {
	return &handedOver{addr: addr, conns: make(chan net.Conn), over: make(chan struct{})}
}

func (l *handedOver) hand(conn net.Conn) error {
	select {
	case l.conns <- conn:
		return nil
	case <-l.over:
		return net.ErrClosed
	}
}

func (l *handedOver) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l *handedOver) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

func (l *handedOver) Addr() net.Addr { return l.addr }

// handshake gives handlers of gRPC the connection below, to close it. TLS is a matter of the listener.
type handshake struct {
	credentials.TransportCredentials
}

func (handshake) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, below{conn}, nil
}

// below is the connection of a handler.
type below struct{ conn net.Conn }

func (below) AuthType() string { return "" }

// closeBelow closes the connection of a stream, whatever waits to be sent.
func closeBelow(stream context.Context) {
	if p, ok := peer.FromContext(stream); ok {
		if b, ok := p.AuthInfo.(below); ok {
			b.conn.Close()
		}
	}
}
