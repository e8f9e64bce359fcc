package transport_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tributary/driver/transport"
)

// TestSocketPathTooLong checks that the error names the limit and the length. A path of the
// maximal length must work on both sides.
func TestSocketPathTooLong(t *testing.T) {
	most := 107
	if runtime.GOOS != "linux" {
		most = 103
	}
	t.Chdir(t.TempDir())
	longest := strings.Repeat("a", most)
	if err := transport.CheckSocket(longest); err != nil {
		t.Error(err)
	}
	l, err := net.Listen("unix", longest)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := transport.Open(context.Background(), "unix:"+longest, transport.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()

	words := fmt.Sprintf("has %d bytes, but the system allows %d", most+1, most)
	if _, err := transport.Open(context.Background(), "unix:"+longest+"a", transport.Needs{}); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%v does not say %q", err, words)
	}
}

// TestSimInAFolderTooDeep checks that the socket of a virtual card is in the folder for
// temporary files.
func TestSimInAFolderTooDeep(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 110))
	dir := folder(t, goodManifest, "echo")
	if err := os.Mkdir(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", deep)
	if _, err := openSim(t, dir); err == nil || !strings.Contains(err.Error(), "but the system allows") || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("got %v", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
