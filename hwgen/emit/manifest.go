package emit

import (
	"encoding/json"
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/plan"
	"tributary/hwgen/tables"
)

const manifestName = "manifest.json"

// Manifest is the content of manifest.json, which describes a card for programs.
type Manifest struct {
	Schema     int    `json:"schema"`
	Generator  string `json:"generator"`
	Protocol   int    `json:"protocol"` // version of the packet
	Command    string `json:"command"`
	ConfigHash string `json:"config_hash"` // 16 hex digits, as the register CONFIG_HASH

	Lanes    int    `json:"lanes"`
	Workers  int    `json:"workers"`
	Format   string `json:"format"` // of contributions
	Result   string `json:"result"` // of sums
	Sum      string `json:"sum"`
	Saturate bool   `json:"saturate"` // int32 sums saturate
	DSP      bool   `json:"dsp"`
	Chunk    int    `json:"chunk"`  // elements
	Window   int    `json:"window"` // chunks
	Jobs     int    `json:"jobs"`
	Shell    string `json:"shell"`
	Link     int    `json:"link"`               // bits, of the link or of each Ethernet port; 0 without
	Ethernet int    `json:"ethernet,omitempty"` // Ethernet ports; absent with another shell
	MAC      string `json:"mac,omitempty"`      // the card's own address when it is new
	IP       string `json:"ip,omitempty"`
	UDPPort  int    `json:"udp_port,omitempty"`
	Parent   bool   `json:"parent,omitempty"`        // has an up port, for trees of cards
	RegPort  string `json:"register_port,omitempty"` // axil or bus; absent if packets access registers
	Board    string `json:"board,omitempty"`         // target board
	Clock    int    `json:"clock_mhz,omitempty"`     // of the card on the board
	Prefix   string `json:"prefix"`
	Bundle   bool   `json:"bundle"`

	StripFormal bool `json:"strip_formal"` // the Verilog lacks the leaves' properties

	Lane           string         `json:"lane"`      // the module that sums one lane; usable alone
	Top            string         `json:"top"`       // the module to instantiate
	Ports          []Port         `json:"ports"`     // of the top, in its order
	BeatBits       int            `json:"beat_bits"` // of contributions
	ResultBeatBits int            `json:"result_beat_bits"`
	Beats          int            `json:"beats"` // in the largest chunk
	Slots          int            `json:"slots"`
	LaneLatency    int            `json:"lane_latency"`           // cycles, of the module that sums one lane
	SumLatency     int            `json:"sum_latency"`            // cycles, from the lanes' operands to the result cache
	Latency        int            `json:"latency"`                // cycles, last beat in to first beat out at the core
	PortLatency    int            `json:"port_latency,omitempty"` // cycles, the same at the ports of a card without a link
	PassLatency    int            `json:"pass_latency,omitempty"` // cycles, last word of a passing frame in to its first out; absent with one Ethernet port
	Throughput     Throughput     `json:"throughput"`
	Undecided      plan.Undecided `json:"undecided"`   // cost of elements that one pass does not decide
	MemoryBits     int            `json:"memory_bits"` // of memories; RAMs of state come on top
	Memories       []Memory       `json:"memories"`
	Files          []string       `json:"files"` // all files that hwgen wrote, relative to the folder

	// Digests are the SHA-256 digests of every file except the manifest. hwgen detects
	// edited files by them.
	Digests map[string]string `json:"sha256"`

	Registers []Register `json:"registers"` // by address
}

// Throughput is the cost of the largest chunks of all workers.
type Throughput struct {
	BitsPerCycle int  `json:"bits_per_cycle"` // of every port of the core, each way
	ChunkCycles  int  `json:"chunk_cycles"`   // from one chunk to the next, all ports busy
	FullRate     bool `json:"full_rate"`      // a beat in every cycle: no bubble between chunks
	LinkCycles   int  `json:"link_cycles"`    // a chunk of every worker on the link, or on one Ethernet port; 0 without

	CommitSpacing int `json:"commit_spacing"` // cycles from the commit of a packet to the next
	ResultSpacing int `json:"result_spacing"` // minimum cycles from the start of a result to the next
	ClearCycles   int `json:"clear_cycles"`   // commits pause for at most as many when a job ends
}

// Port is a port of the top.
type Port struct {
	Name      string `json:"name"`
	Direction string `json:"direction"` // in or out
	Bits      int    `json:"bits"`
}

// Memory is a group of equal RAMs with one purpose.
type Memory struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Words int    `json:"words"`
	Width int    `json:"width"`
	Bits  int    `json:"bits"` // of all RAMs
}

// Register is a register, with its value if it is constant.
type Register struct {
	tables.JSONRegister
	Value string `json:"value,omitempty"`
}

// newManifest describes the planned card, without its files.
func newManifest(p *plan.Plan) Manifest {
	m := Manifest{
		Schema: wire.ManifestSchema, Generator: wire.ManifestGenerator, Protocol: wire.Version, Command: p.Command(),
		ConfigHash: fmt.Sprintf("%016x", p.ConfigHash()),
		Lanes:      p.Lanes, Workers: p.Workers, Format: p.Format.Name, Result: p.Result.Name,
		Sum: p.Sum.Name, Saturate: p.Saturate, DSP: p.DSP,
		Chunk: p.Chunk, Window: p.Window, Jobs: p.Jobs, Shell: p.Shell.Name, Link: p.Link, RegPort: p.RegPort, Board: p.Config.Board, Clock: p.Clock,
		Prefix: p.Prefix, Bundle: p.Bundle, StripFormal: p.StripFormal,
		Lane:     rename("agg_lane", p.Prefix),
		Top:      rename(p.Top().Name, p.Prefix),
		BeatBits: p.BeatBits, ResultBeatBits: p.ResultBeatBits, Beats: p.Beats, Slots: p.Slots,
		LaneLatency: p.Lane.Latency, SumLatency: p.SumLatency, Latency: p.Latency, PortLatency: p.PortLatency, PassLatency: p.PassLatency,
		Throughput: Throughput{
			BitsPerCycle: p.BeatBits, ChunkCycles: p.ChunkCycles(), FullRate: p.FullRate(), LinkCycles: p.LinkCycles(),
			CommitSpacing: plan.CommitSpacing, ResultSpacing: plan.ResultSpacing, ClearCycles: p.ClearCycles(),
		},
		Undecided:  p.Undecided(),
		MemoryBits: p.MemoryBits(),
		Memories:   []Memory{},
	}
	m.Parent = p.Parent
	if p.Ethernet != 0 {
		m.Ethernet, m.MAC, m.IP, m.UDPPort = p.Ethernet, wire.MACText(p.MAC), wire.IPText(p.IP), p.UDPPort
	}
	for _, port := range ports(p.Top()) {
		m.Ports = append(m.Ports, Port{port.Name, directionWord(port.Direction), port.Width})
	}
	for _, r := range p.Memories {
		m.Memories = append(m.Memories, Memory{r.Name, r.Count, r.Words, r.Width, r.Bits()})
	}
	constants := map[string]string{}
	for _, r := range wire.Registers {
		if v, ok := p.Constant(r.Addr); ok {
			constants[r.Name] = fmt.Sprintf("0x%x", v)
		}
	}
	for _, r := range tables.RegisterList(p.Shell.Code, p.Parent) {
		m.Registers = append(m.Registers, Register{r, constants[r.Name]})
	}
	return m
}

// json returns the text of manifest.json.
func (m Manifest) json() []byte {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(err) // strings and numbers alone: cannot happen
	}
	return append(text, '\n')
}
