package sim

import (
	"fmt"
	"math/rand/v2"
	"sort"
)

// Point is a point of a cumulative distribution: a fraction of the flows has at most so many bytes.
type Point struct {
	Bytes    float64 `json:"bytes"`
	Fraction float64 `json:"fraction"`
}

// Distribution is one of flow sizes. Between two points it is linear.
type Distribution []Point

// Check returns an error unless the points rise from fraction 0 to 1.
func (d Distribution) Check() error {
	if len(d) < 2 || d[0].Fraction != 0 || d[len(d)-1].Fraction != 1 {
		return fmt.Errorf("the fractions of a distribution begin with 0 and end with 1")
	}
	for i := 1; i < len(d); i++ {
		if d[i].Bytes <= d[i-1].Bytes || d[i].Fraction < d[i-1].Fraction {
			return fmt.Errorf("point %d of the distribution does not rise: %g bytes, fraction %g", i, d[i].Bytes, d[i].Fraction)
		}
	}
	return nil
}

// Mean returns the mean size in bytes.
func (d Distribution) Mean() (mean float64) {
	for i := 1; i < len(d); i++ {
		mean += (d[i].Fraction - d[i-1].Fraction) * (d[i].Bytes + d[i-1].Bytes) / 2
	}
	return mean
}

// At returns the size below which a fraction of the flows is.
func (d Distribution) At(fraction float64) float64 {
	i := sort.Search(len(d)-1, func(i int) bool { return d[i].Fraction >= fraction })
	if i == 0 {
		return d[0].Bytes
	}
	low, high := d[i-1], d[i]
	return low.Bytes + (high.Bytes-low.Bytes)*(fraction-low.Fraction)/(high.Fraction-low.Fraction)
}

// TrafficConfig describes flows between the servers of a network. They arrive by a Poisson
// process, each between two servers that are drawn uniformly.
type TrafficConfig struct {
	Sizes Distribution
	Load  float64 // of each server's link: payload, headers and gaps
	TCP   TCPConfig
	Seed  uint64
}

// Traffic is a set of flows with their times.
type Traffic struct {
	TrafficConfig
	network *Network
	servers []*Host
	random  *rand.Rand
	gap     float64 // mean time between two flows, in picoseconds
	Flows   []*Transfer
}

// Transfer is one flow of a Traffic.
type Transfer struct {
	Bytes int64
	Begin Time
	End   Time // the receiver has all; 0 before
}

// NewTraffic prepares flows. Start begins them.
func NewTraffic(n *Network, c TrafficConfig) *Traffic {
	t := &Traffic{TrafficConfig: c, network: n, servers: n.ServerHosts(), random: rand.New(rand.NewPCG(c.Seed, 0))}
	onWire := c.Sizes.Mean() * (mss + segment0) / mss
	perSecond := c.Load * n.Clos.Host.Rate / 8 / onWire * float64(len(t.servers))
	t.gap = float64(Second) / perSecond
	return t
}

// Start lets the flows arrive.
func (t *Traffic) Start() {
	if t.Load > 0 {
		t.network.After(t.wait(), t.arrive)
	}
}

func (t *Traffic) wait() Time { return Time(t.random.ExpFloat64() * t.gap) }

func (t *Traffic) arrive() {
	from := t.random.IntN(len(t.servers))
	to := t.random.IntN(len(t.servers) - 1)
	if to >= from {
		to++
	}
	transfer := &Transfer{Bytes: max(1, int64(t.Sizes.At(t.random.Float64()))), Begin: t.network.now}
	t.Flows = append(t.Flows, transfer)
	var f *Flow
	f = NewFlow(t.network.Engine, t.TCP, t.servers[from], t.servers[to], t.random.Uint32(), transfer.Bytes, func(segments int64) {
		if segments == f.segments {
			transfer.End = t.network.now
		}
	})
	f.Send()
	t.network.After(t.wait(), t.arrive)
}
