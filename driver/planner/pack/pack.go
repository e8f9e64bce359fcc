// Package pack gives trees their rates: as much as possible together, so that no load exceeds a
// capacity. The arithmetic is exact, so the rates are fractions and a full resource is exactly full.
package pack

import (
	"math/big"
	"slices"
)

// Row is a capacity, and the streams that each tree puts on it.
type Row struct {
	Capacity *big.Rat
	Streams  []int64
}

// Rates returns the rates of the trees whose sum is largest, and a price of each row: what one more unit
// of its capacity would add to the sum. A row with a price is full. Together the prices prove the sum,
// because it equals the capacities times their prices, and each tree pays at least 1 for its streams.
//
// It is the simplex method with Bland's rule (1977), which cannot cycle, on fractions. There must be a
// row with streams for every tree.
func Rates(trees int, rows []Row) (rates, prices []*big.Rat) {
	kept := distinct(rows)
	d := newDictionary(trees, rows, kept)
	for d.pivot() {
	}
	rates, prices = zeros(trees), zeros(len(rows))
	for i, v := range d.basis {
		if v < trees {
			rates[v] = d.value[i]
		}
	}
	for j, v := range d.free {
		if v >= trees {
			prices[kept[v-trees]] = new(big.Rat).Neg(d.gain[j])
		}
	}
	return rates, prices
}

func zeros(n int) []*big.Rat {
	z := make([]*big.Rat, n)
	for i := range z {
		z[i] = new(big.Rat)
	}
	return z
}

// distinct returns the rows that matter: of several with the same streams, the one with the smallest
// capacity.
func distinct(rows []Row) (kept []int) {
	place := map[string]int{}
	for i, r := range rows {
		if !slices.ContainsFunc(r.Streams, func(s int64) bool { return s > 0 }) {
			continue
		}
		key := make([]byte, 0, 8*len(r.Streams))
		for _, s := range r.Streams {
			for shift := 0; shift < 64; shift += 8 {
				key = append(key, byte(s>>shift))
			}
		}
		at, known := place[string(key)]
		switch {
		case !known:
			place[string(key)] = len(kept)
			kept = append(kept, i)
		case r.Capacity.Cmp(rows[kept[at]].Capacity) < 0:
			kept[at] = i
		}
	}
	return kept
}

// dictionary is a state of the simplex method: each basic variable is its value minus a sum of free
// ones, and so is the objective. Variables are the trees, then the slack of each row.
type dictionary struct {
	basis []int // variables
	free  []int
	value []*big.Rat   // of basic variables
	by    [][]*big.Rat // basic = value - by * free
	gain  []*big.Rat   // objective = its value + gain * free
}

func newDictionary(trees int, rows []Row, kept []int) *dictionary {
	d := &dictionary{}
	for t := range trees {
		d.free = append(d.free, t)
		d.gain = append(d.gain, big.NewRat(1, 1))
	}
	for i, at := range kept {
		d.basis = append(d.basis, trees+i)
		d.value = append(d.value, rows[at].Capacity)
		by := make([]*big.Rat, trees)
		for t, s := range rows[at].Streams {
			by[t] = big.NewRat(s, 1)
		}
		d.by = append(d.by, by)
	}
	return d
}

// pivot exchanges a free variable that gains for the basic one that limits it. It returns false if none
// gains.
func (d *dictionary) pivot() bool {
	enter := -1
	for j, g := range d.gain {
		if g.Sign() > 0 && (enter < 0 || d.free[j] < d.free[enter]) {
			enter = j
		}
	}
	if enter < 0 {
		return false
	}
	leave, least := -1, new(big.Rat)
	for i := range d.basis {
		if d.by[i][enter].Sign() <= 0 {
			continue
		}
		ratio := new(big.Rat).Quo(d.value[i], d.by[i][enter])
		if c := ratio.Cmp(least); leave < 0 || c < 0 || c == 0 && d.basis[i] < d.basis[leave] {
			leave, least = i, ratio
		}
	}
	d.exchange(leave, enter)
	return true
}

// exchange makes a free variable basic, and the reverse.
func (d *dictionary) exchange(leave, enter int) {
	row := d.by[leave]
	inverse := new(big.Rat).Inv(row[enter])
	for j := range row {
		if j == enter {
			row[j] = inverse
		} else {
			row[j] = new(big.Rat).Mul(row[j], inverse)
		}
	}
	d.value[leave] = new(big.Rat).Mul(d.value[leave], inverse)
	d.basis[leave], d.free[enter] = d.free[enter], d.basis[leave]
	for i := range d.basis {
		if factor := d.by[i][enter]; i != leave && factor.Sign() != 0 {
			d.value[i] = new(big.Rat).Sub(d.value[i], new(big.Rat).Mul(factor, d.value[leave]))
			subtract(d.by[i], row, factor, enter)
		}
	}
	subtract(d.gain, row, d.gain[enter], enter)
}

// subtract takes factor times row from another row; the entry at enter was that of the variable that
// became basic.
func subtract(from, row []*big.Rat, factor *big.Rat, enter int) {
	for j := range from {
		if j == enter {
			from[j] = new(big.Rat).Neg(new(big.Rat).Mul(factor, row[j]))
		} else if row[j].Sign() != 0 {
			from[j] = new(big.Rat).Sub(from[j], new(big.Rat).Mul(factor, row[j]))
		}
	}
}
