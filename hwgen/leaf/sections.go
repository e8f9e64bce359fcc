package leaf

import (
	"errors"
	"strings"
)

// Parent is the macro whose sections a leaf has for cards with an up port.
const Parent = "AGG_PARENT"

// Resolve returns the text of a leaf without the directives of its sections for a macro:
//
//	`ifdef AGG_PARENT
//	  lines with the macro
//	`else
//	  lines without
//	`endif
//
// The section without the macro, `else, may be absent. A section may hold other directives, and
// properties may hold sections.
func Resolve(text, macro string, defined bool) (string, error) {
	var kept strings.Builder
	depth := 0     // of directives within the section, itself included; 0 outside
	keeps := false // the lines of this part of the section
	for line := range strings.Lines(text) {
		directive, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		opens := directive == "`ifdef" || directive == "`ifndef"
		switch {
		case opens && name == macro && depth > 0:
			return "", errors.New("a section of " + macro + " holds another")
		case directive == "`ifndef" && name == macro:
			return "", errors.New("a section begins with `ifndef " + macro + "; use `ifdef and `else")
		case opens && name == macro:
			depth, keeps = 1, defined
			continue
		case depth > 0 && opens:
			depth++
		case depth == 1 && directive == "`elsif":
			return "", errors.New("a section of " + macro + " has an `elsif")
		case depth == 1 && directive == "`else":
			keeps = !defined
			continue
		case depth == 1 && directive == "`endif":
			depth = 0
			continue
		case depth > 0 && directive == "`endif":
			depth--
		}
		if depth == 0 || keeps {
			kept.WriteString(line)
		}
	}
	if depth > 0 {
		return "", errors.New("a section of " + macro + " has no `endif")
	}
	return kept.String(), nil
}
