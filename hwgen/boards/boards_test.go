package boards

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
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

// The error lists all mistakes in a board's file, with the file's name.
func TestWrongFilesAreRefused(t *testing.T) {
	for file, changes := range map[string]map[[2]string]string{
		"ecpix5": {
			{`"H24"`, `"F22"`}:               `pin F22 is given to ulpi_clk and ulpi_dir`,
			{`"H24"`, `"24H"`}:               `ulpi_clk: "24H" is not a pin`,
			{`"F22"`, `""`}:                  `ulpi_dir: "" is not a pin`,
			{`"M26", `, ``}:                  `ulpi.data has 7 pins, not 8`,
			{`from PHY`, `from nowhere`}:     `ulpi.clock is "from nowhere": must be "from PHY" or "to PHY"`,
			{`"reset": "high"`, `"reset":1`}: `cannot unmarshal`,
			{`"ulpi": {`, `"nobody": {`}:     `unknown field "nobody"`,
			{`"lit": "low"`, `"lit": ""`}:    `leds.lit is "": must be "high" or "low"`,
			{`"programmer"`, `"programer"`}:  `unknown field "programer"`,
			{`"mhz": 100`, `"mhz": 7`}:       `7 MHz`,
			{`"amaranth-boards 0.0.21": "amaranth_boards/ecpix5.py",`, ``}:                                                         `sources has 1 entries`,
			{`"nextpnr": ["--um5g-85k", "--package", "CABGA554", "--speed", "8"],`, ``}:                                            `the part is named for 0 tools: must be for exactly one of nextpnr, vivado`,
			{`"nextpnr": [`, `"vivado": {"part": "x", "config_volts": 3.3}, "nextpnr": [`}:                                         `the part is named for 2 tools`,
			{`"nextpnr": ["--um5g-85k", "--package", "CABGA554", "--speed", "8"]`, `"vivado": {"part": "x", "config_volts": 3.3}`}: `the timing of the pins of USB 2.0 high speed (ULPI), which Vivado needs, is unknown`,
		},
		"butterstick": {
			{`"D11"`, `"B18"`}: `pin B18 is given to rgmii_p0_rx_clk and rgmii_p0_rx_ctl`,
			{`"D11"`, `"B6"`}:  `pin B6 is given to ulpi_clk and rgmii_p0_rx_clk`,
			{`"A16", `, ``}:    `ethernet.ports.rx_data has 3 pins, not 4`,
			{`, "B19"`, ``}:    `ethernet.ports.tx_data has 3 pins, not 4`,
			{`"tx_delay_ps": 2000`, `"tx_delay_ps": 3176`}: `ethernet.tx_delay_ps is 3176: must be 0 to 3175`,
			{`"rx_delay_ps": 0`, `"rx_delay_ps": -1`}:      `ethernet.rx_delay_ps is -1: must be 0 to 3175`,
			{`"reset_us": 10000`, `"reset_us": 0`}:         `ethernet.reset_us is 0: must be 1 or more`,
			{`"core_mhz": 80`, `"core_mhz": 0`}:            `0 MHz: the PLL of changed cannot make it`,
			{`"ports"`, `"port"`}:                          `unknown field "port"`,
		},
		"nexys-video": {
			{`"FT2232H"`, `"FT245"`}: `fifo.chip is "FT245": must be "FT232H" or "FT2232H"`,
			{`, "N14"`, ``}:          `fifo.data has 7 pins, not 8`,
			{`"leds"`, `"ethernet": {"reset_us": 1, "ports": [{"rx_data": ["A1", "A2", "A3", "A4"], "tx_data": ["A5", "A6", "A7", "A8"]}]}, "leds"`}: `the timing of the pins of 1 x Gigabit Ethernet (RGMII), which Vivado needs, is unknown`,
			{`"Y18"`, `"R4"`}:                `pin R4 is given to clk_in and fifo_clk`,
			{`xc7a200tsbg484-1`, ``}:         `vivado.part is empty`,
			{`_volts": 3.3`, `_volts": 1.8`}: `vivado.config_volts is 1.8: must be 3.3 or 2.5`,
			{`"vivado": {"part": "xc7a200tsbg484-1", "config_volts": 3.3}`, `"nextpnr": ["--85k"]`}: `nextpnr does not check the timing of pins, which USB 2.0 high speed (FT2232H) needs`,
		},
	} {
		text, err := constraints.Files.ReadFile(file + ".json")
		require.NoError(t, err)
		for change, want := range changes {
			changed := strings.Replace(string(text), change[0], change[1], 1)
			require.NotEqual(t, string(text), changed, change[0])
			_, err := load(fstest.MapFS{"changed.json": {Data: []byte(changed)}})
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "changed.json")
		}
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
	require.ErrorContains(t, b.check(), "0 links: must have exactly one of ulpi, usb_pins, uart, fifo")
	b = mustFind(t, "ulx3s")
	require.NoError(t, b.check())
	b.ULPI = mustFind(t, "ecpix5").ULPI
	require.ErrorContains(t, b.check(), "2 links: must have exactly one of ulpi, usb_pins, uart, fifo")
}

