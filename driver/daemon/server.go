package daemon

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/daemon/protocol/rpc"
)

// Version is the version of the protocol in SPEC.md.
const Version = 1

// Settings of control connections.
const (
	controlStreams = 16 // on a connection: sessions, and requests for health
	controlBuffer  = 8 << 10
	pingAfter      = 10 * time.Second // of silence; the other end then has gRPC's 20 s
	nameBytes      = 256              // of a client's and a card's name in Hello
)

// Options are the settings of a Server. The zero value of a field means its default.
type Options struct {
	Token  []byte        // that sessions must show; empty: none
	TLS    *tls.Config   // of LoadTLS; nil: none
	Limits Limits        // of what clients take
	Admin  bool          // lets sessions that ask for it write registers
	Relay  bool          // forwards the frames of all sessions, also to a card on a network
	Wait   time.Duration // for the members of a job whose creator sets no time; default: a minute
	Log    *slog.Logger  // default: none
	Ready  func()        // is called when the server accepts connections; default: none
}

// Server shares cards among processes.
type Server struct {
	options Options
	limits  Limits // with defaults
	guards  *guards
	meters  *meters
	cards   map[string]*card
	running context.Context // ends with the server
	end     context.CancelFunc

	mu        sync.Mutex
	sessions  map[key]*session // that have no data connection yet
	listening bool
	stopped   bool // refuses new jobs
}

// New returns a server that shares open cards, and trees of cards, by name. It closes them at its end.
func New(cards map[string]Card, o Options) *Server {
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	if o.Ready == nil {
		o.Ready = func() {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, limits: o.Limits.withDefaults(), cards: map[string]*card{}, sessions: map[key]*session{}}
	s.guards, s.meters = newGuards(s.limits), newMeters(s)
	s.running, s.end = context.WithCancel(context.Background())
	for name, d := range cards {
		c := &card{name: name, driver: d, server: s, sessions: map[*session]bool{}, jobs: map[uint64]*job{}, parting: map[uint64]*job{}}
		c.single, _ = d.(*driver.Card)
		c.tree, _ = d.(*driver.SharedTree)
		c.changed.L, c.counts.ended = &c.mu, map[protocol.Cause]uint64{}
		s.cards[name] = c
	}
	return s
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// stopTime bounds how long the daemon waits for clients to read the end of their sessions.
const stopTime = time.Second

// Serve accepts connections until ctx ends. Then it refuses new jobs, ends those that wait for members,
// lets running ones finish for at most grace, and closes the cards. It returns a TrustError for a
// listener that others can reach, without TLS and a token or client certificates.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	return s.serve(ctx, listener, func() {
		finish, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		s.stopJobs(finish)
		leave, cancel := context.WithTimeout(finish, stopTime)
		defer cancel()
		s.awaitLeave(leave)
	})
}

// ServeUntil is Serve for a program that chooses the grace at the end. When ctx has ended, running jobs may
// finish until the context finish ends, and the program waits as long for clients to end their sessions.
func (s *Server) ServeUntil(ctx, finish context.Context, listener net.Listener) error {
	return s.serve(ctx, listener, func() {
		s.stopJobs(finish)
		s.awaitLeave(finish)
	})
}

// serve is Serve. When ctx has ended, stop ends the jobs.
func (s *Server) serve(ctx context.Context, listener net.Listener, stop func()) error {
	if err := CheckTrust(listener.Addr(), s.options); err != nil {
		listener.Close()
		return errors.Join(err, s.closeCards())
	}
	if s.options.TLS != nil {
		listener = secured(listener, s.options.TLS)
	}
	control := newHandedOver(listener.Addr())
	controller, healthy := s.newController()
	var serving sync.WaitGroup
	serving.Go(func() { _ = controller.Serve(control) })
	serving.Go(func() { s.accept(listener, control, &serving) })
	s.mu.Lock()
	s.listening = true
	s.mu.Unlock()
	s.options.Ready()

	<-ctx.Done()
	healthy.Shutdown()
	stop()
	err := s.closeCards()
	listener.Close()
	s.end()
	late := time.AfterFunc(stopTime, controller.Stop) // a client that does not read
	controller.GracefulStop()                         // the sessions have ended
	late.Stop()
	serving.Wait()
	return err
}

// newController returns the server of control connections. Idle ones, such as those that open no
// session, do not stay. Dead machines are noticed by pings.
func (s *Server) newController() (*grpc.Server, *health.Server) {
	controller := grpc.NewServer(
		grpc.Creds(handshake{insecure.NewCredentials()}),
		grpc.ConnectionTimeout(openTimeout),
		grpc.MaxConcurrentStreams(controlStreams),
		grpc.ReadBufferSize(controlBuffer), grpc.WriteBufferSize(controlBuffer),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: openTimeout, Time: pingAfter}),
	)
	rpc.RegisterTributaryServer(controller, &service{server: s})
	healthy := health.NewServer()
	healthy.SetServingStatus(rpc.Tributary_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(controller, &healthService{Server: healthy, running: s.running, watchers: gate{most: maxWatchers}})
	return controller, healthy
}

// stopJobs refuses new jobs, ends those that have not started, and waits for the others until finish ends.
func (s *Server) stopJobs(finish context.Context) {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	for _, c := range s.cards {
		c.endGathering()
	}
	for _, c := range s.cards {
		c.await(finish, func() bool { return len(c.jobs) == 0 })
	}
}

// awaitLeave waits until clients have ended their sessions, or ctx ends. The end of its job is still on its
// way to a client that did not finish first: it would find its card gone.
func (s *Server) awaitLeave(ctx context.Context) {
	for _, c := range s.cards {
		c.await(ctx, func() bool { return len(c.sessions) == 0 })
	}
}

