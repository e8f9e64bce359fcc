//go:build !linux

package npy

// availableMemory returns a fixed limit on systems other than Linux.
func availableMemory() uint64 { return 16 << 30 }
