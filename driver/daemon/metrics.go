package daemon

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tributary/driver/daemon/protocol"
	"tributary/driver/element"
	"tributary/driver/frame"
)

// counts are what a card's metrics count. The card's mutex guards them, except for atomic ones.
type counts struct {
	foreign   uint64 // frames of a job or rank that the session does not hold
	stale     uint64 // frames of an epoch that is not running
	malformed uint64 // frames of another version, kind, format or length
	skipped   uint64 // bytes that are in no frame
	fullQueue atomic.Uint64
	writes    atomic.Uint64 // of registers, answered with busy

	in, out  uint64 // bytes of payload
	repeated uint64 // data frames of a chunk that the seat has sent before
	epochs   uint64
	lost     uint64 // members
	ended    map[protocol.Cause]uint64
}

// accepted counts a data frame that goes to the card.
func (c *card) accepted(j *job, h *frame.Header) {
	c.counts.in += uint64(int(h.Length) * element.Size(h.Format))
	if s := j.seats[h.Rank]; int32(h.VID-s.sent) < 0 {
		c.counts.repeated++
	} else {
		s.sent = h.VID + 1
	}
}

// noteSkipped counts what a session's scanner has skipped since it was asked before. It returns is.
func (c *card) noteSkipped(was, is frame.Stats) frame.Stats {
	bytes := is.Hunted - was.Hunted
	frames := is.BadVersion + is.BadKind + is.BadLength - was.BadVersion - was.BadKind - was.BadLength
	if bytes+frames > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.counts.skipped += bytes
		c.counts.malformed += frames
	}
	return is
}

// noteEpoch counts an epoch that begins.
func (j *job) noteEpoch() {
	j.card.counts.epochs++
	go j.card.server.options.Log.Info("epoch begins", "card", j.card.name, "job", j.number, "epoch", j.epoch, "vid", j.first, "missing", j.missing())
	for _, s := range j.seats {
		s.sent = j.first
	}
}

// noteEnded counts and logs the end of a job. The log may block, and the card's mutex is held.
func (j *job) noteEnded(e *protocol.Ended) {
	j.card.counts.ended[e.Cause]++
	number := -1
	if j.isOnCard() {
		number = int(j.number)
	}
	go j.card.server.options.Log.Info("job ended", "card", j.card.name, "job", number, "members", len(j.seats),
		"cause", word(e.Cause.String()), "why", e.Text)
}

// noteLeft counts a member whose connection has ended while its job needed it.
func (j *job) noteLeft(s *seat, lost bool) {
	if lost && j.state != over && j.finished&s.bit() == 0 {
		j.card.counts.lost++
	}
}

// meters are the counters of a Server that belong to no card.
type meters struct {
	registry  *prometheus.Registry
	refusals  *prometheus.CounterVec // by reason
	limited   *prometheus.CounterVec // by limit
	closed    *prometheus.CounterVec // connections, by why
	throttled prometheus.Counter
}

// Why the daemon closed a connection that opened no session.
const (
	closedSilent = "silent" // it did not say what it is in time
	closedOther  = "tag"    // it is neither control nor data
	closedKey    = "key"    // no session has its key
	closedLimit  = "limit"
)

