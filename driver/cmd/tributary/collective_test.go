package main

// tributary collective with ranks as processes.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// collectiveFolder makes a work folder whose path is short enough for sockets.
func collectiveFolder(t *testing.T) {
	t.Helper()
	workFolder(t)
	dir, err := os.MkdirTemp("", "c")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	t.Setenv(asCommand, "1")
}

// TestCollective: every algorithm and operation runs among processes, without a wrong element; the
// columns are those of nccl-tests, and no file is left.
func TestCollective(t *testing.T) {
	collectiveFolder(t)
	for _, line := range []string{
		"-algorithm ring -ranks 3 -operation all-reduce",
		"-algorithm tree -ranks 3 -operation broadcast -root 2 -format bf16",
		"-algorithm ps -ranks 2 -operation reduce-scatter -format int32",
		"-algorithm ring -ranks 2 -operation all-gather -format fp8e4m3",
		"-algorithm card -ranks 2 -card cpu: -format int32",
		"-algorithm rina -racks 2,1 -ranks 4 -card cpu: -format bf16",
		"-algorithm rina -racks 2,1 -ranks 3 -card cpu:sum=exact -card model: -operation reduce-scatter",
		"-algorithm parallel -machines 3 -ranks 6 -card cpu:sum=fused -format bf16",
		"-algorithm parallel -machines 1 -ranks 3 -operation all-gather",
		"-algorithm ring -ranks 1",
	} {
		s := tributary(t.Context(), strings.Fields("collective -sizes 4..16,1K -iterations 2 -warmup 1 "+line)...)
		require.Zero(t, s.status, "%s: %s", line, s.errs)
		rows := strings.Split(strings.TrimSpace(s.out), "\n")
		require.Len(t, rows, 3+4, line)
		columns := strings.Fields(rows[6])
		require.Len(t, columns, 9, rows[6])
		require.Equal(t, "1024", columns[0])
		require.Equal(t, "0", columns[8], line)
		root := "-1"
		if strings.Contains(line, "-root") {
			root = "2"
		}
		require.Equal(t, root, columns[4])
	}
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestCollectiveJSON checks the numbers of -json against one another: a ring's steps and bytes, and both
// bandwidths.
func TestCollectiveJSON(t *testing.T) {
	collectiveFolder(t)
	s := tributary(t.Context(), strings.Fields("collective -json -algorithm ring -ranks 3 -elements 300 -iterations 2")...)
	require.Zero(t, s.status, s.errs)
	var report struct {
		Ranks   int
		Checked bool
		Rows    []collectiveRow
	}
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Equal(t, 3, report.Ranks)
	require.True(t, report.Checked)
	require.Len(t, report.Rows, 1)
	r := report.Rows[0]
	require.Equal(t, []any{1200, 300, "fp32", "sum", -1, 0}, []any{r.Size, r.Count, r.Type, r.Op, r.Root, r.Wrong})
	require.Equal(t, []float64{4, 1600, 1600}, []float64{r.Steps, r.Sent, r.Received})
	require.InEpsilon(t, 1200/r.Seconds, r.Algorithm, 1e-9)
	require.InEpsilon(t, r.Algorithm*4/3, r.Bus, 1e-9)
}

// TestCollectiveRacks: a ring of G nodes takes 2(G-1) steps: racks of which each has a card of its own, and
// ranks without.
func TestCollectiveRacks(t *testing.T) {
	collectiveFolder(t)
	for flags, nodes := range map[string]int{
		"-racks 2,2 -ranks 6 -card cpu:":                               4,
		"-racks 3 -ranks 3 -card cpu:":                                 1,
		"-racks 1,2 -ranks 3 -card cpu:format=int32 -card model:":      2,
		"-racks 2,1 -ranks 4 -card cpu:workers=2 -card cpu:workers=16": 4, // rack 0 lacks a port
	} {
		s := tributary(t.Context(), strings.Fields("collective -json -algorithm rina -format int32 -elements 60 -iterations 2 "+flags)...)
		require.Zero(t, s.status, "%s: %s", flags, s.errs)
		var report struct{ Rows []collectiveRow }
		require.NoError(t, json.Unmarshal([]byte(s.out), &report))
		r, steps := report.Rows[0], 2*float64(nodes-1)
		require.Equal(t, []float64{steps, steps * 240 / float64(nodes), 0}, []float64{r.Steps, r.Sent, float64(r.Wrong)}, flags)
		want := ""
		if strings.Contains(flags, "workers=2") {
			want = "tributary collective: warning: the card of rack 0 is not used for int32: it has 2 ports; the members and the ring need 3; its 2 members join the ring singly\n"
		}
		require.Equal(t, want, s.errs)
	}
}

// TestCollectiveMachines: a rank takes 2(n-1) steps inside its machine, and as many as a ring between
// machines without a card, or with one of too few ports. One card that is no copy has a job for each local
// index.
func TestCollectiveMachines(t *testing.T) {
	collectiveFolder(t)
	startServe(t, "-card", "cpu:workers=3,format=int32,jobs=2", "-listen", "unix:s")
	few := "tributary collective: warning: the card is not used: it has 2 ports for 3 members; rings sum instead\n"
	for _, c := range []struct {
		flags, warning string
		steps          float64
	}{
		{"", "", 2 + 4},
		{"-card cpu:", "", 2},
		{"-card cpu: -card cpu:workers=3", "", 2},
		{"-card serve:unix:s", "", 2},
		{"-card cpu:workers=2", few, 2 + 4},
	} {
		s := tributary(t.Context(), strings.Fields("collective -json -algorithm parallel -machines 3 -ranks 6 -format int32 -elements 60 -iterations 2 "+c.flags)...)
		require.Zero(t, s.status, "%s: %s", c.flags, s.errs)
		require.Equal(t, c.warning, s.errs, c.flags)
		var report struct {
			Machines int
			Rows     []collectiveRow
		}
		require.NoError(t, json.Unmarshal([]byte(s.out), &report))
		require.Equal(t, []float64{3, c.steps, 0}, []float64{float64(report.Machines), report.Rows[0].Steps, float64(report.Rows[0].Wrong)}, c.flags)
	}
}

// TestCollectiveRanks: ranks that are started one by one form a group by a list of addresses, and find a
// stranger by the token.
func TestCollectiveRanks(t *testing.T) {
	collectiveFolder(t)
	require.NoError(t, os.WriteFile("token", []byte("right and long enough to be a token\n"), 0o600))
	require.NoError(t, os.WriteFile("other", []byte("wrong and long enough to be a token\n"), 0o600))
	require.NoError(t, os.WriteFile("members", []byte("# two\nunix:a\n\nunix:b\n"), 0o600))
	one := func(rank, how, token string) *rank {
		return startCollective(t, "-algorithm", "ring", "-rank", rank, "-sizes", "64", how, map[string]string{"-members": "members", "-peers": "unix:a,unix:b"}[how], "-token-file", token)
	}
	first, second := one("0", "-members", "token"), one("1", "-peers", "token")
	for _, r := range []*rank{first, second} {
		s := r.ended(t)
		require.Zero(t, s.status, s.errs)
		require.Contains(t, s.out, "# all-reduce by ring, 2 ranks\n")
	}
	first, second = one("0", "-members", "token"), one("1", "-peers", "other")
	ends := make(chan said, 2)
	for _, r := range []*rank{first, second} {
		go func() { ends <- r.ended(t) }()
	}
	s := <-ends // of the one that dials: the other waits for it
	require.Equal(t, 1, s.status)
	require.Regexp(t, `rank [01] \(rank[01]\) refused this member \(stranger\)`, s.errs)
	for _, r := range []*rank{first, second} {
		_ = r.Process.Signal(syscall.SIGINT) // one has ended
	}
	require.Equal(t, 1, (<-ends).status)
}

func startCollective(t *testing.T, args ...string) *rank {
	t.Helper()
	r := &rank{served: served{Cmd: exec.Command(os.Args[0], append([]string{"collective"}, args...)...)}}
	r.Env = append(os.Environ(), asCommand+"=1")
	r.begin(t)
	return r
}

// children returns the ranks that a launcher has started, by their numbers.
func children(t *testing.T, launcher int) map[string]int {
	t.Helper()
	all := map[string]int{}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", launcher))
	require.NoError(t, err)
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // the thread may have ended
		for _, pid := range strings.Fields(string(pids)) {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if _, rest, ok := strings.Cut(string(line), "-rank\x00"); ok {
				number, _, _ := strings.Cut(rest, "\x00")
				all[number], err = strconv.Atoi(pid)
				require.NoError(t, err)
			}
		}
	}
	return all
}

