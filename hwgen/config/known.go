package config

import (
	"fmt"
	"slices"
	"strings"

	"tributary/driver/wire"
)

// Known is what a configuration may name: what this build of the generator can
// plan.
type Known struct {
	Formats, Sums, Shells []string
	Linked                []string // the shells that have a link
}

// choice reports a name that is not among those that exist.
func choice(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("-%s %s: must be %s", flag, value, orList(known))
}

// orList returns "a", "a or b" or "a, b or c".
func orList(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// maxChunk returns the largest chunk, in elements, that a packet of the shell
// can carry: the length field's range, and on a link the longest frame of data
// or result.
func (k Known) maxChunk(c Config) int {
	most := 1<<16 - 1
	if !slices.Contains(k.Linked, c.Shell) {
		return most
	}
	for _, kind := range wire.Kinds {
		if kind.Payload {
			most = min(most, (wire.MaxFrameBytes-kind.FrameBytes(0))/elementBytes(c.Format))
		}
	}
	return most
}

func elementBytes(format string) int {
	for _, f := range wire.Formats {
		if f.Name == format {
			return f.Bits / 8
		}
	}
	return 1
}
