package emit

import (
	"errors"
	"strings"
)

// stripFormal returns the text of a leaf without its properties: without the lines from `ifdef
// FORMAL to its `endif, and without the blank line above them.
func stripFormal(text string) (string, error) {
	var kept strings.Builder
	depth := 0 // of directives in the properties; 0 outside
	blank := ""
	for line := range strings.Lines(text) {
		directive, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case depth == 0 && directive == "`ifdef" && name == "FORMAL":
			depth, blank = 1, ""
		case depth == 0 && strings.TrimSpace(line) == "":
			kept.WriteString(blank)
			blank = line
		case depth == 0:
			kept.WriteString(blank + line)
			blank = ""
		case directive == "`ifdef" || directive == "`ifndef":
			depth++
		case directive == "`endif":
			depth--
		case depth == 1 && (directive == "`else" || directive == "`elsif"):
			return "", errors.New("the properties have an alternative: " + directive)
		}
	}
	if depth > 0 {
		return "", errors.New("the properties have no `endif")
	}
	return kept.String() + blank, nil
}
