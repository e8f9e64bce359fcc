package boards

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is the record of synthesized, placed and routed cards on boards.
type Table struct {
	Schema int      `json:"schema"`
	Tools  []string `json:"tools"` // name and version
	Rows   []Row    `json:"rows"`
}

// Schema is the version of the table's format.
const Schema = 1

// Row is one card on one board.
type Row struct {
	Board    string `json:"board"`
	Shell    string `json:"shell"`
	Ethernet int    `json:"ethernet,omitempty"` // Ethernet ports; 0 for a card on the board's other link
	Lanes    int    `json:"lanes"`
	Workers  int    `json:"workers"`
	Format   string `json:"format"`
	Result   string `json:"result"`
	Sum      string `json:"sum"`
	Saturate bool   `json:"saturate,omitempty"`
	DSP      bool   `json:"with_dsp,omitempty"` // hwgen -dsp
	Chunk    int    `json:"chunk"`
	Window   int    `json:"window"`
	Jobs     int    `json:"jobs"`
	ClockMHz int    `json:"clock_mhz"` // target of the card's clock

	// Cells of the FPGA.
	COMB  int `json:"comb"`
	FF    int `json:"ff"`
	BRAM  int `json:"bram"`
	Mults int `json:"dsp"`

	CoreMHz float64 `json:"core_mhz"` // maximum of the card's clock
	LinkMHz float64 `json:"link_mhz"` // maximum of the link's clock, the slowest if it has several
	Seed    int     `json:"seed"`     // of place and route

	// Source is a hash of the files and tools behind the row.
	Source string `json:"source"`
}

//go:embed recorded.json
var recorded []byte

var table = mustParse(recorded)

// Recorded returns the embedded table.
func Recorded() Table { return table }

// Parse reads a table.
func Parse(text []byte) (Table, error) {
	var t Table
	if err := json.Unmarshal(text, &t); err != nil {
		return t, err
	}
	if t.Schema != Schema {
		return t, fmt.Errorf("a table of schema %d; this program reads %d", t.Schema, Schema)
	}
	return t, nil
}

func mustParse(text []byte) Table {
	t, err := Parse(text)
	if err != nil {
		panic("recorded.json, which is embedded: " + err.Error())
	}
	return t
}

// Card identifies the card of the row. Two rows of one card differ only in the measurements.
func (r Row) Card() string {
	return fmt.Sprintf("%s %s %d %s %s %s %02d x %02d, chunk %d, window %d, jobs %d, dsp %t, saturate %t, %d MHz", r.Board, r.Shell, r.Ethernet,
		r.Sum, r.Format, r.Result, r.Lanes, r.Workers, r.Chunk, r.Window, r.Jobs, r.DSP, r.Saturate, r.ClockMHz)
}

// Link returns the link of the card. The board must exist and have it.
func (r Row) Link() Link {
	b, _ := Find(r.Board)
	if r.Ethernet > 0 {
		b, _ = b.OnEthernet(r.Ethernet)
	}
	return b.Link()
}

// Met reports whether the card meets both clocks.
func (r Row) Met() bool {
	return r.CoreMHz >= float64(r.ClockMHz) && r.LinkMHz >= float64(r.Link().MHz())
}

// size orders cards by the numbers added a cycle, then by lanes, then by clock.
func (r Row) size() [3]int { return [3]int{r.Lanes * r.Workers, r.Lanes, r.ClockMHz} }

// Largest returns the largest recorded card for a board that meets its clocks and that like
// accepts.
func Largest(board string, like func(Row) bool) (Row, bool) { return table.largest(board, like) }

func (t Table) largest(board string, like func(Row) bool) (best Row, ok bool) {
	for _, r := range t.Rows {
		if r.Board != board || !r.Met() || !like(r) {
			continue
		}
		a, b := r.size(), best.size()
		if !ok || a[0] > b[0] || a[0] == b[0] && (a[1] > b[1] || a[1] == b[1] && a[2] > b[2]) {
			best, ok = r, true
		}
	}
	return best, ok
}

// List returns a table of all boards for people: part, links, and the largest recorded card
// for each sum. Of cards on Ethernet it has the recorded ones alone.
func List(sums []string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "board\tpart\tlink\tsum\tlanes x workers\tcells\tFF\tblock RAM\tclk MHz, of\tlink MHz, of")
	for _, b := range all {
		name, part := b.Name, b.Part
		for ports, on := range b.byPorts() {
			link := on.Link().Title()
			for _, sum := range sums {
				r, ok := Largest(b.Name, func(r Row) bool {
					return r.Ethernet == ports && r.Sum == sum && r.Format == "fp32" && r.Result == "fp32"
				})
				switch {
				case ok:
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d x %d\t%d\t%d\t%d\t%.1f, %d\t%.1f, %d\n", name, part, link, sum,
						r.Lanes, r.Workers, r.COMB, r.FF, r.BRAM, r.CoreMHz, r.ClockMHz, r.LinkMHz, r.Link().MHz())
				case ports > 0:
					continue
				case !b.Family().IsTimed():
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\tfor Vivado\t\t\t\t\t\n", name, part, link, sum)
				default:
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\tnot recorded\t\t\t\t\t\n", name, part, link, sum)
				}
				name, part, link = "", "", ""
			}
		}
	}
	w.Flush()
	return trimRight(text.String())
}

// byPorts returns the board for cards with 0, 1 and more of its Ethernet ports as the link.
func (b Board) byPorts() []Board {
	given := []Board{b}
	for {
		on, err := b.OnEthernet(len(given))
		if err != nil {
			return given
		}
		given = append(given, on)
	}
}

// trimRight removes trailing blanks from all lines.
func trimRight(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
