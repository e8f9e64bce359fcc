// Builds of simulations: hwgen, Verilator, the C++ compiler.

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
	"strings"
	"sync"
)

//go:embed programs/lane.cpp
var laneProgram string

// Builder builds programs from Verilog. It keeps them in its folder, and reuses them while the
// Verilog, the program and the tools are unchanged.
type Builder struct {
	HWGen  string // path of hwgen, for lanes
	Folder string // of the programs

	once    sync.Once
	runtime string // Verilator's own object file
	root    string // VERILATOR_ROOT
	tools   string // versions
	err     error

	compiling sync.Mutex // of a header
}

// Program is a C++ program with Verilated modules.
type Program struct {
	Name     string
	Text     string
	Header   string   // text of module.h, which the program includes
	Defines  []string // NAME=VALUE
	Optimize string   // option of the compiler, as "-O2"
	Modules  []Module
}

// Module is a module to Verilate as class VName.
type Module struct {
	Name       string
	Top        string   // its name in Verilog
	Text       string   // its text, if it has no file
	Folders    []string // of its file and of the modules below it
	Parameters []string // NAME=VALUE
}

// Lane returns the program of a lane, a filter of operands. optimize is the compiler's option; a
// low level is faster in total for a short run.
func (b *Builder) Lane(ctx context.Context, l Lane, optimize string) (program string, err error) {
	card, err := b.scratch("card")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(card)
	if err := run(ctx, b.HWGen, append(l.flags(), "-o", card)...); err != nil {
		return "", err
	}
	header, err := l.header(card)
	if err != nil {
		return "", err
	}
	p := Program{
		Name:     "lane",
		Text:     laneProgram,
		Header:   header,
		Optimize: optimize,
		Modules:  []Module{{Name: "lane", Top: "agg_lane", Folders: []string{card}}},
	}
	unit, err := exactUnit(card)
	if err != nil {
		return "", err
	}
	if unit != nil {
		p.Modules = append(p.Modules, *unit)
		p.Defines = append(p.Defines, "EXACT_UNIT=1")
	}
	return b.Program(ctx, p)
}

// Program builds a program and returns its path.
func (b *Builder) Program(ctx context.Context, p Program) (path string, err error) {
	if b.once.Do(func() { b.err = b.prepare(ctx) }); b.err != nil {
		return "", b.err
	}
	verilog, err := p.verilog()
	if err != nil {
		return "", err
	}
	path = filepath.Join(b.Folder, p.Name+"_"+key(b.tools, p.Optimize, p.Text, p.Header, fmt.Sprint(p.Defines), verilog))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	scratch, err := b.scratch("program")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	made, err := b.compile(ctx, p, scratch)
	if err != nil {
		return "", err
	}
	return path, os.Rename(made, path)
}

// scratch makes a temporary folder beside the programs.
func (b *Builder) scratch(name string) (string, error) {
	if err := os.MkdirAll(b.Folder, 0o777); err != nil {
		return "", err
	}
	return os.MkdirTemp(b.Folder, name)
}

// key returns a name that depends on all texts.
func key(texts ...string) string {
	hash := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return fmt.Sprintf("%x", hash[:12])
}

// unitInstance finds the exact unit in a card, and its parameters.
var (
	unitInstance = regexp.MustCompile(`(?s)\n\s*agg_exact_unit\s+(?:#\((.*?)\)\s*)?u_\w+\s*\(`)
	parameter    = regexp.MustCompile(`\.(\w+)\s*\((\w+)\)`)
)

// exactUnit returns the module that sums the undecided vectors of a card, or nil if its lanes
// decide all.
func exactUnit(card string) (*Module, error) {
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
			unit := &Module{Name: "unit", Top: "agg_exact_unit", Folders: []string{card}}
			for _, p := range parameter.FindAllSubmatch(found[1], -1) {
				unit.Parameters = append(unit.Parameters, string(p[1])+"="+string(p[2]))
			}
			return unit, nil
		}
	}
	return nil, nil
}

