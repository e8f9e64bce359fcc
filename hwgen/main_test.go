package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/hwgen/boards"
	"tributary/hwgen/leaf"
	"tributary/rtl"
)

var update = flag.Bool("update", false, "rewrite the golden folders")

// goldens are small cards of every shape that changes the text.
var goldens = map[string]string{
	"l4_w3_stream":     "-lanes 4 -workers 3 -chunk 32 -window 2",
	"l2_w1_none":       "-lanes 2 -workers 1 -shell none -chunk 8 -window 1",
	"l2_w3_udp":        "-lanes 2 -workers 3 -shell udp -chunk 8 -window 2",
	"l2_w3_parent":     "-lanes 2 -workers 3 -jobs 2 -shell none -parent -chunk 8 -window 2",
	"l2_w2_udp_parent": "-lanes 2 -workers 2 -jobs 2 -shell udp -ethernet 2 -parent -chunk 8 -window 2",
	"l2_w2_roce":       "-lanes 2 -workers 2 -shell roce -chunk 64 -window 2",
	"l1_w2_bundle":     "-lanes 1 -workers 2 -link 8 -chunk 4 -window 4 -prefix left -bundle",
}

// goldenParts are cards whose partFiles are golden: each sum's lane and its core, and a card with
// several jobs. The golden folders cover their other files.
var goldenParts = map[string]string{
	"l1_w3_bf16_fp32_fused": "-lanes 1 -workers 3 -format bf16 -result fp32 -sum fused -shell none -chunk 4 -window 1",
	"l2_w3_fp32_exact":      "-lanes 2 -workers 3 -sum exact -shell none -chunk 4 -window 1",
	"l1_w3_int32":           "-lanes 1 -workers 3 -format int32 -saturate -shell none -chunk 4 -window 1",
	"l1_w2_jobs":            "-lanes 1 -workers 2 -jobs 2 -shell none -registers bus -chunk 4 -window 2",
}

var partFiles = []string{"agg_lane.v", "agg_core.v", "README.md"}

// goldenBoards returns the files that each board adds to a card.
func goldenBoards() map[string][]string {
	files := map[string][]string{}
	for _, b := range boards.All() {
		constraints, _ := b.Constraints(b.CoreMHz)
		files[b.Name] = []string{"board/board_top.v", "board/" + constraints, "board/Makefile", "board/README.md"}
		if b.Vivado != nil {
			files[b.Name] = append(files[b.Name], "board/build.tcl")
		}
	}
	return files
}

// hwgen runs the command and returns its exit status and what it printed.
func hwgen(line string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(context.Background(), strings.Fields(line), &out, &err)
	return status, out.String(), err.String()
}

// makeCard makes a card in a new folder and returns the folder.
func makeCard(t testing.TB, line string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "card")
	status, _, stderr := hwgen(line + " -o " + dir)
	require.Equal(t, exitDone, status, stderr)
	return dir
}

// contents returns the text of every file below dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

// verilog returns the files with modules.
func verilog(files map[string]string) map[string]string {
	modules := map[string]string{}
	for name, text := range files {
		if strings.HasSuffix(name, ".v") {
			modules[name] = text
		}
	}
	return modules
}

// A golden folder has the files that hwgen composes. Its manifest records copied files by name and
// SHA-256.
func TestGoldenFolders(t *testing.T) {
	for name, line := range goldens {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", "golden", name)
			card := contents(t, makeCard(t, line))
			got := written(t, name, card)
			if *update {
				require.NoError(t, os.RemoveAll(golden))
				for file, text := range got {
					put(t, filepath.Join(golden, file), text)
				}
			}
			want := contents(t, golden)
			for file, text := range got {
				assert.Equal(t, want[file], text, "%s; if it is meant: go test ./hwgen -update", file)
			}
			for file := range want {
				assert.Contains(t, got, file)
			}
			assert.Empty(t, strayed(t, want["manifest.json"], card))
		})
	}
}

// printed are the golden folders with the files of the tables. They are equal in all cards on a network,
// and in all others.
var printed = []string{"l4_w3_stream", "l2_w3_udp"}

// written returns the files of a card that hwgen composes. For a bundle, it returns the modules that
// hwgen composes.
func written(t *testing.T, golden string, card map[string]string) map[string]string {
	t.Helper()
	copied := copies(t)
	own := map[string]string{}
	for name, text := range card {
		body := text
		if strings.HasPrefix(text, "// Made by: ") {
			_, body, _ = strings.Cut(text, "\n\n")
		}
		switch {
		case copied[body], strings.HasPrefix(name, "regs.") && !slices.Contains(printed, golden):
		case name == "agg.v":
			head, _, _ := strings.Cut(text, "\n\n")
			lane := regexp.MustCompile(`\nmodule \w+_lane `).FindStringIndex(text)
			require.NotNil(t, lane)
			const end = "`default_nettype wire\n"
			own[name] = head + "\n" + text[strings.LastIndex(text[:lane[0]], end)+len(end):]
		default:
			own[name] = text
		}
	}
	return own
}

