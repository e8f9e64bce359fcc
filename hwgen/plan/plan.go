// Package plan derives a card from a configuration: its sizes, its latency, its
// identification block, and the modules that connect the hand-written leaves.
//
// Every module here is called agg_NAME; package emit replaces agg by the user's prefix.
package plan

import (
	"fmt"
	"slices"

	"tributary/driver/wire"
	"tributary/hwgen/boards"
	"tributary/hwgen/config"
	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/rtl"
)

// Plan is a card that is ready to be printed.
type Plan struct {
	config.Config
	Format Format // of contributions
	Result Format // of sums
	Sum    Sum
	Shell  Shell

	ElemBits       int // of one element of a contribution
	BeatBits       int // of one beat: Lanes elements
	KeepBits       int // bytes in a beat
	ResultBits     int // of one element of a sum
	ResultBeatBits int // of one beat of sums
	ResultKeepBits int // bytes in it
	Beats          int // beats in the largest chunk
	Slots          int // chunks that the card holds: twice the window

	Lane       Lane
	SumLatency int // cycles from a beat at the lanes' inputs to its sum at the cache
	Latency    int // cycles from a chunk's last beat in to its first beat out, at the core

	Modules  []*netlist.Module // what is emitted, the top last
	Leaves   []string          // hand-written modules that these use, in alphabetical order
	Memories []Memory          // what is held in RAM

	// Where the card is for a board; else OnBoard is nil.
	OnBoard     *boards.Board
	PLL         boards.PLL
	BoardModule *netlist.Module // the board's top, around that of the card
	BoardLeaves []string        // hand-written modules that it uses

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
	var ok [4]bool
	p.Format, ok[0] = find(formats, c.Format)
	p.Result, ok[1] = find(formats, c.Result)
	p.Sum, ok[2] = find(sums, c.Sum)
	p.Shell, ok[3] = find(shells, c.Shell)
	if ok != [4]bool{true, true, true, true} {
		return nil, fmt.Errorf("no plan for format %q, result %q, sum %q, shell %q", c.Format, c.Result, c.Sum, c.Shell)
	}
	p.size()
	p.Lane = p.Sum.integers.lane(p)
	if p.Format.Float() {
		p.Lane = p.Sum.lane(p)
	}
	p.SumLatency = p.Lane.Latency
	p.Latency = p.SumLatency + coreLatency
	p.identify()
	p.Modules = append(p.Modules, p.Lane.Modules...)
	p.Modules = append(p.Modules, p.core())
	p.Modules = append(p.Modules, p.Shell.modules(p)...)
	if err := p.link(); err != nil {
		return nil, err
	}
	return p, p.board()
}

