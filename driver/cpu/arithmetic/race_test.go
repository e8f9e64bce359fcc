//go:build race

package arithmetic

// slow divides the work of tests: the race detector makes them ten times as slow.
const slow = 8
