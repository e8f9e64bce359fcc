// Package serve is the transport to a card that `tributary serve` shares among processes:
//
//	serve:unix:PATH[#CARD]
//	serve:HOST:PORT[/CARD]
//
// CARD is the daemon's name of the card, and may be left out if the daemon has one. A program imports
// the package for its effect, the scheme.
//
// Environment variables name what a daemon may ask for: TRIBUTARY_TOKEN_FILE the file with its token,
// TRIBUTARY_TLS_CA the certificates that sign the daemon's, TRIBUTARY_TLS_CERT and TRIBUTARY_TLS_KEY
// the client's own. TLS is used beyond the loopback interface, and wherever TRIBUTARY_TLS_CA is set.
//
// The daemon's protocol is in driver/daemon/SPEC.md.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/protocol/rpc"
	"tributary/driver/daemon/ring"
	"tributary/driver/transport"
)

// version is the version of the protocol that this package speaks.
const version = 1

// dataTag opens a data connection.
const dataTag = "TRIBDAT1"

// alive finds a daemon whose machine has gone without a word.
var alive = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}

// maxMessage is the most that a message may have: a block and its description.
const maxMessage = 4 << 20

func init() {
	transport.Register("serve", Open)
}

// Session is one process's use of a card: a transport.Conn of frames, and messages.
type Session struct {
	address address
	dial    func(ctx context.Context) (net.Conn, error) // without TLS
	card    string
	block   int
	network string // the card's name on its network; empty if frames go through the daemon
	tree    []*protocol.TreeCard
	source  string // where a client of a card under RoCEv2 reads SOURCE_MAC; may be empty
	memory  []byte
	data    net.Conn
	frames  io.ReadWriteCloser // data, or the rings in memory
	control *grpc.ClientConn
	stream  grpc.BidiStreamingClient[protocol.ToDaemon, protocol.ToClient]
	end     context.CancelFunc // of the stream
	running sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	queue   []*protocol.ToDaemon
	over    bool
	err     error // why the control stream ended
}

// Open opens a session with the daemon and card at an address, which is a name without its scheme.
func Open(ctx context.Context, r transport.Request) (transport.Conn, error) {
	a, err := parse(r.Address)
	if err != nil {
		return nil, err
	}
	trust, err := readTrust(a)
	if err != nil {
		return nil, err
	}
	if r.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Patience)
		defer cancel()
	}
	return openOn(ctx, a, trust, a.dial, r.Admin)
}

// Over opens a session over connections that dial opens, such as those of a test in one process. The
// session's name is unix:PATH, as if a socket there led to the daemon.
func Over(ctx context.Context, path string, dial func(ctx context.Context) (net.Conn, error)) (transport.Conn, error) {
	return openOn(ctx, address{network: "unix", place: path}, &trust{}, dial, false)
}

// forwarded are the sockets of programs that forward connections to a daemon on another machine, such as
// ssh: the descriptor of its memory does not come. A client asks them once.
var forwarded sync.Map

// openOn opens a session, with shared memory where there can be some. That of a card on a network is a
// transport.PacketConn as well: its frames are datagrams, and its stream carries none.
func openOn(ctx context.Context, a address, trust *trust, dial func(ctx context.Context) (net.Conn, error), admin bool) (transport.Conn, error) {
	_, without := forwarded.Load(a.place)
	s, err := openWith(ctx, a, trust, dial, admin, sharesMemory && !without)
	if errors.Is(err, errNoDescriptor) {
		forwarded.Store(a.place, true)
		s, err = openWith(ctx, a, trust, dial, admin, false)
	}
	switch {
	case err != nil:
		return nil, err
	case s.network == "":
		return s, nil
	}
	d, err := s.openPast(ctx)
	if err != nil {
		s.Close()
		return nil, err
	}
	return d, nil
}