// copies returns the texts that hwgen copies into cards: leaves, the specification, and files of the
// simulation and of boards that are not templates.
func copies(t *testing.T) map[string]bool {
	t.Helper()
	texts := map[string]bool{}
	for _, from := range []fs.FS{rtl.Files, wire.Pages, os.DirFS("emit/sim"), os.DirFS("emit/board")} {
		require.NoError(t, fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".tmpl") {
				return err
			}
			text, err := fs.ReadFile(from, path)
			if err != nil {
				return err
			}
			for _, parent := range []bool{false, true} {
				resolved, err := leaf.Resolve(string(text), leaf.Parent, parent)
				if err != nil {
					return err
				}
				texts[resolved] = true
			}
			return nil
		}))
	}
	return texts
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
}

// strayed returns the files of a card that differ from its manifest: changed, missing, or not listed.
func strayed(t *testing.T, manifest string, card map[string]string) (names []string) {
	t.Helper()
	var m struct {
		Digests map[string]string `json:"sha256"`
	}
	require.NoError(t, json.Unmarshal([]byte(manifest), &m))
	for name, want := range m.Digests {
		if text, ok := card[name]; !ok || fmt.Sprintf("%x", sha256.Sum256([]byte(text))) != want {
			names = append(names, name)
		}
	}
	for name := range card {
		if _, ok := m.Digests[name]; !ok && name != "manifest.json" {
			names = append(names, name)
		}
	}
	return names
}

// The goldens detect a changed, missing or new leaf, although their folders have no leaves.
func TestGoldensKnowTheLeaves(t *testing.T) {
	const name = "l2_w1_none"
	manifest, err := os.ReadFile(filepath.Join("testdata", "golden", name, "manifest.json"))
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join("testdata", "golden", name, "agg_ram.v"))
	card := contents(t, makeCard(t, goldens[name]))
	require.Empty(t, strayed(t, string(manifest), card))
	leaf := card["agg_ram.v"]
	card["agg_ram.v"] = strings.Replace(leaf, "wire", "wirf", 1)
	assert.Equal(t, []string{"agg_ram.v"}, strayed(t, string(manifest), card))
	delete(card, "agg_ram.v")
	assert.Equal(t, []string{"agg_ram.v"}, strayed(t, string(manifest), card))
	card["agg_ram.v"], card["agg_rom.v"] = leaf, leaf
	assert.Equal(t, []string{"agg_rom.v"}, strayed(t, string(manifest), card))
}

func TestGoldenParts(t *testing.T) {
	for name, line := range goldenParts {
		t.Run(name, func(t *testing.T) { compareParts(t, name, line, partFiles) })
	}
}

// A card on Ethernet differs from the others of its board in all of these files.
func TestGoldenEthernetBoard(t *testing.T) {
	compareParts(t, "board_ecpix5_udp", "-lanes 2 -workers 2 -chunk 4 -window 1 -shell udp -board ecpix5", goldenBoards()["ecpix5"])
}

func TestGoldenBoards(t *testing.T) {
	for name, files := range goldenBoards() {
		t.Run(name, func(t *testing.T) {
			compareParts(t, "board_"+name, "-lanes 1 -workers 2 -chunk 4 -window 1 -board "+name, files)
		})
	}
}

// The board's Makefile shares the adder that adds or subtracts, by its name in the card.
func TestBoardSharesItsAdder(t *testing.T) {
	for line, want := range map[string]string{
		"-sum tree":              "",
		"-sum fused":             "share -aggressive *agg_window_add*;",
		"-sum fused -prefix own": "share -aggressive *own_window_add*;",
	} {
		card := makeCard(t, "-lanes 1 -workers 2 -chunk 4 -window 1 -board ecpix5 "+line)
		text, err := os.ReadFile(filepath.Join(card, "board", "Makefile"))
		require.NoError(t, err)
		shared := regexp.MustCompile(`share .*?;`).FindString(string(text))
		assert.Equal(t, want, shared, line)
	}
}

// compareParts compares some files of a card with those in testdata/parts/NAME.
func compareParts(t *testing.T, name, line string, files []string) {
	t.Helper()
	card := makeCard(t, line)
	for _, file := range files {
		golden := filepath.Join("testdata", "parts", name, file)
		got, err := os.ReadFile(filepath.Join(card, file))
		require.NoError(t, err)
		if *update {
			put(t, golden, string(got))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s; if it is meant: go test ./hwgen -update", file)
	}
}

// The error for an unknown board lists the known boards.
func TestUnknownBoard(t *testing.T) {
	status, _, stderr := hwgen("-board mine -lanes 4")
	assert.Equal(t, exitUsage, status)
	for _, name := range boards.Names() {
		assert.Contains(t, stderr, name)
	}
}

// A clock that the board's FPGA cannot make is a usage error.
func TestBoardClocks(t *testing.T) {
	status, _, stderr := hwgen("-board ecpix5 -lanes 4 -clock 7")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "-clock 7 MHz: the PLL of ecpix5 cannot make it from 100 MHz")
	status, _, _ = hwgen("-board ecpix5 -lanes 4 -clock 60 -dry-run")
	assert.Equal(t, exitDone, status)
}

