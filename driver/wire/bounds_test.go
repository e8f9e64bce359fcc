package wire

import (
	"errors"
	"maps"
	"testing"
)

// block is the identification block of a card with hwgen's defaults.
func block() map[uint32]uint64 {
	return map[uint32]uint64{
		RegLanes: 16, RegPorts: 4, RegFormat: 0x101, RegSum: 1, RegShell: 1, RegChunk: 256,
		RegWindow: 8, RegJobs: 1, RegLink: 32, RegLatency: 30,
	}
}

func check(change map[uint32]uint64) error {
	values := block()
	maps.Copy(values, change)
	return CheckIdent(func(addr uint32) uint64 { return values[addr] })
}

// Every register of the identification block has exactly one bound.
func TestBoundsCoverTheBlock(t *testing.T) {
	var i int
	for _, r := range Registers {
		if !r.Ident {
			continue
		}
		if i >= len(Bounds) || Bounds[i].Addr != r.Addr || Bounds[i].Name() != r.Name {
			t.Fatalf("bound %d is not that of %s", i, r.Name)
		}
		i++
	}
	if i != len(Bounds) {
		t.Errorf("%d bounds for %d registers", len(Bounds), i)
	}
}

// CheckIdent accepts the limits of hwgen's flags, and every sum and format.
func TestCheckIdentTakesWhatHwgenMakes(t *testing.T) {
	cards := []map[uint32]uint64{
		{},
		{RegLanes: 1, RegPorts: 1, RegChunk: 1, RegWindow: 1, RegLink: 8, RegLatency: 0},
		{RegLanes: 64, RegPorts: 64, RegChunk: 960, RegWindow: 1024, RegJobs: 16, RegLink: 64},
		{RegWindow: 1, RegJobs: 16},
		{RegShell: 0, RegLink: 0, RegLanes: 1, RegChunk: 65535},
		{RegShell: 2, RegLink: 8},
		{RegShell: 2, RegLink: 512, RegChunk: 2048},
		{RegShell: 2, RegLink: 64, RegFormat: 0x404, RegChunk: 8192},
		{RegFormat: 0x404, RegLanes: 1, RegChunk: 4095 - 38},
		{RegFormat: 0x606, RegSum: 0x101},
		{RegShell: 0x100, RegLink: 0},
		{RegShell: 0x102, RegLink: 64},
	}
	for _, s := range Sums {
		cards = append(cards, map[uint32]uint64{RegSum: uint64(s.Sum)})
	}
	for _, f := range Formats {
		cards = append(cards, map[uint32]uint64{RegFormat: uint64(f.Format) | uint64(f.Format)<<8})
	}
	for _, change := range cards {
		if err := check(change); err != nil {
			t.Errorf("%v: %v", change, err)
		}
	}
}

