package reduction

// The formats of cards, and the NumPy types of arrays that hold them.

import (
	"errors"
	"fmt"
	"strings"

	"tributary/driver"
	"tributary/driver/npy"
	"tributary/driver/wire"
)

// keptAs holds the type of arrays of each format. A format without a NumPy type is stored as its
// encodings.
var keptAs = map[wire.Format]npy.Type{
	wire.FP32:    npy.Float32,
	wire.BF16:    npy.Uint16,
	wire.FP16:    npy.Float16,
	wire.FP8E4M3: npy.Uint8,
	wire.FP8E5M2: npy.Uint8,
	wire.Int32:   npy.Int32,
}

// TypeOf returns the type of arrays of a format. It is uint16 for bf16 and uint8 for fp8, their
// encodings, because NumPy has no type for them.
func TypeOf(f wire.Format) npy.Type { return keptAs[f] }

// formatOf returns the format of arrays' elements: the requested one, or else the one that their
// type determines.
func formatOf(arrays contribution, asked wire.Format) (wire.Format, error) {
	var could []string
	for _, i := range wire.Formats {
		if keptAs[i.Format] != arrays.element {
			continue
		}
		if asked == i.Format || asked == 0 && arrays.element != npy.Uint16 && arrays.element != npy.Uint8 {
			return i.Format, nil
		}
		could = append(could, "${format} "+i.Name)
	}
	e := &FormatError{Type: arrays.element, Asked: asked}
	if asked == 0 {
		e.words = say("%s: its type %s does not determine the format; add "+strings.Join(could, " or "), arrays.name, arrays.element)
	} else {
		e.words = say("${format} %s: ${files} store it as %s, but the type of %s is %s", asked, keptAs[asked], arrays.name, arrays.element)
	}
	return 0, e
}

// checkCard is the one place that compares a card with a request: its format with the arrays', its
// sum with the operation. format is the arrays'.
func checkCard(card driver.Info, format wire.Format, o Options) error {
	refuse := func(text string, args ...any) error {
		return &CardError{Card: card, Format: format, words: say(text, args...)}
	}
	if o.Op == Mean || o.Quantize {
		asked := "${op} mean"
		if o.Quantize {
			asked = "${quantize}"
		}
		if input := (*driver.InputError)(nil); errors.As(card.CheckAdds(asked), &input) {
			return refuse(asked+": %s", input.Why)
		}
	}
	switch {
	case o.Quantize && card.Format != wire.Int32:
		return refuse("${quantize}: it sends int32, but card %s sums %s; leave ${quantize} out, or use a card generated with -format int32", card.Name, card.Format)
	case o.Quantize || card.Format == format:
		return nil
	case card.Format == wire.Int32 && format == wire.FP32:
		return refuse("card %s sums int32, but the ${files} hold fp32; add ${quantize}, which sends them as integers with an exponent for each block, or use a card generated with -format fp32", card.Name)
	}
	return refuse("card %s sums %s, but the ${files} hold %s; convert them to arrays of %s, or use a card generated with -format %s",
		card.Name, card.Format, format, kept(card.Format), format)
}

// kept names a format and, if it is not obvious, its arrays' type: "bf16 (kept as uint16)".
func kept(f wire.Format) string {
	if t := keptAs[f]; t == npy.Uint16 || t == npy.Uint8 {
		return fmt.Sprintf("%s (kept as %s)", f, t)
	}
	return keptAs[f].String()
}
