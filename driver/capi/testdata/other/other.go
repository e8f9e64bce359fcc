// Command other is a second library with a Go runtime, for two_libraries.c.
package main

import "C"

import "runtime"

func main() {}

// work adds up the numbers below n, in goroutines that allocate.
//
//export work
func work(n C.long) C.long {
	sums := make(chan []int)
	for part := range 4 {
		go func() {
			all := make([]int, 0)
			for i := part; i < int(n); i += 4 {
				all = append(all, i)
			}
			sums <- all
		}()
	}
	total := 0
	for range 4 {
		for _, i := range <-sums {
			total += i
		}
	}
	runtime.GC()
	return C.long(total)
}
