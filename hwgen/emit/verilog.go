package emit

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/hwgen/plan"
	"tributary/hwgen/verilog"
)

const (
	bundle = "agg.v"
	list   = "agg.f"
)

// manyModules follows the command in a bundle.
const manyModules = "\n/* verilator lint_off DECLFILENAME */  // a bundle holds many modules\n"

var (
	prefixed  = regexp.MustCompile(`\bagg_`)
	moduleUse = regexp.MustCompile(`\bagg_[a-z0-9_]+`)
	constant  = regexp.MustCompile(`^localparam .*?([A-Z0-9_]+) =`)
	include   = regexp.MustCompile("(?m)^([ \t]*)`include \"(z[a-z]+\\.vh)\"[ \t]*\n")
)

// verilogFiles returns the Verilog of the card: one file per module and a list of the
// files, or one bundle.
func verilogFiles(p *plan.Plan, rtl fs.FS) ([]File, error) {
	sources, err := leafSources(p, p.Leaves, p.Library(rtl))
	if err != nil {
		return nil, err
	}
	for _, m := range p.Modules {
		text, err := print(m)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{m.Name, text})
	}
	headers, err := includedBy(sources, rtl)
	if err != nil {
		return nil, err
	}

	if p.Bundle {
		text := manyModules
		for _, s := range sources {
			body, err := withConstants(s, headers)
			if err != nil {
				return nil, err
			}
			text += "\n" + body
		}
		return []File{{bundle, []byte(madeBy(p.Command()) + rename(text, p.Prefix))}}, nil
	}

	var files []File
	var names strings.Builder
	for _, s := range sources {
		name := rename(s.module, p.Prefix) + ".v"
		files = append(files, File{name, []byte(madeBy(p.Command()) + "\n" + rename(s.text, p.Prefix))})
		fmt.Fprintln(&names, name)
	}
	for _, header := range slices.Sorted(maps.Keys(headers)) {
		files = append(files, File{header, []byte(madeBy(p.Command()) + "\n" + headers[header])})
	}
	return append(files, File{list, []byte(names.String())}), nil
}

// includedBy returns the text of each header with protocol constants that a source includes, by name.
func includedBy(sources []source, rtl fs.FS) (map[string]string, error) {
	headers := map[string]string{}
	for _, s := range sources {
		for _, found := range include.FindAllStringSubmatch(s.text, -1) {
			text, err := fs.ReadFile(rtl, found[2])
			if err != nil {
				return nil, fmt.Errorf("module %s: %w", s.module, err)
			}
			headers[found[2]] = string(text)
		}
	}
	return headers, nil
}

// source is the text of one module; its name starts with agg_.
type source struct{ module, text string }

// leafSources returns the named leaves and the leaves that they instantiate, in
// alphabetical order. They lack their properties if the user wants that.
func leafSources(p *plan.Plan, names []string, from *leaf.Library) ([]source, error) {
	found := map[string]string{}
	for todo := slices.Clone(names); len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if _, ok := found[name]; ok {
			continue
		}
		text, err := from.Read(name)
		if err != nil {
			return nil, err
		}
		if found[name], err = leafText(p, name, string(text)); err != nil {
			return nil, err
		}
		todo = append(todo, moduleUse.FindAllString(leaf.Code(found[name]), -1)...)
	}
	var list []source
	for name, text := range found {
		list = append(list, source{name, text})
	}
	slices.SortFunc(list, func(a, b source) int { return strings.Compare(a.module, b.module) })
	return list, nil
}

// leafText returns the text of a leaf for the card.
func leafText(p *plan.Plan, name, text string) (string, error) {
	if !p.StripFormal {
		return text, nil
	}
	stripped, err := stripFormal(text)
	if err != nil {
		return "", fmt.Errorf("leaf %s: %w", name, err)
	}
	return stripped, nil
}

func print(m *netlist.Module) (string, error) {
	var b bytes.Buffer
	err := verilog.Print(&b, m)
	return b.String(), err
}

// rename replaces agg by the user's prefix.
func rename(text, prefix string) string {
	return prefixed.ReplaceAllString(text, prefix+"_")
}

// madeBy returns the first comment of every Verilog file: the command. It breaks a long
// command between flags, without a backslash: some front ends interpret that as Verilog's.
func madeBy(command string) string {
	const limit = 100
	var b strings.Builder
	line := "// Made by: "
	for i, flag := range strings.Split(command, " -") {
		if i > 0 {
			flag = " -" + flag
		}
		if len(line)+len(flag) > limit {
			b.WriteString(line + "\n")
			line = "//     "
		}
		line += flag
	}
	b.WriteString(line + "\n")
	return b.String()
}

// withConstants returns the text of a module with the constants that it includes.
func withConstants(s source, headers map[string]string) (string, error) {
	text := s.text
	for _, found := range include.FindAllStringSubmatch(s.text, -1) {
		used, err := usedConstants(found[1], headers[found[2]], s.text)
		if err != nil {
			return "", fmt.Errorf("module %s: %w", s.module, err)
		}
		text = strings.Replace(text, found[0], used, 1)
	}
	return text, nil
}

// usedConstants returns the indented declarations of the constants that the module's code
// uses. Those that only its properties use are declared for them alone.
func usedConstants(indent, constants, module string) (string, error) {
	stripped, err := stripFormal(module)
	if err != nil {
		return "", err
	}
	code, all := leaf.Code(stripped), leaf.Code(module)
	var always, formal strings.Builder
	for line := range strings.Lines(constants) {
		name := constant.FindStringSubmatch(line)
		if name == nil {
			continue
		}
		switch used := regexp.MustCompile(`\b` + name[1] + `\b`); {
		case used.MatchString(code):
			always.WriteString(indent + line)
		case used.MatchString(all):
			formal.WriteString(indent + line)
		}
	}
	if formal.Len() > 0 {
		return always.String() + "`ifdef FORMAL\n" + formal.String() + "`endif\n", nil
	}
	return always.String(), nil
}
