package cpu

import (
	"errors"
	"fmt"
	"strings"

	"tributary/driver/wire"
)

// Config is the geometry of a card. Lanes, Ports, Chunk and Window must be set, except for Chunk with
// ShellUDP; for the other fields, the zero value has the meaning in their comments.
type Config struct {
	Lanes  int // elements in a beat, a power of two, 1..64
	Ports  int // 1..64
	Chunk  int // most elements in a chunk, a multiple of Lanes; with ShellUDP 0 means what fits Ethernet's MTU
	Window int // most chunks in a job's window, a power of two, 1..1024
	Jobs   int // most jobs at once, a power of two, 1..16; 0 means 1

	Format   wire.Format // of the contributions; 0 means fp32
	Result   wire.Format // of the results; 0 means Format
	Sum      wire.Sum    // 0 means tree
	Saturate bool        // clamp sums beyond int32

	Shell    wire.Shell // ShellNone, ShellStream or ShellUDP
	Link     int        // bits that the link moves in a cycle; 0 with ShellNone
	Latency  int        // cycles, for the register LATENCY
	Ethernet int        // Ethernet ports, 1..256, with ShellUDP alone; 0 means 1 there
	Parent   bool       // the card has an up port, with ShellNone and ShellUDP
}

// withDefaults returns c with its defaults filled in.
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
	if c.Shell == wire.ShellUDP && c.Ethernet == 0 {
		c.Ethernet = 1
	}
	if c.Shell == wire.ShellUDP && c.Chunk == 0 && c.Lanes > 0 {
		c.Chunk = mtuChunk(c)
	}
	return c
}

// mtu is the size of the largest IP packet on Ethernet in bytes, and overhead that of the headers of
// IPv4 and UDP.
const mtu, overhead = 1500, 20 + 8

// mtuChunk returns the most elements, a multiple of the lanes, whose result is no larger than mtu.
func mtuChunk(c Config) int {
	_, element := c.sizes()
	if element == 0 {
		return 0 // there is no such format
	}
	result, _ := wire.KindResult.Info()
	beat := c.Lanes * element
	return (mtu - overhead - result.DatagramBytes(0)) / beat * c.Lanes
}

// saturates is the bit of the register SUM for Saturate.
const saturates = 1 << 8

// ident returns the value of a register of the identification block, LANES to LATENCY.
func (c Config) ident(addr uint32) uint64 {
	switch addr {
	case wire.RegLanes:
		return uint64(c.Lanes)
	case wire.RegPorts:
		return uint64(c.Ports)
	case wire.RegFormat:
		return uint64(c.Format) | uint64(c.Result)<<8
	case wire.RegSum:
		if c.Saturate {
			return uint64(c.Sum) | saturates
		}
		return uint64(c.Sum)
	case wire.RegShell:
		if c.Parent {
			return uint64(c.Shell) | wire.ShellParentFlag
		}
		return uint64(c.Shell)
	case wire.RegChunk:
		return uint64(c.Chunk)
	case wire.RegWindow:
		return uint64(c.Window)
	case wire.RegJobs:
		return uint64(c.Jobs)
	case wire.RegLink:
		return uint64(c.Link)
	case wire.RegLatency:
		return uint64(c.Latency)
	}
	return 0
}

// Hash returns the configuration hash: FNV-1a, 64 bits, over the identification block, each
// register as 8 bytes, lowest first.
func (c Config) Hash() uint64 { return wire.ConfigHash(c.withDefaults().ident) }

// Validate returns everything that is wrong with c, joined into one error.
func (c Config) Validate() error {
	c = c.withDefaults()
	var wrong []error
	for _, b := range wire.Bounds {
		if v := c.ident(b.Addr); !b.Holds(v) {
			wrong = append(wrong, fmt.Errorf("%s: %d is not %s", strings.ToLower(b.Name()), int(v), b))
		}
	}
	for _, f := range []wire.Format{c.Format, c.Result} {
		if _, ok := f.Info(); !ok {
			wrong = append(wrong, fmt.Errorf("format: there is no format %d", f))
		}
	}
	if _, ok := c.Sum.Info(); !ok {
		wrong = append(wrong, fmt.Errorf("sum: there is no sum %d", c.Sum))
	}
	if c.Shell > wire.ShellUDP {
		wrong = append(wrong, fmt.Errorf("shell: there is no shell %d", c.Shell))
	}
	if least, most := c.ethernetPorts(); c.Ethernet < least || c.Ethernet > most {
		wrong = append(wrong, fmt.Errorf("ethernet: %d ports are not from %d to %d", c.Ethernet, least, most))
	}
	if wrong == nil {
		return wire.CheckIdent(c.ident) // the rules between registers
	}
	return errors.Join(wrong...)
}

// ethernetPorts returns the least and the largest number of Ethernet ports with the shell.
func (c Config) ethernetPorts() (least, most int) {
	if c.Shell != wire.ShellUDP {
		return 0, 0
	}
	return 1, 1 << 8 // a port's number has 8 bits in the registers
}

// sizes returns the bytes of an element of the contributions and of the results.
func (c Config) sizes() (contribution, result int) {
	in, _ := c.Format.Info()
	out, _ := c.Result.Info()
	return in.Bits / 8, out.Bits / 8
}
