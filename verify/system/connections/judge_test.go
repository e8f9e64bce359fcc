package connections_test

import (
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
)

// judge checks that scapy makes the same bytes, ICRC included, from what it reads in each frame. The same check
// refuses a frame with another payload and its old ICRC, and so does rc.Parse.
func judge(t testing.TB, data [][]byte) {
	t.Helper()
	require.NotEmpty(t, data)
	stale, _ := ethernet.CutFCS(data[0])
	stale = append([]byte(nil), stale...)
	stale[len(stale)-8] ^= 1 // in the payload
	all := append(data[:len(data):len(data)], ethernet.AppendFCS(stale))
	_, err := rc.Parse(all[len(data)])
	require.Equal(t, rc.ErrICRC, err)
	var lines strings.Builder
	for _, frame := range all {
		lines.WriteString(hex.EncodeToString(frame[:len(frame)-ethernet.FCSBytes]) + "\n")
	}
	command := exec.Command("python3", "../../../driver/wire/testdata/roce.py")
	command.Stdin = strings.NewReader(lines.String())
	out, err := command.Output()
	require.NoError(t, err)
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, answers, len(all))
	for i, answer := range answers {
		right := strings.Contains(answer, `"icrc": true`) && strings.Contains(answer, `"rebuilt": true`)
		assert.Equal(t, i < len(data), right, answer)
	}
	t.Logf("scapy agrees with the ICRCs of %d packets", len(data))
}
