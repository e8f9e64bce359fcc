// Package vectors sends operands through Verilated lanes and compares every bit of the sums with
// the model and the oracle. A vector is one set of operands, an element of every port.
package vectors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"tributary/driver/wire"
)

// Lane is the kind of a lane.
type Lane struct {
	Sum            wire.Sum
	Format, Result wire.Format
	Saturate, DSP  bool
	Ports          int
}

// String names the lane with the values of hwgen's flags: "exact fp16 fp32 8", with "saturate"
// and "dsp" at the end. ParseLane parses it.
func (l Lane) String() string {
	name := fmt.Sprintf("%v %v %v %d", l.Sum, l.Format, l.Result, l.Ports)
	if l.Saturate {
		name += " saturate"
	}
	if l.DSP {
		name += " dsp"
	}
	return name
}

// ParseLane is the inverse of String.
func ParseLane(name string) (Lane, error) {
	var l Lane
	words := strings.Fields(name)
	for ; len(words) > 4; words = words[:len(words)-1] {
		switch words[len(words)-1] {
		case "saturate":
			l.Saturate = true
		case "dsp":
			l.DSP = true
		default:
			return l, fmt.Errorf("lane %q: %q is not saturate or dsp", name, words[len(words)-1])
		}
	}
	if len(words) < 4 {
		return l, fmt.Errorf("lane %q: want a sum, a format, a result format and a number of ports", name)
	}
	for _, s := range wire.Sums {
		if s.Name == words[0] {
			l.Sum = s.Sum
		}
	}
	for _, f := range wire.Formats {
		if f.Name == words[1] {
			l.Format = f.Format
		}
		if f.Name == words[2] {
			l.Result = f.Format
		}
	}
	l.Ports, _ = strconv.Atoi(words[3])
	if l.Sum == 0 || l.Format == 0 || l.Result == 0 || l.Ports == 0 {
		return l, fmt.Errorf("lane %q: unknown sum or format, or no ports", name)
	}
	return l, nil
}

// flags are hwgen's flags for a card with such lanes.
func (l Lane) flags() []string {
	flags := []string{"-lanes", "1", "-shell", "none", "-workers", strconv.Itoa(l.Ports),
		"-sum", l.Sum.String(), "-format", l.Format.String(), "-result", l.Result.String()}
	if l.Saturate {
		flags = append(flags, "-saturate")
	}
	if l.DSP {
		flags = append(flags, "-dsp")
	}
	return flags
}

// latency reads the lane's latency from the manifest of a card.
func latency(card string) (int, error) {
	text, err := os.ReadFile(filepath.Join(card, "manifest.json"))
	if err != nil {
		return 0, err
	}
	manifest := struct {
		Latency *int `json:"lane_latency"`
	}{}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return 0, err
	}
	if manifest.Latency == nil {
		return 0, fmt.Errorf("%s: the manifest has no lane_latency", card)
	}
	return *manifest.Latency, nil
}

// header returns the lane's properties for the program.
func (l Lane) header(card string) (string, error) {
	cycles, err := latency(card)
	if err != nil {
		return "", err
	}
	shift, err := l.shift(card)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#define PORTS %d\n#define LATENCY %d\n", l.Ports, cycles)
	fmt.Fprintf(&b, "static uint32_t operand(uint32_t x) { return x << %d; }\n", shift)
	fmt.Fprintf(&b, "static void set_operands(Vlane* lane, const uint32_t* x) {\n")
	for p := range l.Ports {
		fmt.Fprintf(&b, "  lane->x_p%d = operand(x[%d]);\n", p, p)
	}
	fmt.Fprintf(&b, "}\n")
	return b.String(), nil
}

var portRange = regexp.MustCompile(`input\s+wire\s+\[\s*(\d+)\s*:\s*0\s*\]\s+x_p0\b`)

// shift returns the number of places to shift an element left before it enters the lane. Lanes
// with an exact unit take widened numbers: bf16 becomes fp32 with 16 zeros at the end.
func (l Lane) shift(card string) (int, error) {
	text, err := os.ReadFile(filepath.Join(card, "agg_lane.v"))
	if err != nil {
		return 0, err
	}
	found := portRange.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s: agg_lane has no port x_p0", card)
	}
	high, _ := strconv.Atoi(string(found[1]))
	format, _ := l.Format.Info()
	switch {
	case high+1 == format.Bits:
		return 0, nil
	case high+1 == 32 && l.Format == wire.BF16:
		return 16, nil
	}
	return 0, fmt.Errorf("%s: port x_p0 of agg_lane has %d bits", card, high+1)
}
