// Package sums checks that every part of Tributary knows every sum of the wire
// tables.
package sums

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tributary/driver/cpu/arithmetic"
	"tributary/driver/model"
	"tributary/driver/selftest"
	"tributary/driver/wire"
	"tributary/hwgen/config"
	"tributary/hwgen/emit"
	"tributary/hwgen/plan"
	"tributary/rtl"
	"tributary/verify/reference/oracle"
)

const root = "../../.." // of the repository

// TestEveryPartKnowsEverySum lists all parts that lack a sum.
func TestEveryPartKnowsEverySum(t *testing.T) {
	for _, sum := range wire.Sums {
		for part, knows := range programs {
			if err := knows(sum.Sum); err != "" {
				t.Errorf("sum %s: %s lacks it: %s", sum.Name, part, err)
			}
		}
		for _, r := range registries {
			if !r.knows(r.read(t), sum.Sum) {
				t.Errorf("sum %s: %s, %s, lacks it", sum.Name, r.part, r.file)
			}
		}
	}
}

// programs are callable parts; each returns a description of what is wrong with a sum, or "".
var programs = map[string]func(wire.Sum) string{
	"the Go model": func(sum wire.Sum) string {
		for _, format := range wire.Formats {
			if _, err := model.NewArithmetic(sum, format.Format, format.Format, false); err != nil {
				return err.Error()
			}
		}
		return ""
	},
	"the card in software": func(sum wire.Sum) string {
		for _, format := range wire.Formats {
			if _, err := arithmetic.New(sum, format.Format, format.Format, false); err != nil {
				return err.Error()
			}
		}
		return ""
	},
	"the oracle": func(sum wire.Sum) string {
		return unless(oracle.Knows(sum), "it has no entry")
	},
	"the self-test of the command": func(sum wire.Sum) string {
		return unless(selftest.Knows(sum), "it has no answers")
	},
	"the generator": func(sum wire.Sum) string {
		return unless(slices.Contains(plan.Known().Sums, sum.String()), "the registry of hwgen/plan has no entry")
	},
	"the datasheet": func(sum wire.Sum) string {
		for _, format := range wire.Formats {
			if err := datasheet(sum, format); err != "" {
				return format.Name + ": " + err
			}
		}
		return ""
	},
}

func unless(ok bool, err string) string {
	if ok {
		return ""
	}
	return err
}

// datasheet describes what is missing in the datasheet of a card with this sum.
func datasheet(sum wire.Sum, format wire.FormatInfo) string {
	options, err := config.Parse([]string{"-lanes", "1", "-workers", "3", "-sum", sum.String(), "-format", format.Name}, plan.Known())
	if err != nil {
		return err.Error()
	}
	p, err := plan.Build(options.Config)
	if err != nil {
		return err.Error()
	}
	files, err := emit.Files(p, rtl.Files)
	if err != nil {
		return err.Error()
	}
	at := slices.IndexFunc(files, func(f emit.File) bool { return f.Name == "README.md" })
	for _, row := range []string{"| sum | `" + sum.String() + "`. ", "| error | "} {
		_, rest, _ := strings.Cut(string(files[at].Data), row)
		if said, _, _ := strings.Cut(rest, " |\n"); len(strings.Fields(said)) < 3 {
			return "the row " + row + "is empty"
		}
	}
	return ""
}

// registry is a list of sums in a source file that this test cannot call. Each entry has the
// sum's name or number in the pattern's group.
type registry struct {
	part, file string
	entry      *regexp.Regexp
}

var registries = []registry{
	{"the Python model", "cocotb/arithmetic.py", regexp.MustCompile(`(?m)^    "(\w+)": \(zwire\.SUM_`)},
	{"the C++ self-test", "hwgen/emit/sim/arithmetic.h", regexp.MustCompile(`(?m)^    \{(\d+), .*\},?  +// \w+$`)},
	{"the vectors", "verify/gateware/vectors/vectors_test.go", regexp.MustCompile(`range (wire\.Sums) \{\n\t\tall = append\(all, row\.Sum\)`)},
	{"the linted cards", "verify/gateware/sweep/shape_test.go", regexp.MustCompile(`sum := range (wire\.Sums)`)},
	{"the simulated cards", "verify/gateware/sweep/simulate_test.go", regexp.MustCompile(`shape\{.*sum: "(\w+)".*\}, twoJobs\}`)},
	{"the synthesized lanes", "verify/gateware/synth/circuits.go", regexp.MustCompile(`newLane\(cells\.Lane\{Sum: "(\w+)"`)},
	{"the help of tributary reduce", "driver/cmd/tributary/reduce.go", regexp.MustCompile(`(?m)^  (\w+) {2,4}\w`)},
}

// read returns the source text of the registry.
func (r registry) read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, r.file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// knows reports whether an entry belongs to the sum. An entry for the table of all sums belongs
// to every sum.
func (r registry) knows(text string, sum wire.Sum) bool {
	for _, entry := range r.entry.FindAllStringSubmatch(text, -1) {
		if slices.Contains([]string{sum.String(), strconv.Itoa(int(sum)), "wire.Sums"}, entry[1]) {
			return true
		}
	}
	return false
}

// TestAMissingEntryIsFound removes the entries of each sum from each registry, and expects the
// check to fail.
func TestAMissingEntryIsFound(t *testing.T) {
	for _, r := range registries {
		text := r.read(t)
		for _, sum := range wire.Sums {
			without := r.entry.ReplaceAllStringFunc(text, func(entry string) string {
				if r.knows(entry, sum.Sum) {
					return ""
				}
				return entry
			})
			if r.knows(without, sum.Sum) {
				t.Errorf("%s: %s is still found without its entries", r.file, sum.Name)
			}
		}
	}
	for part, knows := range programs {
		func() {
			defer func() { recover() }() // a panic reports the missing entry, too
			if knows(99) == "" {
				t.Errorf("%s takes a sum that does not exist", part)
			}
		}()
	}
}