// startLong starts a launcher whose ranks sum until they are stopped. It returns when they do.
func startLong(t *testing.T) (launcher *rank, pids map[string]int) {
	t.Helper()
	launcher = startCollective(t, "-algorithm", "ring", "-ranks", "3", "-elements", strings.Repeat("16,", 40_000)+"16", "-iterations", "100", "-warmup", "0")
	for range 4 { // the heading and a row
		_, err := launcher.out.ReadString('\n')
		require.NoError(t, err)
	}
	pids = children(t, launcher.Process.Pid)
	require.Len(t, pids, 3)
	return launcher, pids
}

// gone waits until no process has these numbers.
func gone(pids map[string]int) {
	for _, pid := range pids {
		until(func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
}

// TestCollectiveKilled: the message names a rank that is killed, and its signal. No process is left.
func TestCollectiveKilled(t *testing.T) {
	collectiveFolder(t)
	launcher, pids := startLong(t)
	require.NoError(t, syscall.Kill(pids["1"], syscall.SIGKILL))
	s := launcher.ended(t)
	require.Equal(t, 1, s.status)
	require.Equal(t, fmt.Sprintf("tributary collective: rank 1 (process %d) was ended by a signal: killed\n", pids["1"]), s.errs)
	gone(pids)
}

// TestCollectiveInterrupted: Ctrl-C at the launcher leaves no process and no file; its violent end leaves
// no process.
func TestCollectiveInterrupted(t *testing.T) {
	collectiveFolder(t)
	launcher, pids := startLong(t)
	require.NoError(t, launcher.Process.Signal(syscall.SIGINT))
	s := launcher.ended(t)
	require.Equal(t, 1, s.status)
	require.Equal(t, "tributary collective: stopped, interrupt signal received\n", s.errs)
	gone(pids)
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)

	// Ranks that never print do not notice a closed pipe.
	launcher = startCollective(t, "-algorithm", "ring", "-ranks", "3", "-elements", "16", "-iterations", "1000000000")
	until(func() bool { pids = children(t, launcher.Process.Pid); return len(pids) == 3 })
	require.NoError(t, launcher.Process.Kill())
	require.Equal(t, -1, launcher.ended(t).status)
	gone(pids)
}

// TestCollectiveCardIsNotFit: a warning, once, and a ring sums.
func TestCollectiveCardIsNotFit(t *testing.T) {
	collectiveFolder(t)
	s := tributary(t.Context(), strings.Fields("collective -algorithm card -card cpu:workers=2,format=int32 -ranks 2 -sizes 64 -iterations 1")...)
	require.Zero(t, s.status, s.errs)
	require.Equal(t, 1, strings.Count(s.errs, "warning"), s.errs)
	require.Contains(t, s.errs, "is not used for fp32: it sums int32, not fp32; a ring sums instead")
}

// TestCollectiveWrong: wrong elements end the command with status 1.
func TestCollectiveWrong(t *testing.T) {
	table := newTable(&setup{collectiveFlags: &collectiveFlags{check: true}}, &strings.Builder{}, &strings.Builder{})
	require.NoError(t, table.end())
	require.NoError(t, table.add(collectiveRow{Wrong: 2}))
	require.EqualError(t, table.end(), "2 elements of results are wrong")
}

// TestCollectiveAlone: a rank whose peer never comes ends with -wait, and a call with -timeout.
func TestCollectiveAlone(t *testing.T) {
	collectiveFolder(t)
	s := tributary(t.Context(), strings.Fields("collective -algorithm ring -rank 0 -peers unix:a,unix:b -wait 10ms")...)
	require.Equal(t, 4, s.status)
	require.Contains(t, s.errs, "rank 1 (rank1) is lost: it cannot be reached at unix:b within 10ms: ")
	s = tributary(t.Context(), strings.Fields("collective -algorithm ring -rank 0 -peers unix:a,unix:b -timeout 10ms")...)
	require.Equal(t, 4, s.status, s.errs)
}

// TestParseSizes checks lists and ranges.
func TestParseSizes(t *testing.T) {
	sizes, err := parseSizes("4,1K..5K,2M,4G")
	require.NoError(t, err)
	require.Equal(t, []int{4, 1024, 2048, 4096, 2 << 20, 4 << 30}, sizes)
}

// TestCollectiveErrors checks the messages for invalid command lines, and their statuses.
func TestCollectiveErrors(t *testing.T) {
	path, err := filepath.Abs(filepath.Join("testdata", "errors", "collective.txt"))
	require.NoError(t, err)
	collectiveFolder(t)
	var all strings.Builder
	for _, line := range []string{
		"-ranks 2",
		"-algorithm star -ranks 2",
		"-algorithm ring",
		"-algorithm ring -ranks 0",
		"-algorithm ring -ranks 257",
		"-algorithm ring -ranks 2 extra",
		"-algorithm ring -ranks 2 -card cpu:",
		"-algorithm card -ranks 2",
		"-algorithm card -ranks 2 -card cpu:workers=x",
		"-algorithm card -ranks 2 -card unix:none",
		"-algorithm card -rank 0 -peers unix:a,unix:b -card cpu:",
		"-algorithm card -rank 1 -peers unix:a,unix:b -card serve:unix:s",
		"-algorithm card -rank 0 -peers unix:a,unix:b -join x",
		"-algorithm card -ranks 2 -card cpu: -card cpu:",
		"-algorithm card -ranks 2 -card cpu: -racks 2",
		"-algorithm rina -ranks 4 -card cpu:",
		"-algorithm rina -racks 2,x -ranks 4 -card cpu:",
		"-algorithm rina -racks 2,0 -ranks 4 -card cpu:",
		"-algorithm rina -racks 2,3 -ranks 4 -card cpu:",
		"-algorithm rina -racks 2,2 -ranks 4",
		"-algorithm rina -racks 2,2 -ranks 4 -card unix:a",
		"-algorithm rina -racks 2,2 -ranks 4 -card cpu: -card cpu: -card cpu:",
		"-algorithm rina -racks 2 -rank 0 -peers unix:a,unix:b,unix:c -card cpu:",
		"-algorithm rina -racks 2 -rank 0 -peers unix:a,unix:b,unix:c -join x",
		"-algorithm rina -racks 2 -rank 0 -peers unix:a,unix:b,unix:c -card serve:unix:s -join x",
		"-algorithm rina -racks 2 -rank 2 -peers unix:a,unix:b,unix:c -card serve:unix:s -join x",
		"-algorithm rina -racks 2 -rank 2 -peers unix:a,unix:b,unix:c -card serve:unix:none",
		"-algorithm rina -racks 2 -machines 2 -ranks 4 -card cpu:",
		"-algorithm parallel -ranks 4",
		"-algorithm parallel -machines 3 -ranks 4",
		"-algorithm parallel -machines 0 -ranks 4",
		"-algorithm parallel -machines 2 -ranks 6 -card cpu: -card cpu:",
		"-algorithm parallel -machines 2 -ranks 4 -card cpu:jobs=0",
		"-algorithm parallel -machines 1 -rank 1 -peers unix:a,unix:b -join x",
		"-algorithm card -rank 0 -peers unix:a,unix:b -card serve:unix:none",
		"-algorithm ring -peers unix:a,unix:b",
		"-algorithm ring -rank 0",
		"-algorithm ring -rank 0 -ranks 2 -peers unix:a,unix:b",
		"-algorithm ring -rank 2 -peers unix:a,unix:b",
		"-algorithm ring -rank -2 -peers unix:a",
		"-algorithm ring -rank 0 -peers unix:a,unix:a",
		"-algorithm ring -rank 0 -peers unix:a,b",
		"-algorithm ring -rank 0 -members missing",
		"-algorithm ring -rank 0 -peers unix:a -token-file missing",
		"-algorithm ring -ranks 2 -token-file token",
		"-algorithm ring -ranks 2 -operation sum",
		"-algorithm ring -ranks 2 -root 1",
		"-algorithm ring -ranks 2 -operation broadcast -root 2",
		"-algorithm ring -ranks 2 -format fp64",
		"-algorithm ring -ranks 2 -sizes 5",
		"-algorithm ring -ranks 2 -sizes 0",
		"-algorithm ring -ranks 2 -sizes 8K..4K",
		"-algorithm ring -ranks 2 -sizes 1k",
		"-algorithm ring -ranks 2 -sizes 4,",
		"-algorithm ring -ranks 2 -sizes 5G",
		"-algorithm ring -ranks 2 -elements 2G",
		"-algorithm ring -ranks 2 -iterations 0",
		"-algorithm ring -ranks 2 -warmup -1",
		"-algorithm ring -ranks 2 -timeout 0s",
		"-algorithm ring -ranks 2 -wait -1s",
	} {
		args := append([]string{"collective"}, strings.Fields(line)...)
		s := tributary(context.Background(), args...)
		require.NotZero(t, s.status, line)
		require.Empty(t, s.out, line)
		all.WriteString(transcript(args, s) + "\n")
	}
	golden(t, path, all.String())
}

// TestCollectiveJoins: ranks that are started one by one sum on cards of tributary serve; the ticket of a
// job's first rank admits the others. A rank that lacks it is told who has it.
func TestCollectiveJoins(t *testing.T) {
	collectiveFolder(t)
	startServe(t, "-card", "cpu:workers=2", "-listen", "unix:s")
	startServe(t, "-card", "cpu:workers=3", "-card", "cpu:workers=2", "-listen", "unix:t")
	startServe(t, "-card", "cpu:workers=2,jobs=2", "-listen", "unix:u")
	for _, c := range []struct {
		flags   string
		joins   []int // by rank: whose ticket it needs; -1: none
		heading string
	}{
		{"-algorithm card -card serve:unix:s", []int{-1, 0}, "# all-reduce by card, 2 ranks"},
		{"-algorithm rina -racks 2,1 -card serve:unix:t#card0 -card serve:unix:t#card1", []int{-1, 0, -1, -1}, "# all-reduce by rina, 4 ranks, racks 2,1"},
		{"-algorithm parallel -machines 2 -card serve:unix:u", []int{-1, -1, 0, 1}, "# all-reduce by parallel, 4 ranks, 2 machines"},
	} {
		args := append(strings.Fields(c.flags), "-sizes", "64", "-peers", strings.Join([]string{"unix:a", "unix:b", "unix:c", "unix:d"}[:len(c.joins)], ","))
		var ranks []*rank
		tickets := map[int]string{}
		for number, joins := range c.joins {
			own := append(slices.Clip(args), "-rank", strconv.Itoa(number))
			if joins >= 0 {
				s := tributary(t.Context(), append([]string{"collective"}, own...)...)
				require.Equal(t, statusUsage, s.status)
				require.Contains(t, s.errs, fmt.Sprintf("-join is missing; rank %d prints the ticket\n", joins))
				own = append(own, "-join", tickets[joins])
			}
			r := startCollective(t, own...)
			ranks = append(ranks, r)
			if slices.Contains(c.joins, number) {
				line, err := r.out.ReadString('\n')
				require.NoError(t, err)
				ticket, ok := strings.CutPrefix(strings.TrimSpace(line), "ticket ")
				require.True(t, ok, line)
				tickets[number] = ticket
			}
		}
		for _, r := range ranks {
			s := r.ended(t)
			require.Zero(t, s.status, s.errs)
			require.Empty(t, s.errs)
			require.Contains(t, s.out, c.heading+"\n")
			require.Regexp(t, ` 0\n$`, s.out)
		}
	}
}

// TestCollectiveRow checks the units and the columns of a row: µs, and GB/s of 10^9 bytes.
func TestCollectiveRow(t *testing.T) {
	var out strings.Builder
	f := &collectiveFlags{check: true}
	row := collectiveRow{Size: 4096, Count: 1024, Type: "fp32", Op: "sum", Root: -1, Seconds: 0.00125, Algorithm: 2e9, Bus: 3e9, Wrong: 7}
	require.NoError(t, newTable(&setup{collectiveFlags: f}, &out, &strings.Builder{}).add(row))
	require.Regexp(t, `\n +4096 +1024 +fp32 +sum +-1 +1250\.0 +2\.000 +3\.000 +7\n$`, out.String())
	f.check = false
	require.NoError(t, newTable(&setup{collectiveFlags: f}, &out, &strings.Builder{}).add(row))
	require.Regexp(t, ` N/A\n$`, out.String())
}