// A card of shell udp has the Ethernet ports as its link, and the pins of no other link.
func TestOnEthernet(t *testing.T) {
	clocks := map[string][]string{
		"ecpix5":      {"rgmii_p0_rx_clk"},
		"butterstick": {"rgmii_p0_rx_clk"},
		"versa_ecp5":  {"rgmii_p0_rx_clk", "rgmii_p1_rx_clk"},
	}
	for name, want := range clocks {
		b, err := mustFind(t, name).OnEthernet(len(want))
		require.NoError(t, err)
		require.NoError(t, b.checkLink())
		assert.Equal(t, want, b.Link().ClockPorts())
		_, text := b.Constraints(b.CoreMHz)
		for _, port := range want {
			assert.Contains(t, text, fmt.Sprintf("FREQUENCY PORT %q 125 MHZ;", port))
		}
		var rgmii int
		for _, p := range b.Pins() {
			assert.NotRegexp(t, "^(ulpi|uart|usb)_", p.Port)
			if strings.HasPrefix(p.Port, "rgmii_") {
				rgmii++
			}
		}
		assert.Equal(t, 13*len(want), rgmii, name) // reset, and clock, control and four bits each way
		_, err = b.PLL(b.CoreMHz)
		assert.NoError(t, err)
	}
	one, err := mustFind(t, "versa_ecp5").OnEthernet(1)
	require.NoError(t, err)
	assert.Equal(t, clocks["ecpix5"], one.Link().ClockPorts())
	for name, ports := range map[string]int{"ulx3s": 1, "ecpix5": 2, "versa_ecp5": 0} {
		_, err := mustFind(t, name).OnEthernet(ports)
		assert.ErrorContains(t, err, fmt.Sprintf("%s has no %d Ethernet ports that are known", name, ports))
	}
}

// A UART's rate divides 60 MHz with a small error; a bit lasts whole cycles.
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
	assert.ErrorContains(t, (&UART{Baud: 3_000_000}).check(), "uart.chip is empty: must name the chip at the other end of the lines")
	assert.Equal(t, "UART, 115,200 baud", (&UART{Baud: 115_200}).Title())
}

// The constraints place every pin of a board once, with a type, and nothing else.
func TestEveryPinIsConstrainedOnce(t *testing.T) {
	patterns := map[string]struct{ located, typed, clock *regexp.Regexp }{
		".lpf": {
			regexp.MustCompile(`LOCATE COMP "(?P<port>[^"]+)" SITE "(?P<is>[^"]+)";`),
			regexp.MustCompile(`IOBUF PORT "(?P<port>[^"]+)" IO_TYPE=(?P<is>\w+)`),
			regexp.MustCompile(`FREQUENCY PORT "clk_in" (?P<mhz>\d+) MHZ;`),
		},
		".xdc": {
			regexp.MustCompile(`PACKAGE_PIN (?P<is>\w+) .*\[get_ports \{(?P<port>[^}]+)\}\]`),
			regexp.MustCompile(`IOSTANDARD (?P<is>\w+).*\[get_ports \{(?P<port>[^}]+)\}\]`),
			regexp.MustCompile(`create_clock -name clk_in -period (?P<ns>[\d.]+) \[get_ports clk_in\]`),
		},
	}
	boards := All()
	for _, b := range All() {
		if on, err := b.OnEthernet(1); err == nil {
			boards = append(boards, on)
		}
	}
	for _, b := range boards {
		name, text := b.Constraints(b.CoreMHz)
		pattern, ok := patterns[filepath.Ext(name)]
		require.True(t, ok, name)
		assert.Equal(t, b.Name+filepath.Ext(name), name)
		want, types := map[string]string{}, map[string]string{}
		for _, p := range b.Pins() {
			want[p.Port], types[p.Port] = p.Site, p.IO
		}
		for found, pattern := range map[*map[string]string]*regexp.Regexp{&want: pattern.located, &types: pattern.typed} {
			got := map[string]string{}
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				port := m[pattern.SubexpIndex("port")]
				assert.NotContains(t, got, port, b.Name)
				got[port] = m[pattern.SubexpIndex("is")]
			}
			assert.Equal(t, *found, got, b.Name)
		}
		clock := pattern.clock.FindStringSubmatch(text)
		require.Len(t, clock, 2, b.Name)
		value, err := strconv.ParseFloat(clock[1], 64)
		require.NoError(t, err)
		if pattern.clock.SubexpIndex("ns") > 0 {
			value = 1000 / value
		}
		assert.InDelta(t, b.Clock.MHz, value, 1e-3, b.Name)
	}
}

