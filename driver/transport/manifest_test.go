package transport_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// TestManifestOutOfBounds checks that a folder whose card has an excessive window, with the
// right hash, is rejected before a model of it allocates memory.
func TestManifestOutOfBounds(t *testing.T) {
	good, err := transport.ReadManifest(folder(t, goodManifest, ""))
	if err != nil {
		t.Fatal(err)
	}
	hash := wire.ConfigHash(func(addr uint32) uint64 {
		if addr == wire.RegWindow {
			return 1 << 40
		}
		return good.Constant(addr)
	})
	window := regexp.MustCompile(`("name": "WINDOW",[^}]*"value": )"0x[0-9a-f]+"`)
	text := window.ReplaceAllString(goodManifest, `$1"0x10000000000"`)
	text = strings.ReplaceAll(text, fmt.Sprintf("%016x", good.ConfigHash), fmt.Sprintf("%016x", hash))
	words := "WINDOW is 1099511627776, not a power of two from 1 to 1024"
	if _, err := transport.ReadManifest(folder(t, text, "")); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%v does not say %q", err, words)
	}
}
