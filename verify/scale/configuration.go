package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"tributary/verify/scale/archive"
	"tributary/verify/scale/sim"
)

// configuration is the content of configuration.json: everything that decides a result. It was
// committed before the first comparison ran.
type configuration struct {
	ClockMHz      float64                 `json:"clock_mhz"` // of all cards
	Cards         map[string]archive.Card `json:"cards"`
	Networks      map[string]network      `json:"networks"`
	Distributions map[string]distribution `json:"distributions"`
	TCP           tcp                     `json:"tcp"`
	Job           job                     `json:"job"`
	Transports    []transport             `json:"transports"`
	Suites        []suite                 `json:"suites"`
}

// network is a folded Clos. Hosts in a rack are workers of the job and servers with other traffic.
type network struct {
	Racks        int     `json:"racks"`
	Spines       int     `json:"spines"`
	Workers      int     `json:"workers_per_rack"`
	Servers      int     `json:"servers_per_rack"`
	GbitS        float64 `json:"link_gbit_s"`
	HostDelayUS  float64 `json:"host_link_delay_us"` // with the host's stack
	CoreDelayUS  float64 `json:"core_link_delay_us"` // with the switch's pipeline
	QueueBytes   int64   `json:"queue_bytes"`
	MarkingBytes int64   `json:"marking_bytes"`
	LeafCard     string  `json:"leaf_card"`
	SpineCard    string  `json:"spine_card"`
}

type distribution struct {
	Source string           `json:"source"`
	Points sim.Distribution `json:"points"`
}

// tcp are the parameters of DCTCP, for flows and for a ring's.
type tcp struct {
	Gain         float64 `json:"gain"`
	FirstWindow  float64 `json:"first_window_segments"`
	LeastTimeout float64 `json:"least_timeout_ms"`
}

type job struct {
	Window       int     `json:"window_chunks"`
	FirstWindow  int     `json:"first_window_chunks"` // of all trees, with DCTCP
	PayloadBytes int     `json:"payload_bytes"`
	LeastTimeout float64 `json:"least_timeout_ms"`
	RepeatUS     float64 `json:"repeat_us"` // JOB_REPEAT
}

// transport is a way to reduce.
type transport struct {
	Name  string `json:"name"`
	Ring  bool   `json:"ring,omitempty"`
	Trees int    `json:"trees,omitempty"` // 0 for one at each spine
	Hash  bool   `json:"hash,omitempty"`  // the root is at a leaf, and hashes choose paths
	Drawn bool   `json:"drawn,omitempty"` // a hash chooses the spine of the first tree; otherwise the job's number
	Fixed bool   `json:"fixed,omitempty"` // the window is the job's, whatever the marks
	Title string `json:"title"`           // for tables
}

// suite is a set of runs: each transport under each load with each seed.
type suite struct {
	Name         string    `json:"name"`
	Title        string    `json:"title"`
	Network      string    `json:"network"`
	Distribution string    `json:"distribution"`
	Loads        []float64 `json:"loads"`
	Seeds        []uint64  `json:"seeds"`
	Transports   []string  `json:"transports"`
	Jobs         int       `json:"jobs"` // at once; they share the workers of each rack evenly
	ArrayBytes   int       `json:"array_bytes"`
	ComputeMS    float64   `json:"compute_ms"`
	WarmUpMS     float64   `json:"warm_up_ms"`
	MeasuredMS   float64   `json:"measured_ms"`
	DrainMS      float64   `json:"drain_ms"` // for flows that began before
}

// parse reads a configuration and checks it.
func parse(text []byte) (configuration, error) {
	var c configuration
	if err := archive.Parse(text, &c); err != nil {
		return c, err
	}
	return c, errors.Join(c.check()...)
}

func (c *configuration) check() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.ClockMHz <= 0 {
		wrong("clock_mhz is %g; it must be positive", c.ClockMHz)
	}
	for _, name := range sorted(c.Networks) {
		errs = append(errs, c.checkNetwork(name)...)
	}
	for _, name := range sorted(c.Distributions) {
		if err := c.Distributions[name].Points.Check(); err != nil {
			wrong("distributions.%s: %w", name, err)
		}
	}
	if c.TCP.Gain <= 0 || c.TCP.Gain > 1 || c.TCP.FirstWindow < 1 || c.TCP.LeastTimeout <= 0 {
		wrong("tcp: gain must be above 0 and at most 1, first_window_segments at least 1, least_timeout_ms positive")
	}
	if j := c.Job; j.Window < 1 || j.Window&(j.Window-1) != 0 || j.FirstWindow < 1 || j.PayloadBytes < 1 || j.PayloadBytes > 8192 || j.LeastTimeout <= 0 || j.RepeatUS <= 0 {
		wrong("job: window_chunks must be a power of two, payload_bytes 1 to 8192, and the others positive")
	}
	for _, t := range c.Transports {
		if t.Trees < 0 {
			wrong("transport %q: %d trees", t.Name, t.Trees)
		}
	}
	for _, s := range c.Suites {
		errs = append(errs, c.checkSuite(s)...)
	}
	return errs
}

// mostMembers is the number of contributions that the card of package sim tells apart.
const mostMembers = 64

