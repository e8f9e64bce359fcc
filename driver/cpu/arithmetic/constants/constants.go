// Package constants numbers what the kernels of package arithmetic need to know of the formats. The
// kernels' generator and their caller import it.
package constants

// Table holds the constants.
type Table [count]uint32

// The indexes of a table.
const (
	Spread = iota // largest distance of exponents that exact decides

	// Of the results:
	Least     // least normal number, as fp32
	Magic     // makes an exponent 1.5 times the power of two that rounds to its last place
	Beyond    // least magnitude beyond the largest number, doubled
	Up        // half the units of fused in the exponent of 1, as fp32
	Unit      // unit of fused for the exponent of 1, as fp32
	PerUnit   // least positive numbers in 1, as fp32
	OutRebias // fp32's exponent field less the format's, in its place in fp32
	OutCut    // places of an fp32 fraction below the format's last
	OutSign   // places from fp32's sign bit to the format's

	// Of the contributions:
	InMagnitude // all bits but the sign
	InFinite    // largest finite magnitude
	InLeast
	InRebias
	InCut
	InSign

	count
)