// An unreadable clock is the only complaint, with and without -lanes.
func TestBoardClockThatIsNoNumber(t *testing.T) {
	for _, more := range []string{"", " -lanes 4"} {
		status, _, stderr := hwgen("-board ecpix5 -clock 60.5" + more)
		assert.Equal(t, exitUsage, status)
		assert.Equal(t, "hwgen: -clock 60.5: not a whole number\nhwgen: nothing was written; hwgen -h lists the flags\n", stderr)
	}
}

// The printed commands work in a shell: a folder with blanks is one word.
func TestNextCommandIsQuoted(t *testing.T) {
	for dir, want := range map[string]string{
		"plain-1.0":   "make -C plain-1.0/sim test, make -C plain-1.0/board\n",
		"my card":     "make -C 'my card/sim' test, make -C 'my card/board'\n",
		"it's; $HOME": `make -C 'it'\''s; $HOME/sim' test, make -C 'it'\''s; $HOME/board'` + "\n",
	} {
		t.Chdir(t.TempDir())
		var out bytes.Buffer
		args := []string{"-board", "ecpix5", "-lanes", "1", "-workers", "2", "-chunk", "4", "-o", dir}
		require.Equal(t, exitDone, run(context.Background(), args, &out, &out), out.String())
		assert.Contains(t, out.String(), "; next: "+want)
	}
}

// hwgen replaces a card with edited files only with -force.
func TestEditedCardIsKept(t *testing.T) {
	t.Chdir(t.TempDir())
	status, _, stderr := hwgen("-lanes 2 -o card")
	require.Equal(t, exitDone, status, stderr)
	for _, name := range []string{"agg_core.v", "sim/Makefile"} {
		text, err := os.ReadFile("card/" + name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("card/"+name, append(text, "# mine\n"...), 0o666))
	}
	before := contents(t, "card")
	status, stdout, stderr := hwgen("-lanes 4 -o card")
	assert.Equal(t, exitFailed, status)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "card holds files of the card that were edited: agg_core.v, sim/Makefile; replace them with -force")
	assert.Equal(t, before, contents(t, "card"))
	status, _, stderr = hwgen("-lanes 4 -force -o card")
	require.Equal(t, exitDone, status, stderr)
	assert.NotContains(t, contents(t, "card")["agg_core.v"], "# mine")
}

func TestListBoards(t *testing.T) {
	status, stdout, _ := hwgen("-list-boards")
	assert.Equal(t, exitDone, status)
	for _, name := range boards.Names() {
		assert.Contains(t, stdout, "\n"+name)
	}
}

// A board's folder has every module that the top instantiates, with the card's prefix. The only
// exceptions are the USB device and the Ethernet MAC, which scripts write later.
func TestBoardsStandAlone(t *testing.T) {
	for _, b := range boards.All() {
		files := contents(t, makeCard(t, "-lanes 2 -workers 2 -chunk 8 -window 1 -prefix left -board "+b.Name))
		device := strings.Replace(b.Link().USBDevice(), "agg_", "left_", 1)
		standsAlone(t, files, device)
		if device == "" {
			assert.NotContains(t, files, "board/usb_device.py")
			assert.NotContains(t, files["board/Makefile"], "usb_device")
		} else {
			assert.Contains(t, files, "board/usb_device.py")
			assert.Contains(t, files["board/Makefile"], "--phy "+b.Link().PHY()+" --top "+device)
		}
		if b.Ethernet == nil {
			continue
		}
		files = contents(t, makeCard(t, "-lanes 2 -workers 2 -chunk 8 -window 1 -prefix left -shell udp -board "+b.Name))
		standsAlone(t, files, "left_eth_mac")
		assert.Contains(t, files, "board/ethernet_mac.py")
		assert.NotContains(t, files, "board/usb_device.py")
		assert.NotContains(t, files["board/board_top.v"], "_p1_", "one port")
		assert.Contains(t, files["board/Makefile"], fmt.Sprintf("--top left_eth_mac --tx-delay %d ", b.Ethernet.TXDelay))
	}
}

// A board without Ethernet, or with fewer ports, is a usage error.
func TestBoardWithoutEthernet(t *testing.T) {
	for line, want := range map[string]string{
		"-board ulx3s -shell udp":               "-shell udp: the link of ulx3s needs shell stream",
		"-board ecpix5 -shell none":             "-shell none: the link of ecpix5 needs shell stream or udp",
		"-board ecpix5 -shell udp -ethernet 2":  "-ethernet 2: ecpix5 has no more than 1",
		"-board ecpix5 -shell udp -link 8":      "-link 8: the link of ecpix5 has 64 bits",
		"-board versa_ecp5 -shell udp -lanes 1": "-link 64: an Ethernet port cannot be wider than a beat",
	} {
		if !strings.Contains(line, "-lanes") {
			line += " -lanes 4"
		}
		status, _, stderr := hwgen(line)
		assert.Equal(t, exitUsage, status, line)
		assert.Contains(t, stderr, want)
	}
}

// standsAlone: the files define every module that they use once, except one that a script writes,
// and the board's Makefile names them.
func standsAlone(t *testing.T, files map[string]string, device string) {
	t.Helper()
	modules := map[string]bool{}
	if device != "" {
		modules[device] = true
	}
	for _, text := range verilog(files) {
		for _, m := range defined.FindAllStringSubmatch(text, -1) {
			assert.False(t, modules[m[1]], "%s is defined twice", m[1])
			modules[m[1]] = true
		}
	}
	for file, text := range verilog(files) {
		for _, u := range used.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
			assert.True(t, modules[u[1]], "%s: %s is missing", file, u[1])
		}
		assert.Contains(t, files["board/Makefile"], filepath.Base(file))
	}
}

