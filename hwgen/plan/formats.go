package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// Format is an element type: a row of the wire table, and the parameters of the leaves
// that compute with it.
type Format struct{ wire.FormatInfo }

// formats lists all formats. Every sum supports every format.
var formats = func() []Format {
	var all []Format
	for _, row := range wire.Formats {
		all = append(all, Format{row})
	}
	return all
}()

// Float reports whether the format is a floating-point format.
func (f Format) Float() bool { return f.Exp > 0 }

// shape sets the parameters of a leaf that computes with a floating-point format.
func (f Format) shape(i *netlist.Instance) *netlist.Instance {
	return i.Param("EXP", fmt.Sprint(f.Exp)).Param("FRAC", fmt.Sprint(f.Frac)).Param("INFINITIES", f.infinity())
}

// identity returns a gate's parameter IDENTITY: the operand of format f for a port that is
// not a member.
func (p *Plan) identity(f Format) string {
	return fmt.Sprintf("64'h%x", p.Sum.Code.Identity(f.Format))
}

// infinity returns a leaf's parameter INFINITIES: 1 if the format has infinities.
func (f Format) infinity() string {
	if f.Infinity {
		return "1"
	}
	return "0"
}
