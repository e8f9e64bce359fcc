package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/transport/record"
	"tributary/driver/wire"
)

// TestCommandsOnModel checks the commands' output for the Go model.
func TestCommandsOnModel(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	workFolder(t)
	for name, line := range map[string]string{
		"info":        "info",
		"info-json":   "info -json",
		"config":      "config -workers 3 -chunk 32 -window 2",
		"config-json": "config -ports 1,2 -json",
		"selftest":    "selftest -card model:",
		"reset":       "reset",
		"list":        "list",
		"top":         "top -count 1",
		"top-json":    "top -count 1 -json",
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(line)
			s := tributary(context.Background(), args...)
			require.Equal(t, 0, s.status, s.errs)
			golden(t, filepath.Join(dir, name+".txt"), transcript(args, s))
		})
	}
}

// TestSelftestFails checks that the self-test names a wrong answer and exits with status 1.
func TestSelftestFails(t *testing.T) {
	workFolder(t)
	card := newCard(t, nil, func(f *frame.Frame) bool {
		if f.Kind == wire.KindReply && f.Code == wire.CodeReadOnly {
			f.Code = wire.CodeDone
		}
		return true
	})
	s := tributary(context.Background(), "selftest", "-card", card)
	require.Equal(t, 1, s.status)
	require.Contains(t, s.out, "WRONG registers")
	require.Contains(t, s.out, "writing MAGIC has the reply done")
	require.Contains(t, s.errs, "failed 1 of 16 checks")

	s = tributary(context.Background(), "selftest", "-json", "-card", card)
	require.Equal(t, 1, s.status)
	var outcomes []outcome
	require.NoError(t, json.Unmarshal([]byte(s.out), &outcomes))
	require.Len(t, outcomes, 16)
	for _, o := range outcomes {
		require.Equal(t, o.Name != "registers", o.OK, o.Name)
	}
}

// TestResetClears checks that reset clears the counters of a reduction.
func TestResetClears(t *testing.T) {
	workFolder(t)
	card := newCard(t, nil, straight)
	require.Equal(t, 0, tributary(context.Background(), "reduce", "-card", card, "-o", "s.npy", "w0.npy", "w1.npy").status)
	require.Regexp(t, `stored +2 `, tributary(context.Background(), "info", "-card", card).out)
	require.Equal(t, 0, tributary(context.Background(), "reset", "-card", card).status)
	require.Regexp(t, `stored +0 `, tributary(context.Background(), "info", "-card", card).out)
}

// passing is a link that accepts all writes, and replays given bytes.
type passing struct{ io.Reader }

func (passing) Write(b []byte) (int, error) { return len(b), nil }
func (passing) Close() error                { return nil }

