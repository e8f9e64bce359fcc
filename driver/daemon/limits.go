package daemon

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"tributary/driver/daemon/protocol"
)

// Limits bound what clients take. The zero value of a field means its default.
type Limits struct {
	Sessions    int // at once; default 256
	Seats       int // of a session; default 64
	Rate        int // bytes a second that the daemon reads from a session; default 1 GiB
	Waste       int // bytes a second that the daemon reads from a session and drops; default 16 MiB
	Connections int // a second, after a burst of two for each session and for one more; default 100
	Queue       int // jobs that wait for room on a card; default 64
	Memory      int // bytes that a session shares with the daemon at most, for arrays or rings of frames; default 32 MiB
	Calls       int // that a seat of a job announces before others do, or before their blocks; default 65,536

	Wait time.Duration // of a job for its members, as its creator asks; default an hour
}

// The names of limits, as refusals are counted.
const (
	limitConnections = "connections" // too many a second
	limitOpen        = "open"        // too many connections at once
	limitUnopened    = "unopened"    // too many that have not opened a session
	limitSessions    = "sessions"
	limitSeats       = "seats"
	limitQueue       = "queue"
	limitCalls       = "calls"
	limitWait        = "wait"
)

// limitNames lists the limits that refuse.
var limitNames = []string{limitConnections, limitOpen, limitUnopened, limitSessions, limitSeats, limitQueue, limitCalls, limitWait}

func (l Limits) withDefaults() Limits {
	return Limits{
		Sessions:    cmp.Or(l.Sessions, 256),
		Seats:       cmp.Or(l.Seats, 64),
		Rate:        cmp.Or(l.Rate, 1<<30),
		Waste:       cmp.Or(l.Waste, 16<<20),
		Connections: cmp.Or(l.Connections, 100),
		Queue:       cmp.Or(l.Queue, 64),
		Memory:      cmp.Or(l.Memory, 32<<20),
		Calls:       cmp.Or(l.Calls, 1<<16),
		Wait:        cmp.Or(l.Wait, time.Hour),
	}
}

// DefaultLimits returns the limits of a Server whose Options have none.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

// burst is how many connections the daemon takes at once: two for each session, and two for a client
// beyond the limit, which hears why.
func (l Limits) burst() int { return 2 * (l.Sessions + 1) }

// guards enforce the limits of a Server that concern connections.
type guards struct {
	arriving *rate.Limiter // connections a second
	open     gate          // connections at once
	unopened gate          // connections and streams that have not opened a session
	sessions gate
}

func newGuards(l Limits) *guards {
	return &guards{
		arriving: rate.NewLimiter(rate.Limit(l.Connections), l.burst()),
		open:     gate{most: int64(2 * l.burst())}, // sessions, and as many that open or ask for health
		unopened: gate{most: int64(l.burst())},
		sessions: gate{most: int64(l.Sessions)},
	}
}

// arrive lets a connection in, or returns the limit that refuses it.
func (g *guards) arrive() (limit string) {
	switch {
	case !g.arriving.Allow():
		return limitConnections
	case !g.open.enter():
		return limitOpen
	case !g.unopened.enter():
		g.open.leave()
		return limitUnopened
	}
	return ""
}

// gate lets at most a number in.
type gate struct {
	most   int64
	inside atomic.Int64
}

func (g *gate) enter() bool {
	if g.inside.Add(1) > g.most {
		g.inside.Add(-1)
		return false
	}
	return true
}

func (g *gate) leave() { g.inside.Add(-1) }

// limited refuses a request because of a limit, and counts it.
func (s *Server) limited(limit, format string, args ...any) *refusal {
	s.meters.limited.WithLabelValues(limit).Inc()
	return refuse(protocol.Reason_LIMIT, format, args...)
}

