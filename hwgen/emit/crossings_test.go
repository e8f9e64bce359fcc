package emit

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/boards"
	"tributary/hwgen/config"
	"tributary/hwgen/leaf"
	"tributary/hwgen/plan"
	"tributary/rtl"
)

// Modules with registers of two clocks, whose signals cross in other modules alone.
var crossElsewhere = map[string]string{
	"agg_link_cross": "levels cross in agg_sync, words in agg_async_fifo",
}

var (
	clockEdge   = regexp.MustCompile(`always @\(posedge (\w+)`)
	constrained = regexp.MustCompile(`\$cell/(?:(\w+)/)?(\w+)_reg\\\[\*\\\]`)
)

// Each module of a board for Vivado where signals change clocks has a script with constraints. The
// build reads it, and the registers that it names exist.
func TestCrossingsAreConstrained(t *testing.T) {
	var found []string
	for _, b := range boards.All() {
		if b.Family().Name() != "xc7" {
			continue
		}
		files := boardFolderOf(t, b.Name, "tri")
		for name, text := range files {
			module, isVerilog := strings.CutSuffix(name, ".v")
			code := leaf.Code(text)
			clocks := map[string]bool{}
			for _, edge := range clockEdge.FindAllStringSubmatch(code, -1) {
				clocks[edge[1]] = true
			}
			original := strings.Replace(module, "tri_", "agg_", 1)
			if !isVerilog || len(clocks) < 2 && !strings.Contains(code, "ASYNC_REG") || crossElsewhere[original] != "" {
				continue
			}
			found = append(found, original)
			script := files[module+".tcl"]
			require.NotEmpty(t, script, "%s has no constraints", module)
			assert.Contains(t, script, "ORIG_REF_NAME == "+module+" ")
			assert.Contains(t, files["build.tcl"], "\n  ../"+module+".tcl\n")
			registers := constrained.FindAllStringSubmatch(script, -1)
			require.NotEmpty(t, registers, script)
			for _, r := range registers {
				in := code
				if r[1] != "" {
					child := regexp.MustCompile(`(?s)(tri_\w+) #\([^;]*\) ` + r[1] + ` \(`).FindStringSubmatch(code)
					require.NotNil(t, child, "%s has no %s", module, r[1])
					in = leaf.Code(files[child[1]+".v"])
				}
				assert.Regexp(t, `(?m)^\s*reg\s.*\b`+r[2]+`;`, in, "%s of %s", r[0], module)
			}
		}
	}
	assert.ElementsMatch(t, []string{"agg_sync", "agg_async_fifo", "agg_board_reset"}, found)
}

// boardFolderOf returns the files of the board's folder of a small card, by name.
func boardFolderOf(t *testing.T, board, prefix string) map[string]string {
	t.Helper()
	o, err := config.Parse([]string{"-board", board, "-lanes", "1", "-workers", "2", "-chunk", "4", "-window", "1", "-prefix", prefix}, plan.Known())
	require.NoError(t, err)
	p, err := plan.Build(o.Config)
	require.NoError(t, err)
	folder, err := Files(p, rtl.Files)
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range folder {
		if name, ok := strings.CutPrefix(f.Name, boardFolder+"/"); ok {
			files[name] = string(f.Data)
		}
	}
	return files
}
