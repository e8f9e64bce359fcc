package main

// The formats of cards, as flags and as text.

import (
	"errors"
	"strings"

	"tributary/driver/wire"
)

// formatFlag is the value of a flag that names a format; 0 if it was not given.
type formatFlag wire.Format

func (f *formatFlag) Set(s string) error {
	var names []string
	for _, i := range wire.Formats {
		if i.Name == s {
			*f = formatFlag(i.Format)
			return nil
		}
		names = append(names, i.Name)
	}
	last := len(names) - 1
	return errors.New("it must be " + strings.Join(names[:last], ", ") + " or " + names[last])
}

func (f *formatFlag) String() string {
	if *f == 0 {
		return ""
	}
	return wire.Format(*f).String()
}

func (f *formatFlag) Type() string { return "format" }

// formatNamed returns the format with a name in a report.
func formatNamed(name string) wire.Format {
	for _, i := range wire.Formats {
		if i.Name == name {
			return i.Format
		}
	}
	return 0
}

// formats names the formats of a card's contributions and results.
func formats(format, result string) string {
	if format == result {
		return format
	}
	return format + " into " + result
}