func newMeters(s *Server) *meters {
	m := &meters{
		registry:  prometheus.NewRegistry(),
		refusals:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tributary_refusals_total", Help: "Requests refused, by reason."}, []string{"reason"}),
		limited:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tributary_limited_total", Help: "Connections and requests refused, by limit."}, []string{"limit"}),
		closed:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tributary_connections_closed_total", Help: "Connections closed that opened no session, by cause."}, []string{"cause"}),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{Name: "tributary_throttled_seconds_total", Help: "Time that reading from sessions paused because of their rate."}),
	}
	for reason := range protocol.Reason_name {
		if reason != 0 {
			m.refusals.WithLabelValues(word(protocol.Reason(reason).String()))
		}
	}
	for _, limit := range limitNames {
		m.limited.WithLabelValues(limit)
	}
	for _, why := range []string{closedSilent, closedOther, closedKey, closedLimit} {
		m.closed.WithLabelValues(why)
	}
	m.registry.MustRegister(m.refusals, m.limited, m.closed, m.throttled, cardMetrics{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// refused counts a refusal.
func (m *meters) refused(r *refusal) { m.refusals.WithLabelValues(word(r.reason.String())).Inc() }

// word returns a constant of the protocol as a label's value: MEMBER_LOST as member_lost.
func word(constant string) string { return strings.ToLower(constant) }

// cardMetrics reads the cards' counts and states when they are asked for.
type cardMetrics struct{ server *Server }

func describeMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tributary_"+name, help, append([]string{"card"}, labels...), nil)
}

var (
	upDesc       = describeMetric("card_up", "1 if the card is open, 0 while it is away; of a tree, if all of its cards are open.")
	memberDesc   = describeMetric("tree_card_up", "1 if the card of a tree is open, 0 while it is away.", "device")
	payloadDesc  = describeMetric("payload_bytes_total", "Bytes of payload from sessions to the card (in) and of sums to sessions (out).", "direction")
	droppedDesc  = describeMetric("frames_dropped_total", "Frames dropped, by kind.", "kind")
	skippedDesc  = describeMetric("bytes_skipped_total", "Bytes from sessions that are in no frame.")
	repeatedDesc = describeMetric("frames_repeated_total", "Data frames of a chunk that their seat has sent before.")
	writesDesc   = describeMetric("register_writes_refused_total", "Writes of registers that the daemon answered with busy.")
	sessionsDesc = describeMetric("sessions", "Open sessions.")
	jobsDesc     = describeMetric("jobs", "Jobs, by state.", "state")
	endedDesc    = describeMetric("jobs_ended_total", "Jobs that have ended, by cause.", "cause")
	epochsDesc   = describeMetric("epochs_begun_total", "Epochs begun.")
	lostDesc     = describeMetric("members_lost_total", "Members whose connection ended while their job ran.")
	queueDesc    = describeMetric("queue_bytes", "Bytes of frames that wait for sessions to read them.")
	lagDesc      = describeMetric("lag_chunks", "Chunks that a rank has sent less than the rank of its job that has sent most.", "job", "rank")
)

// Describe implements prometheus.Collector.
func (cardMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{upDesc, memberDesc, payloadDesc, droppedDesc, skippedDesc, repeatedDesc, writesDesc, sessionsDesc, jobsDesc, endedDesc, epochsDesc, lostDesc, queueDesc, lagDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector. It sends the metrics when it has released the card.
func (m cardMetrics) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range m.server.cards {
		for _, one := range c.metrics() {
			metrics <- one
		}
	}
}

func (c *card) metrics() (all []prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{c.name}, labels...)...))
	}
	gauge := func(d *prometheus.Desc, x int, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(x), append([]string{c.name}, labels...)...))
	}
	gauge(upDesc, up(c.driver))
	if c.tree != nil {
		for _, member := range c.tree.Cards() {
			gauge(memberDesc, up(member.Card), member.Card.Info().Name)
		}
	}
	counter(payloadDesc, c.counts.in, "in")
	counter(payloadDesc, c.counts.out, "out")
	counter(droppedDesc, c.counts.foreign, "foreign")
	counter(droppedDesc, c.counts.stale, "stale")
	counter(droppedDesc, c.counts.malformed, "malformed")
	counter(droppedDesc, c.counts.fullQueue.Load(), "full_queue")
	counter(skippedDesc, c.counts.skipped)
	counter(repeatedDesc, c.counts.repeated)
	counter(writesDesc, c.counts.writes.Load())
	counter(epochsDesc, c.counts.epochs)
	counter(lostDesc, c.counts.lost)
	for cause, name := range protocol.Cause_name {
		if cause != 0 {
			counter(endedDesc, c.counts.ended[protocol.Cause(cause)], word(name))
		}
	}
	gauge(sessionsDesc, len(c.sessions))
	gauge(queueDesc, c.queueBytes())
	for state, n := range c.jobsByState() {
		gauge(jobsDesc, n, state)
	}
	for _, j := range c.jobs {
		if j.state == running {
			for rank, lag := range j.lags() {
				gauge(lagDesc, lag, strconv.Itoa(int(j.number)), strconv.Itoa(rank))
			}
		}
	}
	return all
}

// up is 1 if a card is open.
func up(c Card) int {
	if c.Err() == nil && !c.Away() {
		return 1
	}
	return 0
}

// queueBytes returns the bytes that wait for the card's sessions to read them.
func (c *card) queueBytes() (n int) {
	for s := range c.sessions {
		s.mu.Lock()
		n += s.bytes
		if s.rings != nil {
			n += s.rings.Queued()
		}
		s.mu.Unlock()
	}
	return n
}

func (c *card) jobsByState() map[string]int {
	names := map[state]string{gathering: "gathering", starting: "starting", running: "running", stopped: "stopped"}
	jobs := map[string]int{"queued": 0}
	for _, name := range names {
		jobs[name] = 0
	}
	for _, j := range c.jobs {
		name := names[j.state]
		if j.state == running && j.away > 0 {
			name = names[stopped]
		}
		if slices.Contains(c.queue, j) {
			name = "queued"
		}
		jobs[name]++
	}
	return jobs
}

// lags returns how many chunks each rank that is there and has not finished trails the first one.
func (j *job) lags() map[int]int {
	lags := map[int]int{}
	sent := func(s *seat) uint32 {
		if j.arrays != nil {
			return j.arrays.per[s.rank].next
		}
		return s.sent
	}
	first := sent(j.seats[0])
	for _, s := range j.seats {
		if int32(sent(s)-first) > 0 {
			first = sent(s)
		}
	}
	for _, s := range j.seats {
		if s.session != nil && j.finished&s.bit() == 0 {
			lags[s.rank] = int(first - sent(s))
		}
	}
	return lags
}
