package main

// The formats of cards, and the types of NumPy that files keep them in.

import (
	"errors"
	"fmt"
	"strings"

	"tributary/driver"
	"tributary/driver/npy"
	"tributary/driver/wire"
)

// keptAs says in which type a file keeps a format. Those that NumPy has no type
// for are kept as their encodings.
var keptAs = map[wire.Format]npy.Type{
	wire.FP32:    npy.Float32,
	wire.BF16:    npy.Uint16,
	wire.FP16:    npy.Float16,
	wire.FP8E4M3: npy.Uint8,
	wire.FP8E5M2: npy.Uint8,
	wire.Int32:   npy.Int32,
}

// formatFlag is the value of a flag that names a format; 0 when it is not given.
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

// formatOf returns the format of files' elements: what -format says, or else what
// their type tells.
func formatOf(files gradients, asked wire.Format) (wire.Format, error) {
	var could []string
	for _, i := range wire.Formats {
		if keptAs[i.Format] != files.element {
			continue
		}
		if asked == i.Format || asked == 0 && files.element != npy.Uint16 && files.element != npy.Uint8 {
			return i.Format, nil
		}
		could = append(could, "-format "+i.Name)
	}
	if asked == 0 {
		return 0, usagef("%s: its type is %s, which does not say what the numbers stand for; add %s", files.path, files.element, strings.Join(could, " or "))
	}
	return 0, usagef("-format %s: files keep that as %s, but the type of %s is %s", asked, keptAs[asked], files.path, files.element)
}

// checkCard refuses a card that does not sum what it is to be sent; format is the
// files'.
func checkCard(card driver.Info, format wire.Format, quantize bool) error {
	switch {
	case quantize && card.Format != wire.Int32:
		return usagef("-quantize: it sends int32, but card %s sums %s; leave -quantize out, or take a card generated with -format int32", card.Name, card.Format)
	case quantize || card.Format == format:
		return nil
	case card.Format == wire.Int32 && format == wire.FP32:
		return usagef("card %s sums int32, but the files hold fp32; add -quantize, which sends them as integers with an exponent for each block, or take a card generated with -format fp32", card.Name)
	}
	return usagef("card %s sums %s, but the files hold %s; convert them to arrays of %s, or take a card generated with -format %s",
		card.Name, card.Format, format, kept(card.Format), format)
}

// kept names a format with the type that files keep it in, where that is not
// plain: "bf16 (kept as uint16)".
func kept(f wire.Format) string {
	if t := keptAs[f]; t == npy.Uint16 || t == npy.Uint8 {
		return fmt.Sprintf("%s (kept as %s)", f, t)
	}
	return keptAs[f].String()
}

// formats names what goes into a card and what comes out.
func formats(format, result string) string {
	if format == result {
		return format
	}
	return format + " into " + result
}
