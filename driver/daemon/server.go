package daemon

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/protocol/rpc"
)

// Version is the version of the protocol in SPEC.md.
const Version = 1

// dataTag opens a data connection, controlTag is how HTTP/2 opens a connection.
const (
	dataTag    = "TRIBDAT1"
	controlTag = "PRI * HT"
)

// openTimeout is how long a connection may take to say what it is.
const openTimeout = 5 * time.Second

// Options are the settings of a Server. The zero value of a field means its default.
type Options struct {
	Token []byte        // that sessions must show; empty: none
	Wait  time.Duration // for the members of a job whose creator sets no time; default: a minute
	Log   *slog.Logger  // default: none
}

// Server shares cards among processes.
type Server struct {
	options Options
	cards   map[string]*card
	running context.Context // ends with the server
	end     context.CancelFunc

	mu       sync.Mutex
	sessions map[key]*session // that have no data connection yet
	stopped  bool             // refuses new jobs
}

// New returns a server that shares open cards by name. It closes them at its end.
func New(cards map[string]*driver.Card, o Options) *Server {
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, cards: map[string]*card{}, sessions: map[key]*session{}}
	s.running, s.end = context.WithCancel(context.Background())
	for name, d := range cards {
		c := &card{name: name, driver: d, server: s, sessions: map[*session]bool{}, jobs: map[uint64]*job{}}
		c.changed.L = &c.mu
		s.cards[name] = c
	}
	return s
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// Serve accepts connections until ctx ends. Then it refuses new jobs, lets running ones finish for at
// most grace, and closes the cards.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	control := newHandedOver(listener.Addr())
	controller := grpc.NewServer()
	rpc.RegisterTributaryServer(controller, &service{server: s})
	var serving sync.WaitGroup
	serving.Go(func() { _ = controller.Serve(control) })
	serving.Go(func() { s.accept(listener, control, &serving) })

	<-ctx.Done()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	finish, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, c := range s.cards {
		c.idle(finish)
	}
	var errs []error
	for _, c := range s.cards {
		errs = append(errs, c.close("the daemon has been stopped"))
	}
	listener.Close()
	s.end()
	controller.GracefulStop() // the sessions have ended
	serving.Wait()
	return errors.Join(errs...)
}

// accept hands control connections to gRPC, and data connections to their sessions.
func (s *Server) accept(listener net.Listener, control *handedOver, serving *sync.WaitGroup) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			control.Close()
			return
		}
		serving.Go(func() {
			if err := s.open(conn, control); err != nil {
				s.options.Log.Info("connection refused", "from", conn.RemoteAddr(), "why", err)
				conn.Close()
			}
		})
	}
}

// open reads what a new connection is, and serves a data connection until its end.
func (s *Server) open(conn net.Conn, control *handedOver) error {
	_ = conn.SetReadDeadline(time.Now().Add(openTimeout))
	stop := context.AfterFunc(s.running, func() { conn.Close() })
	defer stop()
	var tag [len(dataTag)]byte
	if _, err := io.ReadFull(conn, tag[:]); err != nil {
		return fmt.Errorf("no tag: %w", err)
	}
	switch string(tag[:]) {
	case controlTag:
		_ = conn.SetReadDeadline(time.Time{})
		return control.hand(&tagged{Conn: conn, tag: bytes.NewReader(tag[:])})
	case dataTag:
		var k key
		if _, err := io.ReadFull(conn, k[:]); err != nil {
			return fmt.Errorf("no key: %w", err)
		}
		_ = conn.SetReadDeadline(time.Time{})
		s.mu.Lock()
		session := s.sessions[k]
		delete(s.sessions, k)
		s.mu.Unlock()
		if session == nil {
			return errors.New("no session has this key")
		}
		session.data(conn)
		return nil
	}
	return errors.New("it is neither HTTP/2 nor a data connection")
}

// service implements the gRPC service.
type service struct {
	rpc.UnimplementedTributaryServer
	server *Server
}

// Attach runs a session.
func (v *service) Attach(stream grpc.BidiStreamingServer[protocol.ToDaemon, protocol.ToClient]) error {
	s := v.server
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil {
		return status.Error(codes.InvalidArgument, "a session begins with Hello")
	}
	c, refused := s.welcome(hello)
	if refused != nil {
		return stream.Send(&protocol.ToClient{Message: &protocol.ToClient_Refused{Refused: &protocol.Refused{Reason: refused.reason, Text: refused.text}}})
	}
	session := newSession(c, stream.Context(), hello)
	s.enter(session)
	defer s.leave(session)
	session.tell(&protocol.ToClient{Message: &protocol.ToClient_Welcome{Welcome: &protocol.Welcome{
		Card: c.name, Key: session.key[:], Cards: slices.Sorted(maps.Keys(s.cards))}}})
	stop := context.AfterFunc(s.running, func() { session.end(errors.New("the daemon has been stopped")) })
	defer stop()
	err = session.control(stream)
	s.options.Log.Info("session ended", "client", session.name, "card", c.name, "why", err)
	return status.Error(codes.Aborted, err.Error())
}

// welcome returns the card that a client asks for.
func (s *Server) welcome(hello *protocol.Hello) (*card, *refusal) {
	switch {
	case hello.Version != Version:
		return nil, refuse(protocol.Reason_VERSION, "the daemon speaks version %d of its protocol, the client %d", Version, hello.Version)
	case len(s.options.Token) > 0 && subtle.ConstantTimeCompare(hello.Token, s.options.Token) == 0:
		return nil, refuse(protocol.Reason_TOKEN, "the daemon needs its token")
	case hello.Card == "" && len(s.cards) == 1:
		for _, c := range s.cards {
			return c, nil
		}
	}
	if c := s.cards[hello.Card]; c != nil {
		return c, nil
	}
	return nil, refuse(protocol.Reason_NO_CARD, "the daemon has no card %q; it has %s", hello.Card, strings.Join(slices.Sorted(maps.Keys(s.cards)), ", "))
}

func (s *Server) enter(session *session) {
	_, _ = rand.Read(session.key[:]) // it never fails
	s.mu.Lock()
	s.sessions[session.key] = session
	s.mu.Unlock()
	session.card.mu.Lock()
	defer session.card.mu.Unlock()
	session.card.sessions[session] = true
}

func (s *Server) leave(session *session) {
	session.end(errors.New("the control stream has ended"))
	s.mu.Lock()
	delete(s.sessions, session.key)
	s.mu.Unlock()
	session.gone()
}