// CheckIdent refuses registers out of their bounds, and registers that contradict one
// another.
func TestCheckIdentRefuses(t *testing.T) {
	for _, c := range []struct {
		change map[uint32]uint64
		want   string
		newer  bool
	}{
		{map[uint32]uint64{RegLanes: 0}, "LANES is 0, not a power of two from 1 to 64", false},
		{map[uint32]uint64{RegLanes: 128, RegChunk: 256}, "LANES is 128, not a power of two from 1 to 64", false},
		{map[uint32]uint64{RegLanes: 3, RegChunk: 3}, "LANES is 3, not a power of two from 1 to 64", false},
		{map[uint32]uint64{RegPorts: 0}, "PORTS is 0, not a number from 1 to 64", false},
		{map[uint32]uint64{RegPorts: 65}, "PORTS is 65, not a number from 1 to 64", false},
		{map[uint32]uint64{RegFormat: 0x107}, "FORMAT is 263, format 7 into fp32, which is unknown here", true},
		{map[uint32]uint64{RegFormat: 0x10101}, "FORMAT is 65793, with bits that are unknown here", true},
		{map[uint32]uint64{RegFormat: 0x203}, "FORMAT is 515, fp16 into bf16, which does not hold every value of it", false},
		{map[uint32]uint64{RegSum: 0}, "SUM is 0, sum 0, which is unknown here", true},
		{map[uint32]uint64{RegSum: 0xff}, "SUM is 255, sum 255, which is unknown here", true},
		{map[uint32]uint64{RegSum: 0x201}, "SUM is 513, with bits that are unknown here", true},
		{map[uint32]uint64{RegSum: 0x101}, "SUM is 257, saturating, but FORMAT is fp32 and only int32 saturates", false},
		{map[uint32]uint64{RegShell: 0xfe}, "SHELL is 254, shell 254, which is unknown here", true},
		{map[uint32]uint64{RegShell: 0x1fe}, "SHELL is 510, shell 254, which is unknown here", true},
		{map[uint32]uint64{RegShell: 0x202}, "SHELL is 514, with bits that are unknown here", true},
		{map[uint32]uint64{RegShell: 0x101}, "SHELL is 257, stream with an up port, but only none and udp have one", false},
		{map[uint32]uint64{RegShell: 0x102, RegLink: 64, RegFormat: 0x102}, "FORMAT is 258, bf16 into fp32, but a card with an up port has one format", false},
		{map[uint32]uint64{RegShell: 1 << 32}, "SHELL is 4294967296, with bits that are unknown here", true},
		{map[uint32]uint64{RegChunk: 0}, "CHUNK is 0, not a number from 1 to 65535", false},
		{map[uint32]uint64{RegChunk: 1 << 16}, "CHUNK is 65536, not a number from 1 to 65535", false},
		{map[uint32]uint64{RegChunk: 24}, "CHUNK is 24, not a multiple of LANES, which is 16", false},
		{map[uint32]uint64{RegChunk: 1024}, "CHUNK is 1024, a data frame of 4118 bytes, but the longest has 4095", false},
		{map[uint32]uint64{RegFormat: 0x104, RegChunk: 1024}, "CHUNK is 1024, a result frame of 4134 bytes, but the longest has 4095", false},
		{map[uint32]uint64{RegWindow: 0}, "WINDOW is 0, not a power of two from 1 to 1024", false},
		{map[uint32]uint64{RegWindow: 1 << 24}, "WINDOW is 16777216, not a power of two from 1 to 1024", false},
		{map[uint32]uint64{RegWindow: 1 << 40}, "WINDOW is 1099511627776, not a power of two from 1 to 1024", false},
		{map[uint32]uint64{RegWindow: 1 << 63}, "WINDOW is 9223372036854775808, not a power of two from 1 to 1024", false},
		{map[uint32]uint64{RegJobs: 0}, "JOBS is 0, not a power of two from 1 to 16", false},
		{map[uint32]uint64{RegJobs: 3}, "JOBS is 3, not a power of two from 1 to 16", false},
		{map[uint32]uint64{RegJobs: 32}, "JOBS is 32, not a power of two from 1 to 16", false},
		{map[uint32]uint64{RegLink: 0}, "LINK is 0, not 8, 16, 32 or 64, but SHELL is stream", false},
		{map[uint32]uint64{RegLink: 24}, "LINK is 24, not 0 or a power of two up to 512", false},
		{map[uint32]uint64{RegLink: 128}, "LINK is 128, not 8, 16, 32 or 64, but SHELL is stream", false},
		{map[uint32]uint64{RegShell: 0}, "LINK is 32, not 0, but SHELL is none", false},
		{map[uint32]uint64{RegShell: 2}, "LINK is 32, not 8, 64 or 512, but SHELL is udp", false},
		{map[uint32]uint64{RegShell: 2, RegLink: 64, RegChunk: 2064}, "CHUNK is 2064, a data payload of 8256 bytes, but the largest has 8192", false},
		{map[uint32]uint64{RegShell: 2, RegLink: 64, RegFormat: 0x104, RegChunk: 2064}, "CHUNK is 2064, a result payload of 8256 bytes, but the largest has 8192", false},
		{map[uint32]uint64{RegLatency: 1 << 16}, "LATENCY is 65536, not a number from 0 to 65535", false},
	} {
		var ident *IdentError
		if err := check(c.change); !errors.As(err, &ident) || err.Error() != c.want || ident.Newer != c.newer {
			t.Errorf("%v: %v, want %s", c.change, err, c.want)
		}
	}
}
