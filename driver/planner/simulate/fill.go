package simulate

import "math/big"

// flow is what progressive filling gives a rate: a flow of other traffic, or a tree.
type flow struct {
	uses []use
	most *big.Rat // its rate is at most this; nil: only its resources limit it
}

// use says how many streams of a flow pass a resource. Each costs the flow's rate.
type use struct {
	resource int
	streams  int64
}

// finest is the largest denominator, in bits, of a rate that fill computes. Others are rounded down to
// a multiple of 2^-finest.
const finest = 60

// fill returns the max-min fair rates of flows, by progressive filling: the rates of all flows rise
// together. A flow stops when it reaches its most, or when a resource of its is full. Bertsekas and
// Gallager, Data Networks, 2nd edition, section 6.5.2.
func fill(capacity []*big.Rat, flows []flow) []*big.Rat {
	f := &filling{left: make([]*big.Rat, len(capacity)), rising: make([]int64, len(capacity)), users: make([][]int, len(capacity)), rates: make([]*big.Rat, len(flows)), flows: flows}
	for i, fl := range flows {
		for _, u := range fl.uses {
			if f.left[u.resource] == nil {
				f.left[u.resource] = new(big.Rat).Set(capacity[u.resource])
				f.used = append(f.used, u.resource)
			}
			f.rising[u.resource] += u.streams
			f.users[u.resource] = append(f.users[u.resource], i)
		}
	}
	for n := 0; n < len(flows); {
		level, full := f.level()
		for i, fl := range flows {
			if f.rates[i] == nil && fl.most != nil && round(fl.most).Cmp(level) <= 0 {
				f.stop(i, level)
				n++
			}
		}
		for _, r := range full {
			for _, i := range f.users[r] {
				if f.rates[i] == nil {
					f.stop(i, level)
					n++
				}
			}
		}
	}
	return f.rates
}

type filling struct {
	flows  []flow
	rates  []*big.Rat // nil: it still rises
	left   []*big.Rat // of each resource, beside flows that have stopped
	rising []int64    // streams of flows that still rise
	users  [][]int
	used   []int // resources
}

// level returns the next rate at which a flow stops, and the resources that are full at it.
func (f *filling) level() (level *big.Rat, full []int) {
	for i, fl := range f.flows {
		if f.rates[i] == nil && fl.most != nil && (level == nil || fl.most.Cmp(level) < 0) {
			level = fl.most
		}
	}
	var at, streams big.Rat
	for _, r := range f.used {
		if f.rising[r] == 0 {
			continue
		}
		at.Quo(f.left[r], streams.SetInt64(f.rising[r]))
		order := -1
		if level != nil {
			order = at.Cmp(level)
		}
		if order < 0 {
			level, full = new(big.Rat).Set(&at), full[:0]
		}
		if order <= 0 {
			full = append(full, r)
		}
	}
	return round(level), full
}

// stop freezes the rate of a flow.
func (f *filling) stop(i int, level *big.Rat) {
	f.rates[i] = level
	var load, streams big.Rat
	for _, u := range f.flows[i].uses {
		f.left[u.resource].Sub(f.left[u.resource], load.Mul(level, streams.SetInt64(u.streams)))
		f.rising[u.resource] -= u.streams
	}
}

// round rounds a rate down, if its denominator is large.
func round(r *big.Rat) *big.Rat {
	if r.Denom().BitLen() <= finest {
		return r
	}
	units := new(big.Int).Lsh(r.Num(), finest)
	return new(big.Rat).SetFrac(units.Quo(units, r.Denom()), new(big.Int).Lsh(big.NewInt(1), finest))
}
