package emit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/boards"
	"tributary/hwgen/config"
	"tributary/hwgen/netlist"
	"tributary/hwgen/plan"
	"tributary/rtl"
)

var update = flag.Bool("update", false, "rewrite the golden folders")

// ethernetCard returns the ports of a card of shell udp.
func ethernetCard(ports int) *netlist.Module {
	m := netlist.New("agg_top", "")
	m.Input("clk", 1)
	m.Input("rst", 1)
	for i := range ports {
		rx, tx := fmt.Sprintf("eth_rx_p%d_", i), fmt.Sprintf("eth_tx_p%d_", i)
		m.Input(rx+"tdata", boards.EthernetBits)
		m.Input(rx+"tkeep", boards.EthernetBits/8)
		m.Input(rx+"tvalid", 1)
		m.Input(rx+"tlast", 1)
		m.Input(rx+"tuser", 1)
		m.Output(tx+"tdata", boards.EthernetBits)
		m.Output(tx+"tkeep", boards.EthernetBits/8)
		m.Output(tx+"tvalid", 1)
		m.Input(tx+"tready", 1)
		m.Output(tx+"tlast", 1)
	}
	m.Output("beat_strobe", 1)
	m.Output("error_strobe", 1)
	return m
}

// ethernetBoard returns the files for a board around a card with all its Ethernet ports, by name.
func ethernetBoard(t *testing.T, name string) map[string]string {
	t.Helper()
	b, ok := boards.Find(name)
	require.True(t, ok)
	b, err := b.OnEthernet(len(b.Ethernet.Ports))
	require.NoError(t, err)
	p := &plan.Plan{
		Config:  config.Config{Board: name, Clock: b.CoreMHz, Prefix: "agg"},
		Modules: []*netlist.Module{ethernetCard(len(b.Ethernet.Ports))},
	}
	require.NoError(t, p.PutOn(b))
	files, err := boardFiles(p, Manifest{}, []string{"agg_top.v"}, rtl.Files)
	require.NoError(t, err)
	texts := map[string]string{}
	for _, f := range files {
		texts[strings.TrimPrefix(f.Name, boardFolder+"/")] = string(f.Data)
	}
	return texts
}

// The files around a card with two Ethernet ports equal those in testdata/ethernet. No card has two
// yet: its ports stand in for it.
func TestTwoEthernetPorts(t *testing.T) {
	const name = "versa_ecp5"
	files := ethernetBoard(t, name)
	for _, file := range []string{"board_top.v", name + ".lpf", "Makefile"} {
		golden := filepath.Join("testdata", "ethernet", name, file)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o777))
			require.NoError(t, os.WriteFile(golden, []byte(files[file]), 0o666))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), files[file], "%s; if it is meant: go test ./hwgen/emit -update", golden)
	}
	for _, file := range []string{"ethernet_mac.py", "requirements.txt", "timing.py", "agg_eth_rx_cross.v", "agg_eth_tx_cross.v", "agg_async_fifo.v"} {
		assert.Contains(t, files, file)
	}
	assert.NotContains(t, files, "usb_device.py")
	assert.NotContains(t, files, "agg_link_cross.v")
}
