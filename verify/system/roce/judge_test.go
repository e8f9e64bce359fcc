package roce

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
	"tributary/verify/system/roce/rig"
)

// mostForScapy is the number of a recording's frames that scapy judges, which takes 2 ms for each.
const mostForScapy = 4000

// judge records the frames on a card's cables. judged ends that, and checks every packet of RoCEv2 that has left the
// card: FCS, headers and ICRC. scapy then computes as much anew, of all packets or of 4,000 from the whole recording. Both must
// notice a packet that has the ICRC of another payload.
func judge(t *testing.T, c *rig.Card) (judged func()) {
	t.Helper()
	folder := *record
	if folder == "" {
		folder = t.TempDir()
	}
	path := filepath.Join(folder, t.Name()+".pcapng")
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	out := bufio.NewWriter(file)
	recorder, err := c.Record(out)
	require.NoError(t, err)
	return func() {
		t.Helper()
		require.NoError(t, recorder.Flush())
		require.NoError(t, out.Flush())
		left, sums := leaving(t, path)
		require.NotZero(t, sums)
		every := 1 + len(left)/mostForScapy
		var lines []string
		for i := 0; i < len(left); i += every {
			lines = append(lines, hex.EncodeToString(left[i][:len(left[i])-ethernet.FCSBytes]))
		}
		scapyAgrees(t, lines)
		t.Logf("%d packets have left the card, %d of them with data; scapy agrees with the ICRCs of %d", len(left), sums, len(lines))
	}
}

// leaving returns the packets of RoCEv2 that have left the card, whose ICRCs must be right, and how many have data.
func leaving(t *testing.T, path string) (left [][]byte, data int) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	r, err := pcapgo.NewNgReader(bufio.NewReader(file), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	for {
		f, _, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return left, data
		}
		require.NoError(t, err)
		if options.Flags.Direction != pcapgo.NgEpbFlagDirectionOutbound {
			continue
		}
		p, err := rc.Parse(f)
		if errors.Is(err, rc.ErrForeign) {
			continue
		}
		require.NoError(t, err, "%x", f)
		if p.BTH.Opcode <= wire.OpWriteOnlyImm {
			data++
		}
		left = append(left, f)
	}
}

// scapyAgrees checks that scapy makes the same frames from what it reads in them, ICRC included, and that it
// notices a stale ICRC.
func scapyAgrees(t *testing.T, lines []string) {
	t.Helper()
	stale, err := hex.DecodeString(lines[len(lines)-1])
	require.NoError(t, err)
	stale[len(stale)-6] ^= 1
	_, err = rc.Parse(ethernet.AppendFCS(bytes.Clone(stale)))
	require.ErrorIs(t, err, rc.ErrICRC)
	program := exec.Command("python3", "../../../driver/wire/testdata/roce.py")
	program.Stdin = strings.NewReader(strings.Join(append(lines, hex.EncodeToString(stale)), "\n") + "\n")
	program.Stderr = os.Stderr
	out, err := program.Output()
	require.NoError(t, err)
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, answers, len(lines)+1)
	for i, answer := range answers {
		right := strings.Contains(answer, `"icrc": true`) && strings.Contains(answer, `"rebuilt": true`)
		assert.Equal(t, i < len(lines), right, fmt.Sprintf("%d: %s", i, answer))
	}
}