// verilog returns the text of all Verilog in the program.
func (p Program) verilog() (string, error) {
	var all strings.Builder
	for _, m := range p.Modules {
		fmt.Fprintln(&all, m.Name, m.Top, m.Parameters)
		text := m.Text
		if text == "" {
			own, err := readModule(m.Folders, m.Top)
			if err != nil {
				return "", err
			}
			text = string(own)
		}
		if err := collect(&all, m.Folders, text, map[string]bool{m.Top: true}); err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

var moduleName = regexp.MustCompile(`\bagg_\w+`)

// collect appends a text and the texts of all modules that it names, from the folders.
func collect(all *strings.Builder, folders []string, text string, seen map[string]bool) error {
	all.WriteString(text)
	for _, name := range moduleName.FindAllString(text, -1) {
		if seen[name] {
			continue
		}
		seen[name] = true
		needed, err := readModule(folders, name)
		if errors.Is(err, os.ErrNotExist) { // the name is not a module's
			continue
		}
		if err != nil {
			return err
		}
		if err := collect(all, folders, string(needed), seen); err != nil {
			return err
		}
	}
	return nil
}

// readModule reads a module's file from one of the folders.
func readModule(folders []string, name string) (text []byte, err error) {
	for _, folder := range folders {
		if text, err = os.ReadFile(filepath.Join(folder, name+".v")); err == nil {
			break
		}
	}
	return text, err
}

// prepare finds the tools and compiles the object shared by all programs.
func (b *Builder) prepare(ctx context.Context) error {
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
	b.runtime = filepath.Join(b.Folder, "runtime_"+key(b.tools, b.root)+".o")
	if _, err := os.Stat(b.runtime); err == nil {
		return nil
	}
	scratch, err := b.scratch("runtime")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	all, made := filepath.Join(scratch, "runtime.cpp"), filepath.Join(scratch, "runtime.o")
	text := "#include \"verilated.cpp\"\n#include \"verilated_threads.cpp\"\n"
	if err := os.WriteFile(all, []byte(text), 0o666); err != nil {
		return err
	}
	if err := run(ctx, "c++", append(b.flags("-O2"), "-c", all, "-o", made)...); err != nil {
		return err
	}
	return os.Rename(made, b.runtime)
}

// header returns a file that includes Verilator's headers, for programs with an option of
// optimization. It is precompiled: the headers take longer to compile than most modules.
func (b *Builder) header(ctx context.Context, optimize string) (path string, err error) {
	b.compiling.Lock()
	defer b.compiling.Unlock()
	path = filepath.Join(b.Folder, "header_"+key(b.tools, b.root, optimize)+".h")
	compiled := path + ".gch"
	if _, err := os.Stat(compiled); err == nil {
		return path, nil
	}
	scratch, err := b.scratch("header")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := os.WriteFile(path, []byte("#include \"verilated.h\"\n"), 0o666); err != nil {
		return "", err
	}
	made := filepath.Join(scratch, "header.gch")
	if err := run(ctx, "c++", append(b.flags(optimize), "-x", "c++-header", path, "-o", made)...); err != nil {
		return "", err
	}
	return path, os.Rename(made, compiled)
}

// flags returns the C++ compiler's options for Verilator's output.
func (b *Builder) flags(optimize string) []string {
	return []string{"-std=c++17", optimize, "-I", filepath.Join(b.root, "include"), "-I", filepath.Join(b.root, "include", "vltstd"),
		"-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVERILATOR=1", "-pthread", "-w"}
}

// compile builds the program in a scratch folder. It compiles the program and all of Verilator's
// output as one text.
func (b *Builder) compile(ctx context.Context, p Program, scratch string) (made string, err error) {
	header, err := b.header(ctx, p.Optimize)
	if err != nil {
		return "", err
	}
	flags := append(b.flags(p.Optimize), "-include", header, "-I", scratch)
	for _, d := range p.Defines {
		flags = append(flags, "-D"+d)
	}
	write := func(name, text string) (path string) {
		path = filepath.Join(scratch, name)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	write("module.h", p.Header)
	var all strings.Builder
	fmt.Fprintf(&all, "#include \"%s\"\n", filepath.Base(write(p.Name+".cpp", p.Text)))
	for _, m := range p.Modules {
		to := filepath.Join(scratch, m.Name)
		top := m.Top
		if m.Text != "" {
			top = write(m.Top+".v", m.Text)
		}
		args := []string{"--cc", "--prefix", "V" + m.Name, "--top-module", m.Top, "--Mdir", to}
		for _, folder := range m.Folders {
			args = append(args, "-y", folder)
		}
		for _, parameter := range m.Parameters {
			args = append(args, "-G"+parameter)
		}
		if err := run(ctx, "verilator", append(args, top)...); err != nil {
			return "", err
		}
		files, err := filepath.Glob(filepath.Join(to, "*.cpp"))
		if err != nil {
			return "", err
		}
		all.WriteString("#undef VL_PCH_INCLUDED // allows one module in a text\n")
		for _, file := range files {
			fmt.Fprintf(&all, "#include \"%s/%s\"\n", m.Name, filepath.Base(file))
		}
		flags = append(flags, "-I", to)
	}
	made = filepath.Join(scratch, "program")
	flags = append(flags, write("all.cpp", all.String()), b.runtime, "-o", made)
	if err != nil {
		return "", err
	}
	return made, run(ctx, "c++", flags...)
}

// run runs a command that prints nothing on success.
func run(ctx context.Context, name string, args ...string) error {
	said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return nil
}

// output returns the output of a command.
func output(ctx context.Context, name string, args ...string) (string, error) {
	said, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(said), nil
}