func openWith(ctx context.Context, a address, trust *trust, dial func(ctx context.Context) (net.Conn, error), admin, memory bool) (*Session, error) {
	data, err := trust.secure(ctx, dial)
	if err != nil {
		return nil, err
	}
	s := &Session{address: a, dial: dial, data: data, frames: data}
	s.changed.L = &s.mu
	if err := s.attach(ctx, trust, admin, memory); err != nil {
		s.Close()
		s.Release()
		return nil, err
	}
	return s, nil
}

// errNoDescriptor means that a daemon shares memory, and that its descriptor has not come.
var errNoDescriptor = errors.New("the daemon sent no descriptor of its memory")

// attach opens the control stream, and gives the data connection its key. admin asks for writes of
// registers, memory for shared memory.
func (s *Session) attach(ctx context.Context, trust *trust, admin, memory bool) error {
	secure := insecure.NewCredentials()
	if trust.tls != nil {
		secure = credentials.NewTLS(trust.tls)
	}
	var err error
	s.control, err = grpc.NewClient("passthrough:"+s.address.authority(), grpc.WithTransportCredentials(secure), grpc.WithKeepaliveParams(alive),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.dial(ctx) }))
	if err != nil {
		return err
	}
	streaming, end := context.WithCancel(context.Background())
	s.end = end
	defer context.AfterFunc(ctx, end)() // until the daemon has welcomed this session
	if s.stream, err = rpc.NewTributaryClient(s.control).Attach(streaming); err != nil {
		return reason(err)
	}
	// Writes of registers are the daemon's to pass on, so an admin's frames go through it.
	hello := &protocol.Hello{Version: version, Token: trust.token, Card: s.address.card, Client: clientName(), Admin: admin, Memory: memory, Rings: memory, Direct: !admin}
	if err := s.stream.Send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Hello{Hello: hello}}); err != nil {
		return reason(err)
	}
	m, err := s.stream.Recv()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return reason(err)
	case m.GetRefused() != nil:
		return errors.New(m.GetRefused().Text)
	case m.GetWelcome() == nil:
		return fmt.Errorf("the daemon sent %T instead of a welcome", m.Message)
	}
	welcome := m.GetWelcome()
	s.card, s.block, s.network, s.tree = welcome.Card, int(welcome.Block), welcome.Network, welcome.Tree
	s.source = welcome.SourceAt
	if _, err := s.data.Write(append([]byte(dataTag), welcome.Key...)); err != nil {
		return err
	}
	if welcome.Memory == 0 {
		return nil
	}
	if s.memory, err = receiveMemory(ctx, s.data, int(welcome.Memory)); err != nil || welcome.RingToDaemon == 0 {
		return err
	}
	return s.useRings(ring.Size{ToDaemon: int(welcome.RingToDaemon), ToClient: int(welcome.RingToClient)})
}

// useRings moves the frames from the data connection into rings in the daemon's memory.
func (s *Session) useRings(size ring.Size) error {
	rings, err := ring.Client(s.memory, size)
	if err == nil {
		err = rings.Attach(s.data)
	}
	if err != nil {
		return fmt.Errorf("the daemon's memory: %w", err)
	}
	s.frames = rings
	return nil
}

// Block returns the most bytes of a block, if the card takes arrays; 0 if it takes frames.
func (s *Session) Block() int { return s.block }

// Tree returns the cards, if the card is a tree of cards; else nil.
func (s *Session) Tree() []*protocol.TreeCard { return s.tree }

// Memory returns the memory that the daemon shares; nil without.
func (s *Session) Memory() []byte { return s.memory }

// Kept reports whether what was copied from the memory before is what the daemon wrote. A daemon that ends a
// session frees the memory's pages, after it has closed the data connection.
func (s *Session) Kept() bool { return isOpen(s.data) }

// Release unmaps the memory. Nobody may use it any more.
func (s *Session) Release() {
	if s.memory != nil {
		unmap(s.memory)
		s.memory = nil
	}
}

// Network returns an empty name: frames go through the daemon.
func (s *Session) Network() string { return "" }

// SourceAt returns the name under which a client of a card under RoCEv2 reads SOURCE_MAC; it may be empty.
func (s *Session) SourceAt() string { return s.source }

