package main

// A reader for designs in Yosys's format (RTLIL): modules, their cells, and their source
// positions.

import (
	"bufio"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// module is a module of an elaborated design.
type module struct {
	name       string
	parameters map[string]string // in Yosys's notation: 3, 8'00000011
	inputs     []string
	outputs    []string
	wires      map[string]int    // widths
	memories   map[string]bool   // names
	sources    map[string]string // of wires and memories
	cells      []*cell
}

// cell is a cell of a module, with the expressions connected to its ports.
type cell struct {
	name, kind string
	source     string // file:line.column-line.column, without the file's folder
	ports      map[string]string
}

// readDesign reads the modules that are elaborations of a leaf.
func readDesign(file, leaf string) ([]*module, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	ours := regexp.MustCompile(`^(\\|\$paramod(\$[0-9a-f]+)?\\)` + leaf + `(\\.*)?$`)
	var modules []*module
	var m *module
	var c *cell
	source := ""
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		line := lines.Text()
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "module" && ours.MatchString(words[1]) {
			m = &module{name: words[1], parameters: map[string]string{}, wires: map[string]int{}, memories: map[string]bool{}, sources: map[string]string{}}
			modules = append(modules, m)
			continue
		}
		if m == nil {
			continue
		}
		switch {
		case line == "end":
			m = nil
		case c != nil && words[0] == "end":
			c = nil
		case c != nil && words[0] == "connect":
			c.ports[words[1]] = strings.Join(words[2:], " ")
		case words[0] == "attribute" && words[1] == `\src`:
			source = place(strings.Trim(strings.Join(words[2:], " "), `"`))
		case words[0] == "parameter" && c == nil && len(words) >= 3:
			m.parameters[strings.TrimPrefix(words[len(words)-2], `\`)] = words[len(words)-1]
		case words[0] == "wire":
			m.addWire(words)
			m.sources[words[len(words)-1]], source = source, ""
		case words[0] == "memory":
			m.memories[words[len(words)-1]] = true
			m.sources[words[len(words)-1]], source = source, ""
		case words[0] == "cell":
			c = &cell{name: words[2], kind: words[1], source: source, ports: map[string]string{}}
			m.cells = append(m.cells, c)
			source = ""
		}
	}
	return modules, lines.Err()
}

// addWire parses a line "wire width 3 input 2 \name".
func (m *module) addWire(words []string) {
	name := words[len(words)-1]
	m.wires[name] = 1
	for i, word := range words[:len(words)-1] {
		switch word {
		case "width":
			m.wires[name], _ = strconv.Atoi(words[i+1])
		case "input":
			m.inputs = append(m.inputs, strings.TrimPrefix(name, `\`))
		case "output":
			m.outputs = append(m.outputs, strings.TrimPrefix(name, `\`))
		}
	}
}

// place removes the folder from a source position, and takes the first of several.
func place(source string) string {
	source, _, _ = strings.Cut(source, "|")
	return source[strings.LastIndexByte(source, '/')+1:]
}

var operand = regexp.MustCompile(`(\d+)'[01xz-]+|([\\$]\S+)(?: \[(\d+)(?::(\d+))?\])?`)

// width returns the number of bits of an expression.
func (m *module) width(expression string) int {
	bits := 0
	for _, found := range operand.FindAllStringSubmatch(expression, -1) {
		number := func(i int) int { n, _ := strconv.Atoi(found[i]); return n }
		switch {
		case found[1] != "":
			bits += number(1)
		case found[4] != "":
			bits += number(3) - number(4) + 1
		case found[3] != "":
			bits++
		default:
			bits += m.wires[found[2]]
		}
	}
	return bits
}

// operands returns the names in an expression.
func operands(expression string) []string {
	var names []string
	for _, found := range operand.FindAllStringSubmatch(expression, -1) {
		if found[2] != "" {
			names = append(names, found[2])
		}
	}
	return names
}
