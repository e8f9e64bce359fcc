//go:build !amd64 || purego

package arithmetic

// fastPath has no kernels here.
type fastPath struct{ inPlace bool }

func newFastPath(*Arithmetic) *fastPath { return nil }

func (*fastPath) sum(*Workspace, *[MaxRows]*byte, *byte, int) int { return 0 }

func (*fastPath) load(*format, *Workspace, int, int) {}

func (*fastPath) store([]byte, []uint32) int { return 0 }
