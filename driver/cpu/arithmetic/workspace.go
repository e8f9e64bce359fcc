package arithmetic

import (
	"fmt"
	"unsafe"
)

// tile is the number of elements that are summed at a time: eight rows of fp32 fill 16 KB. It is a
// multiple of lanes.
const tile = 512

// longest is the largest number of elements that a kernel gets in one call, which the scheduler
// cannot interrupt: eight rows of them take a tenth of a millisecond.
const longest = 1 << 16

// lanes is the number of elements in a vector of a kernel.
const lanes = 8

// Workspace is the scratch memory of a goroutine. The zero value is ready to use.
type Workspace struct {
	rows  [MaxRows][]byte // the payloads of the call
	ports [MaxRows]int    // the port of each row
	used  int             // rows of the call

	memory   []uint32
	wide     [MaxRows][]uint32         // a tile of each row, as fp32 or int32
	sums     []uint32                  // a tile of sums
	levels   [6][]uint32               // scratch of tree: a tile for each level of its recursion
	groups   [MaxRows / lanes][]uint32 // scratch of tree: a tile for each group of ports
	integers [tile]int64               // the last sums of int32, before they wrap or saturate

	pointers [MaxRows]*byte         // for kernels: to an element of each row
	partial  [MaxRows / lanes]*byte // for the kernel of tree that adds groups
	eight    [8]*byte               // for a kernel of tree
}

// take notes the rows of a call, each of size bytes. keepAbsent keeps the places of absent ports
// up to the last present one; their rows are nil.
func (w *Workspace) take(rows [][]byte, size int, keepAbsent bool) {
	if len(rows) > MaxRows {
		panic(fmt.Sprintf("arithmetic: %d rows, more than %d", len(rows), MaxRows))
	}
	w.used = 0
	present := 0
	for p, row := range rows {
		if row == nil && !keepAbsent {
			continue
		}
		if row != nil {
			if len(row) != size {
				panic(fmt.Sprintf("arithmetic: row %d has %d bytes, want %d", p, len(row), size))
			}
			present = w.used + 1
		}
		w.rows[w.used], w.ports[w.used] = row, p
		w.used++
	}
	if present == 0 {
		panic("arithmetic: no row is present")
	}
	w.used = present
	w.grow()
}

// grow makes room for tiles of the rows.
func (w *Workspace) grow() {
	tiles := 1 + len(w.levels) + len(w.groups) + w.used
	if len(w.memory) >= tiles*tile {
		return
	}
	w.memory = make([]uint32, tiles*tile)
	rest := w.memory
	next := func() (t []uint32) {
		t, rest = rest[:tile:tile], rest[tile:]
		return t
	}
	w.sums = next()
	for i := range w.levels {
		w.levels[i] = next()
	}
	for i := range w.groups {
		w.groups[i] = next()
	}
	for i := range w.used {
		w.wide[i] = next()
	}
}

// release drops the references to the caller's memory.
func (w *Workspace) release() {
	clear(w.rows[:w.used])
	clear(w.pointers[:w.used])
	clear(w.partial[:])
	clear(w.eight[:])
}

// load widens n elements of every row, from element from on.
func (w *Workspace) load(f *format, from, n int) {
	for i, row := range w.rows[:w.used] {
		if row != nil {
			f.load(w.wide[i][:n], row[from*f.size:])
		}
	}
}

// wideAt points the kernels at an element of the widened rows.
func (w *Workspace) wideAt(element int) *[MaxRows]*byte {
	for i, row := range w.rows[:w.used] {
		w.pointers[i] = nil
		if row != nil {
			w.pointers[i] = bytesOf(w.wide[i][element:])
		}
	}
	return &w.pointers
}

// rowsAt points the kernels at a byte of the payloads.
func (w *Workspace) rowsAt(offset int) *[MaxRows]*byte {
	for i, row := range w.rows[:w.used] {
		w.pointers[i] = nil
		if row != nil {
			w.pointers[i] = &row[offset]
		}
	}
	return &w.pointers
}

// bytesOf returns the address of numbers, for kernels.
func bytesOf(numbers []uint32) *byte { return (*byte)(unsafe.Pointer(&numbers[0])) }

// roundUp returns the least multiple of lanes from n on.
func roundUp(n int) int { return (n + lanes - 1) / lanes * lanes }
