package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"tributary/driver/wire"
)

// readyTimeout bounds how long a card may take to show that it answers.
const readyTimeout = time.Second

// Handler serves what operators watch: the metrics at /metrics, at /healthz that the process runs, and
// at /readyz whether the daemon listens and every card answers.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.meters.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	return mux
}

// Ready returns nil when the server takes jobs: it listens, is not being stopped, and every card
// answers.
func (s *Server) Ready(ctx context.Context) error {
	s.mu.Lock()
	listening, stopped := s.listening, s.stopped
	s.mu.Unlock()
	switch {
	case stopped:
		return errors.New("the daemon is being stopped")
	case !listening:
		return errors.New("the daemon does not listen yet")
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var errs []error
	for name, c := range s.cards {
		if err := c.responds(ctx); err != nil {
			errs = append(errs, fmt.Errorf("card %s does not answer: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// responds returns nil when the card responds, or all cards of the tree.
func (c *card) responds(ctx context.Context) error {
	if c.tree != nil {
		return c.tree.Responds(ctx)
	}
	_, err := c.driver.ReadRegister(ctx, wire.RegMagic)
	return err
}

// healthService is gRPC's health service. Its streams end with the server. They are few: clients without
// a token may ask for health, and must not hold the daemon's connections.
type healthService struct {
	*health.Server
	running  context.Context
	watchers gate
}

// maxWatchers is how many streams may watch the daemon's health.
const maxWatchers = 16

// Watch implements the service.
func (h *healthService) Watch(r *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	if !h.watchers.enter() {
		return status.Errorf(codes.ResourceExhausted, "%d streams watch the daemon's health, its limit; use Check", maxWatchers)
	}
	defer h.watchers.leave()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(h.running, cancel)()
	return h.Server.Watch(r, &endingStream{stream, ctx})
}

// endingStream is a stream with another context.
type endingStream struct {
	grpc.ServerStreamingServer[healthpb.HealthCheckResponse]
	ctx context.Context
}

func (s *endingStream) Context() context.Context { return s.ctx }
