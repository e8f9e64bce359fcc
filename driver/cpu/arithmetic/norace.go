//go:build !race

package arithmetic

// reached does nothing without the race detector: see race.go.
func reached([]byte, [][]byte) {}
