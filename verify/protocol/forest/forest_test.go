package main

import (
	"testing"

	"tributary/verify/protocol/explorer"
	"tributary/verify/protocol/explorer/explorertest"
)

func TestExplorer(t *testing.T) {
	explorertest.Suite[config]{New: suite, Listed: explorertest.NoneListed, Cases: []explorertest.Case{
		{Args: "-weaken remake", Status: explorer.ExitBroken, Contains: "violated: right sum"},
		{Args: "-weaken one-by-one -config weights", Status: 0, Contains: "weights "},
	}}.Test(t)
}
