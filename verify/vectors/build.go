// From flags to a program: hwgen, Verilator, the C++ compiler.

package vectors

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed programs/lane.cpp
var laneProgram string

// Builder makes programs of lanes. What was made stays in its folder, and is
// used again while the Verilog, the program and the tools are the same.
type Builder struct {
	HWGen  string // the command
	Folder string // where the programs are kept

	once    sync.Once
	runtime string // Verilator's own object file
	root    string // VERILATOR_ROOT
	tools   string // versions
	err     error
}

// Build returns the program of a lane. optimize is the compiler's option, as
// "-O2": a lane that lives for a second is made faster without.
func (b *Builder) Build(ctx context.Context, l Lane, optimize string) (program string, err error) {
	if b.once.Do(func() { b.err = b.prepare(ctx) }); b.err != nil {
		return "", b.err
	}
	scratch, err := os.MkdirTemp(b.Folder, "lane")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	card := filepath.Join(scratch, "card")
	if err := run(ctx, b.HWGen, append(l.flags(), "-o", card)...); err != nil {
		return "", err
	}
	cycles, err := latency(card)
	if err != nil {
		return "", err
	}
	sources := []source{{"lane", "agg_lane", nil}}
	if unit, err := exactUnit(card); err != nil {
		return "", err
	} else if unit != nil {
		sources = append(sources, *unit)
	}
	header := l.portsHeader(cycles)
	text, err := verilog(card, sources)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(strings.Join([]string{b.tools, optimize, laneProgram, header, text}, "\x00")))
	program = filepath.Join(b.Folder, fmt.Sprintf("lane_%x", key[:12]))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.WriteFile(filepath.Join(scratch, "lane_ports.h"), []byte(header), 0o666); err != nil {
		return "", err
	}
	made := filepath.Join(scratch, "program")
	if err := b.compile(ctx, scratch, card, sources, optimize, laneProgram, made); err != nil {
		return "", err
	}
	return program, os.Rename(made, program)
}

// source is a module to Verilate as class Vname.
type source struct {
	name, module string
	parameters   []string // NAME=VALUE
}

// unitInstance finds the exact unit in a card, and its parameters.
var (
	unitInstance = regexp.MustCompile(`(?s)\n\s*agg_exact_unit\s+(?:#\((.*?)\)\s*)?u_\w+\s*\(`)
	parameter    = regexp.MustCompile(`\.(\w+)\s*\((\w+)\)`)
)

// exactUnit returns what sums the undecided vectors of a card, nil where its
// lanes decide all.
func exactUnit(card string) (*source, error) {
	files, err := filepath.Glob(filepath.Join(card, "*.v"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if found := unitInstance.FindSubmatch(text); found != nil {
			unit := &source{name: "unit", module: "agg_exact_unit"}
			for _, p := range parameter.FindAllSubmatch(found[1], -1) {
				unit.parameters = append(unit.parameters, string(p[1])+"="+string(p[2]))
			}
			return unit, nil
		}
	}
	return nil, nil
}

// verilog returns all that the modules' text depends on: every file that
// one of them names, and the modules themselves.
func verilog(card string, sources []source) (string, error) {
	var all strings.Builder
	seen := map[string]bool{}
	var need func(module string) error
	need = func(module string) error {
		if seen[module] {
			return nil
		}
		seen[module] = true
		text, err := os.ReadFile(filepath.Join(card, module+".v"))
		if errors.Is(err, os.ErrNotExist) { // a name that is no module
			return nil
		}
		if err != nil {
			return err
		}
		all.Write(text)
		for _, name := range moduleName.FindAllString(string(text), -1) {
			if err := need(name); err != nil {
				return err
			}
		}
		return nil
	}
	for _, s := range sources {
		fmt.Fprintln(&all, s)
		if err := need(s.module); err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

var moduleName = regexp.MustCompile(`\bagg_\w+`)

// prepare finds the tools and compiles what all programs share.
func (b *Builder) prepare(ctx context.Context) error {
	if err := os.MkdirAll(b.Folder, 0o777); err != nil {
		return err
	}
	for _, ask := range [][]string{{"verilator", "--version"}, {"c++", "--version"}} {
		said, err := output(ctx, ask[0], ask[1:]...)
		if err != nil {
			return err
		}
		b.tools += said
	}
	root, err := output(ctx, "verilator", "--getenv", "VERILATOR_ROOT")
	if err != nil {
		return err
	}
	b.root = strings.TrimSpace(root)
	key := sha256.Sum256([]byte(b.tools + b.root))
	b.runtime = filepath.Join(b.Folder, fmt.Sprintf("runtime_%x.o", key[:12]))
	if _, err := os.Stat(b.runtime); err == nil {
		return nil
	}
	scratch, err := os.MkdirTemp(b.Folder, "runtime")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	all := filepath.Join(scratch, "runtime.cpp")
	text := "#include \"verilated.cpp\"\n#include \"verilated_threads.cpp\"\n"
	if err := os.WriteFile(all, []byte(text), 0o666); err != nil {
		return err
	}
	made := filepath.Join(scratch, "runtime.o")
	if err := run(ctx, "c++", append(b.compilerFlags("-O2"), "-c", all, "-o", made)...); err != nil {
		return err
	}
	return os.Rename(made, b.runtime)
}

func (b *Builder) compilerFlags(optimize string) []string {
	return []string{"-std=c++17", optimize, "-I", filepath.Join(b.root, "include"), "-I", filepath.Join(b.root, "include", "vltstd"),
		"-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVERILATOR=1", "-pthread", "-w"}
}

// compile Verilates modules and compiles them and the program as one, in a
// scratch folder.
func (b *Builder) compile(ctx context.Context, scratch, card string, sources []source, optimize, program, made string) error {
	var all strings.Builder
	for _, s := range sources {
		to := filepath.Join(scratch, s.name)
		args := []string{"--cc", "--prefix", "V" + s.name, "--top-module", s.module, "--Mdir", to, "-y", card, "-I" + card, "--x-assign", "fast"}
		for _, p := range s.parameters {
			args = append(args, "-G"+p)
		}
		if err := run(ctx, "verilator", append(args, filepath.Join(card, s.module+".v"))...); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(to, "*.cpp"))
		if err != nil {
			return err
		}
		slices.Sort(files)
		for _, file := range files {
			fmt.Fprintf(&all, "#include \"%s/%s\"\n", s.name, filepath.Base(file))
		}
		if s.name == "unit" {
			fmt.Fprintf(&all, "#define EXACT_UNIT\n")
		}
	}
	main := filepath.Join(scratch, "main.cpp")
	if err := os.WriteFile(main, []byte(all.String()+program), 0o666); err != nil {
		return err
	}
	args := append(b.compilerFlags(optimize), "-I", scratch)
	for _, s := range sources {
		args = append(args, "-I", filepath.Join(scratch, s.name))
	}
	return run(ctx, "c++", append(args, main, b.runtime, "-o", made)...)
}

// run runs a command that says nothing when all is well.
func run(ctx context.Context, name string, args ...string) error {
	said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return nil
}

// output returns what a command prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	said, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(said), nil
}
