package main

import (
	"testing"

	"tributary/verify/protocol/explorer"
	"tributary/verify/protocol/explorer/explorertest"
)

func TestExplorer(t *testing.T) {
	explorertest.Suite[config]{New: suite, Listed: explorertest.NoneListed, Cases: []explorertest.Case{
		{Args: "-weaken no-stop", Status: explorer.ExitBroken, Contains: "violated: right sum"},
		{Args: "-weaken no-stop -config both", Status: explorer.ExitBroken, Contains: "both: "},
		{Args: "-weaken no-zeros", Status: 0, Contains: "every property holds"},
	}}.Test(t)
}
