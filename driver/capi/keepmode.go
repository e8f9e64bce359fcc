//go:build keepmode

package main

// A library that leaves the processor's floating-point mode as it is. A test shows what the mode does then.

// #cgo CFLAGS: -DKEEP_FLOATING_POINT_MODE
import "C"