// With -dsp, the card uses the multiplier of the board's FPGA instead of the portable one.
func TestBoardsOwnCells(t *testing.T) {
	files := contents(t, makeCard(t, "-lanes 1 -workers 2 -sum fused -dsp -board ecpix5"))
	assert.Contains(t, files["board/agg_window_multiply.v"], "MULT18X18D")
	assert.NotContains(t, files["agg_window_multiply.v"], "MULT18X18D")
	assert.Contains(t, files["board/Makefile"], " agg_window_multiply.v ")
	assert.NotContains(t, files["board/Makefile"], "../agg_window_multiply.v")
}

// The script of a card with many adders makes small resets logic.
func TestLogicResets(t *testing.T) {
	for lanes, more := range map[int]bool{8: false, 16: true} {
		makefile := contents(t, makeCard(t, fmt.Sprintf("-lanes %d -workers 4 -board ecpix5", lanes)))["board/Makefile"]
		assert.Equal(t, more, strings.Contains(makefile, `dfflegalize -minsrst 100 -cell \$$_DFF_?_ 01 `), "%d lanes", lanes)
	}
}

func TestSameFlagsGiveTheSameBytes(t *testing.T) {
	for _, line := range []string{"-lanes 8 -workers 5", "-lanes 2 -shell none -bundle -prefix x"} {
		assert.Equal(t, contents(t, makeCard(t, line)), contents(t, makeCard(t, line)), line)
	}
}

// BenchmarkLargeCard writes a card of 64 lanes and 32 workers.
func BenchmarkLargeCard(b *testing.B) {
	for b.Loop() {
		makeCard(b, "-lanes 64 -workers 32")
	}
}

// With wrong flags, hwgen reports all mistakes, exits with status 2 and writes nothing.
func TestUsageErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	status, stdout, stderr := hwgen("-lanes 3 -workers 99 -shell ring -frobnicate")
	assert.Equal(t, exitUsage, status)
	assert.Empty(t, stdout)
	assert.Equal(t, `hwgen: -frobnicate: no such flag
hwgen: -lanes 3: must be a power of two, 1 to 64
hwgen: -workers 99: must be 1 to 64
hwgen: -shell ring: must be stream, none, udp or roce
hwgen: nothing was written; hwgen -h lists the flags
`, stderr)
	assert.Empty(t, contents(t, "."))
}

func TestForeignFolderIsLeftAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("mine", 0o777))
	require.NoError(t, os.WriteFile("mine/notes.txt", []byte("notes"), 0o666))
	status, stdout, stderr := hwgen("-lanes 2 -o mine")
	assert.Equal(t, exitFailed, status)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "mine exists and holds no manifest of hwgen; name another folder with -o, or remove it")
	assert.Equal(t, map[string]string{"mine/notes.txt": "notes"}, contents(t, "."))
}

// The error names the obstacle, and the flag that selects another folder.
func TestFolderThatCannotBeMade(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("file", nil, 0o666))
	for _, dir := range []string{"file/card", "/proc/card"} {
		status, stdout, stderr := hwgen("-lanes 2 -o " + dir)
		assert.Equal(t, exitFailed, status, dir)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, dir)
		assert.Contains(t, stderr, " cannot be made: ", dir)
		assert.Contains(t, stderr, "; name another folder with -o", dir)
		assert.NotContains(t, stderr, "new", dir)
	}
}

func TestDefaultFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	status, stdout, stderr := hwgen("--lanes 16")
	require.Equal(t, exitDone, status, stderr)
	assert.FileExists(t, "tributary_l16_w4_fp32_tree/agg_top.v")
	assert.Contains(t, stdout, "tributary_l16_w4_fp32_tree/sim test")
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	status, stdout, _ := hwgen("-lanes 64 -workers 32 -dry-run")
	assert.Equal(t, exitDone, status)
	for _, word := range []string{"memory", "latency", "throughput", "64 cycles a chunk of 8 beats",
		"a packet every 2 cycles", "a result every 6"} {
		assert.Contains(t, stdout, word)
	}
	assert.Empty(t, contents(t, "."))
}

// A window may cost more memory than any FPGA has. The card is made all the same.
func TestHugeCardWarns(t *testing.T) {
	t.Chdir(t.TempDir())
	const card = "-lanes 64 -workers 32 -chunk 512 -dry-run -window "
	status, stdout, stderr := hwgen(card + "1024")
	assert.Equal(t, exitDone, status)
	assert.Contains(t, stdout, "memory       1107296256 bits\n")
	assert.Equal(t, "hwgen: warning: the card's memories have 1107 Mbit; the largest FPGA has 858. "+
		"Set a smaller -window or -chunk\n", stderr)
	status, _, stderr = hwgen(card + "512")
	assert.Equal(t, exitDone, status)
	assert.Empty(t, stderr)
}

