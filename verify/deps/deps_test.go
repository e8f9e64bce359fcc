// Package deps tests the direction of dependencies between the packages of this module, and the
// pages of the repository. A table lists the packages of the module that each package may import;
// every other import is an error.
package deps

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "tributary"
	root   = "../.." // of the repository, from this folder
)

// allowed lists the packages of this module that each package may import, apart from its tests. A
// name that ends in "/..." is a folder.
var allowed = map[string][]string{
	// The tables import nothing: everything else is built on them.
	"driver/wire": {},

	// The driver. The model must not share a mistake with the code that plans, prints or drives
	// the gateware, so it imports only the tables. driver imports the model in one file only; a
	// test checks that.
	"driver/model": {"driver/wire"},

	// Like the model, the card in software shares nothing with what it is compared with.
	"driver/cpu":                      {"driver/wire", "driver/frame", "driver/schedule", "driver/cpu/arithmetic"},
	"driver/cpu/arithmetic":           {"driver/wire", "driver/cpu/arithmetic/constants"},
	"driver/cpu/arithmetic/constants": {},
	"driver/cpu/arithmetic/asm":       {"driver/cpu/arithmetic/constants"},

	"driver/npy":                 {},
	"driver/quant":               {},
	"driver/schedule":            {},
	"driver/element":             {"driver/wire"},
	"driver/frame":               {"driver/wire"},
	"driver/frame/asm":           {},
	"driver/shell":               {},
	"driver/transport":           {"driver/shell", "driver/transport/scratch", "driver/wire"},
	"driver/transport/pipe":      {},
	"driver/transport/record":    {"driver/transport", "driver/wire"},
	"driver/transport/scratch":   {},
	"driver/transport/serial":    {"driver/shell", "driver/transport", "driver/transport/bridge"},
	"driver/transport/bulk":      {"driver/transport", "driver/wire"},
	"driver/transport/bridge":    {"driver/frame", "driver/wire"},
	"driver/transport/ftdi":      {"driver/transport/bulk", "driver/transport/bridge", "driver/wire"},
	"driver/transport/ft60x":     {"driver/transport/bulk", "driver/transport/bridge", "driver/wire"},
	"driver/transport/rdma":      {"driver/daemon/protocol"},
	"driver/transport/serve":     {"driver/transport", "driver/daemon/protocol", "driver/daemon/protocol/rpc", "driver/daemon/ring", "driver/transport/udp"},
	"driver/transport/udp":       {"driver/transport", "driver/wire"},
	"driver/transport/usb":       {"driver/transport", "driver/transport/bulk", "driver/transport/ftdi", "driver/transport/ft60x"},
	"driver":                     {"driver/wire", "driver/frame", "driver/element", "driver/schedule", "driver/transport", "driver/transport/...", "driver/model", "driver/cpu", "driver/daemon/protocol"},
	"driver/daemon":              {"driver", "driver/daemon/protocol", "driver/daemon/protocol/rpc", "driver/daemon/ring", "driver/element", "driver/frame", "driver/transport", "driver/wire"},
	"driver/daemon/protocol":     {},
	"driver/daemon/ring":         {},
	"driver/daemon/protocol/rpc": {"driver/daemon/protocol"},
	"driver/virtual/pins":        {"driver/wire"},
	"driver/virtual/pty":         {"driver/virtual/pins"},
	"driver/virtual/usbip":       {"driver/virtual/pins", "driver/wire"},
	"driver/virtual/clock":       {},
	"driver/virtual/udp":         {"driver/virtual/clock", "driver/wire"},
	"driver/virtual/ethernet":    {"driver/virtual/clock", "driver/wire"},
	"driver/virtual/cable":       {"driver/virtual/clock", "driver/virtual/ethernet"},
	"driver/virtual/rc":          {"driver/virtual/clock", "driver/virtual/ethernet", "driver/wire"},
	"driver/virtual/rc/stack":    {"driver/daemon/protocol", "driver/transport/rdma", "driver/virtual/clock", "driver/virtual/frameport", "driver/virtual/rc", "driver/wire"},
	"driver/virtual/ring":        {"driver/virtual/cable", "driver/virtual/ethernet", "driver/virtual/rc"},
	"driver/virtual/frameport":   {"driver/virtual/clock", "driver/virtual/ethernet"},
	"driver/virtual/simulator":   {"driver/virtual/clock"},
	"driver/virtual/capture":     {"driver/frame", "driver/virtual/clock", "driver/virtual/ethernet", "driver/wire"},
	"driver/roce":                {"driver", "driver/daemon/protocol", "driver/transport", "driver/transport/rdma", "driver/transport/serve", "driver/transport/udp", "driver/wire"},
	"driver/selftest":            {"driver", "driver/wire", "driver/frame", "driver/element", "driver/transport"},
	// The planners. What checks a plan shares the files' formats with them, and nothing else.
	"driver/planner/topology": {},
	"driver/planner/plan":     {"driver/planner/topology"},
	"driver/planner/check":    {"driver/planner/plan", "driver/planner/topology"},
	"driver/planner/draw":     {"driver/planner/plan", "driver/planner/topology"},
	"driver/planner/highs":    {},
	"driver/planner/pack":     {},
	"driver/planner/network":  {"driver/planner/topology"},
	"driver/planner/fit":      {"driver/planner/network", "driver/planner/topology"},
	"driver/planner/every":    {"driver/planner/network", "driver/planner/topology"},
	"driver/planner/relax":    {"driver/planner/fit", "driver/planner/highs", "driver/planner/network", "driver/planner/topology"},
	"driver/planner/columns":  {"driver/planner/fit", "driver/planner/highs", "driver/planner/network", "driver/planner/pack", "driver/planner/relax", "driver/planner/topology"},
	"driver/planner/baseline": {"driver/planner/fit", "driver/planner/network", "driver/planner/topology"},
	"driver/planner/grid":     {"driver/planner/fit", "driver/planner/highs", "driver/planner/network", "driver/planner/relax"},
	"driver/planner/inart":    {"driver/planner/columns", "driver/planner/fit", "driver/planner/grid", "driver/planner/highs", "driver/planner/network", "driver/planner/topology"},
	"driver/planner": {"driver/planner/baseline", "driver/planner/columns", "driver/planner/grid", "driver/planner/highs", "driver/planner/inart", "driver/planner/network",
		"driver/planner/plan", "driver/planner/topology"},
	"driver/planner/simulate": {"driver/planner/plan", "driver/planner/topology"},
	"driver/planner/run":      {"driver", "driver/element", "driver/planner/plan", "driver/planner/topology", "driver/schedule", "driver/transport", "driver/virtual/udp", "driver/wire"},

	// Collectives of members in other processes, on hosts and on cards.
	"driver/collective":       {"driver", "driver/element", "driver/transport", "driver/wire"},
	"driver/collective/bench": {"driver/collective", "driver/element", "driver/wire"},
	// Members that come and go. etcd is registered by import.
	"driver/collective/membership":                {},
	"driver/collective/membership/etcd":           {"driver/collective/membership"},
	"driver/collective/membership/membershiptest": {"driver/collective/membership"},
	"driver/collective/elastic":                   {"driver", "driver/collective", "driver/collective/membership", "driver/wire"},

	"driver/reduction": {"driver", "driver/wire", "driver/element", "driver/schedule", "driver/npy", "driver/quant", "driver/transport"},
	"driver/cmd/tributary": {"driver", "driver/collective", "driver/collective/bench", "driver/collective/membership", "driver/daemon", "driver/schedule", "driver/wire", "driver/frame", "driver/element", "driver/npy", "driver/planner", "driver/planner/check", "driver/planner/draw", "driver/planner/highs", "driver/planner/plan", "driver/planner/run", "driver/planner/simulate", "driver/planner/topology", "driver/reduction", "driver/roce", "driver/shell",
		"driver/selftest", "driver/transport", "driver/transport/record", "driver/transport/scratch", "driver/transport/bulk", "driver/transport/serial", "driver/transport/serve", "driver/transport/usb", "driver/virtual/capture", "driver/virtual/clock", "driver/virtual/ethernet", "driver/virtual/frameport", "driver/virtual/pty", "driver/virtual/simulator", "driver/virtual/udp", "driver/virtual/usbip"},

	// The library for C and Python: the driver, the schemes of daemons, and a daemon in the program.
	"driver/capi": {"driver", "driver/daemon", "driver/element", "driver/roce", "driver/wire", "driver/transport/serve", "driver/transport/usb"},

	// The generator's pipeline: config, plan, netlist, Verilog, folder.
	"hwgen/tables":  {"driver/wire"},
	"hwgen/config":  {"driver/wire"},
	"hwgen/expr":    {},
	"hwgen/netlist": {"hwgen/expr"},
	"hwgen/leaf":    {"hwgen/netlist", "hwgen/expr"},
	"hwgen/plan":    {"hwgen/config", "hwgen/netlist", "hwgen/leaf", "hwgen/boards", "driver/wire", "rtl"},
	"hwgen/verilog": {"hwgen/netlist"},
	"hwgen/cells":   {}, // recorded properties of lanes, for the datasheet and verify/gateware/synth
	"hwgen/boards":  {"constraints"},
	"hwgen/emit": {"hwgen/config", "hwgen/plan", "hwgen/leaf", "hwgen/netlist", "hwgen/verilog", "hwgen/tables",
		"hwgen/cells", "hwgen/boards", "rtl", "driver/wire"},
	"hwgen": {"hwgen/...", "rtl", "driver/wire"},
	"rtl":   {},

	// The boards: files alone.
	"constraints": {},

	// The references for the model and the gateware, and their operands.
	"verify/reference/oracle":   {"driver/wire"},
	"verify/reference/operands": {"driver/wire"},
	"verify/reference/sums":     {}, // a test: it checks that every part knows every sum

	// Each explorer follows its specification alone. It could not find a mistake in code that it
	// shared with the other packages. What explorers share knows no protocol.
	"verify/protocol/explorer":              {},
	"verify/protocol/explorer/explorertest": {"verify/protocol/explorer"},
	"verify/protocol/explore":               {"verify/protocol/explorer"},
	"verify/protocol/carry":                 {"verify/protocol/explorer"},
	"verify/protocol/hosts":                 {"verify/protocol/explorer"},
	"verify/protocol/trees":                 {"verify/protocol/explorer"},
	"verify/protocol/forest":                {"verify/protocol/explorer"},
	"verify/protocol/roce":                  {"verify/protocol/explorer"},

	// The checks. No package imports them, and they run the commands.
	"verify/system/bench":       {"driver", "driver/collective", "driver/collective/bench", "driver/planner", "driver/planner/check", "driver/planner/highs", "driver/planner/plan", "driver/planner/topology", "driver/wire", "driver/frame", "driver/model", "driver/virtual/udp", "driver/virtual/cable", "driver/virtual/ethernet", "driver/virtual/rc", "driver/virtual/ring", "driver/npy", "driver/transport", "driver/transport/serve", "driver/virtual/usbip", "verify/system/usb/testbed", "verify/system/faults", "verify/system/frames", "verify/reference/operands", "verify/reference/oracle"},
	"verify/gateware/mutate":    {"hwgen/leaf"},
	"verify/gateware/releasing": {"hwgen/config", "hwgen/emit", "hwgen/plan", "rtl"},
	"verify/gateware/synth":     {"hwgen/cells", "hwgen/boards"},
	// What the simulations of scale share, and the cards that hwgen makes of their commands.
	"verify/scale/archive":             {},
	"verify/scale/archive/archivetest": {"hwgen/config", "hwgen/emit", "hwgen/plan", "rtl", "verify/scale/archive"},
	"verify/system/faults":             {"driver/frame", "driver/transport", "driver/virtual/udp", "driver/wire"},
	"verify/system/soak": {"driver", "driver/daemon", "driver/frame", "driver/transport", "driver/transport/serve", "driver/virtual/clock", "driver/virtual/ethernet", "driver/virtual/frameport",
		"driver/virtual/simulator", "driver/wire", "verify/system/faults", "verify/system/frames"},
	"verify/system/shared":     {"driver", "driver/daemon", "driver/daemon/protocol", "driver/frame", "driver/model", "driver/transport", "driver/transport/serve", "driver/wire", "verify/reference/oracle"},
	"verify/system/namespaces": {"driver", "driver/transport/serve"},
	// It runs verify/protocol/explore and reads its output.
	"verify/protocol/walks": {"driver/wire", "driver/frame", "driver/model", "driver/cpu"},
	"verify/...":            {"driver", "driver/...", "verify/..."},
}