// Vivado's constraints on a board's clocks and on the chip at its pins. The numbers are the chip
// datasheet's, and 1.1 ns for traces. The limit between the clocks is a period of the faster clock.
func TestVivadoGetsTheTiming(t *testing.T) {
	b := mustFind(t, "nexys-video")
	for coreMHz, limit := range map[int]string{50: "16.666", 60: "16.666", 80: "12.500"} {
		_, text := b.Constraints(coreMHz)
		for _, line := range []string{
			"create_generated_clock -name clk [get_pins u_pll/u_pll/CLKOUT0]",
			"create_clock -name fifo_clk -period 16.666 [get_ports fifo_clk]",
			"set_input_delay -clock fifo_clk -min 0.00 [get_ports {fifo_rxf_n fifo_txe_n fifo_data[*]}]",
			"set_input_delay -clock fifo_clk -max 10.10 [get_ports {fifo_rxf_n fifo_txe_n fifo_data[*]}]",
			"set_output_delay -clock fifo_clk -min 0.00 [get_ports {fifo_rd_n fifo_wr_n fifo_oe_n fifo_siwu_n fifo_data[*]}]",
			"set_output_delay -clock fifo_clk -max 8.60 [get_ports {fifo_rd_n fifo_wr_n fifo_oe_n fifo_siwu_n fifo_data[*]}]",
			"set_max_delay -datapath_only -from [get_clocks clk] -to [get_clocks fifo_clk] " + limit,
			"set_max_delay -datapath_only -from [get_clocks fifo_clk] -to [get_clocks clk] " + limit,
		} {
			assert.True(t, strings.Contains(text, "\n"+line+"\n"), line)
		}
	}
}

// The dividers make the clocks within the PLL's limits. The test uses the datasheets'
// formulas.
func TestPLL(t *testing.T) {
	for _, b := range All() {
		made := 0
		for mhz := 10; mhz <= 200; mhz++ {
			p, err := b.PLL(mhz)
			if err != nil {
				assert.ErrorContains(t, err, "the nearest are")
				continue
			}
			made++
			phase := float64(b.Clock.MHz) / float64(p.Input)
			oscillator := phase * float64(p.Feedback)
			switch b.Family().Name() {
			case "ecp5": // the primary output is the feedback
				oscillator *= float64(p.Primary)
				assert.True(t, oscillator >= 400 && oscillator <= 800, "%s: %d MHz: oscillator at %g", b.Name, mhz, oscillator)
				assert.GreaterOrEqual(t, phase, 10.0)
			case "xc7":
				assert.True(t, oscillator >= 800 && oscillator <= 1600, "%s: %d MHz: oscillator at %g", b.Name, mhz, oscillator)
				assert.True(t, phase >= 19 && phase <= 450, "%s: %d MHz: phase detector at %g", b.Name, mhz, phase)
				assert.InDelta(t, 1e6/float64(b.Clock.MHz), p.InputPS, 1)
				assert.True(t, p.Input <= 56 && p.Feedback >= 2 && p.Feedback <= 64 && p.Primary <= 128 && p.Secondary <= 128)
			default:
				t.Fatalf("%s: no formulas", b.Name)
			}
			core, usb := oscillator/float64(p.Primary), oscillator/float64(p.Secondary)
			if !p.CorePrimary {
				core, usb = usb, core
			}
			assert.InDelta(t, mhz, core, 1e-9, b.Name)
			if len(b.Link().ClockPorts()) == 0 {
				assert.InDelta(t, b.Link().MHz(), usb, 1e-9, b.Name)
			}
		}
		assert.GreaterOrEqual(t, made, 4, b.Name)
		for _, beyond := range []int{465, 800} { // what a PLL, or a clock buffer, may give
			_, err := b.PLL(beyond)
			require.Error(t, err, "%s: %d MHz", b.Name, beyond)
		}
		_, err := b.PLL(0)
		require.Error(t, err)
	}
}