// size works out the widths and counts that follow from the configuration and
// the formats alone; it is all that a lane needs.
func (p *Plan) size() {
	p.ElemBits = p.Format.Bits
	p.BeatBits = p.Lanes * p.ElemBits
	p.KeepBits = p.BeatBits / 8
	p.ResultBits = p.Result.Bits
	p.ResultBeatBits = p.Lanes * p.ResultBits
	p.ResultKeepBits = p.ResultBeatBits / 8
	p.Beats = p.Chunk / p.Lanes
	p.Slots = 2 * p.Window
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
// or one result out. Payload moves no faster than a beat a cycle. It is 0
// without a link.
func (p *Plan) LinkCycles() int {
	if p.Link == 0 {
		return 0
	}
	w := p.linkWidths()
	cycles := func(kind wire.Kind, frames, bits, step int) int {
		row, _ := kind.Info()
		payload := p.Chunk * bits / 8
		slowed := payload * w.link / min(w.link, step)
		return (frames*(row.FrameBytes(payload)-payload+slowed) + w.link - 1) / w.link
	}
	return max(cycles(wire.KindData, p.Workers, p.ElemBits, w.rx), cycles(wire.KindResult, 1, p.ResultBits, w.tx))
}

// memory notes RAM for the datasheet.
func (p *Plan) memory(name string, count, words, width int) {
	p.Memories = append(p.Memories, Memory{name, count, words, width})
}

// link links every module and collects the leaves that they need.
func (p *Plan) link() error {
	if err := netlist.Link(p.Modules, nil, leaf.NewLibrary(rtl.Files, "")); err != nil {
		return err
	}
	emitted := map[string]bool{}
	for _, m := range p.Modules {
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

// Sum is a way to add the contributions of all ports.
type Sum struct {
	Name string
	Code wire.Sum
	Doc  string // one sentence for the datasheet

	dsp bool // lanes of floating-point formats take heed of Config.DSP

	// node is how the picture of a floating-point lane labels what joins two
	// neighbours; "" where all are summed at once.
	node string

	// bound says in a sentence how far a floating-point result may be from the
	// real sum of the members.
	bound func(*Plan) string

	// lane builds what sums the elements of one lane, of a floating-point format.
	lane func(*Plan) Lane

	integers integers
}

// integers is what a sum does to integers: the fields are those of Sum.
type integers struct {
	doc   string
	node  string
	bound func(*Plan) string
	lane  func(*Plan) Lane
}

// Lane is what sums the elements of one lane: module agg_lane, with the ports
//
//	clk
//	x_p0, x_p1, ...  one element of each port, ElemBits wide; a port that is
//	                 no member, or not there, contributes the identity
//	y                their sum, ResultBits wide, Latency cycles later
//	over             beside y: the element overflowed
//	undecided        two cycles before y, where Shared is not nil: y is not known yet
//
// It takes a new set of operands every cycle, and has no reset, no enable and
// no valid bit. Its inputs come from block RAM without an output register and
// a gate, so that its first stage should be shallow.
type Lane struct {
	Modules []*netlist.Module // those that it is made of, agg_lane last
	Latency int

	// Shared, if not nil, is what all lanes have in common to decide the beats
	// that one pass through them leaves undecided.
	Shared *Shared
}

// Shell is what stands between the core and the outside.
type Shell struct {
	Name string
	Code wire.Shell
	Doc  string // one sentence for the datasheet
	Down string // another: what becomes of packets under way when link_up falls
	Link bool   // has a link, whose width is to be chosen

	// modules builds what stands around agg_core, agg_top last.
	modules func(*Plan) []*netlist.Module
}

func (f Format) name() string { return f.Name }
func (s Sum) name() string    { return s.Name }
func (s Shell) name() string  { return s.Name }

// The registries: each entry is written in a file of its own.
var (
	sums   = []Sum{tree, fused, exact, maximum}
	shells = []Shell{stream, none}
)

// Known returns what a configuration may name.
func Known() config.Known {
	k := config.Known{Formats: names(formats), Sums: names(sums), Shells: names(shells)}
	for _, s := range sums {
		if s.dsp {
			k.DSP = append(k.DSP, s.Name)
		}
		if row, _ := s.Code.Info(); row.Adds {
			k.Saturating = append(k.Saturating, s.Name)
		}
	}
	for _, s := range shells {
		if s.Link {
			k.Linked = append(k.Linked, s.Name)
		}
	}
	for _, b := range boards.All() {
		k.Boards = append(k.Boards, knownBoard(b))
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

// SumDoc says what the card computes, in a sentence or a few.
func (p *Plan) SumDoc() string {
	if p.Format.Float() {
		return p.Sum.Doc
	}
	return p.Sum.integers.doc
}

// Node returns what the picture writes where two neighbours are joined; "" where
// all are summed at once.
func (p *Plan) Node() string {
	if p.Format.Float() {
		return p.Sum.node
	}
	return p.Sum.integers.node
}

// Bound says how far a result may be from the real sum of the members.
func (p *Plan) Bound() string {
	if p.Format.Float() {
		return p.Sum.bound(p)
	}
	return p.Sum.integers.bound(p)
}
