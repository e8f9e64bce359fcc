// Package plan derives a card from a configuration: sizes, latency, identification
// block, and the modules that connect the hand-written leaves.
//
// Every module here is called agg_NAME; package emit replaces agg by the user's prefix.
package plan

import (
	"fmt"
	"io/fs"
	"slices"

	"tributary/driver/wire"
	"tributary/hwgen/boards"
	"tributary/hwgen/config"
	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/rtl"
)

// Plan is a complete card, ready for printing.
type Plan struct {
	config.Config
	Format Format // of contributions
	Result Format // of sums
	Sum    Sum
	Shell  Shell

	// Release: results leave in the order of their VIDs on each connection (agg_release), instead of in
	// that of their sums (agg_owed). The core also shows their slots.
	Release bool

	ElemBits       int // of one element of a contribution
	BeatBits       int // of one beat: Lanes elements
	KeepBits       int // bytes in a beat
	ResultBits     int // of one element of a sum
	ResultBeatBits int // of one beat of sums
	ResultKeepBits int // bytes in it
	Beats          int // beats in the largest chunk
	Slots          int // slots of the card: twice the window

	Lane        Lane
	SumLatency  int // cycles from a beat at the lanes' inputs to its sum at the cache
	Latency     int // cycles from a chunk's last beat in to its first beat out, at the core
	PortLatency int // the same at the card's ports, with empty queues; 0: that depends on the shell's link
	PassLatency int // cycles from a frame's last word in to its first out at another Ethernet port; 0: there is none

	Modules  []*netlist.Module // generated modules, the top last
	Leaves   []string          // hand-written modules that they use, in alphabetical order
	Memories []Memory          // of payloads, packets, headers and addresses

	// The board, if the card is for one; otherwise OnBoard is nil.
	OnBoard     *boards.Board
	PLL         boards.PLL
	BoardModule *netlist.Module // the board's top, around that of the card
	BoardLeaves []string        // hand-written modules that it uses

	values map[uint32]uint64 // constant registers by address
}

// Memory is a group of equal RAMs with one purpose.
type Memory struct {
	Name  string
	Count int // RAMs of this size
	Words int
	Width int // bits per word
}

// Bits returns the size of all RAMs of the group.
func (m Memory) Bits() int { return m.Count * m.Words * m.Width }

// Build plans the card of a configuration. It fails when c names an unknown format, sum
// or shell. It also fails when a module does not link, which is a bug in this program.
func Build(c config.Config) (*Plan, error) { return build(c, false) }

// BuildReleasing is Build for a card with agg_release in its core, whatever its shell. It is for tests
// of the core.
func BuildReleasing(c config.Config) (*Plan, error) { return build(c, true) }

func build(c config.Config, release bool) (*Plan, error) {
	p := &Plan{Config: c}
	var ok [4]bool
	p.Format, ok[0] = find(formats, c.Format)
	p.Result, ok[1] = find(formats, c.Result)
	p.Sum, ok[2] = find(sums, c.Sum)
	p.Shell, ok[3] = find(shells, c.Shell)
	if ok != [4]bool{true, true, true, true} {
		return nil, fmt.Errorf("no plan for format %q, result %q, sum %q, shell %q", c.Format, c.Result, c.Sum, c.Shell)
	}
	p.Release = release || p.Shell.Release
	p.size()
	p.Lane = p.Sum.integers.lane(p)
	if p.Format.Float() {
		p.Lane = p.Sum.lane(p)
	}
	p.SumLatency = p.Lane.Latency
	if p.Lane.Shared != nil {
		p.SumLatency++ // whether a beat is decided is known too late for the cache
	}
	p.Latency = max(p.SumLatency+coreLatency, p.rankStages()+labelLatency)
	if !p.Shell.Link && !p.Shell.Ethernet {
		p.PortLatency = p.Latency + queueLatency
	}
	if p.Ethernet > 1 {
		p.PassLatency = switchLatency + 1 // a turn among the frames of the port
	}
	p.identify()
	p.Modules = append(p.Modules, p.Lane.Modules...)
	p.Modules = append(p.Modules, p.core())
	p.Modules = append(p.Modules, p.Shell.modules(p)...)
	if err := p.link(); err != nil {
		return nil, err
	}
	return p, p.board()
}

