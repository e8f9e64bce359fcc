package datasheet

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReset holds rst of a card for as many cycles as its datasheet requires, in a simulation that starts
// with X. Then every counter is zero: no sum from before the reset is counted behind it.
func TestReset(t *testing.T) {
	dir := makeCard(t, buildHwgen(t), "-lanes 2 -workers 1 -chunk 4 -window 1 -shell none -registers bus -bundle")
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	cycles := regexp.MustCompile("`rst` .* for at least (\\w+) cycles?\\b").FindSubmatch(page)
	require.NotNil(t, cycles, "the datasheet states how long a reset takes")
	number := map[string]string{"one": "1", "two": "2", "three": "3", "four": "4"}[string(cycles[1])]
	require.NotEmpty(t, number, string(cycles[1]))

	bench := filepath.Join(t.TempDir(), "bench.v")
	require.NoError(t, os.WriteFile(bench, []byte(strings.ReplaceAll(resetBench, "CYCLES", number)), 0o666))
	said, err := exec.Command("vvp", "-n", elaborate(t, dir, "bench", bench)).CombinedOutput()
	require.NoError(t, err, string(said))
	assert.Equal(t, 34, bytes.Count(said, []byte("=0000000000000000\n")), "counters that are zero:\n%s", said)
}

// resetBench resets a card for CYCLES cycles, and reads its counters.
const resetBench = `
module bench;
  reg clk = 0, rst = 1, valid = 0;
  reg [31:0] addr = 0;
  wire ready, answered;
  wire [63:0] value;
  always #5 clk = !clk;

  agg_top u_card (
      .clk(clk), .rst(rst), .link_up(1'b1),
      .s_axis_p0_tdata(64'd0), .s_axis_p0_tkeep(8'd0), .s_axis_p0_tvalid(1'b0), .s_axis_p0_tlast(1'b0),
      .s_axis_p0_tuser(113'd0), .m_axis_p0_tready(1'b1),
      .s_reg_valid(valid), .s_reg_write(1'b0), .s_reg_addr(addr), .s_reg_wdata(64'd0), .s_reg_ready(ready),
      .m_reg_valid(answered), .m_reg_ready(1'b1), .m_reg_value(value)
  );

  initial begin
    repeat (CYCLES) @(posedge clk);
    #1 rst = 0;
    repeat (100) @(posedge clk);
    for (addr = 'h400; addr <= 'h508; addr = addr + 8) begin
      #1 valid = 1;
      @(posedge clk);
      while (!ready) @(posedge clk);
      #1 valid = 0;
      while (!answered) @(posedge clk);
      $display("%h=%h", addr, value);
      @(posedge clk);
    end
    $finish;
  end
endmodule
`