// testsNever lists the packages that the tests of a package must not import either.
var testsNever = map[string][]string{
	"driver/wire":           {"hwgen/...", "verify/..."},
	"driver/model":          {"hwgen/...", "driver", "driver/frame"},
	"driver/cpu/arithmetic": {"hwgen/...", "driver", "driver/frame"},
	// Not even their tests.
	"verify/protocol/explorer/...": notExplorers,
	"verify/protocol/explorer":     notExplorers,
	"verify/protocol/explore":      notExplorers,
	"verify/protocol/carry":        notExplorers,
	"verify/protocol/hosts":        notExplorers,
	"verify/protocol/trees":        notExplorers,
	"verify/protocol/forest":       notExplorers,
	"verify/protocol/roce":         notExplorers,
	"verify/protocol/walks":        {"driver", "hwgen/..."},
	"hwgen/...":                    {"driver/model", "driver"},
}

// notExplorers lists what no test of an explorer may import: all but verify/protocol/explorer and the
// tests that it has for them.
var notExplorers = []string{"driver", "driver/...", "hwgen/...", "rtl", "verify/gateware/...", "verify/reference/...", "verify/system/...",
	"verify/protocol/explore", "verify/protocol/carry", "verify/protocol/hosts", "verify/protocol/trees", "verify/protocol/forest", "verify/protocol/roce",
	"verify/protocol/treenet", "verify/protocol/walks"}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestDirections(t *testing.T) {
	packages := listPackages(t)
	if len(packages) < 10 {
		t.Fatalf("go list found %d packages only", len(packages))
	}
	for _, p := range packages {
		name := ours(p.ImportPath)
		may, ok := lookup(allowed, name)
		if !ok {
			t.Errorf("%s is not in the table of this test: say there what it may import", name)
			continue
		}
		for _, imported := range oursOf(p.Imports) {
			if !matchAny(may, imported) {
				t.Errorf("%s imports %s; it may import %q of this module", name, imported, may)
			}
		}
		never, _ := lookup(testsNever, name)
		for _, imported := range oursOf(append(p.TestImports, p.XTestImports...)) {
			if matchAny(never, imported) {
				t.Errorf("a test of %s imports %s", name, imported)
			}
		}
	}
}

