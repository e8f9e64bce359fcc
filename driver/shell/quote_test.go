package shell

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuote checks that sh reads back the quoted words, and that plain words are unchanged.
func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a b", "it's", "'", "''x", "$HOME", "`id`", "$(id)", "a\"b", "a\\b", "*", "~", "~user", "#x", "a;b", "a&b", "a|b", "<x>", "!", "a\nb", "tab\t", "é", "{a,b}", "[a]", "a?"} {
		quoted := Quote(s)
		require.NotEqual(t, s, quoted)
		out, err := exec.Command("sh", "-c", "printf %s "+quoted).Output()
		require.NoError(t, err)
		require.Equal(t, s, string(out), quoted)
	}
	for _, s := range []string{"trace/card.fst", "unix:/tmp/card.sock", "tcp:lab:7000", "serial:/dev/ttyUSB1@9600", "-x", "a=b,c", "usb:1209:0001#A1"} {
		require.Equal(t, s, Quote(s))
		out, err := exec.Command("sh", "-c", "printf %s "+s).Output()
		require.NoError(t, err)
		require.Equal(t, s, string(out))
	}
}
