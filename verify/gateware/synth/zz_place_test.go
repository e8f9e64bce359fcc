package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestZZPlace(t *testing.T) {
	rows := os.Getenv("ZZ")
	if rows == "" {
		t.Skip()
	}
	for _, row := range strings.Fields(rows) {
		parts := strings.Split(row, ",")
		c := circuit{name: row, top: parts[0], whole: true, part: part85F, seeds: []int{1}}
		s := source{dir: filepath.Join(folder, "zz_"+strings.NewReplacer(",", "_", "=", "").Replace(row))}
		os.RemoveAll(s.dir)
		os.MkdirAll(s.dir, 0o777)
		exec.Command("bash", "-c", "cp rtl/zwire.vh rtl/*/*.v cocotb/ethernet_transmitter.v "+s.dir).Run()
		for _, p := range parts[1:] {
			name, value, _ := strings.Cut(p, "=")
			s.params = append(s.params, param{name, value})
		}
		s.hash = "zz" + row
		os.Remove(keptReport(s, 1))
		n, err := count(context.Background(), c, s)
		if err != nil {
			fmt.Println("ZZ", row, err)
			continue
		}
		mhz, err := place(context.Background(), c, s, nil)
		fmt.Println("ZZ", row, n, mhz, err)
	}
}
