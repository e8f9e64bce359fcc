package main

import (
	"testing"

	"tributary/verify/protocol/explorer"
	"tributary/verify/protocol/explorer/explorertest"
)

func TestExplorer(t *testing.T) {
	explorertest.Suite[config]{New: suite, Cases: []explorertest.Case{
		{Args: "-weaken lease-for-ever", Status: explorer.ExitBroken, Contains: "violated: progress"},
		{Args: "-weaken lease-for-ever -config stranger", Status: explorer.ExitBroken, Contains: "stranger: "},
	}}.Test(t)
}