// waitFor returns how long a job waits for its members. Its place on the card, or in the queue, is taken
// meanwhile.
func (s *Server) waitFor(p *protocol.Create) (time.Duration, *refusal) {
	switch {
	case p.WaitNs == 0:
		return s.options.Wait, nil
	case p.WaitNs > uint64(s.limits.Wait):
		asked := time.Duration(min(p.WaitNs, math.MaxInt64))
		return 0, s.limited(limitWait, "a job waits at most %s for its members, the daemon's limit; %s is longer", s.limits.Wait, asked)
	}
	return time.Duration(p.WaitNs), nil
}

// seatsOf counts the seats that a session holds.
func (c *card) seatsOf(s *session) (n int) {
	for _, j := range c.jobs {
		n += len(j.ranksOf(s))
	}
	return n
}

// seatsLimited is the refusal of a seat beyond a session's limit.
func (c *card) seatsLimited() *refusal {
	return c.server.limited(limitSeats, "the session has %d seats, the daemon's limit", c.server.limits.Seats)
}

// checkReport refuses a report that cannot be true. The daemon steps through the chunks between two
// reports while the card waits, so they must not be far apart.
func (j *job) checkReport(s *seat, r *protocol.Report) error {
	tooOld := !j.direct && int32(r.Low-s.sent) < -j.reach() // the daemon does not see what a direct seat has sent
	if tooOld || int32(r.Low-s.next) > 0 {
		return fmt.Errorf("rank %d reports that it lacks chunk %d, which cannot be", s.rank, r.Low)
	}
	return j.checkHeld(s, r)
}

// reach is how far a seat's data goes beyond what it lacks, at most.
func (j *job) reach() int32 { return int32(max(len(j.kept), 2*j.parameters.Window)) }

func (j *job) checkHeld(s *seat, r *protocol.Report) error {
	if len(r.Held) > int(j.reach()) {
		return fmt.Errorf("rank %d reports that it holds %d chunks, which cannot be", s.rank, len(r.Held))
	}
	for _, vid := range r.Held {
		if d := int32(vid - r.Low); d <= 0 || d > j.reach() {
			return fmt.Errorf("rank %d reports that it lacks chunk %d and holds chunk %d, which cannot be", s.rank, r.Low, vid)
		}
	}
	return nil
}

// throttle returns a reader of the session's data connection that keeps its rates.
func (s *session) throttle(conn io.Reader) *throttled {
	l := s.card.server.limits
	return &throttled{conn: conn, over: s.over, waited: s.card.server.meters.throttled.Add,
		all: newAllowance(l.Rate, l.Rate/64), waste: newAllowance(l.Waste, l.Waste/4)}
}

// throttled is a reader with limits of bytes a second: of all, and of those that it read in vain.
type throttled struct {
	conn   io.Reader
	over   context.Context
	waited func(seconds float64)
	all    *rate.Limiter
	waste  *rate.Limiter

	got     int // bytes
	used    int // of them
	charged int // of the others, against waste
}

// newAllowance returns a limit of bytes a second, and at once.
func newAllowance(most, burst int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(most), max(1, burst))
}

// Read reads, after a pause for what was read in vain before.
func (t *throttled) Read(p []byte) (int, error) {
	if err := t.payForWaste(); err != nil {
		return 0, err
	}
	n, err := t.conn.Read(p[:min(len(p), t.all.Burst())])
	t.got += n
	if late := t.pause(t.all.ReserveN(time.Now(), n).Delay()); late != nil {
		return n, late
	}
	return n, err
}

// use notes that bytes were not read in vain.
func (t *throttled) use(n int) { t.used += n }

// payForWaste pauses for the bytes that were read and not used since. The beginning of a frame whose end
// has not come counts once, however many there are.
func (t *throttled) payForWaste() error {
	var delay time.Duration
	for left := t.got - t.used - t.charged; left > 0; left -= t.waste.Burst() {
		n := min(left, t.waste.Burst())
		t.charged += n
		delay = t.waste.ReserveN(time.Now(), n).Delay()
	}
	return t.pause(delay)
}

// pause waits for a time, or until the session is over, which is its error.
func (t *throttled) pause(delay time.Duration) error {
	if delay == 0 {
		return nil
	}
	t.waited(delay.Seconds())
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.over.Done():
		return context.Cause(t.over)
	}
}