// TestDriverImportsModelInOneFile: only the file of the model: transport imports the model, so
// deleting that file gives a driver without it.
func TestDriverImportsModelInOneFile(t *testing.T) {
	var files []string
	err := filepath.WalkDir(filepath.Join(root, "driver"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			if imported, _ := strconv.Unquote(spec.Path.Value); imported == module+"/driver/model" {
				files = append(files, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Errorf("the driver imports the model in %d files, want 1: %q", len(files), files)
	}
}

// TestOnlyUSBNeedsLibusb: the commands and the library build without libusb, unless the build
// enables cards on USB.
func TestOnlyUSBNeedsLibusb(t *testing.T) {
	for _, tags := range []string{"", "usb"} {
		list := exec.Command("go", "list", "-deps", "-tags", tags, "./driver", "./driver/selftest", "./driver/reduction", "./hwgen", "./driver/cmd/tributary")
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if brings := strings.Contains(string(out), "google/gousb"); brings != (tags == "usb") {
			t.Errorf("with tags %q, libusb is needed: %t", tags, brings)
		}
	}
}

// TestCocotbFolderIsNoPackage: an __init__.py there would hide cocotb itself.
func TestCocotbFolderIsNoPackage(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "cocotb", "__init__.py")); err == nil {
		t.Error("cocotb/__init__.py exists: it shadows the cocotb package")
	}
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// ours removes the module's name from an import path, and returns "" for other modules.
func ours(path string) string {
	name, found := strings.CutPrefix(path, module+"/")
	if !found {
		return ""
	}
	return name
}

func oursOf(paths []string) []string {
	var names []string
	for _, p := range paths {
		if name := ours(p); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// lookup finds the row of name, or else of its folder.
func lookup(table map[string][]string, name string) ([]string, bool) {
	if row, ok := table[name]; ok {
		return row, true
	}
	for pattern, row := range table {
		if match(pattern, name) {
			return row, true
		}
	}
	return nil, false
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, name) })
}

func match(pattern, name string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(name, folder+"/")
	}
	return pattern == name
}
