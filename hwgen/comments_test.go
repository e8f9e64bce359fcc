package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/hwgen/boards"
	"tributary/hwgen/plan"
)

// Comments name only modules of their card, by its prefix. A leaf whose neighbour some cards lack
// names the neighbour's role.
func TestCommentsNameModulesOfTheCard(t *testing.T) {
	var cards []string
	known := plan.Known()
	for _, sum := range known.Sums {
		for i, format := range known.Formats {
			for workers := 1; workers <= 3; workers++ {
				cards = append(cards, fmt.Sprintf("-lanes 2 -sum %s -format %s -workers %d -shell %s -jobs %d",
					sum, format, workers, known.Shells[i%2], 1+workers%2))
			}
		}
	}
	for _, link := range []int{8, 16, 32, 64} {
		cards = append(cards, fmt.Sprintf("-lanes 1 -link %d -jobs 2", link), fmt.Sprintf("-lanes 32 -link %d", link))
	}
	for _, b := range boards.All() {
		cards = append(cards, "-lanes 1 -board "+b.Name)
	}
	cards = append(cards, "-lanes 2 -sum fused -dsp", "-lanes 2 -sum fused -dsp -board ecpix5", "-lanes 2 -format int32 -saturate",
		"-lanes 2 -format bf16 -result fp32", "-lanes 2 -sum exact -format bf16 -result fp32", "-lanes 2 -shell none -parent",
		"-lanes 2 -shell none -parent -jobs 2 -sum exact")

	named := regexp.MustCompile(`\b(left|agg)_\w+`)
	for _, line := range cards {
		files := verilog(contents(t, makeCard(t, line+" -chunk 64 -window 1 -prefix left")))
		modules := map[string]bool{}
		for _, text := range files {
			for _, m := range defined.FindAllStringSubmatch(text, -1) {
				modules[m[1]] = true
			}
		}
		for file, text := range files {
			for _, c := range comment.FindAllString(text, -1) {
				for _, name := range named.FindAllString(c, -1) {
					assert.True(t, modules[name], "hwgen %s has no %s, which %s names: %s", line, name, file, c)
				}
			}
		}
	}
}
