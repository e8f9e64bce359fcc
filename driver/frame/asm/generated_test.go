package main

import (
	"testing"

	"tributary/verify/generated"
)

func TestGeneratedFilesAreCurrent(t *testing.T) { generated.Check(t, "../fold_amd64.go") }
