package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// networkCards are flags of cards on Ethernet: every width of a MAC, with beats of the core that have
// its width and that are wider, and results of another format. The golden card has 64 bits.
var networkCards = map[string]string{
	"udp_8":     "-lanes 1 -workers 1 -format fp8e4m3 -sum max -link 8 -chunk 4 -window 1",
	"udp_8_32":  "-lanes 1 -workers 2 -link 8 -chunk 4 -window 1",
	"udp_64":    "-lanes 8 -workers 5 -jobs 2 -format bf16 -result fp32 -sum fused -link 64 -window 2 -prefix left",
	"udp_512":   "-lanes 16 -workers 2 -link 512 -chunk 32 -window 1",
	"udp_large": "-lanes 64 -workers 3 -format fp8e5m2 -result bf16 -sum fused -link 512 -window 1 -bundle",
}

// TestNetworkCards lints cards on Ethernet, and the leaves that only cards with several ports have.
func TestNetworkCards(t *testing.T) {
	hwgen := buildGenerator(t)
	var cards []Card
	for name, flags := range networkCards {
		card, err := Open(generate(t, hwgen, name, strings.Fields("-shell udp "+flags)...))
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, card)
	}
	cards = append(cards,
		assembly(t, []string{"rtl/ethernet/agg_packet_split.v", "rtl/core/agg_delay.v"}, "ETHERNET=4"),
		assembly(t, []string{"rtl/ethernet/agg_packet_order.v"}, "ETHERNET=4"))
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// assembly copies modules into a folder, the top first, with other defaults of the top's parameters:
// not every tool sets parameters. params has words NAME=VALUE.
func assembly(t *testing.T, files []string, params string) Card {
	t.Helper()
	top := strings.TrimSuffix(filepath.Base(files[0]), ".v")
	card := Card{Top: top, Dir: filepath.Join(root, "build", "lint", top+"_"+regexp.MustCompile(`\W`).ReplaceAllString(params, "_"))}
	if err := os.MkdirAll(card.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, file := range append(files, "rtl/zwire.vh") {
		text := readText(t, filepath.Join(root, file))
		if i == 0 {
			for _, param := range strings.Fields(params) {
				name, value, _ := strings.Cut(param, "=")
				given := regexp.MustCompile(`(parameter integer ` + name + ` *= )\d+`)
				if !given.MatchString(text) {
					t.Fatalf("%s has no parameter %s", file, name)
				}
				text = given.ReplaceAllString(text, "${1}"+value)
			}
		}
		path := filepath.Join(card.Dir, filepath.Base(file))
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".v") {
			card.Files = append(card.Files, path)
		}
	}
	return card
}