// size computes the widths and counts that follow from the configuration and the
// formats alone. A lane needs nothing else.
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

// Inputs returns how many ports the core sums: one for each worker, and the up port, the last one.
func (p *Plan) Inputs() int {
	if p.Parent {
		return p.Workers + 1
	}
	return p.Workers
}

// Library returns the library of the portable leaves in rtl, as the card has them.
func (p *Plan) Library(rtl fs.FS) *leaf.Library {
	if p.Parent {
		return leaf.NewParentLibrary(rtl)
	}
	return leaf.NewLibrary(rtl, "")
}

// Top returns the module that a design instantiates.
func (p *Plan) Top() *netlist.Module { return p.Modules[len(p.Modules)-1] }

// MemoryBits returns the total size of Memories in bits. RAMs of state come on top.
func (p *Plan) MemoryBits() int {
	sum := 0
	for _, m := range p.Memories {
		sum += m.Bits()
	}
	return sum
}

// ChunkCycles returns the cycles that the largest chunk takes when all ports are busy: one for each
// beat, but as many as its contributions take at the commit and its result at the output.
func (p *Plan) ChunkCycles() int { return max(p.Beats, CommitSpacing*p.Inputs(), ResultSpacing) }

// ClearCycles returns the maximum number of cycles for which the commit pauses when a job ends and
// another takes its place. The card clears the slots of the job one by one; it has all slots at most.
func (p *Plan) ClearCycles() int { return p.Slots + clearOverhead + p.Workers + setupOverhead }

// HugeBits is the memory of the FPGA that has most: AMD's VP1902, block RAM and UltraRAM.
const HugeBits = 858_000_000

// Huge reports whether no FPGA has as much memory as the card needs.
func (p *Plan) Huge() bool { return p.MemoryBits() > HugeBits }

// FullRate reports whether the largest chunks pass through the lanes without a bubble
// when all ports are busy.
func (p *Plan) FullRate() bool { return p.ChunkCycles() == p.Beats }

// HasSelftest reports whether sums of the simulated card can be checked without endpoints of RoCEv2.
func (p *Plan) HasSelftest() bool { return p.Shell.Code != wire.ShellRoCE }

// roundTrip returns the minimum number of cycles from the first beat of a chunk to the last beat of its
// result at the same port, one cycle later: the last contributions of all ports come at once.
func (p *Plan) roundTrip() int {
	return 2*p.Beats - 1 + max(p.Latency, p.PortLatency) + CommitSpacing*(p.Inputs()-1)
}

// RateWindow returns the smallest window with which the largest chunks follow one another in ChunkCycles,
// if each worker sends a chunk as soon as it has the result of the chunk a window before.
func (p *Plan) RateWindow() int {
	window := 1
	for window*p.ChunkCycles() < p.roundTrip() {
		window *= 2
	}
	return window
}

// WindowCycles returns the cycles that the largest chunk takes with the card's window, if that is below
// RateWindow.
func (p *Plan) WindowCycles() int { return (p.roundTrip() + p.Window - 1) / p.Window }

