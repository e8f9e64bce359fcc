package daemon

import "testing"

// TestKeptCopies: a kept result does not change with the buffer that it came in, nor with a late result of
// an earlier chunk.
func TestKeptCopies(t *testing.T) {
	kept := make(keptResults, 2)
	buffer := []byte("sum 4")
	kept.put(result{4, 1, buffer})
	copy(buffer, "sum 2")
	kept.put(result{2, 1, buffer})
	if r, ok := kept.of(4); !ok || string(r.sum) != "sum 4" {
		t.Errorf("chunk 4: %q, %t", r.sum, ok)
	}
	kept.put(result{6, 1, []byte("6")})
	if r, ok := kept.of(6); !ok || string(r.sum) != "6" {
		t.Errorf("chunk 6: %q, %t", r.sum, ok)
	}
	if _, ok := kept.of(4); ok {
		t.Error("chunk 4 is kept beside chunk 6")
	}
}
