package emit

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tributary/hwgen/boards"
	"tributary/hwgen/cells"
	"tributary/hwgen/plan"
)

//go:embed board
var boardText embed.FS

// Folders for boards, in the card's.
const (
	boardFolder      = "board"
	boardBuildFolder = boardFolder + "/build" // where its Makefile puts all that it makes
)

// boardFiles returns the folder that builds the bitstream of a card for its board, whose
// Verilog is in the given files; nothing where there is no board.
func boardFiles(p *plan.Plan, m Manifest, sources []string, rtl fs.FS) ([]File, error) {
	if p.OnBoard == nil {
		return nil, nil
	}
	vendor := vendorFS{rtl}
	leaves, err := leafSources(p.BoardLeaves, vendor)
	if err != nil {
		return nil, err
	}
	cards, err := leafSources(p.Leaves, rtl)
	if err != nil {
		return nil, err
	}
	leaves = slices.DeleteFunc(leaves, func(s source) bool { return slices.Contains(cards, s) })
	top, err := print(p.BoardModule)
	if err != nil {
		return nil, err
	}
	var files []File
	add := func(name, text string) { files = append(files, File{boardFolder + "/" + name, []byte(text)}) }
	values := boardValues{Manifest: m, Board: *p.OnBoard, Clock: p.Clock, Words: p.OnBoard.Link().Words(*p.OnBoard),
		Top: plan.BoardTop, USBDevice: rename(p.OnBoard.Link().USBDevice(), p.Prefix)}
	if slices.Contains(p.Leaves, sharedAdder) {
		values.Share = strings.ReplaceAll(cells.ShareAddersOf(rename(sharedAdder, p.Prefix)), "$", `\$$`)
	}
	for _, l := range append(leaves, source{plan.BoardTop, top}) {
		name := rename(l.module, p.Prefix) + ".v"
		add(name, madeBy(p.Command())+"\n"+rename(l.text, p.Prefix))
		values.Sources = append(values.Sources, name)
	}
	for _, name := range sources {
		own, err := vendor.own(strings.TrimSuffix(name, ".v"), p.Prefix)
		if err != nil {
			return nil, err
		}
		if own == "" {
			values.Sources = append(values.Sources, "../"+name)
			continue
		}
		add(name, madeBy(p.Command())+"\n"+rename(own, p.Prefix))
		values.Sources = append(values.Sources, name)
	}
	add(p.OnBoard.Name+".lpf", p.OnBoard.LPF())
	entries, err := boardText.ReadDir(boardFolder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if values.USBDevice == "" && slices.Contains(usbDeviceFiles, e.Name()) {
			continue
		}
		text, err := boardText.ReadFile(path.Join(boardFolder, e.Name()))
		if err != nil {
			return nil, err
		}
		name, isTemplate := strings.CutSuffix(e.Name(), ".tmpl")
		if isTemplate {
			if text, err = execute(e.Name(), string(text), values); err != nil {
				return nil, err
			}
		}
		add(name, string(text))
	}
	return files, nil
}

// boardValues is what the templates of the board folder are filled in with.
type boardValues struct {
	Manifest
	Board     boards.Board
	Clock     int          // MHz of the card
	Words     boards.Words // of the link
	Share     string       // what Yosys is told of adders, for a shell in a Makefile; may be empty
	Top       string       // module
	USBDevice string       // module; "" where the link is none
	Sources   []string     // Verilog, relative to the board's folder
}

// Pins lists the pins of the board's top.
func (v boardValues) Pins() []boards.Pin { return v.Board.Pins() }

// usbDeviceFiles write the USB device, and say what that needs.
var usbDeviceFiles = []string{"usb_device.py", "requirements.txt"}

// sharedAdder is the leaf that adds or subtracts, as it is told.
const sharedAdder = "agg_window_add"

// vendorFolder holds leaves out of the FPGA's own cells.
const vendorFolder = "ecp5"

// vendorFS finds leaves among the portable ones, and those that are none among the
// vendor's.
type vendorFS struct{ rtl fs.FS }

func (v vendorFS) Open(name string) (fs.File, error) {
	if f, err := v.rtl.Open(name); err == nil {
		return f, nil
	}
	return v.rtl.Open(path.Join(vendorFolder, name))
}

// own returns the vendor's text of a module of the card that stands in the place of the
// portable one; "" where there is none.
func (v vendorFS) own(module, prefix string) (string, error) {
	names, err := fs.Glob(v.rtl, vendorFolder+"/*.v")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if rename(strings.TrimSuffix(path.Base(name), ".v"), prefix) == module {
			text, err := fs.ReadFile(v.rtl, name)
			return string(text), err
		}
	}
	return "", nil
}