// LinkCycles returns the cycles that the largest chunk takes on the link, in the slower
// direction: a data frame from every worker, or one result to the host. Payload moves at
// most one beat a cycle. If all workers are behind one Ethernet port, each gets a result of its
// own. It returns 0 without a link.
func (p *Plan) LinkCycles() int {
	switch {
	case p.Link == 0:
		return 0
	case p.Shell.Ethernet:
		return p.ethernetCycles()
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

// ethernetCycles returns the cycles that the largest chunk takes on an Ethernet port with all workers
// behind it, in the fuller direction, with all that a frame takes on the cable.
func (p *Plan) ethernetCycles() int {
	const (
		preamble, fcs, gap = 8, 4, 12
		headers            = 14 + 20 + 8 // of Ethernet, IP and UDP
		transport, icrc    = 12, 4       // of RoCEv2
	)
	bytes := func(kind wire.Kind, elemBits int) int {
		if p.Shell.Code == wire.ShellRoCE {
			return preamble + headers + transport + p.Chunk*elemBits/8 + icrc + fcs + gap
		}
		row, _ := kind.Info()
		return preamble + headers + row.DatagramBytes(p.Chunk*elemBits/8) + fcs + gap
	}
	fuller := p.Workers * max(bytes(wire.KindData, p.ElemBits), bytes(wire.KindResult, p.ResultBits))
	return (8*fuller + p.Link - 1) / p.Link
}

// memory records RAM for the datasheet.
func (p *Plan) memory(name string, count, words, width int) {
	p.Memories = append(p.Memories, Memory{name, count, words, width})
}

// link links every module and collects the leaves that the modules use.
func (p *Plan) link() error {
	if err := netlist.Link(p.Modules, nil, p.Library(rtl.Files)); err != nil {
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

// named is an entry of one of the registries below.
type named interface{ name() string }

// Sum is a way to add the contributions of all ports.
type Sum struct {
	Name string
	Code wire.Sum
	Doc  string // one sentence for the datasheet

	dsp bool // floating-point lanes can use Config.DSP

	// node labels the nodes of a floating-point lane's tree in the block diagram;
	// "" for a lane that sums all operands at once.
	node string

	// bound returns a sentence with the error bound of a floating-point result.
	bound func(*Plan) string

	// lane builds a floating-point lane.
	lane func(*Plan) Lane

	integers integers
}

// integers has the fields of Sum for integer formats.
type integers struct {
	doc   string
	node  string
	bound func(*Plan) string
	lane  func(*Plan) Lane
}

// Lane sums one element of every port: module agg_lane, with the ports
//
//	clk
//	x_p0, x_p1, ...  one element of each port, ElemBits wide; the identity for
//	                 a port that is absent or not a member
//	y                their sum, ResultBits wide, Latency cycles later
//	over             synchronous to y: the element overflowed
//	undecided        two cycles before y, if Shared is not nil: y may be wrong
//
// It accepts new operands every cycle, and has no reset, no enable and no valid bit.
// Block RAM without an output register drives its inputs through a gate, so its first
// stage should be shallow.
type Lane struct {
	Modules []*netlist.Module // agg_lane last
	Latency int

	// Shared, if not nil, decides the beats that one pass through the lanes leaves
	// undecided. All lanes share it.
	Shared *Shared
}

// Shell is the logic between the core and the outside.
type Shell struct {
	Name string
	Code wire.Shell
	Doc  string // one sentence for the datasheet
	Down string // another: the fate of pending packets when link_up falls
	Link bool   // has a byte-stream link of configurable width

	Ethernet bool // has Ethernet ports of configurable width
	Release  bool // results leave by connection, in the order of VIDs

	// modules builds the modules around agg_core, agg_top last.
	modules func(*Plan) []*netlist.Module
}

func (f Format) name() string { return f.Name }
func (s Sum) name() string    { return s.Name }
func (s Shell) name() string  { return s.Name }

// The registries. Each entry has a file of its own.
var (
	sums   = []Sum{tree, fused, exact, maximum}
	shells = []Shell{stream, none, udp, roce}
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
		if s.Ethernet {
			k.Networked = append(k.Networked, s.Name)
		}
		if s.Release {
			k.Connected = append(k.Connected, s.Name)
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

// SumDoc describes the card's sum in one or a few sentences.
func (p *Plan) SumDoc() string {
	if p.Format.Float() {
		return p.Sum.Doc
	}
	return p.Sum.integers.doc
}

// Node returns the label of a tree node in the block diagram; "" for a lane that sums
// all operands at once.
func (p *Plan) Node() string {
	if p.Format.Float() {
		return p.Sum.node
	}
	return p.Sum.integers.node
}

// Bound describes the maximum error of a result.
func (p *Plan) Bound() string {
	if p.Format.Float() {
		return p.Sum.bound(p)
	}
	return p.Sum.integers.bound(p)
}
