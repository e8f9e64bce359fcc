// Package plan derives a card from a configuration: its sizes, its latency, its
// identification block, and the modules that tie the hand-written leaves
// together.
//
// Every module is called agg_NAME here; who writes the files puts the user's
// prefix in the place of agg.
package plan

import (
	"errors"
	"fmt"
	"slices"

	"tributary/driver/wire"
	"tributary/hwgen/config"
	"tributary/hwgen/netlist"
)

// Plan is a card that is ready to be printed.
type Plan struct {
	config.Config
	Format Format
	Sum    Sum
	Shell  Shell

	ElemBits int // of one element
	BeatBits int // of one beat: Lanes elements
	KeepBits int // bytes in a beat
	Beats    int // beats in the largest chunk
	Slots    int // chunks that the card holds: twice the window

	TreeLatency int // cycles from a beat at the lanes' inputs to its sum
	Latency     int // cycles from a chunk's last beat in to its first beat out, at the core

	Modules  []*netlist.Module // what is emitted, the top last
	Leaves   []string          // hand-written modules that these use, in alphabetical order
	Memories []Memory          // what is held in RAM

	values map[uint32]uint64 // constant registers by address
}

// Memory is one purpose that RAM serves.
type Memory struct {
	Name  string
	Count int // RAMs of this size
	Words int
	Width int // bits of a word
}

// Bits returns the size of all RAMs of this purpose.
func (m Memory) Bits() int { return m.Count * m.Words * m.Width }

// Build plans the card that c asks for. It fails when c names a format, sum or
// shell that there is none of, or when a module does not hold together, which
// is a mistake in this program.
func Build(c config.Config) (*Plan, error) {
	p := &Plan{Config: c}
	var ok [3]bool
	p.Format, ok[0] = find(formats, c.Format)
	p.Sum, ok[1] = find(sums, c.Sum)
	p.Shell, ok[2] = find(shells, c.Shell)
	if ok != [3]bool{true, true, true} {
		return nil, fmt.Errorf("no plan for format %q, sum %q, shell %q", c.Format, c.Sum, c.Shell)
	}
	p.ElemBits = p.Format.Bits
	p.BeatBits = p.Lanes * p.ElemBits
	p.KeepBits = p.BeatBits / 8
	p.Beats = p.Chunk / p.Lanes
	p.Slots = 2 * p.Window

	lane, latency := p.Sum.lane(p)
	p.TreeLatency = latency
	p.Latency = latency + coreLatency
	p.identify()
	p.Modules = append(p.Modules, lane)
	p.Modules = append(p.Modules, p.core())
	p.Modules = append(p.Modules, p.Shell.modules(p)...)
	return p, p.link()
}

// Top returns the module that a design instantiates.
func (p *Plan) Top() *netlist.Module { return p.Modules[len(p.Modules)-1] }

// MemoryBits returns the bits of all RAMs of the card.
func (p *Plan) MemoryBits() int {
	sum := 0
	for _, m := range p.Memories {
		sum += m.Bits()
	}
	return sum
}

// ChunkCycles returns how many cycles the largest chunk takes when all ports are
// busy: its beats, but no fewer than it has contributions, for the card commits
// one packet a cycle.
func (p *Plan) ChunkCycles() int { return max(p.Beats, p.Workers) }

// FullRate says whether the largest chunks follow one another through the adder
// trees without a bubble when all ports are busy.
func (p *Plan) FullRate() bool { return p.ChunkCycles() == p.Beats }

// LinkCycles returns how many cycles the link is busy with one of the largest
// chunks, in the direction that takes longer: a data frame of every worker in,
// or one result out. It is 0 without a link.
func (p *Plan) LinkCycles() int {
	if p.Link == 0 {
		return 0
	}
	payload := p.Chunk * p.ElemBits / 8
	data, _ := wire.KindData.Info()
	result, _ := wire.KindResult.Info()
	bytes := max(p.Workers*data.FrameBytes(payload), result.FrameBytes(payload))
	return (bytes*8 + p.Link - 1) / p.Link
}

// memory notes RAM for the datasheet.
func (p *Plan) memory(name string, count, words, width int) {
	p.Memories = append(p.Memories, Memory{name, count, words, width})
}

// link checks every module and collects the leaves that they need.
func (p *Plan) link() error {
	emitted := map[string]bool{}
	for _, m := range p.Modules {
		if err := errors.Join(m.Check(), m.CheckInstances(p.Modules)); err != nil {
			return err
		}
		emitted[m.Name] = true
	}
	for _, m := range p.Modules {
		for _, name := range m.Leaves() {
			if !emitted[name] && !slices.Contains(p.Leaves, name) {
				p.Leaves = append(p.Leaves, name)
			}
		}
	}
	slices.Sort(p.Leaves)
	return nil
}

// A named thing is an entry of one of the registries below.
type named interface{ name() string }

// Format is a type of elements and the leaves that compute with it.
type Format struct {
	wire.FormatInfo
	add        string // leaf: y is a plus b, rounded
	addLatency int    // cycles
	canon      string // leaf: y is what a sum of a alone is
	canLatency int    // cycles
	nonfinite  string // leaf: which elements of a beat are a NaN or an infinity
	identity   uint64 // adding it changes nothing: what an absent worker contributes
}

// Sum is a way to add the contributions of all ports.
type Sum struct {
	Name string
	Code wire.Sum
	Doc  string // one sentence for the datasheet

	// lane builds agg_lane: clk, x_p0..x_p{P-1}, y, ElemBits wide, a new set of
	// operands every cycle; and says how many cycles y comes after its operands.
	lane func(*Plan) (*netlist.Module, int)
}

// Shell is what stands between the core and the outside.
type Shell struct {
	Name string
	Code wire.Shell
	Doc  string // one sentence for the datasheet
	Down string // another: what becomes of packets under way when link_up falls
	Link bool   // has a link, whose width is to be chosen

	// byRanks: the shell tells by the ranks, beat by beat, which ports a result
	// is for, so that the ranks must stay while one leaves. It must take every
	// beat at once.
	byRanks bool

	// modules builds what stands around agg_core, agg_top last.
	modules func(*Plan) []*netlist.Module
}

func (f Format) name() string { return f.Name }
func (s Sum) name() string    { return s.Name }
func (s Shell) name() string  { return s.Name }

// The registries: each entry is written in a file of its own.
var (
	formats = []Format{fp32}
	sums    = []Sum{tree}
	shells  = []Shell{stream, none}
)

// Known returns what a configuration may name.
func Known() config.Known {
	k := config.Known{Formats: names(formats), Sums: names(sums), Shells: names(shells)}
	for _, s := range shells {
		if s.Link {
			k.Linked = append(k.Linked, s.Name)
		}
	}
	return k
}

func find[T named](list []T, name string) (T, bool) {
	i := slices.IndexFunc(list, func(t T) bool { return t.name() == name })
	if i < 0 {
		var none T
		return none, false
	}
	return list[i], true
}

func names[T named](list []T) []string {
	var all []string
	for _, t := range list {
		all = append(all, t.name())
	}
	return all
}
