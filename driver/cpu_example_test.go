package driver_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"slices"

	"tributary/driver"
)

// Two runs sum the same gradients: once in the order of the workers, in large chunks, and once in
// the opposite order, in small ones. The digests are equal. Plain additions give two others.
func Example_sumsThatDoNotChange() {
	gradients := make([][]float32, 8)
	for w := range gradients {
		rng := rand.New(rand.NewPCG(1, uint64(w)))
		for range 100_000 {
			gradients[w] = append(gradients[w], float32(rng.NormFloat64()*math.Exp2(-20*rng.Float64())))
		}
	}
	reversed := slices.Clone(gradients)
	slices.Reverse(reversed)

	fmt.Println("exact:", digest(sumOn("cpu:sum=exact", gradients)) == digest(sumOn("cpu:sum=exact,chunk=16", reversed)))
	fmt.Println("plain:", digest(plainSum(gradients)) == digest(plainSum(reversed)))
	// Output:
	// exact: true
	// plain: false
}

// sumOn returns the sum of arrays on a card.
func sumOn(name string, arrays [][]float32) []float32 {
	ctx := context.Background()
	card, err := driver.Open(ctx, name, driver.WithWorkers(len(arrays)))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{})
	if err != nil {
		log.Fatal(err)
	}
	sum := make([]float32, len(arrays[0]))
	if err := job.Reduce(ctx, sum, arrays); err != nil {
		log.Fatal(err)
	}
	return sum
}

// plainSum adds arrays one after another.
func plainSum(arrays [][]float32) []float32 {
	sum := slices.Clone(arrays[0])
	for _, a := range arrays[1:] {
		for i, x := range a {
			sum[i] += x
		}
	}
	return sum
}

// digest returns the SHA-256 of an array.
func digest(array []float32) [sha256.Size]byte {
	var b []byte
	for _, x := range array {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return sha256.Sum256(b)
}
