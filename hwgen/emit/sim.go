package emit

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"text/template"

	"tributary/driver/wire"
	"tributary/hwgen/plan"
)

//go:embed sim
var simText embed.FS

// buildFolder has the outputs of the sim folder's Makefile.
const buildFolder = "sim/build"

// simFiles returns the files that build and check the virtual card. sources are the
// card's Verilog files.
func simFiles(p *plan.Plan, m Manifest, sources []string) ([]File, error) {
	names := []string{"Makefile.tmpl", "card.h.tmpl", "bench.h"}
	if p.HasSelftest() {
		names = append(names, "packet.h", "arithmetic.h", "selftest.cpp")
	}
	program := ""
	switch {
	case p.Shell.Link:
		program = "sim_main.cpp"
		names = append(names, "link.h", program)
	case p.Shell.Ethernet:
		program = "frames_main.cpp"
		names = append(names, "pins.h", "mac.h", program)
		if p.HasSelftest() {
			names = append(names, "ethernet.h")
		}
	default:
		names = append(names, "pins.h", "ports.h", "registers.h.tmpl")
	}
	values := simValues{
		Manifest:   m,
		Sources:    sources,
		RegsPrefix: strings.ToUpper(p.Prefix),
		HasLink:    p.Shell.Link,
		Main:       program,
		Selftest:   p.HasSelftest(),
		OwnMAC:     p.MAC,
		OwnIP:      p.IP,

		FormatNumber: p.Format.Format,
		ResultNumber: p.Result.Format,
		SumNumber:    p.Sum.Code,
	}
	for i := range p.Workers {
		values.Ports = append(values.Ports, i)
	}
	for i := range p.Ethernet {
		values.EthernetPorts = append(values.EthernetPorts, i)
	}
	var files []File
	for _, name := range names {
		text, err := simText.ReadFile("sim/" + name)
		if err != nil {
			return nil, err
		}
		plain, isTemplate := strings.CutSuffix(name, ".tmpl")
		if isTemplate {
			if text, err = execute(name, string(text), values); err != nil {
				return nil, err
			}
		}
		files = append(files, File{"sim/" + plain, text})
	}
	return files, nil
}

// simValues are the values for the templates of the sim folder.
type simValues struct {
	Manifest
	Sources    []string // the card's Verilog, relative to its folder
	RegsPrefix string   // of the names in regs.h
	HasLink    bool     // the card has link pins
	Main       string   // the source of the virtual card; "" where there is none
	Selftest   bool     // the folder has one
	Ports      []int    // 0, 1, ... workers-1

	EthernetPorts []int  // 0, 1, ...
	OwnMAC        uint64 // the card's own address when it is new
	OwnIP         uint32

	FormatNumber, ResultNumber wire.Format
	SumNumber                  wire.Sum
}

// execute executes a template.
func execute(name, text string, values any) ([]byte, error) {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, values); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b.Bytes(), nil
}