// endGathering ends the jobs that wait for members or for room.
func (c *card) endGathering() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = nil
	for _, j := range c.jobs {
		if j.state == gathering {
			j.end(&protocol.Ended{Cause: protocol.Cause_ABORTED, Text: stoppedText})
		}
	}
}

// stoppedText explains the end of jobs and sessions.
const stoppedText = "the daemon has been stopped"

// closeCards ends the jobs that are left, and closes the cards.
func (s *Server) closeCards() error {
	var errs []error
	for _, c := range s.cards {
		c.mu.Lock()
		left := len(c.jobs)
		c.mu.Unlock()
		if left > 0 {
			s.options.Log.Warn("jobs ended before they had finished", "card", c.name, "jobs", left)
		}
		errs = append(errs, c.close(stoppedText))
	}
	return errors.Join(errs...)
}

// service implements the gRPC service.
type service struct {
	rpc.UnimplementedTributaryServer
	server *Server
}

// Attach runs a session.
func (v *service) Attach(stream grpc.BidiStreamingServer[protocol.ToDaemon, protocol.ToClient]) error {
	s := v.server
	session, err := s.openSession(stream)
	if session == nil {
		return err
	}
	stop := context.AfterFunc(s.running, func() { session.end(errors.New(stoppedText)) })
	defer stop()
	log := s.options.Log.With("client", session.name, "card", session.card.name)
	log.Info("session opened")
	controlled := make(chan error, 1)
	go func() { controlled <- session.control(stream) }()
	<-session.over.Done()
	s.leave(session)
	err = context.Cause(session.over)
	log.Info("session ended", "why", err)
	// A client that does not read keeps the last messages, or this stream's status after them, from being
	// sent: its connection would stay.
	time.AfterFunc(stopTime, func() { closeBelow(stream.Context()) })
	select {
	case <-controlled:
	case <-time.After(stopTime):
	}
	return status.Error(codes.Aborted, err.Error())
}

// openSession opens the session that the first message of a stream asks for. Without an error it
// returns nil if the daemon has refused it.
func (s *Server) openSession(stream grpc.BidiStreamingServer[protocol.ToDaemon, protocol.ToClient]) (*session, error) {
	hello, refused, err := s.hello(stream)
	if err != nil {
		return nil, err
	}
	var c *card
	if refused == nil {
		c, refused = s.welcome(hello)
	}
	if refused == nil && !s.guards.sessions.enter() {
		refused = s.limited(limitSessions, "the daemon has %d sessions, its limit; end one", s.limits.Sessions)
	}
	if refused != nil {
		s.meters.refused(refused)
		return nil, stream.Send(&protocol.ToClient{Message: &protocol.ToClient_Refused{Refused: &protocol.Refused{Reason: refused.reason, Text: refused.text}}})
	}
	session := newSession(c, stream.Context(), hello)
	welcome := &protocol.Welcome{Card: c.name, Cards: slices.Sorted(maps.Keys(s.cards))}
	session.direct = s.offersDirect(c, hello)
	if c.underRoCE() {
		welcome.Connections, welcome.SourceAt = true, c.driver.Network()
	}
	switch {
	case session.direct:
		welcome.Network = c.driver.Network()
	case c.driver.TakesArrays():
		welcome.Block = blockBytes
		session.memory = s.share(stream.Context(), hello, hello.Memory, s.limits.Memory)
	default:
		s.shareRings(stream.Context(), hello, session, welcome)
	}
	if c.tree != nil {
		welcome.Tree = c.tree.Describe()
	}
	welcome.Memory = uint64(len(session.memory.bytes()))
	s.enter(session)
	welcome.Key = session.key[:]
	session.tell(&protocol.ToClient{Message: &protocol.ToClient_Welcome{Welcome: welcome}})
	return session, nil
}

// share makes memory if a client on this machine asks for it; nil if there is none.
func (s *Server) share(ctx context.Context, hello *protocol.Hello, asks bool, size int) *memory {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr.Network() != "unix" || !asks || size > s.limits.Memory {
		return nil
	}
	m, err := newMemory(size)
	if err != nil {
		s.options.Log.Warn("a session works without shared memory", "client", hello.Client, "why", err)
		return nil
	}
	return m
}

// hello reads the first message of a stream. The client has openTimeout to send it.
func (s *Server) hello(stream grpc.BidiStreamingServer[protocol.ToDaemon, protocol.ToClient]) (*protocol.Hello, *refusal, error) {
	if !s.guards.unopened.enter() {
		return nil, s.limited(limitUnopened, "too many clients open a session at once; try again"), nil
	}
	defer s.guards.unopened.leave()
	type received struct {
		m   *protocol.ToDaemon
		err error
	}
	first := make(chan received, 1)
	go func() {
		m, err := stream.Recv()
		first <- received{m, err}
	}()
	late := time.NewTimer(openTimeout)
	defer late.Stop()
	select {
	case <-late.C:
		return nil, nil, status.Error(codes.DeadlineExceeded, fmt.Sprintf("no Hello within %s", openTimeout))
	case <-s.running.Done():
		return nil, nil, status.Error(codes.Aborted, stoppedText)
	case got := <-first:
		hello := got.m.GetHello()
		switch {
		case got.err != nil:
			return nil, nil, got.err
		case hello == nil:
			return nil, nil, status.Error(codes.InvalidArgument, "a session begins with Hello")
		case len(hello.Client) > nameBytes || len(hello.Card) > nameBytes:
			return nil, nil, status.Error(codes.InvalidArgument, fmt.Sprintf("a name in Hello has more than %d bytes", nameBytes))
		}
		return hello, nil, nil
	}
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
	s.guards.sessions.leave() // before anybody sees that the session has gone
	session.gone()
}