// The error for an impossible clock lists possible ones. On ULX3S, 25 MHz, the core's clock is a
// multiple of 25 MHz, and the oscillator runs at 600 MHz, the only multiple of that and of 60 MHz in
// its range. So the core has 25, 50, 75, 100, 150, 200 or 300 MHz; 600 exceeds an output's limit.
func TestPLLChoices(t *testing.T) {
	b := mustFind(t, "ulx3s")
	for mhz, nearest := range map[int]string{
		-5:   "25, 50, 75 and 100",
		1:    "25, 50, 75 and 100",
		175:  "75, 100, 150 and 200",
		1000: "100, 150, 200 and 300",
	} {
		_, err := b.PLL(mhz)
		assert.EqualError(t, err, fmt.Sprintf("%d MHz: the PLL of ulx3s cannot make it from 25 MHz; of the 7 that it makes, from 25 to 300, the nearest are %s", mhz, nearest))
	}
}

var some = Table{Schema: Schema, Rows: []Row{
	{Board: "ecpix5", Sum: "tree", Lanes: 2, Workers: 8, ClockMHz: 40, CoreMHz: 41, LinkMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 4, Workers: 4, ClockMHz: 40, CoreMHz: 41, LinkMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 4, Workers: 4, ClockMHz: 50, CoreMHz: 51, LinkMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 8, Workers: 8, ClockMHz: 50, CoreMHz: 49, LinkMHz: 61},
	{Board: "ecpix5", Sum: "tree", Lanes: 8, Workers: 4, ClockMHz: 50, CoreMHz: 51, LinkMHz: 59},
	{Board: "butterstick", Sum: "tree", Lanes: 16, Workers: 4, ClockMHz: 50, CoreMHz: 51, LinkMHz: 61},
	{Board: "versa_ecp5", Ethernet: 2, Sum: "tree", Lanes: 1, Workers: 4, ClockMHz: 50, CoreMHz: 51, LinkMHz: 125},
	{Board: "versa_ecp5", Ethernet: 2, Sum: "tree", Lanes: 2, Workers: 4, ClockMHz: 50, CoreMHz: 51, LinkMHz: 124.9},
}}

// The largest card adds the most numbers a cycle, of all cards that meet both clocks.
func TestLargest(t *testing.T) {
	r, ok := some.largest("ecpix5", func(Row) bool { return true })
	require.True(t, ok)
	assert.Equal(t, some.Rows[2], r)
	r, ok = some.largest("ecpix5", func(r Row) bool { return r.Workers == 8 })
	require.True(t, ok)
	assert.Equal(t, some.Rows[0], r)
	r, ok = some.largest("versa_ecp5", func(Row) bool { return true })
	require.True(t, ok, "its ports have 125 MHz")
	assert.Equal(t, some.Rows[6], r)
	_, ok = some.largest("c", func(Row) bool { return true })
	assert.False(t, ok)
}

// Every recorded row has a known board and a possible clock, and occurs once.
func TestRecordedRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Recorded().Rows {
		b, ok := Find(r.Board)
		require.True(t, ok, r.Board)
		_, err := b.PLL(r.ClockMHz)
		require.NoError(t, err)
		if r.Ethernet > 0 {
			_, err = b.OnEthernet(r.Ethernet)
			require.NoError(t, err)
		}
		assert.Equal(t, r.Ethernet > 0, r.Shell == "udp", r.Card())
		r.COMB, r.FF, r.BRAM, r.Mults, r.CoreMHz, r.LinkMHz, r.Source = 0, 0, 0, 0, 0, 0, ""
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
