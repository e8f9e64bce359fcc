//go:build !race

package arithmetic

const slow = 1 // see race_test.go