// Name returns the name under which another process on this machine, or on the network, opens the
// same card.
func (s *Session) Name() string { return s.address.name(s.card) }

// Listen calls f with the daemon's messages, one after another, until the session ends.
func (s *Session) Listen(f func(*protocol.ToClient)) {
	s.running.Go(func() {
		for {
			m, err := s.stream.Recv()
			if err != nil {
				s.fail(reason(err))
				return
			}
			f(m)
		}
	})
	s.running.Go(s.send)
}

// Tell queues a message to the daemon.
func (s *Session) Tell(m *protocol.ToDaemon) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, m)
	s.changed.Signal()
}

// send sends the queued messages.
func (s *Session) send() {
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.over {
			s.changed.Wait()
		}
		queue, over := s.queue, s.over
		s.queue = nil
		s.mu.Unlock()
		if over {
			return
		}
		for _, m := range queue {
			if s.stream.Send(m) != nil {
				return // Recv has the reason
			}
		}
	}
}

// fail ends the session because of err.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over, s.err = true, err
	s.changed.Signal()
	s.frames.Close()
}

// Read reads frames. Its error is that of the control stream, if that has ended.
func (s *Session) Read(p []byte) (int, error) {
	n, err := s.frames.Read(p)
	return n, s.why(err)
}

// Write writes whole frames.
func (s *Session) Write(p []byte) (int, error) {
	n, err := s.frames.Write(p)
	return n, s.why(err)
}

func (s *Session) why(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return err
}

// Close ends the session. It returns when f of Listen has returned.
func (s *Session) Close() error {
	s.fail(net.ErrClosed)
	if s.end != nil {
		s.end()
	}
	if s.control != nil {
		s.control.Close()
	}
	s.running.Wait()
	return nil
}

// reason returns the text of gRPC's error as an error.
func reason(err error) error { return errors.New(status.Convert(err).Message()) }

// clientName returns this process's name in the daemon's log.
func clientName() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return fmt.Sprintf("%s[%d]@%s", filepath.Base(os.Args[0]), os.Getpid(), machine)
}

// address is where a daemon listens, and the name of its card.
type address struct {
	network string // "unix" or "tcp"
	place   string // path, or host and port
	card    string // empty: the only one
}

// parse reads the part of a card's name after the scheme.
func parse(text string) (address, error) {
	if rest, ok := strings.CutPrefix(text, "unix:"); ok {
		path, card, _ := strings.Cut(rest, "#")
		if path == "" {
			return address{}, errors.New("serve:unix: lacks the path of the daemon's socket: serve:unix:PATH[#CARD]")
		}
		return address{"unix", path, card}, nil
	}
	place, card, _ := strings.Cut(text, "/")
	if _, port, err := net.SplitHostPort(place); err != nil || port == "" {
		return address{}, fmt.Errorf("%q is not a daemon's address: serve:unix:PATH[#CARD] or serve:HOST:PORT[/CARD]", text)
	}
	return address{"tcp", place, card}, nil
}

// name is the inverse of parse, with the scheme and the card of that name.
func (a address) name(card string) string {
	if a.network == "unix" {
		path, err := filepath.Abs(a.place)
		if err != nil {
			path = a.place
		}
		return "serve:unix:" + path + "#" + card
	}
	return "serve:" + a.place + "/" + card
}

// authority is the name of the daemon's machine for TLS and HTTP/2.
func (a address) authority() string {
	if a.network == "unix" {
		return "localhost"
	}
	return a.place
}

func (a address) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, a.network, a.place)
	if err != nil {
		return nil, fmt.Errorf("%w; check that tributary serve listens there", err)
	}
	if Dialed != nil {
		Dialed(conn)
	}
	return conn, nil
}

// Dialed is called with each connection to a daemon, before TLS. A library in a program that may fork sets it
// before any session is opened: a child that keeps a connection keeps its session alive.
var Dialed func(net.Conn)

// isLocal reports whether the address is on this machine.
func (a address) isLocal() bool {
	if a.network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.place)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
