package main

// Operands of the adders, and their expected sums.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"tributary/driver/npy"
	"tributary/driver/wire"
	"tributary/verify/reference/operands"
	"tributary/verify/reference/oracle"
)

const chunk = 256 // elements; the default of a card

// closeExponents returns random elements for each worker. Their exponents are as close as those
// of gradients, so sums round and cancel. The arrays are short enough for the processor's cache.
func closeExponents(workers int) [][]uint32 {
	random := rand.New(rand.NewPCG(1, 1))
	arrays := make([][]uint32, workers)
	for w := range arrays {
		arrays[w] = make([]uint32, 4*chunk)
		for i := range arrays[w] {
			x := math.Ldexp(1+float64(random.IntN(1<<23))/(1<<23), random.IntN(24)-12)
			arrays[w][i] = math.Float32bits(float32(x)) | random.Uint32()<<31
		}
	}
	return arrays
}

// hostile returns elements that are difficult for adders, including some that no window decides.
func hostile(workers int) [][]uint32 {
	arrays := make([][]uint32, workers)
	for w := range arrays {
		arrays[w] = make([]uint32, 64*chunk)
	}
	source := operands.New(wire.FP32, wire.FP32, 1)
	set := make([]uint32, workers)
	for i := range arrays[0] {
		source.Next(set)
		for w := range arrays {
			arrays[w][i] = set[w]
		}
	}
	return arrays
}

// gradients returns the gradients that the workers of a training step send, without the last
// partial chunk.
func gradients() ([][]uint32, error) {
	var arrays [][]uint32
	for w := range 4 {
		file, err := os.Open(fmt.Sprintf("verify/reference/gradients/w%d.npy", w))
		if err != nil {
			return nil, err
		}
		array, err := npy.Read(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		elements := make([]uint32, len(array.Data)/4/chunk*chunk)
		for i := range elements {
			elements[i] = binary.LittleEndian.Uint32(array.Data[4*i:])
		}
		arrays = append(arrays, elements)
	}
	return arrays, nil
}

// writeOperands writes elements and their sums to a file in the format of the programs, and
// returns its path. A reference computes the sums, not the card.
func writeOperands(name string, sum wire.Sum, arrays [][]uint32) (string, error) {
	path := filepath.Join(folder, name)
	var bytes []byte
	for _, array := range append(arrays, sums(sum, arrays)) {
		for _, element := range array {
			bytes = binary.LittleEndian.AppendUint32(bytes, element)
		}
	}
	return path, os.WriteFile(path, bytes, 0o666)
}

// sums returns the fp32 sum of every element.
func sums(sum wire.Sum, arrays [][]uint32) []uint32 {
	right := oracle.New(sum, wire.FP32, wire.FP32, false)
	all := make([]uint32, len(arrays[0]))
	set := make([]uint32, len(arrays))
	for i := range all {
		for w := range arrays {
			set[w] = arrays[w][i]
		}
		all[i], _ = right.Sum(set)
	}
	return all
}
