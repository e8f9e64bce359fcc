package plan

import "tributary/driver/wire"

// fp32 is IEEE 754 binary32: round to nearest, ties to even, subnormals kept.
var fp32 = Format{
	FormatInfo: info(wire.FP32),
	add:        "agg_fp32_add",
	addLatency: 4,
	canon:      "agg_fp32_canon",
	canLatency: 1,
	nonfinite:  "agg_fp32_nonfinite",
	identity:   0x80000000, // -0
}

// info returns the row of the wire table that describes f.
func info(f wire.Format) wire.FormatInfo {
	i, ok := f.Info()
	if !ok {
		panic("a format that the wire table lacks")
	}
	return i
}
