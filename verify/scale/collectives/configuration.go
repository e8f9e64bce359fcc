package main

import (
	"errors"
	"fmt"

	"tributary/verify/scale/archive"
)

// configuration is the content of configuration.json.
type configuration struct {
	LinkGbitS   float64                 `json:"link_gbit_s"`
	LinkDelayUS float64                 `json:"link_delay_us"` // of a host's link; a way between racks has two
	ClockMHz    float64                 `json:"clock_mhz"`     // of cards
	ChunkBytes  int                     `json:"chunk_bytes"`
	Cards       map[string]archive.Card `json:"cards"`
	Clusters    []cluster               `json:"clusters"`
	Percent     []int                   `json:"percent"` // of racks that have a card
	Arrays      []array                 `json:"arrays"`
	Judge       []judged                `json:"judge"`
}

type cluster struct {
	Racks   int    `json:"racks"`
	PerRack int    `json:"per_rack"` // workers
	Card    string `json:"card"`     // has a port for each worker of a rack and one for the incoming partial sum
}

func (k cluster) workers() int { return k.Racks * k.PerRack }

type array struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes"`
}

// judged is an all-reduce that SMPI simulates too.
type judged struct {
	Workers int     `json:"workers"`
	Bytes   float64 `json:"bytes"`
}

// parse reads a configuration and checks it.
func parse(text []byte) (c configuration, err error) {
	if err := archive.Parse(text, &c); err != nil {
		return c, err
	}
	return c, errors.Join(c.check()...)
}

func (c *configuration) check() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.LinkGbitS <= 0 || c.LinkDelayUS < 0 || c.ClockMHz <= 0 || c.ChunkBytes < 1 {
		wrong("link_gbit_s, clock_mhz and chunk_bytes must be positive, link_delay_us not negative")
	}
	for _, k := range c.Clusters {
		errs = append(errs, c.checkCluster(k)...)
	}
	for _, a := range c.Arrays {
		if a.Bytes < 4 || a.Name == "" {
			wrong("array %q: it needs a name and at least 4 bytes", a.Name)
		}
	}
	for _, j := range c.Judge {
		if j.Workers < 2 || j.Bytes < 4 || int(j.Bytes)%(4*j.Workers) != 0 {
			wrong("judge: %d workers do not share %g bytes evenly", j.Workers, j.Bytes)
		}
	}
	if len(c.Clusters) == 0 || len(c.Percent) == 0 || len(c.Arrays) == 0 {
		wrong("clusters, percent and arrays must not be empty")
	}
	return errs
}

func (c *configuration) checkCluster(k cluster) (errs []error) {
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%d racks of %d: "+format, append([]any{k.Racks, k.PerRack}, args...)...))
	}
	if k.Racks < 2 || k.PerRack < 2 {
		wrong("a cluster has at least 2 racks of 2 workers")
	}
	card, ok := c.Cards[k.Card]
	if !ok {
		wrong("there is no card %q in cards", k.Card)
		return errs
	}
	// Else the card is the bottleneck, which neither the simulator nor the closed forms know. A leaf of a tree passes
	// each chunk twice.
	if rate := float64(c.ChunkBytes) * c.ClockMHz * 1e6 / float64(card.ChunkCycles); rate < 2*c.rate() {
		wrong("%s: the card sums %.3g bytes a second, less than two links bring", k.Card, rate)
	}
	for _, percent := range c.Percent {
		if percent < 0 || percent > 100 || k.Racks*percent%100 != 0 {
			wrong("%d %% of the racks is no number of racks", percent)
		}
	}
	return errs
}

// rate returns the bytes a second of a link.
func (c *configuration) rate() float64 { return c.LinkGbitS * 1e9 / 8 }

// delay returns the seconds of a host's link.
func (c *configuration) delay() float64 { return c.LinkDelayUS / 1e6 }

// cardSeconds returns the time from the first beat of a chunk into a card to the last beat of its sum.
func (c *configuration) cardSeconds(k cluster) float64 {
	card := c.Cards[k.Card]
	return float64(card.LatencyCycles+card.ChunkCycles) / (c.ClockMHz * 1e6)
}