func (c *configuration) checkNetwork(name string) (errs []error) {
	n := c.Networks[name]
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("networks.%s: "+format, append([]any{name}, args...)...))
	}
	if n.Racks < 1 || n.Spines < 1 || n.Workers < 1 || n.Servers < 1 {
		wrong("racks, spines, workers_per_rack and servers_per_rack must be at least 1")
	}
	if n.Workers+n.Racks-1 > mostMembers {
		wrong("%d workers a rack and %d racks; a card at a leaf has at most %d members", n.Workers, n.Racks, mostMembers)
	}
	if n.GbitS <= 0 || n.HostDelayUS < 0 || n.CoreDelayUS < 0 || n.QueueBytes < 0 || n.MarkingBytes < 0 {
		wrong("link_gbit_s must be positive, delays and bytes not negative")
	}
	for _, name := range []string{n.LeafCard, n.SpineCard} {
		if _, ok := c.Cards[name]; !ok {
			wrong("there is no card %q in cards", name)
		}
	}
	return errs
}

func (c *configuration) checkSuite(s suite) (errs []error) {
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("suite %q: "+format, append([]any{s.Name}, args...)...))
	}
	n, ok := c.Networks[s.Network]
	if !ok {
		wrong("there is no network %q; there are: %s", s.Network, strings.Join(sorted(c.Networks), ", "))
	}
	if _, ok := c.Distributions[s.Distribution]; !ok {
		wrong("there is no distribution %q; there are: %s", s.Distribution, strings.Join(sorted(c.Distributions), ", "))
	}
	for _, load := range s.Loads {
		if load < 0 || load >= 1 {
			wrong("load %g is not below 1", load)
		}
	}
	if len(s.Loads) == 0 || len(s.Seeds) == 0 || len(s.Transports) == 0 {
		wrong("loads, seeds and transports must not be empty")
	}
	for _, name := range s.Transports {
		if t, ok := c.transport(name); !ok {
			wrong("there is no transport %q", name)
		} else if t.Trees > n.Spines {
			wrong("transport %q has %d trees for %d spines", name, t.Trees, n.Spines)
		}
	}
	if s.Jobs < 1 || n.Workers%s.Jobs != 0 {
		wrong("%d jobs do not share %d workers a rack evenly", s.Jobs, n.Workers)
	}
	if s.ArrayBytes < 1 || s.ComputeMS < 0 || s.WarmUpMS < 0 || s.MeasuredMS <= 0 || s.DrainMS < 0 {
		wrong("array_bytes and measured_ms must be positive, other times not negative")
	}
	return errs
}

func (c *configuration) transport(name string) (transport, bool) {
	i := slices.IndexFunc(c.Transports, func(t transport) bool { return t.Name == name })
	if i < 0 {
		return transport{}, false
	}
	return c.Transports[i], true
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// micro and milli convert times of the configuration.
func micro(us float64) sim.Time { return sim.Time(us*float64(sim.Microsecond) + 0.5) }
func milli(ms float64) sim.Time { return sim.Time(ms*float64(sim.Millisecond) + 0.5) }

// clos returns a network for package sim.
func (c *configuration) clos(n network) sim.Clos {
	link := sim.LinkConfig{Rate: n.GbitS * 1e9, Limit: n.QueueBytes, Mark: n.MarkingBytes}
	host, core := link, link
	host.Delay, core.Delay = micro(n.HostDelayUS), micro(n.CoreDelayUS)
	return sim.Clos{
		Racks: n.Racks, Spines: n.Spines, Workers: n.Workers, Servers: n.Servers,
		Host: host, Core: core, LeafCard: c.card(n.LeafCard), SpineCard: c.card(n.SpineCard),
	}
}

func (c *configuration) card(name string) sim.CardConfig {
	cycle := float64(sim.Microsecond) / c.ClockMHz
	return sim.CardConfig{
		Latency: sim.Time(float64(c.Cards[name].LatencyCycles)*cycle + 0.5),
		Chunk:   sim.Time(float64(c.Cards[name].ChunkCycles)*cycle + 0.5),
		Repeat:  micro(c.Job.RepeatUS),
	}
}

func (c *configuration) tcp() sim.TCPConfig {
	return sim.TCPConfig{Window: sim.WindowConfig{First: c.TCP.FirstWindow, Gain: c.TCP.Gain}, Timeout: milli(c.TCP.LeastTimeout)}
}

// hash returns the number by which job i's flows find their paths.
func hash(seed uint64, i int) uint32 { return rand.New(rand.NewPCG(seed, uint64(i)+1)).Uint32() }

// jobOf returns the reduction of a transport in a suite's job i.
func (c *configuration) jobOf(t transport, s suite, seed uint64, i int) sim.JobConfig {
	spines := c.Networks[s.Network].Spines
	trees := t.Trees
	if trees == 0 {
		trees = spines
	}
	j := sim.JobConfig{
		Trees: trees, Window: c.Job.Window, Payload: c.Job.PayloadBytes, Bytes: s.ArrayBytes, Compute: milli(s.ComputeMS),
		Timeout: milli(c.Job.LeastTimeout), Hash: hash(seed, i), Spine: i % spines,
	}
	if t.Drawn {
		j.Spine = int(hash(seed, i) % uint32(spines))
	}
	if t.Hash {
		j.Trees, j.Roots = 1, sim.AtLeaf
	}
	j.Tree = sim.WindowConfig{First: max(1, float64(c.Job.FirstWindow)/float64(j.Trees)), Most: float64(c.Job.Window), Gain: c.TCP.Gain}
	if t.Fixed {
		j.Tree = sim.WindowConfig{First: float64(c.Job.Window)}
	}
	return j
}
