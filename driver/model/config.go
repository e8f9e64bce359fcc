// The geometry of a card: its sizes, its identification block and its hash.

package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"

	"tributary/driver/wire"
)

// Config is the geometry of a card. Lanes, Ports, Chunk and Window must be set, except for Chunk with
// ShellUDP and ShellRoCE; for the other fields, the zero value has the meaning in their comments.
type Config struct {
	Lanes  int // elements in a beat, a power of two, 1..64
	Ports  int // ports of the card, 1..64
	Chunk  int // most elements in a chunk, a multiple of Lanes; with ShellUDP 0 means what fits Ethernet's MTU, with ShellRoCE 4,096 bytes
	Window int // most chunks in a job's window, a power of two
	Jobs   int // jobs that can be set up at once, a power of two up to 16; 0 means 1

	Format   wire.Format // of the contributions; 0 means fp32
	Result   wire.Format // of the results; 0 means Format
	Sum      wire.Sum    // 0 means tree
	Saturate bool        // clamp sums beyond int32 to the nearest int32

	Shell    wire.Shell // ShellNone, ShellStream, ShellUDP or ShellRoCE
	Link     int        // bits the link moves in a cycle; 0 with ShellNone
	Latency  int        // cycles, as in the card's LATENCY register
	Ethernet int        // Ethernet ports, 1..256, with ShellUDP and ShellRoCE alone; 0 means 1 there
	Parent   bool       // the card has an up port, with ShellNone and ShellUDP
}

// Limits of a Config.
const (
	maxLanes   = 64
	maxPorts   = 64
	maxJobs    = 16
	maxElement = 1<<16 - 1 // the largest length in a header

	maxEthernet = 1 << 8 // an Ethernet port's number has 8 bits in the registers

	maxConnections = 64 // ports times jobs, with ShellRoCE
)

// withDefaults returns c with defaults in place of its zero values.
func (c Config) withDefaults() Config {
	if c.Jobs == 0 {
		c.Jobs = 1
	}
	if c.Format == 0 {
		c.Format = wire.FP32
	}
	if c.Result == 0 {
		c.Result = c.Format
	}
	if c.Sum == 0 {
		c.Sum = wire.SumTree
	}
	if c.Chunk == 0 {
		switch c.Shell {
		case wire.ShellUDP:
			c.Chunk = chunkForMTU(c.Lanes, c.Result)
		case wire.ShellRoCE:
			c.Chunk = wire.MTUs[len(wire.MTUs)-1] / max(elementBytes(c.Format), 1)
		}
	}
	if c.Shell.Network() && c.Ethernet == 0 {
		c.Ethernet = 1
	}
	return c
}

// An IP packet on Ethernet, in bytes.
const (
	ethernetMTU = 1500
	ipv4Header  = 20
	udpHeader   = 8
)

// chunkForMTU returns the largest multiple of lanes whose result fits one Ethernet frame of the
// usual size.
func chunkForMTU(lanes int, result wire.Format) int {
	info, _ := wire.KindResult.Info()
	payload := ethernetMTU - ipv4Header - udpHeader - info.DatagramBytes(0)
	elements := payload / max(elementBytes(result), 1) // an unknown format is refused later
	return elements - elements%max(lanes, 1)
}