func TestHelpAndVersion(t *testing.T) {
	for _, line := range []string{"-h", "--help"} {
		status, stdout, stderr := hwgen(line)
		assert.Equal(t, exitDone, status)
		assert.Contains(t, stdout, "Examples:")
		assert.Empty(t, stderr)
	}
	status, stdout, _ := hwgen("-version")
	assert.Equal(t, exitDone, status)
	assert.Contains(t, stdout, "protocol version 2")
}

// -json prints the manifest, with or without -dry-run.
func TestJSONIsTheManifest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	_, written, _ := hwgen("-lanes 4 -json -o " + dir)
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	assert.Equal(t, string(text), written)
	_, dry, _ := hwgen("-lanes 4 -json -dry-run")
	assert.Equal(t, string(text), dry)
}

// The manifest's sizes, calculated by hand, and its hash, by the rule of the register table.
func TestManifest(t *testing.T) {
	_, text, _ := hwgen("-lanes 16 -workers 5 -chunk 512 -window 4 -link 64 -json -dry-run")
	var m struct {
		Schema, Lanes, Workers, Chunk, Window, Link, Beats, Slots, Latency, Jobs int
		BeatBits                                                                 int    `json:"beat_bits"`
		SumLatency                                                               int    `json:"sum_latency"`
		ConfigHash                                                               string `json:"config_hash"`
		Shell, Format, Sum, Top                                                  string
		Throughput                                                               struct {
			ChunkCycles int  `json:"chunk_cycles"`
			FullRate    bool `json:"full_rate"`
			LinkCycles  int  `json:"link_cycles"`
		}
		Registers []struct{ Name, Address, Stride, Access, Value string }
		Ports     []struct {
			Name, Direction string
			Bits            int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	assert.Equal(t, []int{1, 16, 5, 512, 4, 64, 1}, []int{m.Schema, m.Lanes, m.Workers, m.Chunk, m.Window, m.Link, m.Jobs})
	assert.Equal(t, []int{32, 8, 512}, []int{m.Beats, m.Slots, m.BeatBits})
	assert.Equal(t, []string{"stream", "fp32", "tree", "agg_top"}, []string{m.Shell, m.Format, m.Sum, m.Top})
	assert.LessOrEqual(t, m.Latency, m.SumLatency+16)
	var ports []string
	for _, p := range m.Ports {
		ports = append(ports, fmt.Sprintf("%s %s %d", p.Name, p.Direction, p.Bits))
	}
	assert.Equal(t, []string{"clk in 1", "rst in 1", "link_up in 1",
		"link_rx_tdata in 64", "link_rx_tkeep in 8", "link_rx_tvalid in 1", "link_rx_tready out 1",
		"link_tx_tdata out 64", "link_tx_tkeep out 8", "link_tx_tvalid out 1", "link_tx_tready in 1",
		"beat_strobe out 1", "error_strobe out 1"}, ports)
	assert.Equal(t, 32, m.Throughput.ChunkCycles)
	assert.True(t, m.Throughput.FullRate)
	assert.Equal(t, (5*(4+14+2+4*512+2)+7)/8, m.Throughput.LinkCycles)

	hash := fnv.New64a()
	for _, v := range []int{16, 5, 0x0101, 1, 1, 512, 4, 1, 64, m.Latency} {
		require.NoError(t, binary.Write(hash, binary.LittleEndian, uint64(v)))
	}
	assert.Equal(t, fmt.Sprintf("%016x", hash.Sum64()), m.ConfigHash)
	assert.Equal(t, "MAGIC", m.Registers[0].Name)
	assert.Equal(t, "0x5952545542495254", m.Registers[0].Value)
	last := m.Registers[len(m.Registers)-1]
	assert.Equal(t, "JOB_LAG", last.Name)
	assert.Equal(t, "0x2000", last.Stride, "each job has some")
	assert.Empty(t, last.Value)
}

// The manifest of a card on a network has its address, its registers, and the cycles of a chunk on
// Ethernet, calculated by hand: in and out, from the preamble to the gap.
func TestNetworkManifest(t *testing.T) {
	for line, want := range map[string]struct{ bytes, bits int }{
		"-lanes 16 -link 512":                           {3 * (8 + 14 + 20 + 8 + 30 + 4*256 + 4 + 4 + 12), 512},
		"-lanes 4 -link 64 -chunk 2048":                 {3 * (8 + 14 + 20 + 8 + 30 + 8192 + 4 + 4 + 12), 64},
		"-lanes 1 -link 8 -format fp8e5m2 -result fp32": {3 * (8 + 14 + 20 + 8 + 30 + 4*256 + 4 + 4 + 12), 8},
		"-lanes 1 -link 8 -chunk 1":                     {3 * (8 + 14 + 20 + 8 + 30 + 4 + 4 + 4 + 12), 8},
		"-lanes 4 -link 64 -chunk 1024 -shell roce":     {3 * (8 + 14 + 20 + 8 + 12 + 4096 + 4 + 4 + 12), 64},
	} {
		_, text, stderr := hwgen("-workers 3 -shell udp -mac 0a:00:00:00:00:01 -ip 10.0.0.1 -udp-port 7 -json -dry-run " + line)
		require.Empty(t, stderr)
		var m struct {
			Link, Ethernet int
			Shell, MAC, IP string
			UDPPort        int `json:"udp_port"`
			Throughput     struct {
				LinkCycles int `json:"link_cycles"`
			}
			Registers []struct {
				Name, Address, Stride string
				Port                  string `json:"port_stride"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		shell := "udp"
		if strings.Contains(line, "roce") {
			shell = "roce"
		}
		assert.Equal(t, []any{shell, want.bits, 1, "0a:00:00:00:00:01", "10.0.0.1", 7}, []any{m.Shell, m.Link, m.Ethernet, m.MAC, m.IP, m.UDPPort})
		assert.Equal(t, (8*want.bytes+want.bits-1)/want.bits, m.Throughput.LinkCycles, line)

		found := map[string]string{}
		last := uint64(0)
		for i, r := range m.Registers {
			addr, err := strconv.ParseUint(r.Address, 0, 32)
			require.NoError(t, err)
			require.True(t, i == 0 || addr > last, "%s is in the order of addresses", r.Name)
			last = addr
			found[r.Name] = strings.Join([]string{r.Address, r.Stride, r.Port}, ",")
		}
		for name, want := range map[string]string{
			"LEASE": "0x128,,", "MEMBER_MAC": "0x808,,0x10", "JOB_ADDRESS": "0x40000,0x400,0x10",
			"JOB_STATE": "0x1000,0x100,", "COUNT_SHORT": "0x510,,", "COUNT_UDP_PORT": "0x598,,",
		} {
			assert.Equal(t, want, found[name], name)
		}
	}
	_, text, _ := hwgen("-json -dry-run")
	assert.False(t, strings.Contains(text, `"LEASE"`) || strings.Contains(text, "COUNT_SHORT"), "shell stream has neither")
}

// A card on a network has its specification and constants; other cards lack them.
func TestNetworkFiles(t *testing.T) {
	network, stream := contents(t, makeCard(t, goldens["l2_w3_udp"])), contents(t, makeCard(t, goldens["l4_w3_stream"]))
	page, err := os.ReadFile("../driver/wire/NETWORK.md")
	require.NoError(t, err)
	assert.Equal(t, string(page), network["NETWORK.md"])
	for _, word := range []string{`"MEMBER_ADDRESS"`, `"COUNT_STRANGER"`} {
		assert.Contains(t, network["regs.json"], word)
		assert.NotContains(t, stream["regs.json"], word)
	}
	for _, word := range []string{"link_up", "tuser`: the header", "socket", "s_axis", "m_axis"} {
		assert.False(t, strings.Contains(network["README.md"], word), "this card has no %s", word)
	}
	for _, word := range []string{"`znetwork.vh`", "`NETWORK.md`", "192.168.84.66", "`stranger`", "`LEASE`"} {
		assert.True(t, strings.Contains(network["README.md"], word), word)
	}
	for shell, other := range map[string]map[string]string{"stream": stream, "none": contents(t, makeCard(t, goldens["l2_w1_none"]))} {
		assert.NotContains(t, other, "NETWORK.md")
		assert.NotContains(t, other, "znetwork.vh")
		assert.False(t, strings.Contains(other["README.md"], "`LEASE`"), shell)
	}
}

// A card under RoCEv2 has its specification and constants, and its datasheet speaks of connections alone. Its simulation has
// no test, which would need endpoints of RoCEv2.
func TestRoCEFiles(t *testing.T) {
	roce, network := contents(t, makeCard(t, goldens["l2_w2_roce"])), contents(t, makeCard(t, goldens["l2_w3_udp"]))
	page, err := os.ReadFile("../driver/wire/ROCE.md")
	require.NoError(t, err)
	assert.Equal(t, string(page), roce["ROCE.md"])
	for _, word := range []string{`"MEMBER_CONNECTION"`, `"COUNT_RELAYED"`} {
		assert.Contains(t, roce["regs.json"], word)
		assert.NotContains(t, network["regs.json"], word)
	}
	sheet := roce["README.md"]
	for _, word := range []string{"`zroce.vh`", "`ROCE.md`, section 3", "NEIGHBOUR registers exist", "| NEIGHBOUR_ADDRESS", "QPN at its receiver", "`COUNT_ASKS`, `COUNT_FINISHES`", "no status"} {
		assert.Contains(t, sheet, word)
		assert.NotContains(t, network["README.md"], word)
	}
	for _, word := range []string{"sim test", "finish (3)", "A status or a reply", "with partial sums, a slot", "names all receivers", "UDP checksum is in front", "<no value>"} {
		assert.NotContains(t, sheet, word)
	}
	path := contents(t, makeCard(t, goldens["l2_w2_roce"]+" -ethernet 2"))["README.md"]
	assert.Contains(t, path, "`COUNT_RELAYED` stays zero")
	assert.Contains(t, path, "The card has no neighbours")
	assert.NotContains(t, path, "one-armed")
	assert.NotContains(t, path, "| NEIGHBOUR_ADDRESS")
	assert.Contains(t, roce["block.svg"], "a relay")
	assert.NotContains(t, roce["block.svg"], "copies")
	for file, test := range map[string]bool{"sim/Makefile": true, "sim/selftest.cpp": false, "sim/frames_main.cpp": true} {
		assert.Contains(t, network, file)
		assert.Equal(t, test, roce[file] != "", file)
	}
	assert.NotContains(t, roce["sim/Makefile"], "selftest")
	_, stdout, stderr := hwgen("-shell roce -lanes 2 -workers 2 -chunk 64 -o " + filepath.Join(t.TempDir(), "card"))
	assert.True(t, strings.HasSuffix(stdout, "card/sim\n"), stdout+stderr)
}

// A card with an up port has its specification, constants and registers; its twin without lacks them.
func TestParentFiles(t *testing.T) {
	parent := contents(t, makeCard(t, goldens["l2_w3_parent"]))
	plain := contents(t, makeCard(t, strings.Replace(goldens["l2_w3_parent"], " -parent", "", 1)))
	page, err := os.ReadFile("../driver/wire/TREES.md")
	require.NoError(t, err)
	assert.Equal(t, string(page), parent["TREES.md"])
	for name, words := range map[string][]string{
		"regs.json":     {`"MEMBER_RANKS"`, `"COUNT_UP_TAKEN"`},
		"regs.h":        {"AGG_REG_JOB_PARENT 0x238", "AGG_COUNT_UP_SENT"},
		"manifest.json": {`"parent": true`, `"s_axis_up_tuser"`, `"JOB_UP_REFUSAL"`},
		"README.md":     {"`s_axis_up_tdata`", "`TREES.md`", "`ztrees.vh`", "final sum", "`TREE_RANKS`"},
		"agg_top.v":     {"m_axis_up_tdata"},
		"agg_slots.v":   {"settled"},
	} {
		for _, word := range words {
			assert.Contains(t, parent[name], word, name)
			assert.NotContains(t, plain[name], word, name)
		}
	}
	for _, file := range []string{"TREES.md", "ztrees.vh", "agg_up_jobs.v"} {
		assert.Contains(t, parent, file)
		assert.NotContains(t, plain, file)
	}
	assert.NotContains(t, parent["regs.json"], "PARENT_ADDRESS", "this shell has no addresses")
	assert.NotContains(t, parent, "agg_parent_table.v")
	for name, text := range parent {
		assert.NotContains(t, text, "AGG_PARENT", name)
	}
	for name, text := range plain {
		assert.NotContains(t, text, "AGG_PARENT", name)
	}
	// SHELL has its bit for the up port, and PORTS does not count it.
	assert.Contains(t, parent["agg_core.v"], ".SHELL      (64'd256)")
	assert.Contains(t, parent["agg_core.v"], ".PORTS      (64'd3)")
}

// A lane of a card with an up port has an operand for it: its cells are those of one worker more. So is
// its chunk's share of the commits.
func TestDatasheetCountsTheUpPort(t *testing.T) {
	line := func(card, start string) string {
		_, after, ok := strings.Cut(contents(t, makeCard(t, card))["README.md"], start)
		require.True(t, ok, start)
		text, _, _ := strings.Cut(after, "\n")
		return text
	}
	const cells = "\n| cells per lane |"
	assert.Equal(t, line("-shell none -sum fused -workers 8", cells), line("-shell none -sum fused -workers 7 -parent", cells))
	assert.Contains(t, line("-shell none -workers 8 -parent", "\nSo a chunk takes"),
		"at least 2 for each worker, as many for the parent and 6 in all: 18 cycles")
}

// The datasheet of bare ports names the code of a write that lacks bytes, and the packets that a damaged
// payload's mark is for.
func TestDatasheetOfBarePorts(t *testing.T) {
	sheet := contents(t, makeCard(t, "-shell none -lanes 1 -workers 1"))["README.md"]
	assert.Contains(t, sheet, "refuse with the codes 3, 22 and 32 to 40")
	assert.Contains(t, sheet, "ignored with an ask or a finish")
	assert.Contains(t, sheet, "for each data packet that entered at a worker's port")
	assert.Contains(t, sheet, `timescale=("1ns", "1ps")`, "Icarus has a precision of a second otherwise")
	bus := contents(t, makeCard(t, "-shell none -lanes 1 -workers 1 -registers bus"))["README.md"]
	assert.Contains(t, bus, "refuse with the codes 3 and 32 to 40", "a bus writes whole registers")
}

// A card on Ethernet with an up port has the addresses of parents besides, and no other ports than its
// twin without.
func TestNetworkParentFiles(t *testing.T) {
	parent := contents(t, makeCard(t, goldens["l2_w2_udp_parent"]))
	plain := contents(t, makeCard(t, strings.Replace(goldens["l2_w2_udp_parent"], " -parent", "", 1)))
	for name, word := range map[string]string{
		"regs.json":               `"PARENT_ADDRESS"`,
		"regs.h":                  "AGG_REG_PARENT_MAC 0x158",
		"README.md":               "a UDP port of each tree job",
		"agg_network_registers.v": "REG_PARENT_ADDRESS",
		"agg_eth_transmit.v":      "s_copy_source",
		"agg_datagram_accept.v":   "KIND_REPLAY",
		"agg_top.v":               "u_cross_up",
		"agg_core.v":              ".SHELL      (64'd258)",
	} {
		assert.Contains(t, parent[name], word, name)
		assert.NotContains(t, plain[name], word, name)
	}
	for _, file := range []string{"TREES.md", "NETWORK.md", "agg_parent_table.v", "agg_up_unwrap.v", "agg_up_drops.v"} {
		assert.Contains(t, parent, file)
	}
	ports := func(card map[string]string) any {
		var m struct{ Ports any }
		require.NoError(t, json.Unmarshal([]byte(card["manifest.json"]), &m))
		return m.Ports
	}
	assert.Equal(t, ports(plain), ports(parent))
	for name, text := range parent {
		assert.NotContains(t, text, "AGG_PARENT", name)
	}
}

// Every Verilog file starts with the command that made it. The folder and the spelling of the flags
// do not matter.
func TestFilesNameTheCommand(t *testing.T) {
	const command = "// Made by: hwgen -lanes 4 -workers 2 -format fp32 -result fp32 -sum tree -chunk 256 -window 8\n" +
		"//      -jobs 1 -shell none -registers axil\n"
	for name, text := range contents(t, makeCard(t, "--shell=none --workers=2 -lanes 4")) {
		if strings.HasSuffix(name, ".v") || strings.HasSuffix(name, ".vh") {
			assert.True(t, strings.HasPrefix(text, command), name)
		}
	}
}

var (
	comment = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	defined = regexp.MustCompile(`(?m)^module ([a-z0-9_]+)`)
	used    = regexp.MustCompile(`(?m)^ +([a-z][a-z0-9]*_[a-z0-9_]+) (?:#\(|u_[a-z0-9_]+ \()`)
	include = regexp.MustCompile("`include \"([^\"]+)\"")
)

// A card is self-contained: it has every module that it instantiates, once, and every included file;
// the list names the modules' files.
func TestCardsStandAlone(t *testing.T) {
	for _, line := range goldens {
		files := contents(t, makeCard(t, line))
		modules := map[string]bool{}
		for name, text := range verilog(files) {
			for _, m := range defined.FindAllStringSubmatch(text, -1) {
				assert.False(t, modules[m[1]], "%s is defined twice", m[1])
				modules[m[1]] = true
			}
			for _, i := range include.FindAllStringSubmatch(text, -1) {
				assert.Contains(t, files, i[1], name)
			}
			if list, ok := files["agg.f"]; ok {
				assert.Contains(t, strings.Fields(list), name)
			}
		}
		instances := 0
		for _, text := range verilog(files) {
			for _, u := range used.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
				assert.True(t, modules[u[1]], "%s is missing", u[1])
				instances++
			}
		}
		assert.Greater(t, instances, 20, "the pattern finds instances")
	}
}

// A bundle has the given command, independent of the prefix.
func TestBundleNamesTheCommand(t *testing.T) {
	text := contents(t, makeCard(t, "-lanes 4 -workers 2 -prefix agg_two -bundle"))["agg.v"]
	assert.True(t, strings.HasPrefix(text, "// Made by: hwgen -lanes 4 -workers 2 -format fp32 -result fp32 -sum tree -chunk 256 -window 8\n"+
		"//      -jobs 1 -shell stream -link 32 -prefix agg_two -bundle\n"), text[:300])
	assert.Contains(t, text, "\nmodule agg_two_top ")
}

// The manifest lists all files that hwgen wrote.
func TestManifestListsTheFolder(t *testing.T) {
	for _, line := range goldens {
		files := contents(t, makeCard(t, line))
		var m struct{ Files []string }
		require.NoError(t, json.Unmarshal([]byte(files["manifest.json"]), &m))
		assert.Equal(t, slices.Sorted(maps.Keys(files)), m.Files, line)
	}
}

// hwgen fails if it cannot print.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, line := range []string{"-h", "-version", "-dry-run", "-json -dry-run"} {
		var stderr bytes.Buffer
		assert.Equal(t, exitFailed, run(context.Background(), strings.Fields(line), full, &stderr), line)
		assert.Contains(t, stderr.String(), "no space left on device", line)
	}
}

// With a prefix, no module has a name that another card would also have.
func TestPrefix(t *testing.T) {
	plain := verilog(contents(t, makeCard(t, "-lanes 2 -workers 3")))
	second := verilog(contents(t, makeCard(t, "-lanes 2 -workers 3 -prefix card2")))
	require.Len(t, second, len(plain))
	for name, text := range second {
		assert.NotContains(t, text, "agg_", name)
		original, ok := plain[strings.Replace(name, "card2_", "agg_", 1)]
		require.True(t, ok, name)
		_, body, _ := strings.Cut(text, "\n\n")
		_, originalBody, _ := strings.Cut(original, "\n\n")
		assert.Equal(t, originalBody, strings.ReplaceAll(body, "card2_", "agg_"), name)
	}
}

// A bundle is one file with the content of all Verilog files, without includes.
func TestBundle(t *testing.T) {
	for _, line := range []string{"-lanes 2 -workers 3", "-lanes 2 -workers 3 -shell udp"} {
		plain := verilog(contents(t, makeCard(t, line)))
		bundle := contents(t, makeCard(t, line+" -bundle"))
		require.Len(t, verilog(bundle), 1)
		assert.NotContains(t, bundle, "agg.f")
		assert.NotContains(t, bundle["agg.v"], "`include")
		assert.Len(t, defined.FindAllString(bundle["agg.v"], -1), len(plain))
	}
}
