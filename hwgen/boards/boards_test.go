package boards

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/constraints"
)

func TestBoardsAreFound(t *testing.T) {
	require.NotEmpty(t, All())
	for _, name := range Names() {
		b, ok := Find(name)
		require.True(t, ok)
		assert.Equal(t, name, b.Name)
	}
	_, ok := Find("none")
	assert.False(t, ok)
}

// What is wrong with a board's file is all said, with the file's name.
func TestWrongFilesAreRefused(t *testing.T) {
	text, err := constraints.Files.ReadFile("ecpix5.json")
	require.NoError(t, err)
	for change, want := range map[[2]string]string{
		{`"H24"`, `"F22"`}:               `pin F22 is given to ulpi_clk and ulpi_dir`,
		{`"H24"`, `"24H"`}:               `ulpi_clk: "24H" is no pin`,
		{`"F22"`, `""`}:                  `ulpi_dir: "" is no pin`,
		{`"M26", `, ``}:                  `ulpi.data has 7 pins, not 8`,
		{`from PHY`, `from nowhere`}:     `ulpi.clock is "from nowhere": must be "from PHY" or "to PHY"`,
		{`"reset": "high"`, `"reset":1`}: `cannot unmarshal`,
		{`"ulpi": {`, `"nobody": {`}:     `unknown field "nobody"`,
		{`"lit": "low"`, `"lit": ""`}:    `leds.lit is "": must be "high" or "low"`,
		{`"programmer"`, `"programer"`}:  `unknown field "programer"`,
		{`"mhz": 100`, `"mhz": 7`}:       `7 MHz`,
		{`"amaranth-boards 0.0.21": "amaranth_boards/ecpix5.py",`, ``}: `sources has 1 entries`,
	} {
		changed := strings.Replace(string(text), change[0], change[1], 1)
		require.NotEqual(t, string(text), changed, change[0])
		_, err := load(fstest.MapFS{"changed.json": {Data: []byte(changed)}})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "changed.json")
	}
}

func mustFind(t *testing.T, name string) Board {
	t.Helper()
	b, ok := Find(name)
	require.True(t, ok, name)
	return b
}

// A board has one link.
func TestOneLink(t *testing.T) {
	b := mustFind(t, "ecpix5")
	require.NoError(t, b.check())
	b.ULPI = nil
	require.ErrorContains(t, b.check(), "0 links: must have exactly one of ulpi, usb_pins, uart")
	b = mustFind(t, "ulx3s")
	require.NoError(t, b.check())
	b.ULPI = mustFind(t, "ecpix5").ULPI
	require.ErrorContains(t, b.check(), "2 links: must have exactly one of ulpi, usb_pins, uart")
}

// A UART's rate is one that 60 MHz make, nearly; a bit has whole cycles.
func TestUART(t *testing.T) {
	for baud, divide := range map[int]int{3_000_000: 20, 2_000_000: 30, 1_000_000: 60, 921_600: 65, 115_200: 521, 9_600: 6250, 7_500_000: 8} {
		u := UART{Chip: "FT232R", Baud: baud}
		assert.NoError(t, u.check(), baud)
		assert.Equal(t, divide, u.Divide(), baud)
	}
	for baud, want := range map[int]string{
		8_000_000: "uart.baud is 8000000: 60 MHz make 7500000 of it, which is off by 6.2 %; must be 0.5 % at most",
		7_300_000: "uart.baud is 7300000: 60 MHz make 7500000 of it",
		2_900_000: "uart.baud is 2900000: 60 MHz make 2857143 of it, which is off by 1.5 %; must be 0.5 % at most",
		9_000_000: "uart.baud is 9000000: must be 916 to 7500000, which is 8 to 65535 cycles of 60 MHz a bit",
		900:       "uart.baud is 900: must be 916 to 7500000",
		0:         "uart.baud is 0: must be 916 to 7500000",
		-1:        "uart.baud is -1: must be 916 to 7500000",
	} {
		assert.ErrorContains(t, (&UART{Chip: "FT232R", Baud: baud}).check(), want)
	}
	assert.ErrorContains(t, (&UART{Baud: 3_000_000}).check(), "uart.chip must say what is at the other end of the lines")
	assert.Equal(t, "UART, 115,200 baud", (&UART{Baud: 115_200}).Title())
}

