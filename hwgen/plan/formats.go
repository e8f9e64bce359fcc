package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// Format is a type of elements: a row of the wire table, and what the leaves
// that compute with it are told.
type Format struct{ wire.FormatInfo }

// formats are all there are; each sum sums each.
var formats = func() []Format {
	var all []Format
	for _, row := range wire.Formats {
		all = append(all, Format{row})
	}
	return all
}()

// Float says whether the format is a floating-point one: it has NaNs, its zeros
// have signs, and sums of it are rounded.
func (f Format) Float() bool { return f.Exp > 0 }

// shape tells a leaf that computes with any floating-point format which one it
// is.
func (f Format) shape(i *netlist.Instance) *netlist.Instance {
	return i.Param("EXP", fmt.Sprint(f.Exp)).Param("FRAC", fmt.Sprint(f.Frac)).Param("INFINITY", f.infinity())
}

// identity is what a gate is told to put in the place of a port that is no
// member, whose operands have format f.
func (p *Plan) identity(f Format) string {
	return fmt.Sprintf("64'h%x", p.Sum.Code.Identity(f.Format))
}

// infinity is what a leaf is told of the format's infinities: whether it has
// some.
func (f Format) infinity() string {
	if f.Infinity {
		return "1"
	}
	return "0"
}
