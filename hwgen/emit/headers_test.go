package emit

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// A card has the headers that its leaves include, and a bundle their constants instead.
func TestHeadersOfLeaves(t *testing.T) {
	rtl := fstest.MapFS{
		"zwire.vh":    {Data: []byte("localparam integer ONE = 1;\nlocalparam integer TWO = 2;\n")},
		"znetwork.vh": {Data: []byte("localparam integer FOUR = 4;\n")},
		"zother.vh":   {Data: []byte("localparam integer EIGHT = 8;\n")},
	}
	both := source{"agg_both", "module agg_both;\n  `include \"zwire.vh\"\n  `include \"znetwork.vh\"\n  wire [ONE:0] w = FOUR;\nendmodule\n"}
	neither := source{"agg_neither", "module agg_neither;\nendmodule\n"}
	headers, err := includedBy([]source{both, neither}, rtl)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"zwire.vh":    "localparam integer ONE = 1;\nlocalparam integer TWO = 2;\n",
		"znetwork.vh": "localparam integer FOUR = 4;\n",
	}, headers)

	text, err := withConstants(both, headers)
	require.NoError(t, err)
	require.Equal(t, "module agg_both;\n  localparam integer ONE = 1;\n  localparam integer FOUR = 4;\n  wire [ONE:0] w = FOUR;\nendmodule\n", text)
	text, err = withConstants(neither, headers)
	require.NoError(t, err)
	require.Equal(t, neither.text, text)

	delete(rtl, "znetwork.vh")
	_, err = includedBy([]source{both}, rtl)
	require.ErrorContains(t, err, "agg_both")
}