// Validate reports everything that is wrong with c, joined into one error.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(!powerOfTwo(c.Lanes) || c.Lanes > maxLanes, "lanes: %d is not a power of two from 1 to %d", c.Lanes, maxLanes)
	refuse(c.Ports < 1 || c.Ports > maxPorts, "ports: %d is not from 1 to %d", c.Ports, maxPorts)
	refuse(c.Chunk < 1 || c.Chunk > maxElement, "chunk: %d is not from 1 to %d", c.Chunk, maxElement)
	refuse(c.Lanes > 0 && c.Chunk%c.Lanes != 0, "chunk: %d is no multiple of %d lanes", c.Chunk, c.Lanes)
	refuse(!powerOfTwo(c.Window), "window: %d is not a power of two", c.Window)
	refuse(!powerOfTwo(c.Jobs) || c.Jobs > maxJobs, "jobs: %d is not a power of two from 1 to %d", c.Jobs, maxJobs)
	if _, err := c.arithmetic(); err != nil {
		errs = append(errs, err)
	}
	switch c.Shell {
	case wire.ShellNone:
		refuse(c.Link != 0, "link: %d bits with shell none, which has no link", c.Link)
	case wire.ShellStream:
		refuse(c.Link != 8 && c.Link != 16 && c.Link != 32 && c.Link != 64, "link: %d is not 8, 16, 32 or 64 bits", c.Link)
		for _, frame := range []struct {
			kind   wire.Kind
			format wire.Format
		}{{wire.KindData, c.Format}, {wire.KindResult, c.Result}} {
			info, _ := frame.kind.Info()
			n := info.FrameBytes(c.Chunk * elementBytes(frame.format))
			refuse(n > wire.MaxFrameBytes, "chunk: %d elements make a %s frame of %d bytes, more than %d", c.Chunk, info.Name, n, wire.MaxFrameBytes)
		}
	case wire.ShellUDP, wire.ShellRoCE:
		refuse(c.Link != 8 && c.Link != 64 && c.Link != 512, "link: %d is not 8, 64 or 512 bits", c.Link)
		refuse(c.Ethernet < 1 || c.Ethernet > maxEthernet, "ethernet: %d ports are not from 1 to %d", c.Ethernet, maxEthernet)
		payload := c.Chunk * elementBytes(c.Result) // no format is wider than its result format
		refuse(payload > wire.MaxDatagramPayload, "chunk: %d elements make a payload of %d bytes, more than %d", c.Chunk, payload, wire.MaxDatagramPayload)
	default:
		refuse(true, "shell: %d is not none, stream, udp or roce", c.Shell)
	}
	if c.Shell == wire.ShellRoCE {
		refuse(c.Ports*c.Jobs > maxConnections, "jobs: %d jobs of %d ports have more than %d connections", c.Jobs, c.Ports, maxConnections)
		refuse(c.Result != c.Format, "result: results of %v from %v; a card with shell roce has one format", c.Result, c.Format)
	}
	refuse(c.Parent && (c.Shell == wire.ShellStream || c.Shell == wire.ShellRoCE), "parent: a card with shell %v has no up port", c.Shell)
	refuse(c.Parent && c.Result != c.Format, "parent: results of %v from %v; a card with an up port has one format", c.Result, c.Format)
	refuse(!c.Shell.Network() && c.Ethernet != 0, "ethernet: %d ports with shell %v, which has none", c.Ethernet, c.Shell)
	return errors.Join(errs...)
}

// arithmetic returns the arithmetic of the card.
func (c Config) arithmetic() (*Arithmetic, error) {
	return NewArithmetic(c.Sum, c.Format, c.Result, c.Saturate)
}

// identification returns the value of register addr of the identification block; ok is false if
// addr is no register of it.
func (c Config) identification(addr uint32) (value uint64, ok bool) {
	switch addr {
	case wire.RegLanes:
		return uint64(c.Lanes), true
	case wire.RegPorts:
		return uint64(c.Ports), true
	case wire.RegFormat:
		return uint64(c.Format) | uint64(c.Result)<<8, true
	case wire.RegSum:
		value = uint64(c.Sum)
		if c.Saturate {
			value |= 1 << 8
		}
		return value, true
	case wire.RegShell:
		value = uint64(c.Shell)
		if c.Parent {
			value |= wire.ShellParentFlag
		}
		return value, true
	case wire.RegChunk:
		return uint64(c.Chunk), true
	case wire.RegWindow:
		return uint64(c.Window), true
	case wire.RegJobs:
		return uint64(c.Jobs), true
	case wire.RegLink:
		return uint64(c.Link), true
	case wire.RegLatency:
		return uint64(c.Latency), true
	}
	return 0, false
}

// Hash returns the configuration hash: 64-bit FNV-1a over the registers of the identification block
// in table order, each as 8 bytes, lowest first.
func (c Config) Hash() uint64 {
	c = c.withDefaults()
	h := fnv.New64a()
	for _, r := range wire.Registers {
		if !r.Ident {
			continue
		}
		value, _ := c.identification(r.Addr)
		h.Write(binary.LittleEndian.AppendUint64(nil, value))
	}
	return h.Sum64()
}

// elementBytes returns the size of one element of format f in bytes, 0 for a
// format that is not in the table.
func elementBytes(f wire.Format) int {
	info, _ := f.Info()
	return info.Bits / 8
}

func powerOfTwo(n int) bool { return n > 0 && bits.OnesCount(uint(n)) == 1 }