// TestDecode checks the lines of a log with every kind of frame and damage.
func TestDecode(t *testing.T) {
	frames := func(hs ...frame.Header) []byte {
		var b []byte
		for _, h := range hs {
			b = frame.Append(b, &h, make([]byte, 4*int(h.Length)))
		}
		return b
	}
	damaged := frames(frame.Header{Kind: wire.KindData, Format: wire.FP32, Length: 2})
	damaged[len(damaged)-5] ^= 1
	toCard := frames(
		frame.Header{Kind: wire.KindRegRead, VID: wire.RegLanes, Length: 7},
		frame.Header{Kind: wire.KindRegRead, VID: wire.RegJobState, Length: 9},
		frame.Header{Kind: wire.KindRegRead, VID: wire.JobAddr(wire.RegJobSlots, 3), Length: 10},
		frame.Header{Kind: wire.KindRegRead, VID: wire.LagAddr(0, 2, 15), Length: 11},
		frame.Header{Kind: wire.KindRegRead, VID: wire.LagAddr(3, 63, 0), Length: 12},
		frame.Header{Kind: wire.KindRegWrite, VID: wire.RegJobChunk, Length: 8, Mask: 64},
		frame.Header{Kind: wire.KindData, Job: 0, Epoch: 9, Rank: 3, VID: 4294967295, Format: wire.FP32, Length: 4, Flags: uint8(wire.CE)},
		frame.Header{Kind: wire.KindAsk, Epoch: 9, Rank: 1, VID: 5},
		frame.Header{Kind: wire.KindFinish, Epoch: 9, Rank: 1, VID: 6},
		frame.Header{Kind: wire.KindAsk, Version: 1},
	)
	toCard = append(append(append(toCard, "noise"...), damaged...), 0xa5, 'T')
	fromCard := frames(
		frame.Header{Kind: wire.KindReply, VID: wire.CounterAddr(1), Length: 7, Mask: 12},
		frame.Header{Kind: wire.KindReply, VID: 0x3f8, Length: 8, Code: wire.CodeBadAddress},
		frame.Header{Kind: wire.KindResult, Epoch: 9, VID: 4, Format: wire.FP32, Length: 4, Mask: 0xf, Receivers: 0xd, Flags: uint8(wire.ECT0) | wire.FlagNonfinite},
		frame.Header{Kind: wire.KindReplay, Epoch: 9, VID: 4, Format: wire.FP32, Length: 4, Mask: 0x3, Receivers: 0x1, Flags: uint8(wire.ECT1) | wire.FlagPartial},
		frame.Header{Kind: wire.KindStatus, Epoch: 9, Rank: 1, VID: 5, Code: wire.CodeWait, Mask: 0x8},
		frame.Header{Kind: wire.KindStatus, Epoch: 9, Rank: 1, VID: 6, Code: wire.CodeDone},
		frame.Header{Kind: wire.KindStatus, Epoch: 9, Rank: 1, VID: 7, Code: wire.CodeOverdue, Mask: 0x5},
		frame.Header{Kind: wire.KindStatus, Epoch: 9, Rank: 0, VID: 7, Code: wire.CodeEvicted, Mask: 0x6},
		frame.Header{Kind: wire.KindStatus, Epoch: 9, Rank: 2, VID: 8, Code: wire.CodeEvicted},
	)

	var log bytes.Buffer
	conn := record.Record(passing{bytes.NewReader(fromCard)}, &log)
	_, err := conn.Write(toCard[:30]) // writes may end anywhere in a frame
	require.NoError(t, err)
	_, err = conn.Write(toCard[30:])
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err)

	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	workFolder(t)
	require.NoError(t, os.WriteFile("link.log", log.Bytes(), 0o666))
	for name, line := range map[string]string{"decode": "decode link.log", "decode-json": "decode -json link.log"} {
		args := strings.Fields(line)
		text := transcript(args, tributary(context.Background(), args...))
		golden(t, filepath.Join(dir, name+".txt"), withoutTimes(text))
	}

	// decode shows a truncated log up to its end.
	require.NoError(t, os.WriteFile("link.log", log.Bytes()[:log.Len()-3], 0o666))
	s := tributary(context.Background(), "decode", "link.log")
	require.Equal(t, 1, s.status)
	require.Contains(t, s.errs, "link.log: link log damaged at byte")
	require.Contains(t, s.out, "regread  LANES (tag 7)")
}

// withoutTimes masks the times at the start of a decoded log's lines.
func withoutTimes(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if _, rest, ok := strings.Cut(l, `,"from_card"`); ok {
			lines[i] = `{"seconds":T,"from_card"` + rest
		} else if len(l) > 13 && l[0] == ' ' {
			lines[i] = "           T " + l[13:]
		}
	}
	return strings.Join(lines, "\n")
}

// TestRecord checks that decode reads a log of -record.
func TestRecord(t *testing.T) {
	workFolder(t)
	s := tributary(context.Background(), "reduce", "-record", "link.log", "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Equal(t, 0, s.status, s.errs)
	s = tributary(context.Background(), "decode", "link.log")
	require.Equal(t, 0, s.status, s.errs)
	require.Regexp(t, `(?s)-> regwrite JOB_COMMIT.*-> data .* rank 1 vid 0: 1008 fp32.*<- result .* of ranks 0-1, for ranks 0-1.*-> finish .*<- status .*: done`, s.out)
}

// TestRecordNeedsALink checks that without a card, no log is written and an earlier one stays.
func TestRecordNeedsALink(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.WriteFile("link.log", []byte("earlier"), 0o666))
	before := files(t)
	for _, log := range []string{"link.log", "new.log"} {
		require.Equal(t, 3, tributary(context.Background(), "info", "-card", "unix:none", "-record", log).status)
		requireNoNewFiles(t, before)
	}
	text, err := os.ReadFile("link.log")
	require.NoError(t, err)
	require.Equal(t, "earlier", string(text))
}

