package emit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStripFormal(t *testing.T) {
	const before, after = "module m;\n\n`ifdef SIM\n  wire s;\n`else\n  wire r;\n`endif\n", "\nendmodule\n\n`default_nettype wire\n"
	for name, properties := range map[string]string{
		"none":   "",
		"plain":  "\n`ifdef FORMAL\n  assert (1);\n`endif\n",
		"nested": "\n`ifdef FORMAL\n`ifndef PROMISED\n  `define PROMISED assert\n`else\n\n`endif\n  wire f;\n  `ifdef FAIR\n  wire g;\n  `endif\n`endif\n",
	} {
		text, err := stripFormal(before + properties + after)
		require.NoError(t, err, name)
		assert.Equal(t, before+after, text, name)
	}
	_, err := stripFormal("`ifdef FORMAL\n  wire f;\n`else\n  wire g;\n`endif\n")
	assert.EqualError(t, err, "the properties have an alternative: `else")
	_, err = stripFormal("`ifdef FORMAL\n  wire f;\n")
	assert.EqualError(t, err, "the properties have no `endif")
}
