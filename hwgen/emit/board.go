package emit

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tributary/hwgen/boards"
	"tributary/hwgen/cells"
	"tributary/hwgen/leaf"
	"tributary/hwgen/plan"
)

// boardText has the script that writes a USB device, a folder with the one that writes an Ethernet
// MAC, and a folder for each FPGA family with the files that build a bitstream.
//
//go:embed board
var boardText embed.FS

// Folders for boards, in the card's.
const (
	boardFolder      = "board"
	boardBuildFolder = boardFolder + "/build" // output of the board's Makefile
)

// boardFiles returns the files that build the bitstream of a card for its board, or none
// without a board. sources are the card's Verilog files.
func boardFiles(p *plan.Plan, m Manifest, sources []string, rtl fs.FS) ([]File, error) {
	if p.OnBoard == nil {
		return nil, nil
	}
	family := p.OnBoard.Family().Name()
	vendor := leaf.NewLibrary(rtl, leaf.VendorFolder(family))
	own, err := leafSources(p, p.BoardLeaves, vendor)
	if err != nil {
		return nil, err
	}
	cards, err := leafSources(p, p.Leaves, p.Library(rtl))
	if err != nil {
		return nil, err
	}
	own = slices.DeleteFunc(own, func(s source) bool { return slices.Contains(cards, s) })
	top, err := print(p.BoardModule)
	if err != nil {
		return nil, err
	}
	var files []File
	add := func(name, text string) { files = append(files, File{boardFolder + "/" + name, []byte(text)}) }
	constraints, text := p.OnBoard.Constraints(p.Clock)
	add(constraints, text)
	additions := p.Lanes * (p.Workers - 1)
	values := boardValues{Manifest: m, Board: *p.OnBoard, Clock: p.Clock, Words: p.OnBoard.Link().Words(*p.OnBoard),
		Synth: breakLines(quote(cells.SynthCard(additions))), LogicResets: cells.LogicResets(additions),
		Top: plan.BoardTop, USBDevice: rename(p.OnBoard.Link().USBDevice(), p.Prefix), Constraints: constraints}
	if ethernet, ok := p.OnBoard.Link().(*boards.Ethernet); ok {
		values.Ethernet, values.MAC = ethernet, rename(boards.EthernetMAC, p.Prefix)
	}
	if slices.Contains(p.Leaves, sharedAdder) {
		values.Share = quote(cells.ShareAddersOf(rename(sharedAdder, p.Prefix)))
	}
	for _, l := range append(own, source{plan.BoardTop, top}) {
		name := rename(l.module, p.Prefix) + ".v"
		add(name, madeBy(p.Command())+"\n"+rename(l.text, p.Prefix))
		values.Sources = append(values.Sources, name)
	}
	for _, l := range own {
		text, err := vendor.Constraints(l.module)
		if err != nil {
			return nil, err
		}
		if text != "" {
			name := rename(l.module, p.Prefix) + ".tcl"
			add(name, rename(text, p.Prefix))
			values.Crossings = append(values.Crossings, name)
		}
	}
	for _, name := range sources {
		module := "agg" + strings.TrimPrefix(strings.TrimSuffix(name, ".v"), p.Prefix)
		text, err := vendor.Own(module)
		if err != nil {
			return nil, err
		}
		if text == "" {
			values.Sources = append(values.Sources, "../"+name)
			continue
		}
		if text, err = leafText(p, module, text); err != nil {
			return nil, err
		}
		add(name, madeBy(p.Command())+"\n"+rename(text, p.Prefix))
		values.Sources = append(values.Sources, name)
	}
	folders := []string{path.Join(boardFolder, family)}
	if values.MAC != "" {
		folders = append(folders, path.Join(boardFolder, "ethernet"))
	}
	if values.USBDevice != "" {
		folders = append(folders, boardFolder)
	}
	for _, folder := range folders {
		scripts, err := boardScripts(folder, values)
		if err != nil {
			return nil, err
		}
		files = append(files, scripts...)
	}
	return files, nil
}

// boardScripts returns the files of a folder of boardText. It executes the templates.
func boardScripts(folder string, values boardValues) (files []File, err error) {
	entries, err := boardText.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := boardText.ReadFile(path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		name, isTemplate := strings.CutSuffix(e.Name(), ".tmpl")
		if isTemplate {
			filled, err := execute(e.Name(), string(text), values)
			if err != nil {
				return nil, err
			}
			text = filled
		}
		files = append(files, File{path.Join(boardFolder, name), text})
	}
	return files, nil
}

// boardValues are the values for the templates of the board folder.
type boardValues struct {
	Manifest
	Board       boards.Board
	Clock       int              // MHz of the card
	Words       boards.Words     // of the link
	Share       string           // Yosys commands that share adders, quoted for a Makefile's shell; may be empty
	Synth       string           // Yosys commands that synthesize, quoted as well; the last one lacks its options
	LogicResets bool             // Synth makes small resets logic
	Top         string           // module
	USBDevice   string           // module; "" for a link without one
	Ethernet    *boards.Ethernet // the link; nil for another
	MAC         string           // module of each of its ports; "" for another link
	Constraints string           // file
	Crossings   []string         // files with the constraints of modules where signals change clocks
	Sources     []string         // Verilog, relative to the board's folder
}

// quote quotes Yosys commands for double quotes in a shell that a Makefile calls.
func quote(commands string) string { return strings.ReplaceAll(commands, "$", `\$$`) }

// breakLines gives each of several Yosys commands in a Makefile a line.
func breakLines(commands string) string { return strings.ReplaceAll(commands, "; ", "; \\\n\t  ") }

// Pins lists the pins of the board's top.
func (v boardValues) Pins() []boards.Pin { return v.Board.Pins() }

// sharedAdder is the leaf that adds or subtracts.
const sharedAdder = "agg_window_add"