// standIn is a program that behaves like a virtual card up to the first byte.
const standIn = `#!/bin/sh
trap 'echo "cycles=1 beats=2 rx_bytes=3 tx_bytes=4"; exit 0' TERM
echo "arguments: $*"
echo "listening $2"
while :; do sleep 0.05; done
`

// TestSim checks that sim forwards the card's output, that list shows the running card, and that
// Ctrl-C exits with status 0.
func TestSim(t *testing.T) {
	manifest := cardManifest(t)
	workFolder(t)
	require.NoError(t, os.MkdirAll("made/sim/build", 0o777))
	require.NoError(t, os.WriteFile("made/manifest.json", []byte(manifest), 0o666))
	require.NoError(t, os.WriteFile("made/sim/build/card_trace", []byte(standIn), 0o777))

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan said)
	go func() { ended <- tributary(ctx, "sim", "-trace", "x.fst", "-once", "made") }()
	abs, err := filepath.Abs("made")
	require.NoError(t, err)
	socket := "unix:" + filepath.Join(abs, "sim", "build", "card.sock")
	until(func() bool {
		s := tributary(context.Background(), "list")
		return strings.Contains(s.out, socket+"  ready  a virtual card that runs, built in "+abs)
	})

	stop()
	s := <-ended
	require.Equal(t, 0, s.status, s.errs)
	require.Equal(t, `arguments: --listen unix:made/sim/build/card.sock --end-with-stdin --once --trace x.fst
listening unix:made/sim/build/card.sock
cycles=1 beats=2 rx_bytes=3 tx_bytes=4
`, s.out)
	require.NotContains(t, tributary(context.Background(), "list").out, socket)

	require.NoError(t, os.WriteFile("made/sim/build/card", []byte("#!/bin/sh\necho >&2 cannot; exit 3\n"), 0o777))
	s = tributary(context.Background(), "sim", "made")
	require.Equal(t, 1, s.status)
	require.Equal(t, "cannot\ntributary sim: the card in made ended: exit status 3\n", s.errs)
}

// TestListLeavesOut checks that list skips hidden folders and folders called testdata.
func TestListLeavesOut(t *testing.T) {
	manifest := cardManifest(t)
	workFolder(t)
	for _, dir := range []string{"cards/mine", "cards/testdata/golden", ".hidden"} {
		require.NoError(t, os.MkdirAll(dir, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o666))
	}
	listed := tributary(context.Background(), "list").out
	require.Contains(t, listed, "sim:cards/mine")
	require.NotContains(t, listed, "testdata")
	require.NotContains(t, listed, "hidden")
}

// TestSeveral checks the singular for one.
func TestSeveral(t *testing.T) {
	require.Equal(t, "1 lane", several(1, "lane"))
	require.Equal(t, "0 lanes", several(0, "lane"))
	require.Equal(t, "64 workers", several(64, "worker"))
}

// TestListRemovesDeadCards checks that list removes the note of a card whose keeper was killed.
func TestListRemovesDeadCards(t *testing.T) {
	workFolder(t)
	remove, err := noteRunning(runningCard{Card: "unix:/x", Dir: "/d"})
	require.NoError(t, err)
	cards, err := runningCards()
	require.NoError(t, err)
	require.Equal(t, []runningCard{{Card: "unix:/x", Dir: "/d"}}, cards)
	remove()

	stale := filepath.Join(notesDir(), "card-stale.json")
	require.NoError(t, os.WriteFile(stale, []byte(`{"card": "unix:/y"}`), 0o600))
	cards, err = runningCards()
	require.NoError(t, err)
	require.Empty(t, cards)
	require.NoFileExists(t, stale)
}

// TestListSideBySide checks that two lists can remove the same notes concurrently.
func TestListSideBySide(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.MkdirAll(notesDir(), 0o700))
	for round := range 20 {
		for n := range 20 {
			note := filepath.Join(notesDir(), fmt.Sprintf("card-%d-%d.json", round, n))
			require.NoError(t, os.WriteFile(note, []byte(`{"card": "unix:/y"}`), 0o600))
		}
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := runningCards()
				errs <- err
			}()
		}
		for range 4 {
			require.NoError(t, <-errs)
		}
	}
}