// Every pin of a board is placed once and has a type; nothing else is placed.
func TestLPFHasEveryPinOnce(t *testing.T) {
	located := regexp.MustCompile(`LOCATE COMP "([^"]+)" SITE "([^"]+)";`)
	typed := regexp.MustCompile(`IOBUF PORT "([^"]+)" IO_TYPE=(\w+)`)
	for _, b := range All() {
		text := b.LPF()
		want, types := map[string]string{}, map[string]string{}
		for _, p := range b.Pins() {
			want[p.Port], types[p.Port] = p.Site, p.IO
		}
		for found, pattern := range map[*map[string]string]*regexp.Regexp{&want: located, &types: typed} {
			got := map[string]string{}
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				assert.NotContains(t, got, m[1], b.Name)
				got[m[1]] = m[2]
			}
			assert.Equal(t, *found, got, b.Name)
		}
		assert.Contains(t, text, fmt.Sprintf(`FREQUENCY PORT "clk_in" %d MHZ;`, b.Clock.MHz))
	}
}

// The dividers make the clocks, within the PLL's limits; worked out again from the
// datasheet's formulas.
func TestPLL(t *testing.T) {
	for _, b := range All() {
		made := 0
		for mhz := 10; mhz <= 200; mhz++ {
			p, err := b.PLL(mhz)
			if err != nil {
				assert.ErrorContains(t, err, "would do")
				continue
			}
			made++
			primary := float64(b.Clock.MHz) * float64(p.Feedback) / float64(p.Input)
			oscillator := primary * float64(p.Primary)
			assert.True(t, oscillator >= 400 && oscillator <= 800, "%s: %d MHz: oscillator at %g", b.Name, mhz, oscillator)
			assert.GreaterOrEqual(t, float64(b.Clock.MHz)/float64(p.Input), 10.0)
			core, usb := primary, oscillator/float64(p.Secondary)
			if !p.CorePrimary {
				core, usb = usb, core
			}
			assert.InDelta(t, mhz, core, 1e-9, b.Name)
			if b.Link().ClockPort() == "" {
				assert.InDelta(t, b.Link().MHz(), usb, 1e-9, b.Name)
			}
		}
		assert.GreaterOrEqual(t, made, 4, b.Name)
		_, err := b.PLL(0)
		require.Error(t, err)
	}
}

var some = Table{Schema: Schema, Rows: []Row{
	{Board: "ecpix5", Sum: "tree", Lanes: 2, Workers: 8, ClockMHz: 40, CoreMHz: 41, USBMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 4, Workers: 4, ClockMHz: 40, CoreMHz: 41, USBMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 4, Workers: 4, ClockMHz: 50, CoreMHz: 51, USBMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 8, Workers: 8, ClockMHz: 50, CoreMHz: 49, USBMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 8, Workers: 4, ClockMHz: 50, CoreMHz: 51, USBMHz: 59},
	{Board: "butterstick", Sum: "tree", Lanes: 16, Workers: 4, ClockMHz: 50, CoreMHz: 51, USBMHz: 61},
}}

// The largest card is the one that adds most a cycle, among those that keep both clocks.
func TestLargest(t *testing.T) {
	r, ok := some.largest("ecpix5", func(Row) bool { return true })
	require.True(t, ok)
	assert.Equal(t, some.Rows[2], r)
	r, ok = some.largest("ecpix5", func(r Row) bool { return r.Workers == 8 })
	require.True(t, ok)
	assert.Equal(t, some.Rows[0], r)
	_, ok = some.largest("c", func(Row) bool { return true })
	assert.False(t, ok)
}

// Every recorded row is of a board that there is, at a clock that it can have, and there
// once.
func TestRecordedRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Recorded().Rows {
		b, ok := Find(r.Board)
		require.True(t, ok, r.Board)
		_, err := b.PLL(r.ClockMHz)
		require.NoError(t, err)
		r.COMB, r.FF, r.BRAM, r.Mults, r.CoreMHz, r.USBMHz, r.Source = 0, 0, 0, 0, 0, 0, ""
		key := fmt.Sprint(r)
		assert.False(t, seen[key], key)
		seen[key] = true
	}
}

func TestListNamesEveryBoard(t *testing.T) {
	text := List([]string{"tree", "a sum without rows"})
	for _, b := range All() {
		assert.Contains(t, text, b.Name)
		assert.Contains(t, text, b.Part)
	}
	assert.Contains(t, text, "not recorded")
	for line := range strings.Lines(text) {
		assert.Equal(t, strings.TrimRight(line, " \n")+"\n", line)
	}
}

func TestParse(t *testing.T) {
	_, err := Parse([]byte(`{"schema": 2}`))
	require.ErrorContains(t, err, "schema 2")
	_, err = Parse([]byte(`[`))
	require.Error(t, err)
}
