package arithmetic

// nonfinite returns the fused or exact sum of an element whose members hold a NaN or an infinity.
func (w *Workspace) nonfinite(element int) uint32 {
	var signs uint32 // bit 0: there is +infinity; bit 1: -infinity
	for k := range w.used {
		switch x := w.wide[k][element]; {
		case x&^signBit > infinity:
			return nan
		case x&^signBit == infinity:
			signs |= 1 + x>>31
		}
	}
	switch signs {
	case 1:
		return infinity
	case 2:
		return signBit | infinity
	}
	return nan
}
